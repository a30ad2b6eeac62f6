"""The page in a real browser: marked by keys, run, reloaded, scrolled, and fed with poison."""

import json
import os

import numpy as np
import pytest

from pubc import formats
from pubc.formats import ReadOptions
from pubc.labels import Mark, read_labels
from pubc.review.desk import open_desk
from pubc.review.serve import serving
from pubc.trajectory import TrajectorySet
from tests.report.browser import needs_browser
from tests.report.hostile import HOSTILE
from tests.review.scrolling import many, scrolled
from tests.review.test_app import pile
from tests.review.test_desk import run_about

pytestmark = needs_browser

SAVED = "document.getElementById('saved').textContent === 'All marks saved'"
PROPOSED = "document.documentElement.dataset.proposed >= '{}'"
TAGS = """Object.fromEntries([...document.querySelectorAll('#grid .ep:not([hidden])')]
  .map(e => [e.dataset.at, [e.dataset.label, e.querySelector('.tag').textContent]]))"""


@pytest.fixture
def run(demo, tmp_path):
    return run_about(demo, tmp_path / "first", [str(at) for at in range(60)])


@pytest.mark.timeout(600)
def test_marks_by_keys_a_run_and_a_reload(chromium, run, demo, brisk_runs):
    """Three good, one bad, run: the verdicts change; after a reload all of it is there."""
    desk = open_desk(run, ReadOptions(), labels=run.parent / "marks.json")
    desk.set_marks([(at, []) for at in range(60)])
    before = desk.run.scores.keep.copy()
    truth = desk.trajectories.sources == "expert"
    good, bad = np.flatnonzero(truth)[:3].tolist(), int(np.flatnonzero(~truth)[0])
    with serving(desk) as address:
        chromium.open(address)
        chromium.wait(PROPOSED.format(1))
        chromium.run("go('all', order[0])")
        for at in range(max(*good, bad) + 1):
            chromium.press(*(["g"] if at in good else ["b"] if at == bad else []), "n")
        chromium.press("p", "g", "u")
        chromium.wait(SAVED)
        wanted = {Mark(str(at), "good") for at in good} | {Mark(str(bad), "bad")}
        assert set(read_labels(desk.labels_path).marks) == wanted
        chromium.press("r")
        chromium.wait("document.documentElement.dataset.run.startsWith('finished')", 300)
        chromium.wait(PROPOSED.format(2))
        keep = desk.run.scores.keep
        assert np.array_equal(keep, truth)
        came, went = int((keep & ~before).sum()), int((before & ~keep).sum())
        assert came + went > 0
        told = chromium.run("document.getElementById('verdict').textContent")
        assert f"kept {keep.sum()} of 60" in told
        assert f"{came} came in, {went} went out" in told
        shown = chromium.run(TAGS)
        for at, (label, verdict) in shown.items():
            now, old = keep[int(at)], before[int(at)]
            kind = "kept" if now else "dropped"
            assert verdict == (f"now {kind}" if now != old else verdict)
            assert kind in verdict
            assert label == ("good" if int(at) in good else "bad" if int(at) == bad else "")
        chromium.click("[data-filter=changed]")
        assert chromium.run("order.length") == came + went
        chromium.open(address)
        again = chromium.run(TAGS)
        assert len(again) > 20
        assert again == {at: shown[at] for at in again}
        assert chromium.run("document.getElementById('count-good').textContent") == "3 good"
        assert chromium.complaints() == []
        assert {url.split("/")[2] for url in chromium.requests()} == {address.split("/")[2]}


def test_many_are_selected_searched_and_sorted(chromium, tmp_path):
    formats.save(tmp_path / "some.npz", pile(40, ids=[f"demo_{at}" for at in range(40)]))
    desk = open_desk(tmp_path / "some.npz", ReadOptions())
    with serving(desk) as address:
        chromium.open(address)
        chromium.wait(PROPOSED.format(1))
        chromium.run(
            "(e => { e.value = 'demo_3'; e.dispatchEvent(new Event('input')); })"
            "(document.getElementById('search'))"
        )
        assert chromium.run("order.length") == 11
        chromium.press("a", "b")
        chromium.wait(SAVED)
        marked = {mark.episode for mark in read_labels(desk.labels_path).marks}
        assert marked == {"demo_3", *(f"demo_{at}" for at in range(30, 40))}
        chromium.press("u")
        chromium.wait("document.getElementById('count-bad').textContent === '0 bad'")
        chromium.run(
            "(e => { e.value = 'high'; e.dispatchEvent(new Event('change')); })"
            "(document.getElementById('sort'))"
        )
        returns = desk.returns
        order = chromium.run("Array.from(order)")
        assert order == sorted(order, key=lambda at: -returns[at])
        assert chromium.complaints() == []


