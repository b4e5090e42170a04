"""Sources of histories: LongMemEval files, or the parts that its authors released.

The parts are `2_questions` (questions, and which sessions answer them), `6_session_cache`
(simulated sessions, evidence and filler), `5_filler_sess` (filler of ShareGPT and UltraChat), and
`1_attr_bg` (which backgrounds are about one attribute).
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

from memconform.contract.wire import JsonValue
from memconform.datasets.files import PieceReader, unfit
from memconform.datasets.haystacks import DroppedEntry
from memconform.datasets.json_array import array_or_lines
from memconform.datasets.longmemeval import NESTED, listed_sessions
from memconform.datasets.rows import answer_text, reason_of, text, texts, unpacked
from memconform.errors import UsageError
from memconform.longmemeval.history import EvidenceSession, FillerPool, HistoryQuestion, Turns

_TYPES = {
    "single_hop": "single-session-user",
    "implicit_preference": "single-session-preference",
    "implicit_preference_v2": "single-session-preference",
    "assistant_previnfo": "single-session-assistant",
    "two_hop": "multi-session",
    "multi_session_synthesis": "multi-session",
    "temp_reasoning_implicit": "temporal-reasoning",
    "temp_reasoning_explicit": "temporal-reasoning",
    "knowledge_update": "knowledge-update",
}
"""Question types as named in the released parts, and as in the paper and its files."""

_PAIRS = (
    ("session_1", "session_2"),
    ("old_session", "new_session"),
    ("session_old", "session_new"),
)
"""The keys of the two sessions of an entry; the authors' code accepts all of these."""

_ASSISTANT_TASK = "assistant_previnfo"
_MOMENT = re.compile(r"(\d{4})/(\d{1,2})/(\d{1,2})(?: \(\w{3}\) (\d{2}):(\d{2}))?")


@dataclass(frozen=True, slots=True)
class Sources:
    """The files that histories are compiled from."""

    evidence: Path
    """A LongMemEval file, or `2_questions`."""
    fillers: Sequence[Path]
    """LongMemEval files, without their evidence, `5_filler_sess` or `6_session_cache`."""
    sessions: Path | None = None
    """`6_session_cache`, required if the evidence is `2_questions`; it provides fillers too."""
    attributes: Path | None = None
    """`1_attr_bg`."""


@dataclass(slots=True)
class _Subjects:
    """The subject of each question: an attribute of the user, or otherwise a background."""

    attributes: dict[str, str] = field(default_factory=dict)
    """By background."""
    questions: dict[str, str] = field(default_factory=dict)
    """By question id."""


def cases(sources: Sources, pool: FillerPool) -> Iterator[HistoryQuestion | DroppedEntry]:
    """Fill the pool, then yield the questions; those without human-checked evidence are dropped.

    Raises:
        UsageError: if a file is invalid (`dataset_invalid`), or if `sessions` or `attributes` do
            not fit the evidence file (`bad_option`).
    """
    released = "question_content" in _first_keys(sources.evidence)
    if released and sources.sessions is None:
        raise UsageError(
            f"{sources.evidence} does not contain its evidence sessions",
            code="bad_option",
            hint="give the file 6_session_cache with --sessions",
        )
    if not released and (sources.sessions or sources.attributes):
        raise UsageError(
            f"{sources.evidence} already contains its evidence sessions",
            code="bad_option",
            hint="--sessions and --attributes only apply to 2_questions",
        )
    subjects = _Subjects()
    if sources.attributes is not None:
        subjects.attributes = _attributes(sources.attributes)
    questions = list(_questions(sources.evidence, subjects)) if released else []
    candidates = {name for _, row in questions for name in _candidates(row)}
    sessions: dict[str, dict[str, Any]] = {}
    session_files = () if sources.sessions is None else (sources.sessions,)
    for path in (*session_files, *sources.fillers):
        for row in _fill(path, pool, subjects):
            if row.get("session_id") in candidates:
                sessions[row["session_id"]] = row
    seen: set[str] = set()
    for number, row in questions if released else _elements(sources.evidence):
        with _locating(sources.evidence, number):
            case = _case(row, sessions, subjects) if released else _longmemeval_case(row)
            if case.id in seen:
                raise ValueError(f"the question {case.id!r} occurs twice")
        seen.add(case.id)
        yield case


@contextmanager
def _locating(path: Path, number: int) -> Iterator[None]:
    """Raise errors of the block as UsageErrors that name the file and the element."""
    try:
        yield
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        hint = "check that it is a file of LongMemEval; datasets/README.md lists those supported"
        raise unfit(path, f"element {number}: {reason_of(error)}", hint) from error


