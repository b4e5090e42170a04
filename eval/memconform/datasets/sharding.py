"""Shards: parts of the work of one command, which machines without contact choose alike."""

import hashlib
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, Self

from pydantic import Field, model_validator

from memconform.errors import UsageError
from memconform.printing.plurals import plural
from memconform.records import Record

Unit = Literal["haystack", "question", "case"]
"""What is never divided: a haystack, so that its index is built once, or what is asked."""

HASH: Literal["sha256-dealt@1"] = "sha256-dealt@1"
"""Units in the order of the SHA-256 of their ids are dealt to the shards in turn."""


class ShardRecord(Record):
    """Which part of a command's work a result has; a merged one may have several shards of it."""

    numbers: list[int] = Field(min_length=1)
    """Which shards, from 1."""
    of: int = Field(ge=1)
    unit: Unit
    hash: Literal["sha256-dealt@1"] = HASH
    places: list[int] | None = None
    """The places of its questions or cases among those of the whole, from 0, in their order. Null
    where the order of the ids is that of the result."""

    @model_validator(mode="after")
    def _must_be_of_the_whole(self) -> Self:
        if self.numbers != sorted(set(self.numbers)) or not 1 <= self.numbers[-1] <= self.of:
            raise ValueError(f"shards {self.numbers} of {self.of}")
        return self

    @property
    def missing(self) -> list[int]:
        """The shards that it does not have."""
        return [number for number in range(1, self.of + 1) if number not in self.numbers]

    def label(self) -> str:
        """Such as `shard 2 of 3`."""
        noun = "shard" if len(self.numbers) == 1 else "shards"
        return f"{noun} {', '.join(map(str, self.numbers))} of {self.of}"


@dataclass(frozen=True, slots=True)
class Shard:
    """One of `of` shards, by its number from 1."""

    number: int
    of: int

    @classmethod
    def parse(cls, text: str) -> "Shard":
        """Read `2/3`; raises ValueError for anything else."""
        match = re.fullmatch(r"([1-9][0-9]{0,5})/([1-9][0-9]{0,5})", text)
        if match is None or int(match[1]) > int(match[2]):
            raise ValueError(f"{text!r} is not a shard, such as 2/3: the second of three")
        return cls(int(match[1]), int(match[2]))

    def __str__(self) -> str:
        return f"{self.number}/{self.of}"

    def record(self, unit: Unit, places: Iterable[int] | None = None) -> ShardRecord:
        """What a result of this shard says of it."""
        return ShardRecord(
            numbers=[self.number],
            of=self.of,
            unit=unit,
            places=None if places is None else list(places),
        )

    def places(self, ids: Sequence[str], unit: Unit) -> list[int]:
        """The places in `ids` that this shard has, in their order; ids may repeat.

        Raises:
            UsageError: if there are more shards than distinct ids (`too_many_shards`).
        """
        chosen = self.choose(ids, unit)
        return [place for place, each in enumerate(ids) if each in chosen]

    def choose(self, ids: Iterable[str], unit: Unit) -> frozenset[str]:
        """The ids that this shard has; raises UsageError as `places`."""
        return deal(ids, self.of, unit)[self.number - 1]


def deal(ids: Iterable[str], shards: int, unit: Unit) -> list[frozenset[str]]:
    """Divide distinct ids among shards; raises UsageError `too_many_shards` if one would be empty.

    Dealing them makes shards of equal size, which a hash modulo their number would not.
    """
    ordered = sorted(set(ids), key=_digest)
    if shards > len(ordered):
        raise UsageError(
            f"{plural(len(ordered), unit)} cannot be divided among {shards} shards",
            code="too_many_shards",
            hint=f"give at most {len(ordered)} shards",
        )
    return [frozenset(ordered[first::shards]) for first in range(shards)]


def _digest(text: str) -> bytes:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()


def join_shards(
    parts: Mapping[str, ShardRecord | None], *, partial: bool = False
) -> ShardRecord | None:
    """The shards of results together; None if they are the whole.

    Args:
        parts: what each result says of its shards, by a name for messages.
        partial: whether shards may be missing.

    Raises:
        UsageError: if a result is of no shard (`not_a_shard`) or of another division
            (`other_shards`), if two have the same shard (`shard_twice`), or if one is missing
            (`shard_missing`); the message names the results.
    """
    known: dict[str, ShardRecord] = {}
    for name, part in parts.items():
        if part is None:
            raise UsageError(
                f"{name} is not a part: it was made without --shard, or is already whole",
                code="not_a_shard",
                hint="give results of the same command with --shard 1/N, 2/N and so on",
            )
        known[name] = part
    first_name, first = next(iter(known.items()))
    owners: dict[int, str] = {}
    for name, part in known.items():
        if (part.of, part.unit, part.hash) != (first.of, first.unit, first.hash):
            raise UsageError(
                f"{name} has {part.label()} by {part.unit}, and {first_name} {first.label()} by"
                f" {first.unit}",
                code="other_shards",
                hint="parts must be of one division: the same N in --shard i/N",
            )
        for number in part.numbers:
            if number in owners:
                raise UsageError(
                    f"{owners[number]} and {name} both have shard {number} of {first.of}",
                    code="shard_twice",
                    hint="give one of them",
                )
            owners[number] = name
    places = [place for part in known.values() for place in part.places or ()]
    joined = first.model_copy(
        update={
            "numbers": sorted(owners),
            "places": None if first.places is None else sorted(places),
        }
    )
    if not joined.missing:
        return None
    if not partial:
        named = ", ".join(f"{number}/{first.of}" for number in joined.missing)
        raise UsageError(
            f"no part has shard {named}; {first_name} is of {plural(first.of, 'shard')}",
            code="shard_missing",
            hint="give its result, too; --partial joins what there is, without a verdict on floors",
        )
    return joined
