"""Chat histories of any length: the evidence of a question among unrelated filler sessions.

The same seed gives the same bytes. The content of a question's history depends on its id and on the
pool, but not on the other questions.
"""

import json
import re
import tempfile
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from random import Random
from typing import Self

from memconform.contract.wire import JsonValue
from memconform.errors import UsageError

Turns = Sequence[Mapping[str, JsonValue]]

_BEFORE = timedelta(days=30)
"""How long before the evidence a history may begin, as in LongMemEval's own compiler."""
_FIRST_DAY, _DAYS = date(2023, 5, 20), 11
"""The days on which that compiler places sessions without a date."""
_DAY = timedelta(days=1)
_MINUTE = timedelta(minutes=1)

_MARK = "answer_"
_PART = re.compile(r"((?:[0-9a-f]{6,}|sharegpt_[^_]+))(?:_abs)?(?:_\d+)?")
"""Matches ids of simulated sessions and of parts of a ShareGPT conversation; group 1 is the common
part."""


@dataclass(frozen=True, slots=True)
class EvidenceSession:
    """A session that contains evidence for a question."""

    id: str
    turns: Turns
    date: date | None
    """A datetime if the time is known too."""


@dataclass(frozen=True, slots=True)
class HistoryQuestion:
    """A question with the sessions that answer it."""

    id: str
    type: str
    question: str
    answer: str | int | float
    date: date | None
    sessions: tuple[EvidenceSession, ...]
    subject: str = ""
    """The question's subject: fillers about the same subject may contradict its evidence."""


@dataclass(frozen=True, slots=True)
class Shape:
    """The length of histories, and the seed they are drawn with."""

    min_filler: int
    max_filler: int
    max_chars: int | None = None
    """Limit on the characters of all turns; fillers are skipped to keep it, even below
    `min_filler`."""
    seed: int = 0


@dataclass(frozen=True, slots=True)
class History:
    """The history of one question."""

    row: dict[str, JsonValue]
    """A row in the format of LongMemEval's files."""
    fillers: int
    left_out: int
    """Fillers that were drawn but skipped to keep `max_chars`."""


@dataclass(frozen=True, slots=True)
class _Filler:
    id: str
    offset: int
    size: int
    chars: int


class FillerPool:
    """Filler sessions in a temporary file, because LongMemEval M does not fit in memory."""

    def __init__(self) -> None:
        self._file = tempfile.TemporaryFile()  # noqa: SIM115 - closed by __exit__
        self._fillers: list[_Filler] = []
        self._ids: set[str] = set()
        self._end = 0
        self._by_subject: defaultdict[str, list[int]] = defaultdict(list)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def add(self, session_id: str, turns: Turns, subject: str = "") -> None:
        """Append a session's turns to the file, as a JSON list in UTF-8 without `has_answer`.

        `subject` is the attribute of the user that it is about; empty if unknown. A session whose
        id was added before is ignored.

        Raises:
            OSError: if the temporary file cannot be written.
        """
        if session_id in self._ids:
            return
        # Without `has_answer`, which concerns another question.
        content = [{"role": turn["role"], "content": turn["content"]} for turn in turns]
        data = json.dumps(content, ensure_ascii=False).encode()
        for key in {_family(session_id), subject} - {""}:
            self._by_subject[key].append(len(self._fillers))
        self._fillers.append(_Filler(session_id, self._end, len(data), _chars(content)))
        self._ids.add(session_id)
        self._file.seek(self._end)
        self._file.write(data)
        self._end += len(data)

    def draw(self, case: HistoryQuestion, count: int, random: Random) -> list[_Filler]:
        """Draw distinct sessions that do not share the question's subject or conversations.

        Raises:
            UsageError: if there are too few (`too_few_fillers`).
        """
        subjects = {_family(session.id) for session in case.sessions} | {case.subject} - {""}
        excluded = {index for key in subjects for index in self._by_subject.get(key, ())}
        if len(self._fillers) - len(excluded) < count:
            raise UsageError(
                f"question {case.id!r} needs {count} filler sessions, but only"
                f" {len(self._fillers) - len(excluded)} are unrelated to its evidence",
                code="too_few_fillers",
                hint="lower --max-filler, or give another --filler FILE",
            )
        indices: dict[int, None] = {}
        while len(indices) < count:
            index = _below(len(self._fillers), random)
            if index not in excluded:
                indices.setdefault(index)
        return [self._fillers[index] for index in indices]

    def turns(self, filler: _Filler) -> list[dict[str, JsonValue]]:
        """Read the turns of a session that `draw` returned."""
        self._file.seek(filler.offset)
        turns: list[dict[str, JsonValue]] = json.loads(self._file.read(filler.size))
        return turns


