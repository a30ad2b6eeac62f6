import gc
import subprocess
import sys

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pubc.errors import DataError, UsageError
from pubc.formats.parquet import parquet_read as parquet
from pubc.formats.parquet import parquet_write


def refusal(path) -> DataError:
    with pytest.raises(DataError) as caught:
        parquet.read_table(path)
    assert str(path) in str(caught.value)
    return caught.value


def test_a_run_of_numbers_that_unpacks_to_gigabytes_is_refused(tmp_path):
    path = tmp_path / "bomb.parquet"
    block = pa.table({"x": np.zeros(4_000_000, dtype=np.int64)})
    with pq.ParquetWriter(path, block.schema, compression="zstd") as writer:
        for _ in range(20):
            writer.write_table(block)
    assert path.stat().st_size < 500_000
    assert refusal(path).code == "bomb"


def test_a_delta_encoded_run_is_refused(tmp_path):
    path = tmp_path / "bomb.parquet"
    block = pa.table({"x": np.arange(20_000_000, dtype=np.int64)})
    pq.write_table(
        block, path, use_dictionary=False, column_encoding={"x": "DELTA_BINARY_PACKED"},
        compression="zstd",
    )  # fmt: skip
    assert path.stat().st_size < 150_000
    assert refusal(path).code == "bomb"


def test_long_lists_count_by_their_elements(tmp_path):
    path = tmp_path / "bomb.parquet"
    lists = pa.ListArray.from_arrays([0, 30_000_000], np.zeros(30_000_000, dtype=np.float32))
    pq.write_table(pa.table({"x": lists}), path, compression="zstd")
    assert path.stat().st_size < 100_000
    assert refusal(path).code == "bomb"


def test_a_constant_column_of_ordinary_size_is_no_bomb(tmp_path):
    path = tmp_path / "fine.parquet"
    pq.write_table(pa.table({"x": np.zeros(1_000_000, dtype=np.int64)}), path)
    assert path.stat().st_size < 10_000
    assert parquet.read_table(path).num_rows == 1_000_000


def test_a_python_extension_type_is_refused(tmp_path):
    path = tmp_path / "x.parquet"
    storage = pa.field("x", pa.int64(), metadata={
        "ARROW:extension:name": "arrow.py_extension_type",
        "ARROW:extension:metadata": "cposix\nsystem\n(S'true'\ntR.",
    })  # fmt: skip
    pq.write_table(pa.table({"x": [1, 2]}, schema=pa.schema([storage])), path)
    assert refusal(path).code == "pickle"


@pytest.mark.parametrize("dtype", ["f2", "f4", "f8", "i1", "u2", "i4", "u8", "?", ">f4"])
@pytest.mark.parametrize("shape", [(), (3,), (2, 2), (2, 1, 3)])
def test_arrays_come_back_as_they_went(tmp_path, dtype, shape):
    rng = np.random.Generator(np.random.Philox(2))
    values = rng.integers(0, 2, (7, *shape)).astype(dtype)
    path = tmp_path / "x.parquet"
    parquet_write.write_tables(path, [parquet_write.make_table({"x": values})])
    back = parquet.to_numpy(path, parquet.read_table(path), "x")
    assert back.shape == values.shape
    assert back.dtype == values.dtype.newbyteorder("=")
    assert back.tolist() == values.tolist()


def test_every_kind_of_nan_survives(tmp_path):
    values = np.array([0x7FC00000, 0x7FC00001, 0xFFC0BEEF, 0x80000000], dtype="u4").view("f4")
    path = tmp_path / "x.parquet"
    parquet_write.write_tables(path, [parquet_write.make_table({"x": values})])
    back = parquet.to_numpy(path, parquet.read_table(path), "x")
    assert back.tobytes() == values.tobytes()


def test_a_flipped_bit_in_what_pubc_wrote_is_found(tmp_path):
    path = tmp_path / "x.parquet"
    values = np.random.Generator(np.random.Philox(2)).normal(size=500)
    parquet_write.write_tables(path, [parquet_write.make_table({"x": values})])
    data = bytearray(path.read_bytes())
    data[len(data) // 3] ^= 4
    path.write_bytes(data)
    assert refusal(path).code == "truncated"


def test_numbers_that_parquet_cannot_hold_are_a_usage_error():
    with pytest.raises(UsageError, match="complex128"):
        parquet_write.make_table({"x": np.zeros(3, dtype=complex)})


def test_text_is_not_taken_for_numbers(tmp_path):
    with pytest.raises(DataError, match="expected numbers"):
        parquet.to_numpy(tmp_path, pa.table({"x": ["a"]}), "x")


# Histograms of the levels of three rows of two: lists of 2 and 4 numbers, then of 3 and 3.
OF_LISTS = (
    b"\x29\x26\x06\x06\x19\x46\x00\x00\x00\x0c",
    b"\x29\x36\x06\x06\x06\x19\x36\x00\x00\x0c",
)
# Of three rows with one member: a list of 3 numbers, then of 2.
OF_MEMBERS = (b"\x19\x36\x00\x00\x06", b"\x19\x26\x00\x86\x00")


@pytest.mark.parametrize("group", [0, 7], ids=["first", "last"])
@pytest.mark.parametrize("lists", [True, False], ids=["lists", "members"])
def test_a_damaged_description_of_a_chunk_is_told_instead_of_aborting(tmp_path, lists, group):
    """pyarrow ends the whole process when it is asked for such a description."""
    path = tmp_path / "x.parquet"
    row = [1.0, 2.0] if lists else {"member": 1.0}
    parquet_write.write_tables(path, [pa.table({"x": pa.array([row] * 3)})] * 8)
    data = bytearray(path.read_bytes())
    right, wrong = OF_LISTS if lists else OF_MEMBERS
    place = -1
    for _ in range(group + 1):
        place = data.index(right, place + 1)
    data[place : place + len(wrong)] = wrong
    path.write_bytes(data)
    read = (
        "import sys; from pathlib import Path; from pubc.errors import DataError\n"
        "from pubc.formats.parquet.parquet_read import read_table\n"
        "try: read_table(Path(sys.argv[1]))\n"
        "except DataError as error: print(error)"
    )
    done = subprocess.run([sys.executable, "-c", read, path], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-300:]
    assert f"{path}: not readable as Parquet" in done.stdout
    assert "histogram" in done.stdout


def test_a_file_that_was_read_is_let_go_at_once(tmp_path):
    path = tmp_path / "x.parquet"
    parquet_write.write_tables(path, [parquet_write.make_table({"x": np.zeros((3, 2))})])

    def held() -> int:
        return sum(type(thing) is pq.FileMetaData for thing in gc.get_objects())

    gc.collect()
    before = held()
    gc.disable()
    try:
        parquet.read_table(path)
        assert held() == before
    finally:
        gc.enable()


def test_files_are_opened_ahead_in_turn_and_each_tells_its_own_fault(tmp_path):
    paths = [tmp_path / f"{number}.parquet" for number in range(4)]
    for number, path in enumerate(paths):
        parquet_write.write_tables(path, [parquet_write.make_table({"x": np.full(3, number)})])
    paths[1].write_bytes(b"not a table at all")
    found = []
    with parquet.OpenAhead(paths) as files:
        assert files.paths == paths
        for path, opened in files:
            try:
                table = parquet.read_table(path, opened=opened)
                found.append(table.column("x")[0].as_py())
            except DataError as error:
                found.append((error.code, str(path) in str(error)))
    assert found == [0, ("bad_file", True), 2, 3]
    with parquet.OpenAhead([]) as files:
        assert list(files) == []
