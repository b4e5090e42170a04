"""LongMemEval (Wu et al., ICLR 2025): questions, each with its own haystack of chat sessions."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Literal, TypeVar

from memconform.datasets.conversations import Conversation, Session, Turn
from memconform.datasets.files import PieceReader, unfit
from memconform.datasets.haystacks import DroppedEntry, Haystack, Item, Level
from memconform.datasets.json_array import array_or_lines
from memconform.datasets.question import Question
from memconform.datasets.rows import answer_text, objects, reason_of, text, texts, unpacked

SessionDoc = Literal["full", "user-only", "dated", "official"]
"""A session's text: every turn as `role: content`; the user's turns only, or all if there are none;
all below the date; or the user's turns joined by spaces, as in the released retrieval code."""

_Read = TypeVar("_Read")

EVIDENCE = "evidence"
"""The metadata key of an item: whether one of its user turns contains the answer."""

_KEYS = {
    "question_id", "question_type", "question", "answer", "question_date", "haystack_dates",
    "haystack_session_ids", "haystack_sessions", "answer_session_ids",
}  # fmt: skip

NESTED = ("haystack_dates", "haystack_session_ids", "haystack_sessions", "answer_session_ids")
"""Lists, which some hubs export as JSON in a text."""


def read_longmemeval(
    source: PieceReader, level: Level, session_doc: SessionDoc = "full"
) -> Iterator[Haystack]:
    """Yield one haystack per question, from an oracle, S or M file.

    At turn level the items are the user's turns, as in the released retrieval code.

    Raises:
        UsageError: naming the invalid question (`dataset_invalid`).
    """
    yield from _each(source, lambda row: _haystack(row, level, session_doc))


def read_longmemeval_conversations(source: PieceReader) -> Iterator[Conversation]:
    """Yield the sessions of each question, under the question's id.

    Raises:
        UsageError: as `read_longmemeval`.
    """
    yield from _each(source, _conversation)


def _each(source: PieceReader, read: Callable[[dict[str, Any]], _Read]) -> Iterator[_Read]:
    for number, row in enumerate(array_or_lines(source)):
        if not isinstance(row, dict) or not row.keys() >= _KEYS:
            missing = _KEYS - row.keys() if isinstance(row, dict) else _KEYS
            raise unfit(
                source.path,
                f"element {number} is not a LongMemEval question: {min(missing)!r} is missing",
            )
        try:
            yield read(unpacked(row, NESTED))
        except (KeyError, TypeError, AttributeError, ValueError) as error:
            raise unfit(
                source.path,
                f"element {number}, question {row['question_id']!r}: {reason_of(error)}",
            ) from error


def read_longmemeval_rows(source: PieceReader) -> Iterator[dict[str, Any]]:
    """Yield the questions of a file as they are in it.

    Raises:
        UsageError: as `read_longmemeval`.
    """
    yield from _each(source, lambda row: row)


def listed_sessions(row: Mapping[str, Any]) -> Iterator[tuple[str, str, list[dict[str, Any]]]]:
    """Id, date and turns of each session of a haystack, in its order.

    Raises:
        KeyError, TypeError: as `texts`.
        ValueError: if the three lists differ in their lengths.
    """
    ids, dates = texts(row, "haystack_session_ids"), texts(row, "haystack_dates")
    sessions = row["haystack_sessions"]
    if not isinstance(sessions, list):
        raise TypeError("'haystack_sessions' must be a list of sessions")
    if not len(ids) == len(dates) == len(sessions):
        raise ValueError(
            f"{len(sessions)} haystack_sessions, but {len(dates)} haystack_dates and {len(ids)}"
            " haystack_session_ids"
        )
    for session_id, date, turns in zip(ids, dates, sessions, strict=True):
        yield session_id, date, objects({f"session {session_id}": turns}, f"session {session_id}")


def official_gold(haystack: Haystack) -> tuple[str, ...]:
    """The gold of the haystack's question by the official retrieval metrics; empty if they skip it.

    They only count items with evidence in a user's turn, and skip questions to abstain from.
    """
    [query] = haystack.queries
    evidence = {item.id for item in haystack.items if item.metadata[EVIDENCE]}
    return () if query.abstain else tuple(gold for gold in query.gold if gold in evidence)


