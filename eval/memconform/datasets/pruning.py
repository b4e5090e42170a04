"""Temporal pruning (Wu et al., LongMemEval): a query about a time is put to the items of that time.

The events of the items and the ranges of the queries come from files; nothing is asked of a model
here.
"""

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from datetime import date, timedelta
from pathlib import Path
from typing import Any

from memconform.contract.wire import JsonValue
from memconform.datasets.files import PieceReader, unfit
from memconform.datasets.haystacks import Dropped, Haystack
from memconform.datasets.json_array import elements
from memconform.datasets.json_file import read_object
from memconform.datasets.model import Question
from memconform.datasets.rows import text, texts, told
from memconform.datasets.selection import expect_known
from memconform.errors import UsageError

SLACK = timedelta(days=2)
"""What the published pruning widens a range by, at both ends."""

_DAY = re.compile(r"(\d{4})[/-](\d{1,2})[/-](\d{1,2})")
_EVENTS = 'write {"haystack/item": [{"date": "2023/05/20", "event": "…"}], …}'
_RANGES = 'write {"query": {"start": "2023/05/01", "end": "2023/05/31"}, …}'


@dataclass(frozen=True, slots=True)
class Events:
    days: Mapping[str, tuple[date, ...]]
    """By `haystack/item`; of turns also by `haystack/session`."""
    dropped: tuple[Dropped, ...]
    """Events that have no day, and what a model wrote that is no event."""


@dataclass(frozen=True, slots=True)
class Range:
    start: date
    end: date
    """The last day of it."""


@dataclass(frozen=True, slots=True)
class Pruning:
    events: Events
    ranges: Mapping[str, Range]
    """By query."""
    slack: timedelta = SLACK

    def require_known_ids(self, ids: Collection[str]) -> None:
        """Raise UsageError for a range of a query that the benchmark does not have."""
        expect_known(
            self.ranges,
            ids,
            "there is a range of a question that the benchmark does not have:",
            "ids are as its loader gives them",
        )

    def allowed(self, haystack: Haystack, query: Question) -> frozenset[str] | None:
        """The items that have an event in the query's range, or that the events file does not name.

        None: all, for the query has no range.

        Another key of an item is kept or pruned with it.

        Raises:
            UsageError: where the events are not of this haystack: none would be left.
        """
        asked = self.ranges.get(query.id)
        if asked is None:
            return None
        first, last = asked.start - self.slack, asked.end + self.slack
        known = False
        kept: set[str] = set()
        for item in haystack.items:
            names = (f"{haystack.id}/{item.source or item.id}", f"{haystack.id}/{item.group}")
            name = next((each for each in names if each in self.events.days), None)
            # Of an item that the file does not name nothing is known: it stays.
            days = () if name is None else self.events.days[name]
            known = known or name is not None
            if name is None or any(first <= day <= last for day in days):
                kept.add(item.id)
        if not known:
            raise UsageError(
                f"there are events of no item of {haystack.id}",
                code="dataset_invalid",
                hint="name them haystack/item, as datasets/README.md says",
            )
        return frozenset(kept)


def read_ranges(path: Path) -> dict[str, Range]:
    """The queries that ask about a time; one that has null, {} or "N/A" has no range.

    Raises:
        UsageError: naming the query whose range is none.
    """
    ranges = {}
    for query, value in read_object(path).items():
        if value in (None, {}, "N/A"):
            continue
        ends = [_day(value, key) for key in ("start", "end")] if isinstance(value, dict) else []
        match ends:
            case [date() as start, date() as end] if start <= end:
                ranges[query] = Range(start, end)
            case _:
                raise unfit(path, f"{query!r} has no range but {str(value)[:60]}", _RANGES)
    return ranges


def read_events(path: Path) -> Events:
    """The events of items: an object of them, or a LongMemEval file that has `timestamped_facts`.

    Raises:
        UsageError: naming what has not the shape it should.
    """
    with PieceReader(path) as source:
        released = source.read(64).lstrip().startswith(b"[")
    days: dict[str, tuple[date, ...]] = {}
    dropped: list[Dropped] = []
    for name, given in _released(path) if released else read_object(path).items():
        # Where a model's answer could not be read there is null.
        if given is not None and not isinstance(given, list):
            raise unfit(path, f"{name!r} must be a list of events, not {str(given)[:60]}", _EVENTS)
        found = [_day(each, "date") for each in given or ()]
        dropped += [
            Dropped(name, f"an event without a day: {str(each)[:60]}")
            for each, day in zip(given or (), found, strict=True)
            if day is None
        ]
        days[name] = tuple(day for day in found if day is not None)
    return Events(days, tuple(dropped))


def _released(path: Path) -> Iterator[tuple[str, JsonValue]]:
    with PieceReader(path) as source:
        for number, row in enumerate(elements(source)):
            try:
                yield from _facts(row)
            except (KeyError, TypeError, ValueError) as error:
                raise unfit(path, f"element {number}: {told(error)}", _EVENTS) from error


def _facts(row: Any) -> Iterator[tuple[str, JsonValue]]:  # noqa: ANN401 - it is JSON
    if not isinstance(row, dict):
        raise TypeError("is not an object")
    question, sessions = text(row, "question_id"), texts(row, "haystack_session_ids")
    for session, facts in zip(sessions, row["timestamped_facts"], strict=True):
        yield f"{question}/{session}", facts


def _day(given: JsonValue, key: str) -> date | None:
    match = _DAY.fullmatch(str(given.get(key)).strip()) if isinstance(given, dict) else None
    try:
        return date(*(int(part) for part in match.groups())) if match else None
    except ValueError:
        return None
