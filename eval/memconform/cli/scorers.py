"""The scorer of a command. A judge is imported if it is chosen, because it needs a fifth as much as
a run without one.
"""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from memconform.cli.judge_options import JudgeFlags
from memconform.errors import UsageError
from memconform.runs.plan import Floor
from memconform.scoring.exact import ExactScorer
from memconform.scoring.scorer import OpenScorer


def scorer_name(scorer: str | None, flags: JudgeFlags, *, answers: bool) -> str:
    """The scorer to use: the one that was named, else the judge where answers are generated.

    Raises:
        UsageError: `judge_needs_answers`, `judge_without_scorer`.
    """
    if scorer is None:
        return "judge" if answers or flags.judge else "exact"
    if scorer == "exact" and flags.judge:
        raise UsageError(
            "--judge and --scorer exact exclude each other",
            code="judge_without_scorer",
            hint="use one of them",
        )
    return scorer


def require_answers(scorer: str, *, answers: bool) -> None:
    """Raise UsageError (`judge_needs_answers`) for a judge where nothing is answered."""
    if scorer == "judge" and not answers:
        raise UsageError(
            "search-retrieve-only generates no answers to judge",
            code="judge_needs_answers",
            hint="use --scorer exact, or another --scenario",
        )


@asynccontextmanager
async def open_scorer(
    name: str, flags: JudgeFlags, floors: Sequence[Floor], results: Path
) -> AsyncIterator[OpenScorer]:
    """The scorer of a command; a judge may call its service until the block ends.

    Raises:
        UsageError: where a judge cannot be called, or may not decide over the floors.
        ResultsError: where a judge's calibration cannot be read.
        DaemonError: where the offline upstream does not start.
    """
    if name == ExactScorer.name:
        yield OpenScorer(ExactScorer())
        return
    from memconform.cli.judge_session import open_judge_scorer  # noqa: PLC0415 - see above

    async with open_judge_scorer(flags, floors, results) as judge:
        yield judge