def official_sessions(haystack: Haystack) -> dict[str, str]:
    """The session of each turn, as the released code derives it from the turn's id.

    That code renames turns without the answer in sessions of evidence, so that these turns form a
    session of their own, `noans_…`, which is never relevant and yet takes a rank.
    """
    with_answer = {item.group for item in haystack.items if item.metadata[EVIDENCE]}
    return {
        item.id: f"noans_{item.group}"
        if not item.metadata[EVIDENCE] and (item.group in with_answer or "answer" in item.group)
        else item.group
        for item in haystack.items
    }


def official_items(row: Mapping[str, Any], level: Level) -> Iterator[Item]:
    """The corpus of a question of the file, as the released code builds it.

    Sessions that are listed twice are in it twice.
    """
    for session_id, date, turns in listed_sessions(row):
        yield from _items(session_id, date, turns, level, "official")


def session_of(turn: str) -> str:
    """The id of the session that contains a turn: `answer_1` for `answer_1_3`."""
    return turn.rpartition("_")[0]


def _haystack(row: dict[str, Any], level: Level, session_doc: SessionDoc) -> Haystack:
    name, sessions = text(row, "question_id"), _sessions(row)
    dropped = [
        DroppedEntry(name, f"the session {session_id} occurs {count} times: the last one counts")
        for session_id, count in Counter(texts(row, "haystack_session_ids")).items()
        if count > 1
    ]
    items: list[Item] = []
    for session_id, (date, turns) in sessions.items():
        items += _items(session_id, date, turns, level, session_doc)
    gold = texts(row, "answer_session_ids")
    missing = [each for each in gold if each not in sessions]
    dropped += [DroppedEntry(name, f"session {each} does not exist") for each in missing]
    query = Question(
        id=name,
        question=text(row, "question"),
        category=text(row, "question_type"),
        gold=tuple(gold) if level == "session" else _gold_turns(items),
        # 32 answers are numbers.
        answers=(answer_text(row, "answer"),),
        question_date=text(row, "question_date"),
        # Regardless of its type.
        abstain=name.endswith("_abs"),
    )
    return Haystack(name, tuple(items), (query,), tuple(dropped), tuple(official_items(row, level)))


def _sessions(row: dict[str, Any]) -> dict[str, tuple[str, list[dict[str, Any]]]]:
    """Date and turns of each session; 13 haystacks contain one twice, of which the last counts."""
    return {session_id: (date, turns) for session_id, date, turns in listed_sessions(row)}


def _conversation(row: dict[str, Any]) -> Conversation:
    return Conversation(
        text(row, "question_id"),
        tuple(
            Session(
                session_id,
                date,
                tuple(
                    Turn(
                        id=f"{session_id}_{number}",
                        speaker=text(turn, "role"),
                        text=text(turn, "content"),
                        by_user=turn["role"] == "user",
                    )
                    for number, turn in enumerate(turns, start=1)
                ),
            )
            for session_id, (date, turns) in _sessions(row).items()
        ),
    )


def _items(
    session_id: str, date: str, turns: list[dict[str, Any]], level: Level, doc: SessionDoc
) -> list[Item]:
    if level == "turn":
        return _turns(session_id, date, turns)
    return [_session(session_id, date, turns, doc)]


def _session(session_id: str, date: str, turns: list[dict[str, Any]], doc: SessionDoc) -> Item:
    user = [turn for turn in turns if turn["role"] == "user"]
    if doc == "official":
        content = " ".join(text(turn, "content") for turn in user)
    elif doc == "user-only" and user:
        content = "\n".join(text(turn, "content") for turn in user)
    else:
        content = "\n".join(f"{turn['role']}: {text(turn, 'content')}" for turn in turns)
    if doc == "dated":
        content = f"[{date}]\n{content}"
    evidence = any(turn.get("has_answer", False) for turn in user)
    return Item(session_id, content, session_id, date, {EVIDENCE: evidence})


def _turns(session_id: str, date: str, turns: list[dict[str, Any]]) -> list[Item]:
    return [
        Item(
            id=f"{session_id}_{number}",
            text=text(turn, "content"),
            group=session_id,
            date=date,
            metadata={EVIDENCE: bool(turn.get("has_answer", False))},
            speaker=turn["role"],
        )
        for number, turn in enumerate(turns, start=1)
        if turn["role"] == "user"
    ]


def _gold_turns(items: list[Item]) -> tuple[str, ...]:
    return tuple(item.id for item in items if item.metadata[EVIDENCE])
