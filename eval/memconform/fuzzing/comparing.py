"""Where answers part. Pure."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from memconform.conformance.pointer import MISSING, resolve, token
from memconform.contract.wire import JsonValue
from memconform.fuzzing.answers import ProgramAnswer

SCORE_TOLERANCE = 2e-9
"""Two steps of the rounding of scores (core.search.order); other numbers are equal or not."""


@dataclass(frozen=True, slots=True)
class AnswerDifference:
    """The first place at which answers part."""

    call: int
    """Which call of the program; one more than there are: the events that were told meanwhile."""
    pointer: str
    """Into `Answer.value()`."""
    values: dict[str, JsonValue]
    """What each daemon has there, by SDK; a missing one is not in it."""


def compare_answers(answers: Mapping[str, Sequence[ProgramAnswer]]) -> AnswerDifference | None:
    """The first difference between the answers of several daemons; None where they agree."""
    names = list(answers)
    for call, row in enumerate(zip(*answers.values(), strict=True)):
        values = [answer.value() for answer in row]
        for other in values[1:]:
            pointer = next(_parting(values[0], other, ""), None)
            if pointer is not None:
                found = {n: resolve(v, pointer) for n, v in zip(names, values, strict=True)}
                present = {n: v for n, v in found.items() if v is not MISSING}
                return AnswerDifference(call, pointer, present)
    return None


def _parting(one: JsonValue, two: JsonValue, where: str) -> Iterator[str]:
    if isinstance(one, dict) and isinstance(two, dict):
        for key in dict.fromkeys((*one, *two)):
            if key not in one or key not in two:
                yield f"{where}/{token(key)}"
            else:
                yield from _parting(one[key], two[key], f"{where}/{token(key)}")
    elif isinstance(one, list) and isinstance(two, list):
        for index, (a, b) in enumerate(zip(one, two, strict=False)):
            yield from _parting(a, b, f"{where}/{index}")
        if len(one) != len(two):
            yield f"{where}/{min(len(one), len(two))}"
    elif not _same(one, two):
        yield where


def _same(one: JsonValue, two: JsonValue) -> bool:
    numbers = (int, float)
    if isinstance(one, bool) or isinstance(two, bool):
        return one is two
    if isinstance(one, numbers) and isinstance(two, numbers):
        return math.isclose(one, two, rel_tol=1e-15, abs_tol=SCORE_TOLERANCE)
    return type(one) is type(two) and one == two


def agreeing(answers: Mapping[str, Sequence[ProgramAnswer]], call: int) -> list[list[str]]:
    """The SDKs whose answers to a call are the same, the largest group first."""
    groups: list[list[str]] = []
    for name, row in answers.items():
        for group in groups:
            if next(_parting(answers[group[0]][call].value(), row[call].value(), ""), None) is None:
                group.append(name)
                break
        else:
            groups.append([name])
    return sorted(groups, key=len, reverse=True)