def compiled(case: HistoryQuestion, pool: FillerPool, shape: Shape) -> History:
    """Compile the history of a question: its evidence and fillers, ordered by date.

    Evidence keeps its dates. Fillers are dated between 30 days before everything else and the
    question.

    Raises:
        UsageError: if the pool is too small (`too_few_fillers`), or the evidence alone exceeds
            `max_chars` (`history_too_long`).
    """
    random = Random(f"{shape.seed}/{case.id}")  # noqa: S311 - a reproducible draw
    count = shape.min_filler + _below(shape.max_filler - shape.min_filler + 1, random)
    fillers = pool.draw(case, count, random)
    used = _shortened(case, fillers, shape.max_chars, random)
    moments = _moments(case, random)
    question_time = _question_time(case, max(moments), random)
    begin = min([*moments, question_time]) - _BEFORE
    minutes = (question_time - begin) // _MINUTE
    sessions = [
        (moment, session.id, session.turns)
        for moment, session in zip(moments, case.sessions, strict=True)
    ] + [
        (begin + _below(minutes, random) * _MINUTE, filler.id, pool.turns(filler))
        for filler in used
    ]
    sessions.sort(key=lambda session: session[0])
    row: dict[str, JsonValue] = {
        "question_id": case.id,
        "question_type": case.type,
        "question": case.question,
        "answer": case.answer,
        "question_date": _format(question_time),
        "haystack_dates": [_format(moment) for moment, _, _ in sessions],
        "haystack_session_ids": [name for _, name, _ in sessions],
        "haystack_sessions": [turns for _, _, turns in sessions],
        "answer_session_ids": [session.id for session in case.sessions],
    }
    return History(row, len(used), count - len(used))


def _shortened(
    case: HistoryQuestion, fillers: list[_Filler], max_chars: int | None, random: Random
) -> list[_Filler]:
    if max_chars is None:
        return fillers
    evidence = sum(_chars(session.turns) for session in case.sessions)
    if evidence > max_chars:
        raise UsageError(
            f"the evidence of question {case.id!r} has {evidence} characters",
            code="history_too_long",
            hint=f"give --max-chars {evidence} or more",
        )
    remaining = list(fillers)
    while remaining and evidence + sum(filler.chars for filler in remaining) > max_chars:
        del remaining[_below(len(remaining), random)]
    return remaining


def _moments(case: HistoryQuestion, random: Random) -> list[datetime]:
    """The time of each evidence session; sessions of one day keep their order."""
    moments = [_moment(session.date, random) for session in case.sessions]
    by_day: defaultdict[date | None, list[int]] = defaultdict(list)
    for number, session in enumerate(case.sessions):
        if not isinstance(session.date, datetime):
            by_day[session.date].append(number)
    for numbers in by_day.values():
        ascending = sorted(moments[number] for number in numbers)
        for number, moment in zip(numbers, ascending, strict=True):
            moments[number] = moment
    return moments


def _moment(given: date | None, random: Random) -> datetime:
    if isinstance(given, datetime):
        return given
    day = _FIRST_DAY + _below(_DAYS, random) * _DAY if given is None else given
    return _midnight(day) + _below(_DAY // _MINUTE, random) * _MINUTE


def _question_time(case: HistoryQuestion, last: datetime, random: Random) -> datetime:
    """When the question is asked: on its own day, and on the last evidence's day after that."""
    if isinstance(case.date, datetime):
        return case.date
    if case.date is not None and case.date != last.date():
        return _moment(case.date, random)
    minutes_left = (_midnight(last.date()) + _DAY - last) // _MINUTE
    return last + _below(minutes_left, random) * _MINUTE


def _midnight(day: date) -> datetime:
    return datetime.combine(day, time(), UTC)


def _below(number: int, random: Random) -> int:
    """A random integer in [0, number); uses only `random()`, whose output no Python changes."""
    return int(random.random() * number)


def _chars(turns: Iterable[Mapping[str, JsonValue]]) -> int:
    return sum(len(turn["content"]) for turn in turns)


def _format(moment: datetime) -> str:
    return moment.strftime("%Y/%m/%d (%a) %H:%M")


def _family(session_id: str) -> str:
    """The common id of a conversation's parts.

    For example, `ab12cd34_2` may be a filler of one question while `answer_ab12cd34_1` is evidence
    of another. In the cleaned S file, 283 sessions are evidence of one question and filler of
    another.
    """
    name = session_id.removeprefix(_MARK)
    match = _PART.fullmatch(name)
    return match[1] if match else name
