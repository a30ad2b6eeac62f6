"""benchmarks/safety_cost.py times functions by their names, which must be those of the code."""

import importlib
import importlib.util
from pathlib import Path

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "safety_cost.py"


def test_every_function_that_is_timed_exists():
    spec = importlib.util.spec_from_file_location("safety_cost", SCRIPT)
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    assert len(script.TIMED) > 10
    for home, names in {**script.TIMED, **script.CHILD}.items():
        module = importlib.import_module(home)
        assert [name for name in names if not callable(getattr(module, name, None))] == []
