"""Decides whether the answers to a program are right: by the oracle, or by those of others."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import Protocol

from memconform.conformance.pointer import MISSING, resolve
from memconform.contract.wire import JsonValue
from memconform.fuzzing.blame import blame, rank
from memconform.fuzzing.comparison import AnswerDifference, all_differences, differing
from memconform.fuzzing.expectations import ExpectedAnswer, expect
from memconform.fuzzing.normalized_answer import ProgramAnswer
from memconform.fuzzing.programs import Program
from memconform.oracle.search import Providers

ORACLE = "oracle"
"""The name under which the oracle's answers are reported."""

Answers = Mapping[str, Sequence[ProgramAnswer]]

_BY_VALUE = ("/status", "/failure", "/body/code")
"""Pointers at which other values are another finding."""


@dataclass(frozen=True, slots=True)
class Finding:
    """A difference, and the answers that differ."""

    difference: AnswerDifference
    answers: dict[str, list[ProgramAnswer]]
    route: str
    """The route of the call; `events` for the stream of changes."""

    @property
    def key(self) -> str:
        """Equal for differences of the same kind: rule, route and shape, without indices."""
        difference = self.difference
        shape = re.sub(r"/\d+", "/*", difference.pointer)
        values = ""
        if difference.pointer in _BY_VALUE:
            values = " ".join(f"{name}={value}" for name, value in difference.values.items())
        return f"{' '.join(self.answers)}: {difference.rule} {self.route} {shape} {values}".strip()


class Judge(Protocol):
    """Finds what is wrong with the answers to a program."""

    @property
    def distinguishes(self) -> bool:
        """Whether it says which rule a finding breaks, so that shrinking must not change it."""
        ...

    def findings(self, program: Program, answers: Answers) -> Iterator[Finding]:
        """Yield findings, those of earlier calls first; what follows from one is left out."""
        ...


def _route(program: Program, call: int) -> str:
    return program.calls[call].route if call < len(program.calls) else "events"


@dataclass(frozen=True, slots=True)
class PeerJudge:
    """Compares daemons with each other: nobody knows who is right."""

    ignored: tuple[str, ...] = ()
    distinguishes: bool = False

    def findings(self, program: Program, answers: Answers) -> Iterator[Finding]:
        """Yield the differences at the first call that has any."""
        differences = all_differences(answers, self.ignored)
        first = next(differences, None)
        if first is None:
            return
        kept = {name: list(row) for name, row in answers.items()}
        for difference in (first, *takewhile(lambda d: d.call == first.call, differences)):
            yield Finding(difference, kept, _route(program, difference.call))


@dataclass(frozen=True, slots=True)
class OracleJudge:
    """Compares each daemon with what the contract permits."""

    providers: Mapping[str, Providers]
    """By SDK."""
    ignored: tuple[str, ...] = ()
    distinguishes: bool = True

    def findings(self, program: Program, answers: Answers) -> Iterator[Finding]:
        """Yield all differences until the state of a brain is unknown, basic rules first."""
        for sdk, row in answers.items():
            yield from self._of(sdk, program, row)

    def _of(self, sdk: str, program: Program, actual: Sequence[ProgramAnswer]) -> Iterator[Finding]:
        expected = expect(program, actual, self.providers[sdk])
        rows = {
            ORACLE: [item.answer for item in expected],
            sdk: [item.actual for item in expected],
        }
        for call, item in enumerate(expected):
            found = [
                Finding(difference, rows, _route(program, call))
                for difference in self._differences(sdk, program, call, item)
            ]
            yield from sorted(found, key=lambda f: rank(f.difference.rule))
            if item.diverges or item.actual.failure:
                return

    def _differences(
        self, sdk: str, program: Program, call: int, item: ExpectedAnswer
    ) -> Iterator[AnswerDifference]:
        values = {ORACLE: item.answer.value(), sdk: item.actual.value()}
        request = program.calls[call].body if call < len(program.calls) else None
        pointers = list(differing(list(values.values()), self.ignored))
        # Another status has another body, which explains nothing.
        unanswered = [p for p in pointers if p in ("/failure", "/status")]
        for pointer in unanswered[:1] or pointers:
            rule = blame(item, pointer, request)
            yield AnswerDifference(call, pointer, _present(values, pointer), rule)


def _present(values: Mapping[str, JsonValue], pointer: str) -> dict[str, JsonValue]:
    actual = {name: resolve(value, pointer) for name, value in values.items()}
    return {name: value for name, value in actual.items() if value is not MISSING}
