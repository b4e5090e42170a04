"""The calendar dates that a question refers to by phrases such as `last Friday` or `in March`.

A grammar of few phrases, because a wrong hint is worse than none. In the 500 questions of
LongMemEval dateparser 1.5.0 finds 89 dates (`search_dates`, preferring the past) and parsedatetime
2.6 finds 90 (`nlp`). At most 38 and 26 of them are what the question means, even if the first day
of a period counts: they read `we`, `80D` and `$12` as dates, `in March` as one day of it, or put
what is past into the future. This grammar finds 57 in as many questions, all of them right.
"""

import re
from calendar import monthrange
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date, timedelta

from memconform.datasets.time_phrases import NUMBER, to_date_time, to_number

_MONTHS = (
    *("January", "February", "March", "April", "May", "June"),
    *("July", "August", "September", "October", "November", "December"),
)
_WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_HOLIDAYS = {
    "Valentine's Day": (2, 14),
    "Valentine's day": (2, 14),
    "Halloween": (10, 31),
    "Christmas Eve": (12, 24),
    "Christmas Day": (12, 25),
    "New Year's Eve": (12, 31),
    "New Year's Day": (1, 1),
}
_MONTH, _WEEKDAY = "|".join(_MONTHS), "|".join(_WEEKDAYS)
_COUNT = rf"(?:{NUMBER}|an?|(?P<couple>(?:a\s+)?couple(?:\s+of)?))"
_END = r"(?![-'\w])"
"""Not `last month's`: it names what belongs to a month."""
_NOT_PART_OF = rf"{_END}(?!\s+(?:of|in|at|on|before|after|for)\b)"
"""`The last week of May` is another week."""
_NO_OTHER_YEAR = rf"{_NOT_PART_OF}(?!,?\s+(?:\d|last\b|this\b|next\b|the\b|[A-Z][a-z]))"
"""Neither `in March 2021` nor `in March Madness`."""
_QUALIFIED = "".join(
    f"(?<!{word} )" for word in ("than", "least", "over", "half", "or", "to", "and", "within")
)
"""Before `two weeks ago`: the time is another one then."""
_FUTURE = re.compile(r"\b(?:will|next|upcoming|tomorrow|going to|plan(?:s|ning)? to)\b")
_QUOTED = re.compile(r"""(?<!\w)(['"])[^\n]*?\1(?!\w)""")
_PLAIN_QUOTES = dict(zip(map(ord, "\u2018\u2019\u201c\u201d"), "''\"\"", strict=True))


@dataclass(frozen=True, slots=True)
class DateHint:
    """What a phrase of a question refers to."""

    phrase: str
    first: date
    last: date
    """The last day; often the first one."""
    about: bool = False
    """Whether days before and after may be meant as well."""

    def __str__(self) -> str:
        days = _day(self.first)
        if self.last != self.first:
            days += f" to {_day(self.last)}"
        return f'"{self.phrase}" is {"about " if self.about else ""}{days}'


def hint_line(question: str, today: str | None) -> str:
    """The hints of a question as one line of text; empty without any.

    Args:
        question: in English.
        today: its date, as the benchmark writes it; without one there are no hints.
    """
    moment = to_date_time(today)
    return "; ".join(map(str, date_hints(question, moment.date()))) if moment else ""


def date_hints(question: str, today: date) -> list[DateHint]:
    """The phrases of a question that refer to past dates, in its order, each once.

    Quoted text, such as titles, has none.
    """
    text = question.translate(_PLAIN_QUOTES)
    text = _QUOTED.sub(lambda match: "\0" * len(match[0]), text)
    taken = [False] * len(text)
    hints: dict[int, DateHint] = {}
    for pattern, resolve in _GRAMMAR:
        for match in pattern.finditer(text):
            if any(taken[match.start() : match.end()]):
                continue
            taken[match.start() : match.end()] = [True] * len(match[0])
            try:
                days = resolve(match, today)
            except (ValueError, OverflowError):
                continue  # before the year 1
            if days is not None and days[0] <= today:
                phrase = " ".join(match[0].split())
                hints[match.start()] = DateHint(phrase, *days)
    return list(dict.fromkeys(hints[start] for start in sorted(hints)))


_Days = tuple[date, date] | tuple[date, date, bool]


def _days_ago(match: re.Match[str], today: date) -> _Days:
    unit = match["unit"]
    count = to_number(match["number"]) if match["number"] else 2 if match["couple"] else 1
    day = _before(today, count, unit)
    if unit == "year":
        return date(day.year, 1, 1), date(day.year, 12, 31), True
    if (name := match["weekday"]) is not None:
        # The nearest such day.
        back = (day.weekday() - _WEEKDAYS.index(name)) % 7
        day = day - timedelta(back) if back <= 3 else day + timedelta(7 - back)
        return day, day, True
    return day, day, unit != "day" or match["couple"] is not None


def _past_period(match: re.Match[str], today: date) -> _Days:
    count = to_number(match["number"]) if match["number"] else 1
    return _before(today, count, match["units"] or match["unit"]), today


