"""Dates and date-times of RFC 3339."""

import re
from datetime import UTC, date, datetime

_FIRST = datetime.min.replace(tzinfo=UTC).timestamp()

_LAST = datetime.max.replace(microsecond=0, tzinfo=UTC).timestamp()


def rfc3339(seconds: float) -> str:
    """The time, or the nearest one that RFC 3339 can express: files may have others."""
    return (
        datetime.fromtimestamp(min(max(seconds, _FIRST), _LAST), UTC)
        .isoformat()
        .replace("+00:00", "Z")
    )


_DAY = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")

_CLOCK = r"([01][0-9]|2[0-3]):[0-5][0-9]"

_INSTANT = re.compile(_DAY.pattern + rf"[Tt]{_CLOCK}:[0-5][0-9](\.[0-9]+)?([Zz]|[+-]{_CLOCK})")


def require_moment(text: str) -> str:
    # RFC 3339 has a year 0, but Python does not; 2000 is a leap year, too.
    value = re.sub("^0000", "2000", text)
    if _DAY.fullmatch(value):
        date.fromisoformat(value)
    elif _INSTANT.fullmatch(value):
        date.fromisoformat(value[:10])
    else:
        raise ValueError("must be YYYY-MM-DD or an RFC 3339 date-time")
    return text


def epoch_seconds(text: str) -> int:
    """Seconds from 1970 to a date or an RFC 3339 date-time, without fractions of a second.

    Raises:
        ValueError: if it is neither.
    """
    require_moment(text)
    # Python has no year 0; the calendar repeats after 400 years, which are 146,097 days.
    in_year_0 = text.startswith("0000")
    day = date.fromisoformat("0400" + text[4:10] if in_year_0 else text[:10])
    days = (day - date(1970, 1, 1)).days - 146_097 * in_year_0
    if len(text) == len("YYYY-MM-DD"):
        return 86_400 * days
    clock = 3_600 * int(text[11:13]) + 60 * int(text[14:16]) + int(text[17:19])
    offset = 0 if text[-1] in "Zz" else 60 * int(text[-5:-3]) + int(text[-2:])
    return 86_400 * days + clock - 60 * (-offset if text[-6] == "-" else offset)