def _elements(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    with PieceReader(path) as source:
        for number, row in enumerate(array_or_lines(source)):
            with _locating(path, number):
                if not isinstance(row, dict):
                    raise TypeError("is not an object")
                nested = unpacked(row, NESTED)
            yield number, nested


def _first_keys(path: Path) -> set[str]:
    return next((set(row) for _, row in _elements(path)), set())


# --- files of LongMemEval


def _longmemeval_case(row: dict[str, Any]) -> HistoryQuestion:
    sessions = _sessions(row)
    evidence = tuple(
        EvidenceSession(name, _turns(sessions[name][1]), _moment(sessions[name][0]))
        for name in dict.fromkeys(texts(row, "answer_session_ids"))
    )
    if not evidence:
        raise ValueError("no session answers it")
    return HistoryQuestion(
        id=text(row, "question_id"),
        type=text(row, "question_type"),
        question=text(row, "question"),
        answer=_answer(row),
        date=_moment(row["question_date"]),
        sessions=evidence,
    )


def _sessions(row: dict[str, Any]) -> dict[str, tuple[str, list[dict[str, Any]]]]:
    """A haystack's dates and turns by session; of a repeated session the last one counts."""
    return {name: (day, turns) for name, day, turns in listed_sessions(row)}


# --- the released parts


def _attributes(path: Path) -> dict[str, str]:
    """The attribute of each background."""
    attributes = {}
    for number, row in _elements(path):
        with _locating(path, number):
            for background in row["backgrounds"]:
                attributes[str(background["background_id"])] = f"attribute {row['attribute_id']}"
    return attributes


def _questions(path: Path, subjects: _Subjects) -> Iterator[tuple[int, dict[str, Any]]]:
    for number, row in _elements(path):
        with _locating(path, number):
            background = str(row["background_id"])
            subject = subjects.attributes.get(background, f"background {background}")
            subjects.questions[text(row, "question_id")] = subject
            _candidates(row)
        yield number, row


def _candidates(row: dict[str, Any]) -> list[str]:
    """Ids of the sessions that may answer a question: those written in a neutral style."""
    return [text(each, "session_id") for each in row["sessions"] if each["style"] == "neutral"]


def _fill(path: Path, pool: FillerPool, subjects: _Subjects) -> Iterator[dict[str, Any]]:
    """Add the fillers of each element of a file to the pool, then yield the element."""
    for number, row in _elements(path):
        with _locating(path, number):
            if "haystack_sessions" in row:
                evidence = set(texts(row, "answer_session_ids"))
                for name, (_, turns) in _sessions(row).items():
                    if name not in evidence:
                        pool.add(name, _turns(turns))
            else:
                subject = subjects.questions.get(str(row.get("question_id")), "")
                for name, part in _parts(row):
                    pool.add(name, part, subject)
        yield row


def _parts(row: dict[str, Any]) -> list[tuple[str, Turns]]:
    name = text(row, "session_id")
    if "session" in row:
        return [(name, _turns(row["session"]))]
    pair = next((pair for pair in _PAIRS if row.keys() >= set(pair)), None)
    parts: list[Any] = [row[key] for key in pair] if pair is not None else row["sessions"]
    return [(f"{name}_{number}", _turns(turns)) for number, turns in enumerate(parts, start=1)]


def _case(
    row: dict[str, Any], sessions: Mapping[str, dict[str, Any]], subjects: _Subjects
) -> HistoryQuestion | DroppedEntry:
    name, task, content = (
        text(row, "question_id"),
        text(row, "question_type"),
        row["question_content"],
    )
    if task not in _TYPES:
        raise ValueError(f"task {task!r} does not exist")
    session = next(
        (
            sessions[candidate]
            for candidate in _candidates(row)
            # Questions about the assistant's words use filler sessions, which are not labelled.
            if candidate in sessions
            and (task == _ASSISTANT_TASK or sessions[candidate].get("human_valid_label"))
        ),
        None,
    )
    if session is None:
        return DroppedEntry(name, "no human-checked session answers it")
    parts = _parts(session)
    days = _days(task, content, len(parts))
    if len(days) != len(parts):
        raise ValueError(f"question {name!r}: {len(parts)} sessions, but {len(days)} dates")
    evidence = tuple(
        EvidenceSession(f"answer_{part}", turns, day)
        for (part, turns), day in zip(parts, days, strict=True)
    )
    return HistoryQuestion(
        id=name,
        type=_TYPES[task],
        question=text(content, "question"),
        answer=_answer(content),
        date=_moment(content["question_date"]) if "question_date" in content else None,
        sessions=evidence,
        subject=subjects.questions[name],
    )


def _days(task: str, content: dict[str, Any], count: int) -> list[date | None]:
    if task == "temp_reasoning_implicit":
        return [_moment(fact["date"]) for fact in content["facts"][:count]]
    if task == "knowledge_update" and "temporal_constraint" in content:
        return [_moment(content["temporal_constraint"][f"fact_{n}_date"]) for n in (1, 2)]
    day = _moment(content["unified_date"]) if "unified_date" in content else None
    return [day] * count


# --- values


def _turns(given: Any) -> Turns:  # noqa: ANN401 - it is JSON
    """Turns with only the keys that a benchmark has; raises ValueError for unencodable text."""
    turns: list[dict[str, JsonValue]] = []
    for turn in given:
        message = {"role": text(turn, "role"), "content": text(turn, "content")}
        "".join(message.values()).encode()
        label = {"has_answer": turn["has_answer"]} if "has_answer" in turn else {}
        turns.append(message | label)
    return turns


def _answer(row: dict[str, Any]) -> str | int | float:
    answer_text(row, "answer")
    given: str | int | float = row["answer"]
    return given


def _moment(given: JsonValue) -> date:
    """A date, or a datetime if the value includes a time."""
    match = _MOMENT.fullmatch(given) if isinstance(given, str) else None
    if match is None:
        raise ValueError(f"{given!r} is not a date")
    year, month, day, hour, minute = (int(part or 0) for part in match.groups())
    if match[4] is None:
        return date(year, month, day)
    return datetime(year, month, day, hour, minute, tzinfo=UTC)
