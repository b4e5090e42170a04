"""Dates and RFC 3339 date-times (core.search.refuse, core.rank.recency). Pure."""

import re
from calendar import monthrange

DAY = 86_400

_FORM = re.compile(
    r"(?P<year>[0-9]{4})-(?P<month>[0-9]{2})-(?P<day>[0-9]{2})"
    r"(?:[Tt](?P<hour>[0-9]{2}):(?P<minute>[0-9]{2}):(?P<second>[0-9]{2})(?:\.[0-9]+)?"
    r"(?:[Zz]|(?P<sign>[+-])(?P<off_hour>[0-9]{2}):(?P<off_minute>[0-9]{2})))?"
)
_ERA_DAYS = 146_097
"""Days of 400 years, after which the calendar repeats."""


def seconds(text: str) -> int | None:
    """Seconds from 1970 without fractions; None if the text is neither a date nor a date-time."""
    match = _FORM.fullmatch(text)
    if match is None:
        return None
    year, month, day = int(match["year"]), int(match["month"]), int(match["day"])
    if not 1 <= month <= 12 or not 1 <= day <= monthrange(2000 + year % 400, month)[1]:
        return None
    clock = [int(match[part] or 0) for part in ("hour", "minute", "second")]
    offset = [int(match[part] or 0) for part in ("off_hour", "off_minute")]
    if clock[0] > 23 or clock[1] > 59 or clock[2] > 59 or offset[0] > 23 or offset[1] > 59:
        return None
    ahead = (offset[0] * 60 + offset[1]) * 60 * (-1 if match["sign"] == "-" else 1)
    return _days(year, month, day) * DAY + clock[0] * 3600 + clock[1] * 60 + clock[2] - ahead


def _days(year: int, month: int, day: int) -> int:
    """Days from 1970-01-01 in the proleptic Gregorian calendar."""
    eras, in_era = divmod(year, 400)
    days = eras * _ERA_DAYS + sum(366 if _is_leap(y) else 365 for y in range(in_era))
    days += sum(monthrange(2000 + in_era, m)[1] for m in range(1, month)) + day - 1
    return days - 719_528


def _is_leap(year: int) -> bool:
    return year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)
