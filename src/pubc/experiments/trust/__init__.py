"""The suite of trust: piles whose answer is known, or known not to exist.

from pubc.experiments.trust import questions

for spec in questions(quick=True, data={}):
    question = spec.make()
"""

from pubc.experiments.trust.question import Question, QuestionSpec
from pubc.experiments.trust.suite import questions

__all__ = ["Question", "QuestionSpec", "questions"]
