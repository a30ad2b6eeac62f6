"""Every table lists its cells completely, and holds the paper's numbers as printed."""

import numpy as np
import pytest

from pubc import zoo
from pubc.errors import UnknownNameError, UsageError
from pubc.experiments import TABLES, get_table
from pubc.experiments.cell import SCALES, DatasetSpec, FilterSpec, SeedSpec
from pubc.experiments.tables import ablation, collection, pu_accuracy
from pubc.metrics import REFERENCES
from pubc.pu.recipes import Paper, PaperGuarded, recipe_from_json


@pytest.mark.parametrize("name", TABLES)
@pytest.mark.parametrize("scale", SCALES)
def test_cells_stand_in_the_rows_and_columns_of_their_table_each_once(name, scale):
    table = get_table(name)
    cells = table.cells(SCALES[scale], 2, {})
    places = [(cell.row, cell.column, cell.random_seed) for cell in cells]
    assert len(set(places)) == len(places)
    assert {cell.row for cell in cells} == set(table.rows)
    assert {cell.column for cell in cells} == set(table.columns)
    assert table.scaled_down[scale]
    for cell in cells:
        assert cell.dataset.given or cell.dataset.name in table.data
        if cell.filter is not None and cell.filter.recipe is not None:
            recipe_from_json(cell.filter.recipe)


def test_an_unknown_table_is_told_the_nearest():
    with pytest.raises(UnknownNameError, match="Did you mean 'pu-accuracy'"):
        get_table("pu-acuracy")


@pytest.mark.parametrize(
    ("rows", "average"),
    [
        ("TriFinger-Sim", (88.4, 84.9, 99.9)),
        ("TriFinger-Real", (79.1, 77.4, 99.6)),
        ("Ant", (98.9, 97.9, 99.5)),
        ("Humanoid", (92.6, 93.2, 99.7)),
    ],
)
def test_table_one_averages_to_the_averages_that_the_paper_prints(rows, average):
    found = [figures for row, figures in pu_accuracy.PAPER.items() if row.startswith(rows)]
    assert np.abs(100 * np.mean(found, axis=0) - average).max() < 0.06


def test_table_five_repeats_table_one_in_its_first_and_its_middle_column():
    for row, figures in ablation.PAPER.items():
        assert figures[0] == figures[5] == figures[6] == pu_accuracy.PAPER[row][2]


def test_table_four_asks_each_source_of_one_collection():
    cells = get_table("collection").cells(SCALES["paper"], 3, {})
    assert {cell.dataset.recipe for cell in cells} == {"ant:E+E+W+N", "humanoid:E+E+W+N"}
    assert {cell.dataset.steps_per_source for cell in cells} == {500_000}
    weak = {cell.column: cell.paper for cell in cells if cell.row == "Humanoid W"}
    assert (weak["mean return"], weak["steps"]) == (collection.PAPER["Humanoid W"], 500_000)


def test_the_baselines_are_the_papers_loop_with_another_loss_and_recorded_pairs():
    cells = get_table("pu-accuracy").cells(SCALES["paper"], 1, {})
    recipes = {c.column: recipe_from_json(c.filter.recipe) for c in cells if c.row == "Ant E+W"}
    for name, loss in (
        ("upu", "unbiased_pu"),
        ("nnpu", "non_negative_pu"),
        ("nnpu-clamp", "non_negative_pu_clamp"),
    ):
        assert recipes[name].ensemble.loss == loss
        assert recipes[name].ensemble.negatives == "unlabelled"
        assert recipes[name].ensemble.classifiers == 3
        assert recipes[name].loop == recipes["paper"].loop
        assert isinstance(recipes[name], PaperGuarded)
    assert recipes["paper"].ensemble.negatives == "seven"
    assert recipes["paper"] == Paper()
    assert recipes["paper-guarded"] == PaperGuarded()


def test_every_source_has_as_many_steps_and_noise_the_range_of_its_own_mixture():
    for scale, steps in (("small", 100_000), ("paper", 500_000)):
        cells = get_table("pu-accuracy").cells(SCALES[scale], 1, {})
        found = {c.row: c.dataset for c in cells if c.dataset.recipe is not None}
        assert {d.steps_per_source for d in found.values()} == {steps}
        assert {d.trajectories_per_source for d in found.values()} == {None}
        for body in ("Ant", "Humanoid"):
            assert found[f"{body} E+N"].recipe == f"{body.lower()}:E+N"
            assert found[f"{body} E+W"].recipe == f"{body.lower()}:E+E+W+N"


def test_seeds_of_robots_have_the_highest_returns():
    cells = get_table("pu-accuracy").cells(SCALES["small"], 1, {})
    seeds = {c.filter.seeds for c in cells if c.row.startswith("TriFinger")}
    assert seeds == {SeedSpec(top=0.004)}


def test_the_transformer_is_asked_for_the_highest_return_attainable():
    cells = get_table("policy-scores").cells(SCALES["paper"], 1, {})
    asked = {c.row: c.learner.options["target_return"] for c in cells if c.column == "DT"}
    assert asked["TriFinger-Sim push"] == 750
    assert asked["TriFinger-Sim lift"] == 1500
    assert asked["Ant E+W"] == zoo.card("ant/expert")["returns"]["max"]
    assert asked["Humanoid E"] == REFERENCES["humanoid"][1]


def test_every_table_with_humanoid_says_who_its_weak_policy_is():
    card = zoo.card("humanoid/weak")
    for name in TABLES:
        table = get_table(name)
        if any(row.startswith("Humanoid") for row in table.rows):
            assert f"{card['training_steps']:,} steps" in table.caption
            assert f"{card['returns']['mean']:,.0f}" in table.caption


def test_every_variant_of_the_ablation_differs_from_all_others():
    cells = get_table("ablation").cells(SCALES["small"], 1, {})
    for row in ("Humanoid E+W", "TriFinger-Sim push"):
        filters = [repr(cell.filter) for cell in cells if cell.row == row]
        assert len(set(filters)) == len(filters)


def test_tables_share_what_is_equal():
    accuracy, rounds = (
        {(c.row, c.column): c.identity() for c in get_table(name).cells(SCALES["small"], 1, {})}
        for name in ("pu-accuracy", "convergence")
    )
    assert rounds.items() <= accuracy.items()


def test_specs_that_mean_nothing_are_refused():
    with pytest.raises(UsageError):
        DatasetSpec()
    with pytest.raises(UsageError):
        SeedSpec(trajectories=1, top=0.1)
    with pytest.raises(UsageError):
        FilterSpec("pu")
