"""The server answers this machine with the token, and nobody else; what it is told it keeps."""

import json
import os
import socket
from urllib.parse import urlsplit

import numpy as np
import pytest

from pubc import formats
from pubc.formats import ReadOptions
from pubc.labels import Mark, read_labels
from pubc.review.desk import open_desk
from pubc.review.serve import serving
from pubc.trajectory import Columns, TrajectorySet
from tests.report.hostile import HOSTILE
from tests.review.asking import ask, mark, told


@pytest.fixture
def small(tmp_path):
    path = tmp_path / "small.npz"
    formats.save(path, pile(6))
    return path


def pile(count, ids=None):
    rng = np.random.default_rng(0)
    steps = 20 * count
    flags = np.zeros(steps, bool)
    columns = Columns(
        rng.normal(size=(steps, 3)),
        rng.normal(size=(steps, 2)),
        rng.normal(size=steps),
        flags,
        flags,
    )
    return TrajectorySet.from_flat(columns, [20] * count, ids=ids)


@pytest.fixture
def served(small):
    desk = open_desk(small, ReadOptions())
    with serving(desk) as address:
        yield desk, address


def test_the_page_comes_with_a_policy_that_allows_this_server_alone(served):
    _, address = served
    status, headers, raw = ask(address)
    assert status == 200
    assert b"All trajectories" in raw
    policy = headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "connect-src 'self'" in policy
    assert "frame-ancestors 'none'" in policy
    assert "unsafe" not in policy
    assert "http" not in policy.replace("https", "http").split("sha256")[0]
    assert headers["cache-control"] == "no-store"
    assert headers["referrer-policy"] == "no-referrer"
    assert headers["x-content-type-options"] == "nosniff"
    assert "server" not in {name.lower() for name in headers}


def test_another_host_is_refused(served):
    _, address = served
    port = urlsplit(address).port
    for host in (
        "evil.test",
        f"evil.test:{port}",
        "127.0.0.1",
        "127.0.0.1.evil.test",
        f"0.0.0.0:{port}",
    ):
        status, _, raw = ask(address, host=host)
        assert status == 403, host
        assert b"Refused" in raw
    for host in (f"127.0.0.1:{port}", f"localhost:{port}", f"LOCALHOST:{port}"):
        assert ask(address, host=host)[0] == 200, host


def test_two_hosts_or_none_are_refused(served):
    _, address = served
    parts = urlsplit(address)
    for lines in (b"", f"Host: {parts.netloc}\r\nHost: evil.test\r\n".encode()):
        with socket.create_connection((parts.hostname, parts.port), timeout=30) as line:
            line.sendall(b"GET " + parts.path.encode() + b" HTTP/1.1\r\n" + lines + b"\r\n")
            assert line.recv(4096).split()[1] in (b"403", b"400")


def test_a_missing_or_wrong_token_is_refused(served):
    desk, address = served
    parts = urlsplit(address)
    token = parts.path.strip("/")
    other = f"{token[:-1]}{'y' if token.endswith('x') else 'x'}/"
    for path in ("", "marks", "run", "plots/0", other, "%00", "%C3%A9"):
        assert ask(address, path, token=False)[0] == 403, path
    body = {"episodes": [{"at": 0, "marks": [{"label": "good"}]}]}
    assert ask(address, "marks", body=body, token=False)[0] == 403
    assert len(desk.labels) == 0


def test_a_page_of_another_site_is_refused(served):
    desk, address = served
    body = {"episodes": [{"at": 0, "marks": [{"label": "good"}]}]}
    for origin in ("http://evil.test", "null", "https://127.0.0.1"):
        assert ask(address, "marks", body=body, headers={"Origin": origin})[0] == 403
    assert len(desk.labels) == 0
    own = "http://" + urlsplit(address).netloc
    assert ask(address, "marks", body=body, headers={"Origin": own})[0] == 200


def test_the_server_listens_to_this_machine_only(served):
    _, address = served
    port = urlsplit(address).port
    others = {info[4][0] for info in socket.getaddrinfo(socket.gethostname(), None, socket.AF_INET)}
    for other in others - {"127.0.0.1", "127.0.1.1"}:
        with pytest.raises(ConnectionError), socket.create_connection((other, port), timeout=2):
            pass


def test_no_path_leads_out_of_the_dataset(served, tmp_path):
    _, address = served
    (tmp_path / "secret").write_text("secret")
    for path in (
        "../secret",
        "video/../../secret",
        "video/0/..%2f..%2fsecret",
        "video/0/0",
        "video/-1/0",
        "video/0/99999999999999999999",
        "plots/-1",
        "plots/99999999999999",
        "episode/-1",
        "episode/6",
        "episode/1e3",
        "..%2f..%2fetc%2fpasswd",
    ):
        status, _, raw = ask(address, path)
        assert status in (403, 404), path
        assert b"secret" not in raw.replace(path.encode(), b"")


