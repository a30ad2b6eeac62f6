"""`pubc review` with somebody at the page who also starts a run."""

from functools import partial

from tests.reliability import review_visit

main = partial(review_visit.main, run=True)
