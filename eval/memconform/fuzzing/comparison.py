"""Compares the answers of several daemons. Pure."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from memconform.conformance.pointer import MISSING, resolve, token
from memconform.contract.wire import JsonValue
from memconform.fuzzing.normalized_answer import ProgramAnswer

SCORE_TOLERANCE = 1.001e-9
"""Absolute tolerance of scores: one step of rounded scores (core.search.order). Sums in another
order differ in the last bits, and so may fall on the other side of a step."""


@dataclass(frozen=True, slots=True)
class AnswerDifference:
    """The first difference between the answers of several daemons."""

    call: int
    """Index of the call; the number of calls stands for the events received meanwhile."""
    pointer: str
    """JSON pointer into `ProgramAnswer.value()`."""
    values: dict[str, JsonValue]
    """The value of each daemon, by SDK; a daemon without a value is missing."""
    rule: str = ""
    """The rule that is most likely broken; empty if nobody knows who is right."""


def compare_answers(answers: Mapping[str, Sequence[ProgramAnswer]]) -> AnswerDifference | None:
    """Return the first difference between the answers of several daemons; None if they agree."""
    return next(all_differences(answers), None)


def all_differences(
    answers: Mapping[str, Sequence[ProgramAnswer]], ignored: Sequence[str] = ()
) -> Iterator[AnswerDifference]:
    """Yield all differences between the answers of several daemons.

    Args:
        answers: Equally many answers for each SDK.
        ignored: Pointers of values that are not compared; `*` is any one part.
    """
    names = list(answers)
    for call, row in enumerate(zip(*answers.values(), strict=True)):
        values = [answer.value() for answer in row]
        for pointer in differing(values, ignored):
            actual = {n: resolve(v, pointer) for n, v in zip(names, values, strict=True)}
            present = {n: v for n, v in actual.items() if v is not MISSING}
            yield AnswerDifference(call, pointer, present)


def differing(values: Sequence[JsonValue], ignored: Sequence[str] = ()) -> Iterator[str]:
    """Yield the pointers at which values differ from the first one, each once."""
    patterns = [pattern.split("/") for pattern in ignored]
    seen = set()
    for other in values[1:]:
        for pointer in _differences(values[0], other, ""):
            if pointer not in seen and not any(_covers(p, pointer) for p in patterns):
                seen.add(pointer)
                yield pointer


def _covers(pattern: list[str], pointer: str) -> bool:
    """Whether a pointer is at or below a pattern."""
    parts = pointer.split("/")
    pairs = zip(pattern, parts, strict=False)
    return len(pattern) <= len(parts) and all(want in ("*", part) for want, part in pairs)


def _differences(one: JsonValue, two: JsonValue, where: str) -> Iterator[str]:
    if isinstance(one, dict) and isinstance(two, dict):
        for key in dict.fromkeys((*one, *two)):
            if key not in one or key not in two:
                yield f"{where}/{token(key)}"
            else:
                yield from _differences(one[key], two[key], f"{where}/{token(key)}")
    elif isinstance(one, list) and isinstance(two, list):
        for index, (a, b) in enumerate(zip(one, two, strict=False)):
            yield from _differences(a, b, f"{where}/{index}")
        if len(one) != len(two):
            yield f"{where}/{min(len(one), len(two))}"
    elif not _equal(one, two, SCORE_TOLERANCE if where.endswith("/score") else 0.0):
        yield where


def _equal(one: JsonValue, two: JsonValue, tolerance: float) -> bool:
    numbers = (int, float)
    if isinstance(one, bool) or isinstance(two, bool):
        return one is two
    if isinstance(one, numbers) and isinstance(two, numbers):
        # A long integer has no float: the difference of two integers is exact.
        return one == two or (tolerance > 0 and abs(one - two) <= tolerance)
    return type(one) is type(two) and one == two


def group_by_answer(answers: Mapping[str, Sequence[ProgramAnswer]], call: int) -> list[list[str]]:
    """Group the SDKs by their answers to a call, the largest group first."""
    groups: list[list[str]] = []
    for name, row in answers.items():
        for group in groups:
            if (
                next(_differences(answers[group[0]][call].value(), row[call].value(), ""), None)
                is None
            ):
                group.append(name)
                break
        else:
            groups.append([name])
    return sorted(groups, key=len, reverse=True)
