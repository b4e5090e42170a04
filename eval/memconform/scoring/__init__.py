"""What an answer is worth, and the verdicts in which that ends."""

from memconform.errors import UsageError
from memconform.scoring.exact import ExactScorer
from memconform.scoring.scorer import Scorer


def scorer_of(name: str) -> Scorer:
    """The scorer of that name; raises UsageError where there is none."""
    if name == ExactScorer.name:
        return ExactScorer()
    raise UsageError(
        f"the {name} scorer is not implemented yet",
        code="no_judge",
        hint="use --scorer exact",
    )
