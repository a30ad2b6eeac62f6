"""Imports run one way only, and the code keeps the rules that make it safe."""

import ast
from functools import cache
from pathlib import Path

import pytest

import pubc

ROOT = Path(pubc.__file__).parent
# A module may import from the lines below its own, never from its own line or above.
LAYERS = [
    {"__main__"},
    {"cli"},
    {"experiments", "api", "review"},
    {"report"},
    {"runs"},
    {"policies", "collect", "pu"},
    {"acting", "labels_file"},
    {"formats", "select", "nets", "metrics", "results", "engine", "zoo", "labels"},
    {"trajectory", "tensor_files"},
    {"storage"},
    {"errors", "streams", "threads", "version"},
]
LEVEL = {name: level for level, names in enumerate(LAYERS) for name in names}
MODULES = sorted(p for p in ROOT.rglob("*.py") if p != ROOT / "__init__.py")


@cache
def imports_of(path: Path) -> frozenset[str]:
    names = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module == "pubc":
            names |= {f"pubc.{alias.name}" for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names.add(node.module)
        elif isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
    return frozenset(names)


def part(dotted: str) -> str:
    return dotted.split(".")[1]


@pytest.mark.parametrize("path", MODULES, ids=lambda p: str(p.relative_to(ROOT)))
def test_imports_point_down(path: Path):
    here = part("pubc." + ".".join(path.relative_to(ROOT).with_suffix("").parts))
    there = {part(n) for n in imports_of(path) if n.startswith("pubc.")} - {here}
    there.discard("__version__")
    upward = {name for name in there if LEVEL[name] <= LEVEL[here]}
    assert not upward, f"{here} must not import {sorted(upward)}"


FRIENDS = {
    "d3rlpy": {"policies/offline_rl/d3rlpy_learners.py"},
    "stable_baselines3": {"collect/train_experts.py"},
    "ray": {"engine/ray.py"},
    "minari": {"formats/minari/minari_read.py"},
    "pyarrow": {"formats/parquet/parquet_read.py", "formats/minari/minari_tables.py"},
    "zarr": {"formats/zarr/zarr_read.py"},
    "crc32c": {"formats/rlds/tfrecords.py"},
    "trifinger_rl_datasets": {"acting/environments/trifinger.py"},
    "starlette": {"review/app.py"},
    "uvicorn": {"review/serve.py"},
    "onnxruntime": {"policies/export_policy.py"},
}


@pytest.mark.parametrize("friend", FRIENDS)
def test_a_heavy_friend_has_one_door(friend: str):
    users = {
        p.relative_to(ROOT).as_posix()
        for p in MODULES
        if any(n == friend or n.startswith(friend + ".") for n in imports_of(p))
    }
    assert users <= FRIENDS[friend], f"{friend} is imported in {sorted(users)}"


@pytest.mark.parametrize("path", MODULES, ids=lambda p: str(p.relative_to(ROOT)))
def test_every_module_says_why_it_exists_and_what_it_offers(path: Path):
    tree = ast.parse(path.read_text())
    assert ast.get_docstring(tree)
    if path.name != "__init__.py":
        assert any(
            isinstance(node, ast.Assign)
            and any(isinstance(t, ast.Name) and t.id == "__all__" for t in node.targets)
            for node in tree.body
        )


FORBIDDEN_NAMES = {"pickle", "cPickle", "marshal", "shelve", "dill", "cloudpickle", "joblib"}
# The one place where a pickle is opened: the user said that they trust it, and it runs in
# a child process.
TRUSTED = {"formats/trusted_pickle.py"}


def calls_of(tree: ast.AST) -> list[ast.Call]:
    return [node for node in ast.walk(tree) if isinstance(node, ast.Call)]


def spelled(node: ast.expr) -> str:
    return ast.unparse(node)


@pytest.mark.parametrize("path", MODULES, ids=lambda p: str(p.relative_to(ROOT)))
def test_no_code_comes_from_data(path: Path):
    name = path.relative_to(ROOT).as_posix()
    if name in TRUSTED:
        return
    tree = ast.parse(path.read_text())
    modules = {n.split(".")[0] for n in imports_of(path)}
    assert not modules & FORBIDDEN_NAMES
    for call in calls_of(tree):
        target = spelled(call.func)
        keywords = {k.arg: spelled(k.value) for k in call.keywords}
        assert target not in ("eval", "exec", "compile", "__import__"), target
        assert not target.endswith((".extractall", ".extract", "yaml.load")), target
        assert keywords.get("shell") != "True", target
        assert keywords.get("allow_pickle") != "True", target
        if target in ("np.load", "numpy.load"):
            assert keywords.get("allow_pickle") == "False", "say allow_pickle=False"
        if target == "torch.load":
            assert keywords.get("weights_only") == "True", "say weights_only=True"
