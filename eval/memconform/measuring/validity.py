"""Which measurements count: those that a verification of their index followed."""

from collections.abc import Hashable
from functools import cache
from typing import Generic, NamedTuple, TypeVar

from memconform.ingest.records import IndexInvalidated, IndexVerified
from memconform.records import Failure

Statement = IndexVerified | IndexInvalidated
"""Whether the measurements before it count, as far as it covers them."""


@cache
def _unverified() -> Failure:
    return Failure(code="index_not_proven", message="the index was not verified after this query")


Key = TypeVar("Key", bound=Hashable)


class Place(NamedTuple):
    """Where a measurement was made; a suite with one system, index or strategy leaves it empty."""

    system: str = ""
    haystack: str = ""
    strategy: str = ""


class Validity(Generic[Key]):
    """The state of each measurement, by its key.

    The rules are the same during a measurement and when its journal is read later. A loss concerns
    all that was measured in an index: what is missing now may have been missing from the start.
    """

    def __init__(self) -> None:
        self._places: dict[Key, Place] = {}
        self._failures: dict[Key, Failure | None] = {}
        self._open: set[Key] = set()
        """Keys of measurements that no statement has followed yet."""

    def add(self, key: Key, place: Place) -> None:
        """Add a measurement; it does not count yet."""
        self._places[key] = place
        self._failures[key] = _unverified()
        self._open.add(key)

    def apply(self, statement: Statement) -> None:
        """Apply a statement to the measurements before it."""
        match statement:
            case IndexVerified():
                covered = {key for key in self._open if statement.covers(*self._places[key])}
                self._failures |= dict.fromkeys(covered)
            case IndexInvalidated(error=error):
                covered = {key for key, place in self._places.items() if statement.covers(*place)}
                self._failures |= dict.fromkeys(covered, error)
        self._open -= covered

    def replace_index(self, system: str, haystack: str) -> None:
        """Note that an index is built anew: what is found of it concerns no earlier measurement."""
        before = {
            key
            for key, place in self._places.items()
            if place.system == system and haystack in ("", place.haystack)
        }
        self._places = {key: self._places[key] for key in self._places.keys() - before}
        self._open -= before

    def failure(self, key: Key) -> Failure | None:
        """Why a measurement does not count; None if it does. Raises KeyError for an unknown one."""
        return self._failures[key]

    def counts(self, key: Key) -> bool:
        """Whether there is such a measurement, and it counts."""
        return key in self._failures and self._failures[key] is None