def test_a_stretch_is_chosen_with_the_pointer_and_marked(chromium, tmp_path):
    formats.save(tmp_path / "some.npz", pile(8))
    desk = open_desk(tmp_path / "some.npz", ReadOptions())
    with serving(desk) as address:
        chromium.open(address)
        chromium.wait(PROPOSED.format(1))
        chromium.run("go('all', 3)")
        chromium.press("Enter")
        chromium.wait("document.getElementById('look').dataset.shown === '3'")
        box = chromium.run(
            "(b => [b.left, b.top, b.width, b.height])"
            "(document.querySelector('.closer canvas').getBoundingClientRect())"
        )
        y = box[1] + box[3] / 2
        points = [box[0] + box[2] * share for share in (0.26, 0.5, 0.74)]
        for kind, x in zip(("mousePressed", "mouseMoved", "mouseReleased"), points, strict=True):
            more = {"button": "left", "buttons": 1, "clickCount": 1}
            chromium.send("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y, **more)
            chromium.send("Input.dispatchMouseEvent", type=kind, x=x, y=y, **more)
        chromium.press("b")
        chromium.wait(SAVED)
        assert read_labels(desk.labels_path).marks == (Mark("3", "bad", 5, 15),)
        chromium.press("u")
        chromium.wait("document.getElementById('count-bad').textContent === '0 bad'")
        chromium.wait("!pending.length")
        assert read_labels(desk.labels_path).marks == ()


def test_films_of_several_episodes_move_together(chromium, filmed):
    desk = open_desk(filmed, ReadOptions())
    with serving(desk) as address:
        chromium.open(address)
        chromium.wait(PROPOSED.format(1))
        chromium.run("[1, 3, 4].forEach(at => pick(at, true))")
        chromium.press("Enter")
        ready = (
            "[...document.querySelectorAll('video')].every(v => v.readyState >= 2 && !v.seeking)"
        )
        chromium.wait(f"document.querySelectorAll('video').length === 3 && {ready}")
        chromium.run("moveTo(12)")
        chromium.wait(ready)
        times = chromium.run("[...document.querySelectorAll('video')].map(v => v.currentTime)")
        assert np.allclose(times, [at * 2.0 + 1.25 for at in (1, 3, 4)])
        grey = chromium.run(
            """[...document.querySelectorAll('video')].map(v => {
            const c = document.createElement('canvas');
            c.width = 64; c.height = 48; const p = c.getContext('2d'); p.drawImage(v, 0, 0, 64, 48);
            return p.getImageData(2, 24, 1, 1).data[0]; })"""
        )
        assert np.allclose(grey, [40 + 30 * at for at in (1, 3, 4)], atol=12)
        assert chromium.complaints() == []


def test_a_server_that_is_gone_is_said_and_the_marks_are_taken_back(chromium, tmp_path):
    formats.save(tmp_path / "some.npz", pile(8))
    with serving(open_desk(tmp_path / "some.npz", ReadOptions())) as address:
        chromium.open(address)
        chromium.wait(PROPOSED.format(1))
        chromium.run("go('all', order[0])")
        chromium.press("g")
        chromium.wait(SAVED)
    # Two on the same one: the second must not bring the first back.
    chromium.run("mark([3], 'good'); mark([3], 'bad')")
    chromium.wait("!document.getElementById('trouble').hidden && !pending.length")
    assert "does not answer" in chromium.run("document.getElementById('trouble').textContent")
    told = "['count-good', 'count-bad', 'saved'].map(name => document.getElementById(name)"
    assert chromium.run(f"{told}.textContent)") == ["1 good", "0 bad", "Last mark not saved"]
    assert chromium.run("past.length") == 1


def test_no_string_runs_or_asks_elsewhere(chromium, tmp_path):
    names = [word for word in dict.fromkeys(word.replace("\0", "") for word in HOSTILE) if word]
    path = tmp_path / "hostile.npz"
    some = pile(len(names), ids=names)
    formats.save(path, TrajectorySet(**{**parts(some), "sources": np.array(names[::-1])}))
    desk = open_desk(path, ReadOptions())
    with serving(desk) as address:
        chromium.open(address)
        chromium.wait(PROPOSED.format(1))
        for key in ("g", "n", "b", "a", "b", "Enter"):
            chromium.press(key)
        chromium.wait(SAVED)
        for place in range(0, 20_000, 400):
            chromium.run(f"window.scrollTo({{top: {place}, behavior: 'instant'}})")
        chromium.run("document.querySelectorAll('.tools button, #more').forEach(b => b.click())")
        chromium.wait(PROPOSED.format(2))
        assert chromium.run("typeof window.hacked") == "undefined"
        assert chromium.run("document.querySelectorAll('script').length") == 2
        assert chromium.run("document.querySelectorAll('img, iframe, base, link').length") == 0
        assert chromium.complaints() == []
        assert {url.split("/")[2] for url in chromium.requests()} == {address.split("/")[2]}
    assert {mark.episode for mark in read_labels(desk.labels_path).marks} == set(names)


def parts(trajectories):
    return {name: getattr(trajectories, name) for name in ("columns", "starts", "lengths", "ids")}


def test_ten_thousand_episodes_paint_at_once_and_scroll_without_a_stall(chromium, tmp_path):
    """First paint under 3 s, no frame over 200 ms; the best of several attempts, because a busy
    machine makes a page slower, never faster. Where other programs hold the processors, frames
    are counted in time that the page itself used. `python -m tests.review.scrolling` records."""
    with serving(many(tmp_path)) as address:
        tries = []
        for _ in range(4):
            tries.append(scrolled(chromium, address))
            paint, stall, work = (
                min(one[name] for one in tries)
                for name in ("first_paint_s", "longest_frame_ms", "work_per_frame_ms")
            )
            if paint < 3 and stall < 200:
                break
        assert paint < 3, tries
        assert work < 100, tries
        if os.getloadavg()[0] < 2 * (os.cpu_count() or 1):
            assert stall < 200, tries
        chromium.run("window.scrollTo(0, document.documentElement.scrollHeight)")
        chromium.wait(
            "[...document.querySelectorAll('#grid .ep')].some(e => e.dataset.at === '9999')"
        )


def test_the_data_block_says_what_the_page_needs_and_no_more(desk):
    from pubc.review.page_view import render_review

    text = render_review(desk)
    block = json.loads(text.split('id="data">')[1].split("</script>")[0])
    assert block["count"] == 60
    assert block["progress"]["state"] == "none"
    assert block["marks"] == {}
