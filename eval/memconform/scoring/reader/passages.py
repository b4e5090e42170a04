"""What a reader is shown: sessions of a conversation, or some of their turns, in order of date."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from memconform.datasets.conversations import Conversation, Session, Turn
from memconform.errors import UsageError
from memconform.scoring.reader.names import HistoryFormat, Speakers, Unit

BYTES_PER_TOKEN = 4
"""A rough figure for English, by the tokenizers of 2024; a budget in tokens is one in bytes."""


_OVERHEAD = 24
"""Bytes of a turn in a prompt besides its text and speaker, about."""


@dataclass(frozen=True, slots=True)
class Passage:
    """A session or some of its turns."""

    id: str
    """Id of the retrieved item, or of the session that it belongs to."""
    session: str
    date: str
    turns: tuple[Turn, ...]
    position: int = 0
    """In the conversation, by which passages of one date are ordered."""
    is_cut: bool = False
    """Whether its end is missing."""
    is_partial: bool = False
    """Whether turns of other speakers were left out."""

    @property
    def visible(self) -> frozenset[str]:
        """The ids of the items that a reader sees whole, here or in passages shown before."""
        turns = [turn.id for turn in self.turns]
        if self.is_cut:
            return frozenset(turns[:-1])
        is_session = self.id == self.session and not self.is_partial
        return frozenset([self.id, *turns] if is_session else turns)

    @property
    def size(self) -> int:
        """Its size in bytes, about, whatever the format."""
        return sum(len(turn.text.encode()) + len(turn.speaker) + _OVERHEAD for turn in self.turns)


def retrieved_passages(
    conversation: Conversation, ranking: Sequence[str], unit: Unit
) -> list[Passage]:
    """The passages of retrieved items, in the order of the ranking, each once.

    Several may have a turn in common.

    Raises:
        UsageError: for an item that the conversation does not have (`unknown_item`).
    """
    sessions = {session.id: (at, session) for at, session in enumerate(conversation.sessions)}
    turns = {
        turn.id: (at, session, number)
        for at, session in sessions.values()
        for number, turn in enumerate(session.turns)
    }
    passages: dict[str, Passage] = {}
    for item in ranking:
        if item in sessions:
            at, session = sessions[item]
            passage = _whole(session, at)
        elif item in turns:
            at, session, number = turns[item]
            passage = _part(session, at, number, unit)
        else:
            raise UsageError(
                f"{conversation.id} has no session or turn {item!r}, which was retrieved",
                code="unknown_item",
                hint="give --data the file that the bench read",
            )
        passages.setdefault(passage.id, passage)
    return [passage for passage in passages.values() if passage.turns]


def newest_first(conversation: Conversation) -> list[Passage]:
    """All sessions, from the newest; of one date, from the last in the file."""
    passages = [_whole(session, at) for at, session in enumerate(conversation.sessions)]
    return sorted(passages, key=_order, reverse=True)


def _whole(session: Session, at: int) -> Passage:
    return Passage(session.id, session.id, session.date, session.turns, at * _SPAN)


def _part(session: Session, at: int, number: int, unit: Unit) -> Passage:
    if unit == "session":
        return _whole(session, at)
    turns = session.turns[number : number + (2 if unit == "round" else 1)]
    return Passage(
        session.turns[number].id, session.id, session.date, turns, at * _SPAN + number + 1
    )


_SPAN = 1_000_000
"""More than the turns of a session."""


def _order(passage: Passage) -> tuple[str, int]:
    # The dates of LongMemEval sort as text; LoCoMo's do not, but its sessions are in order.
    comparable = passage.date if passage.date[:4].isdigit() else ""
    return comparable, passage.position


@dataclass(frozen=True, slots=True)
class PassageSelection:
    """The passages that fit into a budget, in order of date."""

    passages: tuple[Passage, ...]
    left_out: int
    """Passages without room, or of which only the beginning is shown."""


def fit_passages(
    candidates: Iterable[Passage], budget: int, speakers: Speakers, *, unbroken: bool = False
) -> PassageSelection:
    """The first candidates that fit into a budget, sorted by date.

    One that does not fit is left out, and smaller ones behind it are not, unless `unbroken`. If
    not even the first fits, its beginning is shown. A turn that several have is shown once, in the
    first of them that fits.

    Args:
        candidates: the most important first.
        budget: in tokens.
        speakers: `user` drops the turns of the assistant first.
        unbroken: end at the first candidate that does not fit.
    """
    room = budget * BYTES_PER_TOKEN
    shown: list[Passage] = []
    shown_turns: set[str] = set()
    left_out = 0
    for candidate in candidates:
        passage = of_speakers(candidate, speakers)
        new = tuple(turn for turn in passage.turns if turn.id not in shown_turns)
        if not new:
            continue
        passage = replace(passage, turns=new)
        if passage.size <= room and not (unbroken and left_out):
            shown.append(passage)
            shown_turns.update(turn.id for turn in new)
            room -= passage.size
            continue
        if not shown and not left_out:
            shown.append(_beginning(passage, room))
            room = 0
        left_out += 1
    return PassageSelection(tuple(sorted(shown, key=_order)), left_out)


def of_speakers(passage: Passage, speakers: Speakers) -> Passage:
    """The passage with the turns of these speakers alone; it may have none."""
    if speakers == "all":
        return passage
    turns = tuple(turn for turn in passage.turns if turn.by_user)
    return replace(passage, turns=turns, is_partial=len(turns) < len(passage.turns))


def _beginning(passage: Passage, room: int) -> Passage:
    turns: list[Turn] = []
    for turn in passage.turns:
        content = turn.text.encode()
        room -= len(turn.speaker) + _OVERHEAD
        if len(content) > room:
            turns.append(replace(turn, text=content[: max(room, 0)].decode(errors="ignore")))
            break
        turns.append(turn)
        room -= len(content)
    return replace(passage, turns=tuple(turns), is_cut=True)


def passage_text(passage: Passage, history: HistoryFormat) -> str:
    """A passage below its date, as lines of `speaker: text` or as JSON."""
    if history == "json":
        turns = [{"speaker": turn.speaker, "text": turn.text} for turn in passage.turns]
        return json.dumps({"date": passage.date, "turns": turns}, ensure_ascii=False)
    lines = [f"{turn.speaker}: {turn.text.strip()}" for turn in passage.turns]
    return "\n".join([f"[{passage.date}]", *lines])
