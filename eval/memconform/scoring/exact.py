"""The exact scorer: does the text hold the expected strings?"""

from memconform.datasets.matching import holds
from memconform.datasets.model import Question


def exact_score(question: Question, text: str) -> float:
    """1.0 if any (or with `match: all` every) expected string occurs in `text`, else 0.0.

    Raises:
        ValueError: for a question without expected strings, which nothing could pass.
    """
    if not question.expected_substrings:
        raise ValueError(f"question {question.id!r} has no expected_substrings")
    combine = all if question.match == "all" else any
    return float(combine(holds(question, each, text) for each in question.expected_substrings))
