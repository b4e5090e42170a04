"""The verdict as the JSON of an endpoint badge of shields.io (https://shields.io/badges/endpoint-badge)."""

from typing import Literal

from pydantic import ConfigDict
from pydantic.alias_generators import to_camel

from memconform.printing.escaping import printable
from memconform.records import Record
from memconform.reports.overview.headline import Grade, Statement

_COLOURS: dict[Grade, Literal["brightgreen", "blue", "lightgrey", "red"]] = {
    Grade.GOOD: "brightgreen",
    Grade.NOTED: "blue",
    Grade.CONTROL: "lightgrey",
    Grade.UNKNOWN: "lightgrey",
    Grade.BAD: "red",
}
_LONGEST = 60


class Badge(Record):
    """What shields.io draws."""

    model_config = ConfigDict(alias_generator=to_camel, populate_by_name=True)

    schema_version: Literal[1] = 1
    label: str
    message: str
    color: Literal["brightgreen", "blue", "lightgrey", "red"]
    is_error: bool
    """Whether the badge is red whatever its colour."""


def badge(verdict: Statement, label: str) -> Badge:
    """The badge of a verdict: its primary figure, or its sentence."""
    text = printable(verdict.figure or verdict.text)
    return Badge(
        label=printable(label),
        message=text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…",
        color=_COLOURS[verdict.grade],
        is_error=verdict.grade is Grade.BAD,
    )
