"""Figures of tables: what is drawn is what the records hold, in the order of the table."""

import numpy as np
import pytest

from pubc.report.tables import read_table
from pubc.report.tables.pages.table_figures import draw
from pubc.report.tables.table_of_means import sheet
from tests.report.tables.build import all_tables, head, record, trace


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return all_tables(tmp_path_factory.mktemp("records"))


def visible(figure):
    return [axis for axis in figure.axes if axis.get_visible()]


def test_rounds_are_drawn_for_the_lowest_seed_with_their_cut(folder):
    axes = visible(draw(read_table(folder, "convergence").sheet))
    # Three rounds of seed 0, not the two of seed 1; the other rows are not asked for.
    assert [axis.get_title("left") for axis in axes] == [
        "push, paper\nround 1: 91 kept",
        "\nround 2: 92 kept",
        "\nround 3: 93 kept",
    ]
    for axis, done in zip(axes, trace(3), strict=True):
        dropped, kept = (patch.get_data().values for patch in axis.patches)
        counts = np.array(done["histogram"]["counts"])
        right = np.array(done["histogram"]["centres"]) >= done["threshold"]
        assert np.array_equal(kept, np.where(right, counts, 0))
        assert np.array_equal(dropped, np.where(right, 0, counts))
        assert list(axis.lines[-1].get_xdata()) == [0.5, 0.5]


def test_a_round_without_a_cut_keeps_nothing_and_has_no_line():
    rounds = trace(1)
    rounds[0]["threshold"] = None
    rounds[0]["histogram"]["curve"] = []
    document = head(extra={"figure": {"kind": "rounds"}})
    [axis] = visible(draw(sheet(document, [record("Ant E+E", "auto", 0.5, trace=rounds)], "x")))
    assert not axis.patches[1].get_data().values.any()
    assert not axis.lines


def test_learning_curves_are_means_in_a_band_from_lowest_to_highest(folder):
    figure = draw(read_table(folder, "d4rl").sheet)
    axes = visible(figure)
    assert [axis.get_title() for axis in axes] == ["hopper, BC", "hopper, IQL"]
    first = axes[0].lines[0]
    assert first.get_label() == "with PU"
    assert first.get_xdata().tolist() == [1000, 2000, 3000]
    assert first.get_ydata() == pytest.approx([0.45, 0.9, 0.905])
    band = axes[0].collections[0].get_paths()[0].vertices
    assert (band[:, 1].min(), band[:, 1].max()) == pytest.approx((0.45, 0.91))
    assert [text.get_text() for text in figure.legends[0].texts] == ["with PU", "without PU"]


def test_curves_of_random_seeds_that_were_measured_a_little_apart_are_one_line():
    document = head(columns=["BC"], extra={"figure": {"kind": "curves"}})
    curves = [{"x": [100, 200], "y": [0.2, 0.4]}, {"x": [110, 210], "y": [0.4, 0.6]}]
    records = [
        record("Ant E+E", "BC", 0.5, n, curve={"panel": "p", "line": "l", **curve})
        for n, curve in enumerate(curves)
    ]
    [axis] = visible(draw(sheet(document, records, "x")))
    assert axis.lines[0].get_xdata().size == 2
    heights = axis.lines[0].get_ydata()
    assert heights[0] == pytest.approx(0.3, abs=0.02)
    assert heights[1] == pytest.approx(0.5, abs=0.02)


def test_figures_of_a_row_stand_at_the_numbers_of_its_columns(folder):
    [axis] = visible(draw(read_table(folder, "seeds").sheet))
    assert axis.lines[0].get_xdata().tolist() == [1, 2, 4]
    assert axis.lines[0].get_ydata() == pytest.approx([91, 93, 95])
    assert axis.get_xlabel() == "seed trajectories"
    assert len(axis.collections) == 1


def test_many_lines_have_no_bands_that_would_cover_each_other():
    document = head(columns=["1", "2"], extra={"figure": {"kind": "line"}})
    records = [
        record(f"row {n}", c, 0.5 + n / 50, s) for n in range(5) for c in "12" for s in (0, 1)
    ]
    [axis] = visible(draw(sheet(document, records, "x")))
    assert len(axis.lines) == 5
    assert not axis.collections


def test_reliability_pools_the_labels_of_all_answers():
    document = head(extra={"figure": {"kind": "reliability"}})
    told = [
        (True, [[0.0, 60, 1], [0.25, 10, 4]]),
        (True, [[0.0, 40, 0], [0.25, 30, 6]]),
        (False, [[0.5, 19, 9]]),
        (False, []),
    ]
    records = [
        record("Ant E+E", "auto", 0.5, n, sound=sound, reliability=labels)
        for n, (sound, labels) in enumerate(told)
    ]
    [axis] = visible(draw(sheet(document, records, "x")))
    sound, others, stated = axis.lines
    assert list(sound.get_xdata()) == [0.0, 0.25]
    assert list(sound.get_ydata()) == pytest.approx([0.01, 0.25])
    assert len(others.get_xdata()) == 0  # nineteen labels are too few
    assert list(stated.get_xdata()) == [0, 0.5]


def test_nothing_to_draw_is_no_figure(folder):
    assert draw(read_table(folder, "pu-accuracy").sheet) is None
    for kind in ("rounds", "curves", "line", "reliability"):
        assert draw(sheet(head(extra={"figure": {"kind": kind}}), [], "x")) is None
