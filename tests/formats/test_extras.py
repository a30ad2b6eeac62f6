"""A missing optional dependency is named with the command that installs it."""

import sys

import pytest

from pubc import formats
from pubc.errors import MissingExtraError
from pubc.formats.core.findings import Findings
from tests.formats.rlds_sets import episode, write_rlds
from tests.formats.zarr_sets import (
    diffusion_arrays,
    trifinger_arrays,
    write_folder,
    write_lmdb,
    zarr_keys,
)

OPTIONS = formats.ReadOptions(cache=False)
SETS = {
    "trifinger": ("zarr", lambda p: write_lmdb(p, zarr_keys(trifinger_arrays()))),
    "diffusion": ("zarr", lambda p: write_folder(p, zarr_keys(diffusion_arrays()))),
    "rlds": ("crc32c", lambda p: write_rlds(p, [[episode(0, 4, terminal=True)]])),
}


@pytest.mark.parametrize("name", SETS)
def test_the_missing_extra_is_named(name, tmp_path, monkeypatch):
    library, write = SETS[name]
    path = write(tmp_path / "set")
    monkeypatch.setitem(sys.modules, library, None)
    module = formats.get(name)
    with pytest.raises(MissingExtraError, match=f"needs the extra '{module.EXTRA}'"):
        module.read(path, OPTIONS, Findings(path))
