"""Where a result must not go."""

import pytest

from pubc.errors import UsageError
from pubc.storage import MANIFEST, check_apart, check_target, claim, seal


@pytest.fixture
def sealed(tmp_path):
    folder = tmp_path / "sealed"
    (folder / "deep").mkdir(parents=True)
    (folder / "deep" / "data").write_text("data")
    seal(folder, kind="store")
    return folder


@pytest.mark.parametrize("name", ["new", "deep/new", "deep/data", "far/away/new"])
def test_a_sealed_folder_is_closed(sealed, name):
    with pytest.raises(UsageError, match=r"lies inside .*\(kind 'store'\)"):
        check_target(sealed / name)
    with pytest.raises(UsageError, match="lies inside"):
        claim(sealed / name, "store", force=True)
    (sealed.parent / "link").symlink_to(sealed)
    with pytest.raises(UsageError, match="lies inside"):
        check_target(sealed.parent / "link" / name)


def test_the_folder_itself_and_its_neighbours_are_open(sealed):
    check_target(sealed)
    check_target(sealed.with_name("other"), sealed)


def test_manifests_of_others_close_nothing(tmp_path):
    (tmp_path / MANIFEST).write_text('{"name": "a web page", "files": {}}')
    check_target(tmp_path / "new")
    (tmp_path / MANIFEST).write_text("not even JSON")
    check_target(tmp_path / "new")


def test_a_source_is_not_replaced(sealed):
    (sealed.parent / "link").symlink_to(sealed / "deep")
    for source in (sealed, sealed / "deep", sealed.parent / "link" / "data"):
        with pytest.raises(UsageError, match="replace its own source"):
            check_target(sealed, None, source)


def test_a_source_under_a_second_name_is_not_replaced(sealed):
    """A hard link, as a mount of one folder in two places would be."""
    second = sealed.with_name("second")
    second.hardlink_to(sealed / "deep" / "data")
    with pytest.raises(UsageError, match="replace its own source"):
        check_target(second, sealed / "deep" / "data")
    with pytest.raises(UsageError, match="a place of its own"):
        check_apart(second, sealed / "deep" / "data")


def test_results_that_are_apart_are_allowed(tmp_path):
    check_apart()
    check_apart(None, tmp_path, None)
    check_apart(tmp_path / "a", tmp_path / "a.txt", tmp_path / "b" / "a")


def test_results_in_each_others_way_are_refused(tmp_path):
    (tmp_path / "link").symlink_to(tmp_path / "a")
    for one, other, told in (
        (tmp_path / "a", tmp_path / "b" / ".." / "a", "is named twice"),
        (tmp_path / "a", tmp_path / "link", "is named twice"),
        (tmp_path / "a", tmp_path / "link" / "b", f"link/b lies inside {tmp_path}/a,"),
    ):
        for places in ((one, other), (other, one)):
            with pytest.raises(UsageError, match=told):
                check_apart(places[0], None, places[1])
