"""Types of the values of `memconform lme run` and `lme tri`, with the spellings of jeffs-brain."""

import re
from typing import Any

import click

SCOPES = (
    *("memory", "global", "project", "raw"),
    *("global_memory", "project_memory", "raw_lme", "raw_document", "wiki", "sources"),
)
"""Values of `--actor-scope`: the contract's, and those of jeffs-brain/memory."""


class SessionFilterChoice(click.Choice[str]):
    """auto, on or off; also a truth value as Go's flags take it, and the flag without a value."""

    _TRUE = ("1", "t", "T", "TRUE", "true", "True")
    _FALSE = ("0", "f", "F", "FALSE", "false", "False")

    def convert(
        self,
        value: Any,  # noqa: ANN401 - click's signature
        param: click.Parameter | None,
        ctx: click.Context | None,
    ) -> str:
        value = "on" if value in self._TRUE else "off" if value in self._FALSE else value
        return super().convert(value, param, ctx)


class Duration(click.ParamType[float]):
    """Seconds, as a number or in the units of Go's durations: 90, 90s, 1m30s, 500ms."""

    name = "duration"
    _UNITS = {"h": 3600.0, "m": 60.0, "s": 1.0, "ms": 1e-3}  # noqa: RUF012 - never changed
    _PART = re.compile(r"(\d+(?:\.\d+)?)(ms|h|m|s)")
    _MOST = 86_400.0

    def convert(
        self,
        value: Any,  # noqa: ANN401 - click's signature
        param: click.Parameter | None,
        ctx: click.Context | None,
    ) -> float:
        if isinstance(value, float):
            return value
        text = str(value)
        parts = self._PART.findall(text)
        if parts and "".join(number + unit for number, unit in parts) == text:
            seconds = sum(float(number) * self._UNITS[unit] for number, unit in parts)
        else:
            try:
                seconds = float(text)
            except ValueError:
                self.fail(f"{text!r} is no duration; write 90, 90s or 1m30s.", param, ctx)
        if not 0 <= seconds <= self._MOST:
            self.fail(f"{text!r} is not between 0 and 24 hours.", param, ctx)
        return seconds
