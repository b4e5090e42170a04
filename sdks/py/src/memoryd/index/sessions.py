"""The sessions of a brain: the order of its chunks in their conversations, and who speaks."""

import json
import math
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from memoryd.index.matrix import Slots
from memoryd.rank.conversation import Flags, Turns
from memoryd.text.terms import terms


class Turn(NamedTuple):
    """What a document's metadata says about its chunks as turns of a conversation."""

    session: str
    order: float
    """Its index; infinity without a number: those come last."""
    speaker: str | None

    @classmethod
    def of(cls, session: str | None, metadata: str) -> "Turn | None":
        """Read `metadata`, JSON; None if there is no session."""
        if not session:
            return None
        fields = json.loads(metadata)
        index, speaker = fields.get("index"), fields.get("speaker")
        is_number = isinstance(index, int | float) and not isinstance(index, bool)
        return cls(
            session,
            float(index) if is_number else math.inf,
            speaker if isinstance(speaker, str) else None,
        )


class SessionChunk(NamedTuple):
    """A chunk; compared as chunks of a session are."""

    session: str
    order: float
    path: str
    slot: int
    text: str
    speaker: str | None

    @classmethod
    def of(cls, turn: Turn | None, path: str, slot: int, text: str) -> "SessionChunk":
        # A session's name is not empty, so that the chunks without one come first.
        session, order, speaker = turn or Turn("", math.inf, None)
        return cls(session, order, path, slot, text, speaker)


class Sessions:
    """All chunks of a brain, session by session. Immutable."""

    def __init__(self, chunks: Iterable[SessionChunk]) -> None:
        ordered = sorted(chunks)
        self.slots: Slots = np.array([chunk.slot for chunk in ordered], dtype=np.int64)
        self._place = np.zeros(self.slots.max(initial=-1) + 1, dtype=np.int64)
        self._place[self.slots] = np.arange(len(ordered))
        begins = [
            not chunk.session or chunk.session != before
            for chunk, before in zip(ordered, ["", *(c.session for c in ordered)], strict=False)
        ]
        self.turns = Turns(
            sessions=np.cumsum(begins),
            sizes=np.array([len(chunk.text) for chunk in ordered]),
            asks=np.array(["?" in chunk.text for chunk in ordered]),
        )
        speakers = dict.fromkeys(chunk.speaker for chunk in ordered)
        names = {name: number for number, name in enumerate(speakers)}
        self._names = [frozenset(terms(name or "")) for name in names]
        self._speakers = np.array([names[chunk.speaker] for chunk in ordered], dtype=np.int64)

    def places(self, slots: Slots) -> Slots:
        """Where in `slots` of the sessions each of `slots` is."""
        places: Slots = self._place[slots]
        return places

    def named(self, query: Sequence[str]) -> Flags:
        """Whether the terms of a query name the speaker of each chunk."""
        terms_of_query = frozenset(query)
        spoken = [bool(name) and name <= terms_of_query for name in self._names]
        flags: Flags = np.array(spoken)[self._speakers]
        return flags
