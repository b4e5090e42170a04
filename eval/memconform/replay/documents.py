"""The documents of the shared brain: sessions as they were held, and facts extracted from them."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from datetime import datetime

from memconform.datasets.conversations import Conversation, Session
from memconform.datasets.time_phrases import to_date_time, to_rfc3339
from memconform.errors import UsageError
from memconform.ingest.documents import CONTENT_LIMIT, Document

SESSIONS = "raw/lme/"
"""The folder of the sessions' documents."""
FACTS = "memory/project/"
"""The folder of the facts' documents; each project has its own below it."""

_PLAIN = re.compile(r"[A-Za-z0-9._-]+")


@dataclass(frozen=True, slots=True)
class Fact:
    """One thing that a session says."""

    text: str
    observed_on: str
    """The day that it is about or was said on, `YYYY-MM-DD`."""
    tags: tuple[str, ...] = ()
    context: str = ""
    """How it belongs to its session, if that was asked for."""


@dataclass(frozen=True, slots=True)
class PlacedSession:
    """A session with its place in the brain."""

    path: str
    session: Session
    date: datetime


@dataclass(slots=True)
class SharedBrain:
    """The sessions of all questions, each stored once.

    LongMemEval's sessions recur in many questions: 3,906 of the 19,167 in its file S with other
    dates. One that does has a document for each of them, so that every question sees its own.
    """

    sessions: dict[str, PlacedSession] = field(default_factory=dict)
    """By path, in the order of the file."""
    paths: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """Paths of each question's sessions, in the question's order."""

    def add(self, conversation: Conversation) -> None:
        """Add the sessions of a question.

        Raises:
            UsageError: for a session without a date (`no_session_date`), one above the contract's
                limit (`item_too_large`), or two that differ and have one id (`session_differs`).
        """
        self.paths[conversation.id] = tuple(
            self._place(conversation.id, session) for session in conversation.sessions
        )

    def drop_turns(self) -> None:
        """Forget what was said, once the brain is in a file: 60 MB for 50 questions of S."""
        for path, placed in self.sessions.items():
            self.sessions[path] = replace(placed, session=replace(placed.session, turns=()))

    def _place(self, question: str, session: Session) -> str:
        date = to_date_time(session.date)
        if date is None:
            raise UsageError(
                f"{question}: session {session.id} has no date, but {session.date!r}",
                code="no_session_date",
                hint="the replay shows every session with its date",
            )
        path = _session_path(session.id)
        known = self.sessions.get(path)
        if known is not None and known.date != date:
            path = _session_path(session.id, date)
            known = self.sessions.get(path)
        if known is None:
            self.sessions[path] = PlacedSession(path, session, date)
        elif known.session.turns != session.turns:
            raise UsageError(
                f"{question}: session {session.id} of {session.date} has other turns than that of"
                " another question",
                code="session_differs",
                hint="one brain cannot hold both; replay the questions apart",
            )
        return path


def session_document(placed: PlacedSession) -> Document:
    """A session as a document: front matter, then a block for each turn.

    Raises:
        UsageError: if it exceeds the contract's limit (`item_too_large`).
    """
    session = placed.session
    date = to_rfc3339(placed.date)
    lines = _front_matter(session_id=_stem(placed), session_date=date, date=date)
    lines += [f"{turn.speaker}: {turn.text.strip()}\n" for turn in session.turns]
    content = "\n".join(lines).encode()
    if len(content) > CONTENT_LIMIT:
        raise UsageError(
            f"session {session.id} has {len(content)} bytes; a document may have {CONTENT_LIMIT}",
            code="item_too_large",
            hint="leave its questions out",
        )
    return Document(placed.path, content, "text/markdown")


def fact_documents(
    placed: PlacedSession, facts: Iterable[Fact], project: str
) -> Iterator[Document]:
    """A document for each fact of a session, below the folder of a project."""
    stem = _stem(placed)
    for number, fact in enumerate(facts, start=1):
        lines = _front_matter(
            session_id=stem, observed_on=fact.observed_on, date=f"{fact.observed_on}T00:00:00Z"
        )
        if fact.tags:
            lines.insert(1, f"tags: [{', '.join(fact.tags)}]")
        # Front matter is not indexed, nor shown to a reader, who has the session's date besides.
        is_other_day = fact.observed_on != f"{placed.date:%Y-%m-%d}"
        text = f"{fact.text} ({fact.observed_on})" if is_other_day else fact.text
        context = [f"Context: {fact.context}", ""] if fact.context else []
        content = "\n".join([*lines, *context, text, ""]).encode()
        yield Document(f"{FACTS}{project}/{stem}-{number:03}.md", content, "text/markdown")


def _stem(placed: PlacedSession) -> str:
    """What a session is filtered by: unlike its id, it names one of its dates."""
    return placed.path.removeprefix(SESSIONS).removesuffix(".md")


def _front_matter(**values: str) -> list[str]:
    return ["---", *(f'{key}: "{_plain(value, ":@%")}"' for key, value in values.items()), "---"]


def _session_path(name: str, date: datetime | None = None) -> str:
    suffix = f"@{date:%Y%m%dT%H%M}" if date else ""
    plain = _plain(name)
    if plain.startswith("_"):
        # Documents whose names begin with `_` are stored and never found (core.ingest.hidden).
        plain = f"%5F{plain[1:]}"
    return f"{SESSIONS}{plain}{suffix}.md"


def _plain(text: str, also: str = "") -> str:
    """The text with all characters escaped that a path or a quoted value may not contain."""
    return "".join(
        character
        if _PLAIN.fullmatch(character) or character in also
        else "".join(f"%{byte:02X}" for byte in character.encode())
        for character in text
    )
