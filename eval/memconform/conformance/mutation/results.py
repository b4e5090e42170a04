"""Machine-readable results of mutation testing, and the exit code that follows from them."""

from collections import Counter
from collections.abc import Iterable
from enum import StrEnum
from typing import Literal

from pydantic import Field

from memconform.conformance.mutation.mutant import Mutant
from memconform.conformance.results import Result
from memconform.errors import ExitCode
from memconform.records import Record
from memconform.storage.provenance import Origin, ReportHeader


class Fate(StrEnum):
    """What became of a mutant."""

    KILLED = "killed"
    SURVIVED = "survived"
    UNTESTABLE = "untestable"
    """Its daemon did not run, or no check could be made that might have detected it."""


class MutantResult(Record):
    """The result of one mutant."""

    id: str
    rule: str
    level: Literal["must", "should"]
    profile: str
    breaks: str
    fate: Fate
    by: str = ""
    """Id of the check that detected it."""
    got: list[str] = Field(default_factory=list)
    """What that check reported; for an untestable mutant, why no check could be made."""
    cases: int
    """Number of cases run against it."""
    took_s: float


class FalseAlarm(Record):
    """A check that fails on the unmodified daemon, twice; its case is not run against mutants."""

    check: str
    result: str
    got: list[str]


class KillCount(Record):
    """How many mutants were killed, of how many."""

    killed: int
    total: int


MUTATION_SCHEMA: Literal["memconform/mutation-report@1"] = "memconform/mutation-report@1"


class MutationReport(Origin, ReportHeader):
    """The report that `mutate --json` writes."""

    schema_version: Literal["memconform/mutation-report@1"] = MUTATION_SCHEMA
    sdk: str
    contract: str
    took_s: float
    cases: int
    """Number of cases available for mutants."""
    cases_tried: int
    """How many of these were run on the unmodified daemon."""
    left_out: int
    """Number of mutants that cannot be applied to this SDK."""
    killed: int
    total: int
    survivors: list[str]
    """Ids of mutants that were not killed, including untestable ones."""
    false_alarms: list[FalseAlarm]
    by_profile: dict[str, KillCount]
    mutants: list[MutantResult]


def by_profile(results: Iterable[MutantResult]) -> dict[str, KillCount]:
    """Count killed mutants by profile name, in the order of the results."""
    total, killed = Counter[str](), Counter[str]()
    for result in results:
        total[result.profile] += 1
        killed[result.profile] += result.fate is Fate.KILLED
    return {name: KillCount(killed=killed[name], total=total[name]) for name in total}


def mutation_exit_code(
    results: Iterable[MutantResult], false_alarms: Iterable[FalseAlarm]
) -> ExitCode:
    """Return the exit code of a run.

    FAILED if a mutant of a MUST survived or the unmodified daemon failed a check; DAEMON if a
    mutant or a check could not be tested, which takes precedence.
    """
    fates = {(result.level, result.fate) for result in results}
    alarms = {alarm.result for alarm in false_alarms}
    is_untestable = Fate.UNTESTABLE in {fate for _, fate in fates}
    if is_untestable or alarms & {Result.UNTESTABLE, Result.ERROR}:
        return ExitCode.DAEMON
    return ExitCode.FAILED if ("must", Fate.SURVIVED) in fates or alarms else ExitCode.OK


def result_of(
    mutant: Mutant, fate: Fate, *, by: str = "", got: Iterable[str] = (), cases: int, took_s: float
) -> MutantResult:
    """Build the result of a mutant; at most five lines of `got` are kept."""
    return MutantResult(
        id=mutant.id,
        rule=mutant.rule,
        level=mutant.level,
        profile=mutant.profile_name,
        breaks=mutant.breaks,
        fate=fate,
        by=by,
        got=[*got][:5],
        cases=cases,
        took_s=round(took_s, 3),
    )
