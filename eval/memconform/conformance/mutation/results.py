"""What became of the mutants, as records that a machine can read."""

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
    KILLED = "killed"
    SURVIVED = "survived"
    UNTESTABLE = "untestable"
    """Its daemon could not be had, or no check could be made that would have found it."""


class MutantResult(Record):
    id: str
    rule: str
    level: Literal["must", "should"]
    profile: str
    breaks: str
    fate: Fate
    by: str = ""
    """The check that found it."""
    got: list[str] = Field(default_factory=list)
    """What that check said; of one that was not killed, why no check could be made."""
    cases: int
    """That were put to it."""
    took_s: float


class FalseAlarm(Record):
    """A check that fails though nothing is broken; its case kills no mutant."""

    check: str
    result: str
    got: list[str]


class KillCount(Record):
    killed: int
    total: int


MUTATION_SCHEMA: Literal["memconform/mutation-report@1"] = "memconform/mutation-report@1"


class MutationReport(Origin, ReportHeader):
    """What `mutate --json` writes."""

    schema_version: Literal["memconform/mutation-report@1"] = MUTATION_SCHEMA
    sdk: str
    contract: str
    took_s: float
    cases: int
    """That a mutant may be put to."""
    cases_tried: int
    """Of them, on the daemon in which nothing is broken."""
    left_out: int
    """Mutants that this SDK cannot be made into."""
    killed: int
    total: int
    survivors: list[str]
    """Ids of those that were not killed, the untestable ones among them."""
    false_alarms: list[FalseAlarm]
    by_profile: dict[str, KillCount]
    mutants: list[MutantResult]


def by_profile(results: Iterable[MutantResult]) -> dict[str, KillCount]:
    """Scores by the names of profiles, in the order of the results."""
    total, killed = Counter[str](), Counter[str]()
    for result in results:
        total[result.profile] += 1
        killed[result.profile] += result.fate is Fate.KILLED
    return {name: KillCount(killed=killed[name], total=total[name]) for name in total}


def mutation_exit_code(
    results: Iterable[MutantResult], false_alarms: Iterable[FalseAlarm]
) -> ExitCode:
    """FAILED where a mutant of a MUST lives or the good daemon fails, DAEMON where one was lost."""
    fates = {(result.level, result.fate) for result in results}
    alarms = {alarm.result for alarm in false_alarms}
    unknown = Fate.UNTESTABLE in {fate for _, fate in fates}
    if unknown or alarms & {Result.UNTESTABLE, Result.ERROR}:
        return ExitCode.DAEMON
    return ExitCode.FAILED if ("must", Fate.SURVIVED) in fates or alarms else ExitCode.OK


def result_of(
    mutant: Mutant, fate: Fate, *, by: str = "", got: Iterable[str] = (), cases: int, took_s: float
) -> MutantResult:
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
