"""Histories of any length: evidence of a question among sessions that have nothing to do with it.

The same seed gives the same bytes; what a question's history holds depends on its id and on the
pool, not on the other questions.
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
"""How long before all else a history may begin: what LongMemEval's own compiler has."""
_FIRST_DAY, _DAYS = date(2023, 5, 20), 11
"""Where it puts sessions that no date is known of."""
_DAY = timedelta(days=1)
_MINUTE = timedelta(minutes=1)

_MARK = "answer_"
_PART = re.compile(r"((?:[0-9a-f]{6,}|sharegpt_[^_]+))(?:_abs)?(?:_\d+)?")
"""Ids of simulated sessions, and of a shared conversation's parts, and what their parts share."""


@dataclass(frozen=True, slots=True)
class EvidenceSession:
    id: str
    turns: Turns
    date: date | None
    """A datetime where its time is known too."""


@dataclass(frozen=True, slots=True)
class HistoryQuestion:
    """A question, and the sessions that answer it."""

    id: str
    type: str
    question: str
    answer: str | int | float
    date: date | None
    sessions: tuple[EvidenceSession, ...]
    subject: str = ""
    """What it is about: fillers about the same may contradict its evidence."""


@dataclass(frozen=True, slots=True)
class Shape:
    """How long histories are."""

    min_filler: int
    max_filler: int
    max_chars: int | None = None
    """Of what is said; fillers are left out until it is kept to, below `min_filler` too."""
    seed: int = 0


@dataclass(frozen=True, slots=True)
class History:
    row: dict[str, JsonValue]
    """As LongMemEval's files have it."""
    fillers: int
    left_out: int
    """Fillers that were drawn, and are too long."""


@dataclass(frozen=True, slots=True)
class _Filler:
    id: str
    offset: int
    size: int
    chars: int


class FillerPool:
    """Sessions to draw from, kept in a temporary file: LongMemEval M does not fit in memory."""

    def __init__(self) -> None:
        self._file = tempfile.TemporaryFile()  # noqa: SIM115 - closed by __exit__
        self._fillers: list[_Filler] = []
        self._ids: set[str] = set()
        self._end = 0
        self._about: defaultdict[str, list[int]] = defaultdict(list)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def add(self, session_id: str, turns: Turns, subject: str = "") -> None:
        """Take a session, once."""
        if session_id in self._ids:
            return
        # Whose answer its turns hold is another question's affair.
        said = [{"role": turn["role"], "content": turn["content"]} for turn in turns]
        packed = json.dumps(said, ensure_ascii=False).encode()
        for about in {_family(session_id), subject} - {""}:
            self._about[about].append(len(self._fillers))
        chars = _chars(said)
        self._fillers.append(_Filler(session_id, self._end, len(packed), chars))
        self._ids.add(session_id)
        self._file.seek(self._end)
        self._file.write(packed)
        self._end += len(packed)

    def draw(self, case: HistoryQuestion, count: int, random: Random) -> list[_Filler]:
        """Different sessions, none of which is about what the case is about.

        Raises:
            UsageError: where there are too few.
        """
        about = {_family(session.id) for session in case.sessions} | {case.subject} - {""}
        excluded = {index for each in about for index in self._about.get(each, ())}
        if len(self._fillers) - len(excluded) < count:
            raise UsageError(
                f"question {case.id!r} wants {count} filler sessions, and there are"
                f" {len(self._fillers) - len(excluded)} that are not about its evidence",
                code="too_few_fillers",
                hint="lower --max-filler, or give another --filler FILE",
            )
        drawn: dict[int, None] = {}
        while len(drawn) < count:
            index = _below(len(self._fillers), random)
            if index not in excluded:
                drawn.setdefault(index)
        return [self._fillers[index] for index in drawn]

    def turns(self, filler: _Filler) -> list[dict[str, JsonValue]]:
        self._file.seek(filler.offset)
        read: list[dict[str, JsonValue]] = json.loads(self._file.read(filler.size))
        return read


