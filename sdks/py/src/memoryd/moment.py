"""Dates and date-times of RFC 3339."""

import re
from datetime import UTC, datetime, timedelta

_FIRST = datetime.min.replace(tzinfo=UTC).timestamp()

_LAST = datetime.max.replace(microsecond=0, tzinfo=UTC).timestamp()


def rfc3339(seconds: float) -> str:
    """The time, or the nearest one that RFC 3339 can express: files may have others."""
    return (
        datetime.fromtimestamp(min(max(seconds, _FIRST), _LAST), UTC)
        .isoformat()
        .replace("+00:00", "Z")
    )


_CLOCK = r"([01][0-9]|2[0-3]):[0-5][0-9]"

_MOMENT = re.compile(
    rf"[0-9]{{4}}-[0-9]{{2}}-[0-9]{{2}}([Tt]{_CLOCK}:[0-5][0-9](\.[0-9]+)?([Zz]|[+-]{_CLOCK}))?"
)

_EPOCH = datetime.fromtimestamp(0, UTC)


def require_moment(text: str) -> str:
    epoch_seconds(text)
    return text


def epoch_seconds(text: str) -> int:
    """Seconds from 1970 to a date or an RFC 3339 date-time, without fractions of a second.

    Raises:
        ValueError: if it is neither.
    """
    if not _MOMENT.fullmatch(text):
        raise ValueError("must be YYYY-MM-DD or an RFC 3339 date-time")
    # Python has no year 0; the calendar repeats after 400 years, which are 146,097 days.
    in_year_0 = text.startswith("0000")
    moment = datetime.fromisoformat(("0400" + text[4:] if in_year_0 else text).upper())
    elapsed = (moment if moment.tzinfo else moment.replace(tzinfo=UTC)) - _EPOCH
    return elapsed // timedelta(seconds=1) - 146_097 * 86_400 * in_year_0
