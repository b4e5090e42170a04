"""Results as annotations of GitHub's workflow commands.

https://docs.github.com/actions/reference/workflow-commands-for-github-actions
"""

from collections.abc import Collection, Iterator, Sequence

from memconform.printing.escaping import printable
from memconform.printing.plurals import plural
from memconform.reports.check_status import OutcomeStatus
from memconform.reports.overview.headline import Grade, Statement
from memconform.reports.overview.outcomes import Outcome

MOST = 10
"""GitHub shows ten annotations of a level for each step, and drops the rest without a notice."""

_LEVELS = {OutcomeStatus.FAILED: "error", OutcomeStatus.ERROR: "warning"}


def annotation_lines(
    statements: Sequence[Statement],
    outcomes: Sequence[Outcome],
    passing: Collection[tuple[str, str]],
    regressed: Collection[tuple[str, str, str]],
) -> Iterator[str]:
    """The verdict, then the first failures as errors and what was not measured as warnings.

    Every text is escaped twice: as one line without CI commands, and as GitHub's data, so that no
    text of a daemon or a dataset can become a command.

    Args:
        statements: the findings, the verdict first.
        outcomes: all results.
        passing: suites, by SDK and name, that passed as a whole: a wrong answer above the floor is
            no error.
        regressed: SDK, suite and id of questions that a baseline passed; they are errors even so.
    """
    grade = statements[0].grade
    level = {Grade.BAD: "error", Grade.UNKNOWN: "warning"}.get(grade, "notice")
    yield f"::{level} title=memconform::{_data(statements[0].sentence())}"
    for status, level in _LEVELS.items():
        found = [
            outcome
            for outcome in outcomes
            if outcome.status is status
            and (
                status is OutcomeStatus.ERROR
                or (outcome.sdk, outcome.suite) not in passing
                or (outcome.sdk, outcome.suite, outcome.id) in regressed
            )
        ]
        # One place is the verdict's, and one that of the count.
        for outcome in found[: MOST - 2]:
            title = f"{outcome.sdk}: {outcome.id}"
            yield f"::{level} title={_property(title)}::{_data(outcome.message or outcome.detail)}"
        if len(found) > MOST - 2:
            more = plural(len(found) - MOST + 2, f"more {level}")
            yield f"::{level} title=memconform::{_data(more)}"


def _data(text: str) -> str:
    return printable(text).replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