def compiled(case: HistoryQuestion, pool: FillerPool, shape: Shape) -> History:
    """The history of a question: its evidence and fillers, in the order of their dates.

    Evidence keeps its dates. Fillers lie between 30 days before all else and the question.

    Raises:
        UsageError: where the pool is too small, or the evidence alone is too long.
    """
    random = Random(f"{shape.seed}/{case.id}")  # noqa: S311 - a draw that can be repeated
    count = shape.min_filler + _below(shape.max_filler - shape.min_filler + 1, random)
    fillers = pool.draw(case, count, random)
    kept = _shortened(case, fillers, shape.max_chars, random)
    moments = _moments(case, random)
    asked = _asked(case, max(moments), random)
    begin = min([*moments, asked]) - _BEFORE
    minutes = (asked - begin) // _MINUTE
    sessions = [
        (moment, session.id, session.turns)
        for moment, session in zip(moments, case.sessions, strict=True)
    ] + [
        (begin + _below(minutes, random) * _MINUTE, filler.id, pool.turns(filler))
        for filler in kept
    ]
    sessions.sort(key=lambda each: each[0])
    row: dict[str, JsonValue] = {
        "question_id": case.id,
        "question_type": case.type,
        "question": case.question,
        "answer": case.answer,
        "question_date": _written(asked),
        "haystack_dates": [_written(moment) for moment, _, _ in sessions],
        "haystack_session_ids": [name for _, name, _ in sessions],
        "haystack_sessions": [turns for _, _, turns in sessions],
        "answer_session_ids": [session.id for session in case.sessions],
    }
    return History(row, len(kept), count - len(kept))


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
    kept = list(fillers)
    while kept and evidence + sum(filler.chars for filler in kept) > max_chars:
        del kept[_below(len(kept), random)]
    return kept


def _moments(case: HistoryQuestion, random: Random) -> list[datetime]:
    """When each session of the evidence was; those of one day stay in their order."""
    moments = [_moment(session.date, random) for session in case.sessions]
    alike: defaultdict[date | None, list[int]] = defaultdict(list)
    for number, session in enumerate(case.sessions):
        if not isinstance(session.date, datetime):
            alike[session.date].append(number)
    for numbers in alike.values():
        ascending = sorted(moments[number] for number in numbers)
        for number, moment in zip(numbers, ascending, strict=True):
            moments[number] = moment
    return moments


def _moment(given: date | None, random: Random) -> datetime:
    if isinstance(given, datetime):
        return given
    day = _FIRST_DAY + _below(_DAYS, random) * _DAY if given is None else given
    return _midnight(day) + _below(_DAY // _MINUTE, random) * _MINUTE


def _asked(case: HistoryQuestion, last: datetime, random: Random) -> datetime:
    """When the question is asked: on the day that is given, and that day after its evidence."""
    if isinstance(case.date, datetime):
        return case.date
    if case.date is not None and case.date != last.date():
        return _moment(case.date, random)
    left = (_midnight(last.date()) + _DAY - last) // _MINUTE
    return last + _below(left, random) * _MINUTE


def _midnight(day: date) -> datetime:
    return datetime.combine(day, time(), UTC)


def _below(number: int, random: Random) -> int:
    """A whole number from 0; of `random` only what no version of Python changes is used."""
    return int(random.random() * number)


def _chars(turns: Iterable[Mapping[str, JsonValue]]) -> int:
    return sum(len(turn["content"]) for turn in turns)


def _written(moment: datetime) -> str:
    return moment.strftime("%Y/%m/%d (%a) %H:%M")


def _family(session_id: str) -> str:
    """What the parts of a conversation have in common: `ab12cd34_2` is a filler elsewhere, and
    evidence, as `answer_ab12cd34_1`, here.

    In the cleaned S 283 sessions are evidence of one question and filler of another.
    """
    name = session_id.removeprefix(_MARK)
    match = _PART.fullmatch(name)
    return match[1] if match else name