def _before(today: date, count: int, unit: str) -> date:
    """The day so many units earlier; of a month without that day, its last one."""
    if unit in ("day", "week"):
        return today - timedelta(count * (7 if unit == "week" else 1))
    year, month = divmod(
        today.year * 12 + today.month - 1 - count * (12 if unit == "year" else 1), 12
    )
    return date(year, month + 1, min(today.day, monthrange(year, month + 1)[1]))


def _last_unit(match: re.Match[str], today: date) -> _Days:
    match match["unit"]:
        case "week":
            first = today - timedelta(today.weekday() + 7)
            return first, first + timedelta(6)
        case "weekend":
            sunday = today - timedelta(today.weekday() + 1)
            return sunday - timedelta(1), sunday
        case "month":
            last = today.replace(day=1) - timedelta(1)
            return last.replace(day=1), last
        case _:
            return date(today.year - 1, 1, 1), date(today.year - 1, 12, 31)


def _this_unit(match: re.Match[str], today: date) -> _Days | None:
    if _FUTURE.search(match.string):
        return None
    first = today.replace(day=1)
    return (first if match["unit"] == "month" else first.replace(month=1)), today


def _last_weekday(match: re.Match[str], today: date) -> _Days | None:
    back = (today.weekday() - _WEEKDAYS.index(match["weekday"]) - 1) % 7 + 1
    if back <= 2:  # on a Tuesday, `last Monday` is rarely yesterday
        return None
    day = today - timedelta(back)
    return day, day


def _months(match: re.Match[str], today: date) -> _Days | None:
    """The latest of one month, or from the one to the other."""
    is_list = match["until"] and " and " in match[0] and not match[0].lower().startswith("between")
    months = [_MONTHS.index(name) for name in (match["month"], match["until"]) if name]
    if _FUTURE.search(match.string) or (is_list and (months[1] - months[0]) % 12 != 1):
        return None
    last = _MONTHS.index(match["until"] or match["month"]) + 1
    first = _MONTHS.index(match["month"]) + 1
    if first <= today.month < last:  # it may be this year's, or a year ago
        return None
    year = today.year if last <= today.month else today.year - 1
    first_year = year if first <= last else year - 1
    return date(first_year, first, 1), date(year, last, monthrange(year, last)[1])


def _holiday(match: re.Match[str], today: date) -> _Days | None:
    if _FUTURE.search(match.string):
        return None
    month, number = _HOLIDAYS[match["holiday"]]
    day = date(today.year, month, number)
    day = day if day < today else day.replace(year=today.year - 1)
    return day, day


def _yesterday(match: re.Match[str], today: date) -> _Days:
    day = today - timedelta(2 if match["before"] else 1)
    return day, day


def _phrase(pattern: str, end: str = _NOT_PART_OF) -> re.Pattern[str]:
    # With regard to case: `Last Week` inside a sentence is a name.
    return re.compile(rf"(?<![-\w]){pattern}{end}")


_GRAMMAR: tuple[tuple[re.Pattern[str], Callable[[re.Match[str], date], _Days | None]], ...] = (
    (
        _phrase(
            rf"{_QUALIFIED}(?:(?:on\s+)?(?:the|a)\s+(?P<weekday>{_WEEKDAY})\s+)?"
            rf"{_COUNT}\s+(?P<unit>day|week|month|year)s?\s+ago",
            _END,
        ),
        _days_ago,
    ),
    (_phrase(r"(?P<before>the\s+day\s+before\s+)?[Yy]esterday", _END), _yesterday),
    (
        _phrase(
            rf"(?:the\s+(?:past|last)\s+{NUMBER}\s+(?P<units>day|week|month|year)s"
            r"|(?:in|over|during|within|for)\s+the\s+(?:past|last)\s+(?P<unit>week|month|year))"
        ),
        _past_period,
    ),
    (_phrase(r"(?:[Ll]ast|the\s+past)\s+(?P<unit>weekend)"), _last_unit),
    (_phrase(r"(?<!the )[Ll]ast\s+(?P<unit>week|month|year)"), _last_unit),
    (_phrase(r"(?<!of )(?<!later )[Tt]his\s+(?P<unit>month|year)"), _this_unit),
    (_phrase(r"since\s+the\s+(?:start|beginning)\s+of\s+the\s+(?P<unit>year)"), _this_unit),
    (_phrase(rf"(?<!the )[Ll]ast\s+(?P<weekday>{_WEEKDAY})"), _last_weekday),
    (
        _phrase(
            rf"(?:[Ff]rom|[Bb]etween)\s+(?P<month>{_MONTH})"
            rf"\s+(?:to|until|through|and)\s+(?P<until>{_MONTH})",
            _NO_OTHER_YEAR,
        ),
        _months,
    ),
    (
        _phrase(
            rf"(?:[Ii]n|[Dd]uring)\s+(?:the\s+month\s+of\s+)?(?P<month>{_MONTH})"
            rf"(?:\s+and\s+(?P<until>{_MONTH}))?",
            _NO_OTHER_YEAR,
        ),
        _months,
    ),
    (
        _phrase(rf"[Oo]n\s+(?P<holiday>{'|'.join(_HOLIDAYS)})", _NO_OTHER_YEAR),
        _holiday,
    ),
)


def _day(day: date) -> str:
    return f"{day.isoformat()} ({_WEEKDAYS[day.weekday()][:3]})"
