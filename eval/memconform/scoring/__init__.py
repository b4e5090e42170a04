"""Scorers, abstention, retrieval metrics and the statuses of a question."""

from memconform.errors import UsageError
from memconform.scoring.exact import ExactScorer
from memconform.scoring.scorer import Scorer


def scorer_of(name: str) -> Scorer:
    """Return the scorer called `name`.

    Raises:
        UsageError: `no_judge` for any other name.
    """
    if name == ExactScorer.name:
        return ExactScorer()
    raise UsageError(
        f"the {name} scorer is not implemented yet",
        code="no_judge",
        hint="use --scorer exact",
    )
