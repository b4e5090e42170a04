"""Merges the causes that are one defect, and sorts defects by what they concern. Pure.

The causes of a run keep apart what `conform findings` selects: of each operation every status and
every key. A daemon that is far from the contract has some two hundred; a reader first wants the
thirty that matter.
"""

import re
from collections import Counter
from dataclasses import dataclass, field

from memconform.conformance.concerns import Concern, concern_of, depends_on_rule
from memconform.conformance.findings import causes_of
from memconform.conformance.results import RED, Cause, Check, SdkResult

_MERGED: tuple[tuple[str, str], ...] = (
    (r"(.*: )?the daemon exits\b.*", "the daemon exits"),
    (r"(.*: )?the daemon does not start\b.*", "the daemon does not start"),
    (
        r"error responses with status \d+: (no|wrong) header (?P<what>\S+)",
        "error responses: no header {what}",
    ),
    (r"error responses with status \d+: .*", "error responses: no problem details"),
    (r"(?P<where>.*?): status 5\d\d, expected .*", "{where}: status 500"),
    (
        r".*?: (status 2\d\d, expected 40[13]|accepts a foreign .*)",
        "serves what it must refuse: status 200, expected 401 or 403",
    ),
    (r"(unknown route|wrong method): (?P<what>status 4\d\d, expected 403)", "any route: {what}"),
    (r".*?: status 4\d\d, expected 4\d\d( or 4\d\d)*", "rejects with another status"),
    (
        r"(?P<where>.*?): (accepts .*|status 2\d\d, expected 4(00|04|05|13)\b.*)",
        "{where}: accepts what it must reject",
    ),
    (r"process: fails_to_start: .*", "starts with settings that it must refuse"),
    (r"the state folder has no file .*|disk: .*", "the state folder has other files"),
    (r"process: inspect: .*", "the process, or its log, is another than expected"),
    (r"(?P<where>.*?): (no|too few|wrong) events?\b.*", "{where}: other events than expected"),
    (
        r"(?P<where>.*?): (event |events |ids of change|no_answer|ended is|the joined).*",
        "{where}: other events than expected",
    ),
    (
        r"(?P<where>.*?): (?P<what>\w+) (has (too|other) .*|is empty)",
        "{where}: other {what} than expected",
    ),
    (
        r"(?P<where>.*?): wrong value at (?P<what>\w+)\.\*\.(path|chunkId|documentId)",
        "{where}: other {what} than expected",
    ),
    (
        r"(?P<where>.*?): (wrong value at|missing key|unexpected key) (?P<what>\S+)",
        "{where}: wrong or missing {what}",
    ),
    (r"upstream: .*", "sends the upstream something else"),
)
"""Causes by a pattern that all of them fully match, and the defect that they are."""


def defect_of(cause: str) -> str:
    """Return the defect that a cause is a sign of."""
    for pattern, name in _MERGED:
        match = re.fullmatch(pattern, cause)
        if match is not None:
            return name.format(*match.groups(), **match.groupdict())
    return cause


@dataclass(slots=True)
class Defect:
    """A defect, and the red checks that show it."""

    name: str
    concern: Concern
    checks: set[str] = field(default_factory=set)
    causes: Counter[str] = field(default_factory=Counter)
    rules: Counter[str] = field(default_factory=Counter)
    example: str = ""
    """The first check that failed."""

    def add(self, check: Check, cause: Cause) -> None:
        """Count a check."""
        self.checks.add(check.id)
        self.causes[cause.cause] += 1
        self.rules.update(check.rules[:1])
        self.example = self.example or check.id

    @property
    def shown(self) -> str:
        """Its name; if all its checks have one cause, that."""
        return next(iter(self.causes)) if len(self.causes) == 1 else self.name


def defects(sdk: SdkResult) -> list[Defect]:
    """Merge the causes of an SDK's red checks: the gravest first, of these that of most checks.

    A request that is wrongly accepted may be a defect of several concerns, by the rules.
    """
    order = list(Concern)
    pairs = [
        (check, cause)
        for case in sdk.cases
        for check in case.checks
        for cause in (causes_of(check) if check.result in RED else ())
        if not cause.known
    ]
    concerns: dict[str, Counter[Concern]] = {}
    for check, cause in pairs:
        concerns.setdefault(cause.cause, Counter())[concern_of(check, cause)] += 1
    merged: dict[tuple[str, Concern], Defect] = {}
    for check, cause in pairs:
        concern = concern_of(check, cause)
        if not depends_on_rule(cause):
            # What a response looks like is one defect, whatever the cases were about.
            counts = concerns[cause.cause]
            concern = max(counts, key=lambda c: (counts[c], -order.index(c)))
        name = defect_of(cause.cause)
        merged.setdefault((name, concern), Defect(name, concern)).add(check, cause)
    return sorted(merged.values(), key=lambda d: (order.index(d.concern), -len(d.checks), d.name))
