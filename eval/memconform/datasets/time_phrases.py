"""The dates of benchmarks, and the times that questions refer to by a phrase."""

import re
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

_DATE = re.compile(r"(\d{4})[-/](\d{2})[-/](\d{2})(?: \([A-Za-z]{3}\))?(?: (\d{2}):(\d{2}))?")
"""As LongMemEval writes dates, `2023/05/30 (Tue) 23:40`; day and time may be missing."""
_SPOKEN_DATE = "%I:%M %p on %d %B, %Y"
"""As LoCoMo writes them, `1:56 pm on 8 May, 2023`: all 272 sessions of the public file."""

_WORDS = (
    *("one", "two", "three", "four", "five", "six"),
    *("seven", "eight", "nine", "ten", "eleven", "twelve"),
)
NUMBER = rf"(?<![\w.,-])(?P<number>\d{{1,4}}|{'|'.join(_WORDS)})"
"""Matches what `to_number` reads; not the end of `twenty-one`, `2.5` or `1,000`."""


@dataclass(frozen=True, slots=True)
class TimeReference:
    """A time before a question that a phrase in it refers to."""

    days: int
    """Days before the question."""
    tolerance: int
    """How many days the phrase may be off."""


_PHRASES = (
    (re.compile(rf"{NUMBER}\s+days?\s+ago\b"), TimeReference(1, 2)),
    (re.compile(r"\ba\s+couple\s+(?:of\s+)?days?\s+ago\b"), TimeReference(2, 2)),
    (re.compile(r"\byesterday\b"), TimeReference(1, 1)),
    (re.compile(rf"{NUMBER}\s+weeks?\s+ago\b"), TimeReference(7, 5)),
    (re.compile(r"\b(?:a|last)\s+week\b"), TimeReference(7, 3)),
    (re.compile(rf"{NUMBER}\s+months?\s+ago\b"), TimeReference(30, 10)),
    (re.compile(r"\b(?:a|last)\s+month\b"), TimeReference(30, 7)),
    (re.compile(r"\b(?:a|last)\s+year\b"), TimeReference(365, 30)),
    (re.compile(r"\brecently\b"), TimeReference(14, 14)),
)
"""Phrases, offsets and tolerances of memini's temporal targeting; its numbers are digits only. A
number in the phrase multiplies the days. The first that occurs counts."""


def time_reference(question: str) -> TimeReference | None:
    """The time that a question refers to by a phrase such as `three weeks ago`; None without one.

    English only.
    """
    text = question.lower()
    for pattern, reference in _PHRASES:
        if match := pattern.search(text):
            times = to_number(match["number"] if pattern.groups else "one")
            return TimeReference(reference.days * times, reference.tolerance)
    return None


def to_number(text: str) -> int:
    """The number of digits, or of a word from one to twelve."""
    return int(text) if text.isdecimal() else _WORDS.index(text) + 1


def to_date_time(date: str | None) -> datetime | None:
    """The moment of a date, in UTC; 00:00 if it has no time, None if it is no date.

    RFC 3339 date-times, LongMemEval's `2023/05/30 (Tue) 23:40` and LoCoMo's `1:56 pm on 8 May,
    2023` are dates.
    """
    if match := _DATE.fullmatch(date or ""):
        year, month, day, hour, minute = (int(part or 0) for part in match.groups())
        try:
            return datetime(year, month, day, hour, minute, tzinfo=UTC)
        except ValueError:
            return None
    with suppress(ValueError):
        return datetime.strptime(date or "", _SPOKEN_DATE).replace(tzinfo=UTC)
    try:
        moment = datetime.fromisoformat(date or "")
        return moment.astimezone(UTC) if moment.tzinfo else None
    except (ValueError, OverflowError):
        return None


def to_rfc3339(moment: datetime) -> str:
    """A moment in UTC as an RFC 3339 date-time, without fractions of a second."""
    # strftime does not pad the year on every platform.
    return moment.replace(microsecond=0, tzinfo=None).isoformat() + "Z"


def days_before(moment: datetime, days: int) -> datetime:
    """The moment so many days earlier; the earliest one if there is none."""
    try:
        return moment - timedelta(days=days)
    except OverflowError:
        return datetime.min.replace(tzinfo=UTC)