def test_marks_are_on_the_disk_when_the_answer_comes(served):
    desk, address = served
    mark(address, "good", 0, 3)
    stretch = {"label": "bad", "start": 4, "stop": 9}
    told(address, "marks", {"episodes": [{"at": 5, "marks": [stretch]}]})
    wanted = (Mark("0", "good"), Mark("3", "good"), Mark("5", "bad", 4, 9))
    assert read_labels(desk.labels_path).marks == wanted
    told(address, "marks", {"episodes": [{"at": 0, "marks": []}]})
    assert read_labels(desk.labels_path).marks == wanted[1:]


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"[" * 50_000,
        b'{"episodes": 3}',
        b'{"episodes": [3]}',
        b'{"episodes": [{"at": 0}]}',
        b'{"episodes": [{"at": "0", "marks": []}]}',
        b'{"episodes": [{"at": true, "marks": []}]}',
        b'{"episodes": [{"at": 0, "marks": {}}]}',
        b'{"episodes": [{"at": 0, "marks": [7]}]}',
        b'{"episodes": [{"at": 6, "marks": []}]}',
        b'{"episodes": [{"at": -1, "marks": []}]}',
        b'{"episodes": [{"at": 0, "marks": [{"label": "great"}]}]}',
        b'{"episodes": [{"at": 0, "marks": [{"label": "good", "start": 1}]}]}',
        b'{"episodes": [{"at": 0, "marks": [{"label": "good", "start": 1, "stop": 21}]}]}',
        b'{"episodes": [{"at": 0, "marks": [{"label": "good", "start": 5, "stop": 5}]}]}',
        b'{"episodes": [{"at": 0, "marks": [{"label": "good", "start": 0.5, "stop": 5}]}]}',
    ],
)
def test_what_is_no_mark_changes_nothing(served, body):
    desk, address = served
    mark(address, "good", 1)
    before = desk.labels_path.read_bytes()
    status, _, raw = ask(address, "marks", body=body)
    assert status == 400, raw
    assert json.loads(raw)["error"]
    assert desk.labels_path.read_bytes() == before


def test_too_much_at_once_is_refused(served):
    _, address = served
    assert ask(address, "marks", body=b" " * (9 << 20))[0] == 413


def test_a_mark_that_cannot_be_saved_is_not_made(served):
    desk, address = served
    mark(address, "good", 1)
    desk.labels_path.unlink()
    desk.labels_path.mkdir()
    body = {"episodes": [{"at": 2, "marks": [{"label": "bad"}]}]}
    status, _, _ = ask(address, "marks", body=body)
    assert status in (400, 500)
    assert desk.labels.marks == (Mark("1", "good"),)


def test_a_file_that_somebody_else_wrote_is_not_replaced_by_marks(served):
    desk, address = served
    body = {"episodes": [{"at": 2, "marks": [{"label": "bad"}]}]}
    desk.folder.mkdir(exist_ok=True)
    for marked in ((), (Mark("2", "bad"),)):
        desk.labels_path.write_text("my own notes")
        status, _, raw = ask(address, "marks", body=body)
        assert status == 400
        assert "written by somebody else" in json.loads(raw)["error"]
        assert desk.labels_path.read_text() == "my own notes"
        assert desk.labels.marks == marked
        desk.labels_path.rename(desk.folder / "notes.txt")
        told(address, "marks", body)
        told(address, "marks", body)
        assert read_labels(desk.labels_path).marks == (Mark("2", "bad"),)


def test_a_run_without_a_good_one_is_refused_in_words(served):
    _, address = served
    status, _, raw = ask(address, "run", body={})
    assert status == 400
    assert "at least one trajectory good" in json.loads(raw)["error"]


def test_films_are_served_in_parts(filmed):
    film = filmed / "videos/observation.images.top/chunk-000/file-000.mp4"
    with serving(open_desk(filmed, ReadOptions())) as address:
        status, headers, raw = ask(address, "video/2/0", headers={"Range": "bytes=100-199"})
        assert status == 206
        assert raw == film.read_bytes()[100:200]
        assert headers["content-type"] == "video/mp4"
        assert headers["content-range"] == f"bytes 100-199/{film.stat().st_size}"
        assert ask(address, "video/2/0")[2] == film.read_bytes()
        view = told(address, "episode/2")
        assert view["clips"] == [{"camera": 0, "start": 4.0, "stop": 6.0}]


def test_a_film_swapped_for_a_link_is_refused(filmed, tmp_path):
    film = filmed / "videos/observation.images.top/chunk-000/file-000.mp4"
    (tmp_path / "secret").write_text("secret")
    with serving(open_desk(filmed, ReadOptions())) as address:
        film.unlink()
        os.symlink(tmp_path / "secret", film)
        status, _, raw = ask(address, "video/2/0")
        assert status == 404
        assert b"secret" not in raw


def test_hostile_names_stay_data(tmp_path):
    names = [word for word in dict.fromkeys(word.replace("\0", "") for word in HOSTILE) if word]
    path = tmp_path / "hostile.npz"
    formats.save(path, pile(len(names), ids=names))
    desk = open_desk(path, ReadOptions())
    with serving(desk) as address:
        mark(address, "good", *range(0, len(names), 2))
        _, _, raw = ask(address)
        text = raw.decode()
        assert text.count("<script") == 2
        assert text.count("</script>") == 2
        block = text.split('id="data">')[1].split("</script>")[0]
        assert json.loads(block)["ids"] == [str(name) for name in desk.trajectories.ids]
    again = open_desk(path, ReadOptions())
    assert again.labels == desk.labels
