"""Write the accuracy table of README.md from the records of Table 1 at the paper's size.

    python benchmarks/readme.py

tests/test_results_pages.py holds the page to the records.
"""

from collections import defaultdict
from pathlib import Path

from pubc.metrics import mean_and_spread
from pubc.results import read
from pubc.storage import atomic_file

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "README.md"
RECORDS = ROOT / "docs" / "records" / "pu-accuracy-paper.jsonl"
BEGIN, END = "<!-- table: python benchmarks/readme.py -->\n", "<!-- end of table -->\n"
RECIPES = ("auto", "paper")


def table() -> str:
    found: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    told: dict[str, str] = {}
    for record in read(RECORDS):
        values = record.values
        if values["column"] in RECIPES and values.get("accuracy") is not None:
            found[values["row"]][values["column"]].append(100 * values["accuracy"])
            told[values["row"]] = (
                "" if values["paper"] is None else f"{100 * values['paper']:.1f} %"
            )
    rows = [
        "| mixture | runs | `auto` | lowest | `paper` | lowest | in the paper |",
        "|---|---|---|---|---|---|---|",
    ]
    for row, columns in found.items():
        spreads = [mean_and_spread(columns[recipe]) for recipe in RECIPES]
        figures = " | ".join(f"{one.mean:.1f} % | {one.low:.1f} %" for one in spreads)
        rows.append(f"| {row} | {spreads[0].count} | {figures} | {told[row]} |")
    return "\n".join(rows) + "\n"


def page(text: str) -> str:
    """The page with the table of the records."""
    head, rest = text.split(BEGIN)
    return head + BEGIN + table() + END + rest.split(END)[1]


def main() -> None:
    text = page(PAGE.read_text())
    with atomic_file(PAGE, overwrite=True) as temporary:
        temporary.write_text(text)


if __name__ == "__main__":
    main()
