"""LoCoMo (Maharana et al., ACL 2024): conversations of two people over months, and questions.

The public file `locomo10.json` deviates from its paper in places; comments name each deviation
where it is handled.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any, TypeVar

from memconform.datasets.conversations import Conversation, Session, Turn
from memconform.datasets.files import PieceReader, unfit
from memconform.datasets.haystacks import DroppedEntry, Haystack, Item, Level
from memconform.datasets.json_array import array_or_lines
from memconform.datasets.question import Question
from memconform.datasets.rows import answer_text, objects, reason_of, text, texts, unpacked
from memconform.errors import UsageError

CATEGORIES = {1: "multi-hop", 2: "temporal", 3: "open-domain", 4: "single-hop", 5: "adversarial"}
"""Category numbers of the file; the paper lists the categories in another order."""

_Read = TypeVar("_Read")

_TURN = re.compile(r"D\d+:\d+")
_SESSION = re.compile(r"session_(\d+)")


def read_locomo(source: PieceReader, level: Level) -> Iterator[Haystack]:
    """Yield one haystack per conversation.

    Question ids are `sample_id#index`, because texts repeat inside a conversation. At turn level, a
    question whose evidence names only missing turns is kept, as an unavoidable miss.

    Raises:
        UsageError: naming the invalid conversation and question (`dataset_invalid`).
    """
    yield from _each(source, lambda sample: _haystack(sample, level))


def read_locomo_conversations(source: PieceReader) -> Iterator[Conversation]:
    """Yield the sessions of each conversation.

    Raises:
        UsageError: as `read_locomo`.
    """
    yield from _each(source, _conversation)


def _each(source: PieceReader, read: Callable[[dict[str, Any]], _Read]) -> Iterator[_Read]:
    for number, sample in _samples(source):
        if not isinstance(sample.get("conversation"), dict):
            raise _other(source, number)
        try:
            yield read(sample)
        except (KeyError, TypeError, AttributeError, ValueError) as error:
            raise unfit(
                source.path, f"conversation {sample.get('sample_id')!r}: {reason_of(error)}"
            ) from error


def _samples(source: PieceReader) -> Iterator[tuple[int, dict[str, Any]]]:
    """The conversations with their numbers."""
    for number, sample in enumerate(array_or_lines(source)):
        if not isinstance(sample, dict):
            raise _other(source, number)
        try:
            conversation = unpacked(sample, ("conversation", "qa"))
        except ValueError as error:
            raise unfit(source.path, f"element {number}: {error}") from error
        if not isinstance(conversation.get("qa"), list):
            raise _other(source, number)
        yield number, conversation


def _other(source: PieceReader, number: int) -> UsageError:
    return unfit(source.path, f"element {number} is not a LoCoMo conversation")


def read_locomo_questions(source: PieceReader) -> Iterator[tuple[str, Question]]:
    """Yield every question with its conversation, also those whose evidence resolves to no turn.

    Raises:
        UsageError: naming the invalid conversation and question (`dataset_invalid`).
    """
    for _, sample in _samples(source):
        index = 0
        try:
            name = text(sample, "sample_id")
            for index, row in enumerate(sample["qa"]):
                yield name, _query(f"{name}#{index}", _object(row))
        except (KeyError, TypeError, AttributeError) as error:
            raise unfit(
                source.path,
                f"conversation {sample.get('sample_id')!r}: question {index}: {reason_of(error)}",
            ) from error


def _haystack(sample: dict[str, Any], level: Level) -> Haystack:
    conversation, name = sample["conversation"], text(sample, "sample_id")
    sessions = _sessions(conversation)
    turn_ids = {turn["dia_id"] for _, turns in sessions.values() for turn in turns}
    items: list[Item] = []
    for number, (date, turns) in sessions.items():
        items += _turns(number, date, turns) if level == "turn" else [_session(number, date, turns)]
    queries: list[Question] = []
    dropped: list[DroppedEntry] = []
    for index, row in enumerate(sample["qa"]):
        query_id = f"{name}#{index}"
        try:
            evidence = " ".join(texts(_object(row), "evidence"))
            # Some contain two ids, or half of one: "D8:6; D9:17", "D", "D:11:26".
            gold = _TURN.findall(evidence)
            query = _query(query_id, row)
        except (KeyError, TypeError) as error:
            raise ValueError(f"question {index}: {reason_of(error)}") from error
        unknown = [turn for turn in gold if turn not in turn_ids]
        dropped += [DroppedEntry(query_id, f"turn {turn} does not exist") for turn in unknown]
        if level == "session":
            gold = [session_of(turn) for turn in gold if turn in turn_ids]
        if gold:
            queries.append(replace(query, gold=tuple(dict.fromkeys(gold))))
        else:
            dropped.append(
                DroppedEntry(query_id, f"its evidence resolves to no {level}: {evidence!r}")
            )
    return Haystack(name, tuple(items), tuple(queries), tuple(dropped))


def _sessions(conversation: Mapping[str, Any]) -> dict[int, tuple[str, list[dict[str, Any]]]]:
    """Date and turns of each session, by its number, in order."""
    numbers = {
        int(match[1]): objects(conversation, key)
        for key, turns in conversation.items()
        # 16 keys of dates have no session; hubs write null for keys that another one has.
        if (match := _SESSION.fullmatch(key)) and turns is not None
    }
    return {
        number: (text(conversation, f"session_{number}_date_time"), turns)
        for number, turns in sorted(numbers.items())
    }


def _conversation(sample: dict[str, Any]) -> Conversation:
    return Conversation(
        text(sample, "sample_id"),
        tuple(
            Session(
                f"D{number}",
                date,
                tuple(
                    Turn(
                        id=text(turn, "dia_id"),
                        speaker=text(turn, "speaker"),
                        text=text(turn, "text"),
                        by_user=True,
                    )
                    for turn in turns
                ),
            )
            for number, (date, turns) in _sessions(sample["conversation"]).items()
        ),
    )


def session_of(turn: str) -> str:
    """The id of the session that contains a turn: `D8` for `D8:6`."""
    return turn.partition(":")[0]


def _turns(number: int, date: str, turns: list[dict[str, Any]]) -> list[Item]:
    return [
        Item(
            id=text(turn, "dia_id"),
            text=f"[{date}] {text(turn, 'speaker')}: {text(turn, 'text')}",
            group=f"D{number}",
            date=date,
            speaker=text(turn, "speaker"),
        )
        for turn in turns
    ]


def _session(number: int, date: str, turns: list[dict[str, Any]]) -> Item:
    lines = [f"[{date}]", *(f"{text(turn, 'speaker')}: {text(turn, 'text')}" for turn in turns)]
    return Item(id=f"D{number}", text="\n".join(lines), group=f"D{number}", date=date)


def _object(row: Any) -> dict[str, Any]:  # noqa: ANN401 - it is JSON
    if not isinstance(row, dict):
        raise TypeError("it is not an object")
    return row


def conversation_of(query_id: str) -> str:
    """The conversation that a question, named by its id, is about."""
    return query_id.rpartition("#")[0]


def _query(query_id: str, row: dict[str, Any]) -> Question:
    # Of 446 adversarial rows, 2 have an answer; the others have what a gullible reader would say.
    adversarial = row["category"] == 5
    # Some answers are numbers.
    answers = () if adversarial else (answer_text(row, "answer"),)
    return Question(
        id=query_id,
        question=text(row, "question"),
        category=_category(row),
        gold=(),
        answers=answers,
        abstain=adversarial,
    )


def _category(row: dict[str, Any]) -> str:
    number = row["category"]
    if not isinstance(number, int) or isinstance(number, bool) or number not in CATEGORIES:
        raise TypeError(f"'category' must be a number from 1 to 5, not {number!r}")
    return CATEGORIES[number]
