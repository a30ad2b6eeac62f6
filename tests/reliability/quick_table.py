"""The table of tests/experiments/tiny.py as one that `pubc reproduce` knows."""

import sys

from pubc.experiments import TABLES
from tests.experiments import tiny

TABLES["tiny"] = tiny.TABLE.title
sys.modules["pubc.experiments.tables.tiny"] = tiny
