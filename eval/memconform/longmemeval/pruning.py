"""Temporal pruning (Wu et al., LongMemEval): a query about a time searches only items of that time.

The events of items and the time ranges of queries come from files; no model is called here.
"""

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from datetime import date, timedelta
from pathlib import Path
from typing import Any

from memconform.contract.wire import JsonValue
from memconform.datasets.files import PieceReader, unfit
from memconform.datasets.haystacks import DroppedEntry, Haystack
from memconform.datasets.json_array import elements
from memconform.datasets.json_file import read_object
from memconform.datasets.question import Question
from memconform.datasets.rows import reason_of, text, texts
from memconform.datasets.selection import expect_known
from memconform.errors import UsageError

SLACK = timedelta(days=2)
"""By how much the published pruning widens a range at both ends."""

_DAY = re.compile(r"(\d{4})[/-](\d{1,2})[/-](\d{1,2})")
_EVENTS = 'write {"haystack/item": [{"date": "2023/05/20", "event": "…"}], …}'
_RANGES = 'write {"query": {"start": "2023/05/01", "end": "2023/05/31"}, …}'


@dataclass(frozen=True, slots=True)
class Events:
    """The days of the events of items."""

    days: Mapping[str, tuple[date, ...] | None]
    """By `haystack/item`; for turns also by `haystack/session`. None if the events are null."""
    dropped: tuple[DroppedEntry, ...]
    """Events without a day, model output that is not an event, and items whose events are null."""


@dataclass(frozen=True, slots=True)
class Range:
    """The time range that a query asks about."""

    start: date
    end: date
    """The last day, inclusive."""


@dataclass(frozen=True, slots=True)
class Pruning:
    """Events and ranges by which each query's candidates are pruned."""

    events: Events
    ranges: Mapping[str, Range]
    """By query id."""
    slack: timedelta = SLACK

    def require_known_ids(self, ids: Collection[str]) -> None:
        """Raise UsageError if a range is of a query that the benchmark does not have."""
        expect_known(
            self.ranges,
            ids,
            "there is a range for a question that the benchmark does not have:",
            "use the ids that the loader assigns",
        )

    def candidates(self, haystack: Haystack, query: Question) -> frozenset[str] | None:
        """The items with an event in the query's range, and those that the events file omits.

        None if the query has no range, so that all items are candidates. Additional keys of an item
        are kept or pruned with it.

        Raises:
            UsageError: if the events file names no item of this haystack (`dataset_invalid`).
        """
        time_range = self.ranges.get(query.id)
        if time_range is None:
            return None
        first, last = time_range.start - self.slack, time_range.end + self.slack
        has_match = False
        candidates: set[str] = set()
        for item in haystack.items:
            names = (f"{haystack.id}/{item.source or item.id}", f"{haystack.id}/{item.group}")
            name = next((each for each in names if each in self.events.days), None)
            has_match = has_match or name is not None
            # Nothing is known about an item that the file omits, or whose events are null.
            days = None if name is None else self.events.days[name]
            if days is None or any(first <= day <= last for day in days):
                candidates.add(item.id)
        if not has_match:
            raise UsageError(
                f"the events file names no item of {haystack.id}",
                code="dataset_invalid",
                hint="name items as haystack/item; see datasets/README.md",
            )
        return frozenset(candidates)


def read_ranges(path: Path) -> dict[str, Range]:
    """Read the time ranges of queries; a query with null, {} or "N/A" has no range.

    Raises:
        UsageError: naming the query with an invalid range (`dataset_invalid`).
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
                raise unfit(path, f"{query!r} has an invalid range: {str(value)[:60]}", _RANGES)
    return ranges


def read_events(path: Path) -> Events:
    """Read the events of items: an object, or a LongMemEval file with `timestamped_facts`.

    The events of an item are null if a model gave none that can be read. Nothing is known about
    such an item, which therefore stays a candidate: pruned, evidence would be lost by a failed
    call. The released code prunes it.

    Raises:
        UsageError: naming the invalid entry (`dataset_invalid`).
    """
    with PieceReader(path) as source:
        released = source.read(64).lstrip().startswith(b"[")
    days: dict[str, tuple[date, ...] | None] = {}
    dropped: list[DroppedEntry] = []
    for name, value in _released(path) if released else read_object(path).items():
        if value is None:
            days[name] = None
            dropped.append(DroppedEntry(name, "its events are null: it is never pruned"))
            continue
        if not isinstance(value, list):
            raise unfit(path, f"{name!r} must be a list of events, not {str(value)[:60]}", _EVENTS)
        event_days = [_day(event, "date") for event in value]
        dropped += [
            DroppedEntry(name, f"an event without a day: {str(event)[:60]}")
            for event, day in zip(value, event_days, strict=True)
            if day is None
        ]
        days[name] = tuple(day for day in event_days if day is not None)
    return Events(days, tuple(dropped))


def _released(path: Path) -> Iterator[tuple[str, JsonValue]]:
    with PieceReader(path) as source:
        for number, row in enumerate(elements(source)):
            try:
                yield from _facts(row)
            except (KeyError, TypeError, ValueError) as error:
                raise unfit(path, f"element {number}: {reason_of(error)}", _EVENTS) from error


def _facts(row: Any) -> Iterator[tuple[str, JsonValue]]:  # noqa: ANN401 - it is JSON
    if not isinstance(row, dict):
        raise TypeError("is not an object")
    question, sessions = text(row, "question_id"), texts(row, "haystack_session_ids")
    by_session = row["timestamped_facts"]
    if not isinstance(by_session, list) or len(by_session) != len(sessions):
        raise ValueError("'timestamped_facts' must have one list per session")
    for session, facts in zip(sessions, by_session, strict=True):
        yield f"{question}/{session}", facts


def _day(value: JsonValue, key: str) -> date | None:
    match = _DAY.fullmatch(str(value.get(key)).strip()) if isinstance(value, dict) else None
    try:
        return date(*(int(part) for part in match.groups())) if match else None
    except ValueError:
        return None
