"""Finds the question and the evidence in a reader's prompt by the structure of the prompt.

A reader that guesses answers with instructions of the prompt, which then count as wrong answers of
the daemon. A prompt without a recognized structure is therefore refused.
"""

import re
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from memconform.upstream.prompt_evidence import Note, Section, elements, sections, split_notes

ACCEPTED = (
    'The question is a line "Question: ...", the paragraph below a heading "## Question", or the'
    ' text of <question>...</question>. The evidence stands below a line "Evidence:", below a'
    " heading"
    ' "## Evidence", in <evidence>...</evidence>, or in notes that begin with [1], [2], ...; Notes,'
    " Context, Documents, Passages, Facts, Memories, Sources and History Chats are read like"
    " Evidence. If no user message has a marked question, a last user message of one line is the"
    " question, and the evidence is in the system message. docs/UPSTREAM.md has examples."
)
"""The structures that `read_prompt` accepts, for messages to people."""

_QUESTION = r"(?:(?:the|user|user's|current|final|original)[ _-]+)?(?:question|query)"
_DATE = r"(?:date of the question|(?:question|current|today's|reference)[ _-]date|date|today)"
_BOLD = r"(?:\*\*|__)?"
_FLAGS = re.MULTILINE | re.IGNORECASE

_REFERENCE = re.compile(r"\ANotes:(?: none)?\n\n(?=\[1\] |Question: |Date of the question: )")
_REFERENCE_NOTE = re.compile(r"^\[(\d{1,6})\] .*$", re.MULTILINE)
_REFERENCE_DATE = re.compile(r"\n?^Date of the question: .*\Z", re.MULTILINE)

_FENCED = re.compile(
    r"\AEvidence:\n(-----evidence [0-9a-f]{16}-----)\n(.*?)\n?\1\n\n"
    r"(?:Date of the question: [^\n]*\n)?(?:Dates in the question: [^\n]*\n)?Question: (.*)\Z",
    re.DOTALL,
)
"""What the harness's own reader is asked: the fence holds a digest that its content cannot know."""
_FENCED_HEADING = re.compile(
    r"^(?:\[Session \d+, .*\]|hit \d+, (?:session|fact):)\n+", re.MULTILINE
)
"""Lines in it that name sessions and hits: an answer to `how long was the session` is elsewhere."""

_LABEL = re.compile(rf"^[ \t]*{_BOLD}{_QUESTION}{_BOLD}[ \t]*:{_BOLD}[ \t]*(.*)$", _FLAGS)
_HEADING = re.compile(rf"^#{{1,6}}[ \t]+{_BOLD}{_QUESTION}{_BOLD}[ \t]*:?[ \t]*$", _FLAGS)
_TAG = re.compile(r"^[ \t]*<((?:user_|the_)?(?:question|query))>", _FLAGS)
_ANY_HEADING = re.compile(r"^#{1,6}[ \t]+\S.*$", re.MULTILINE)
_ANSWER = re.compile(
    rf"^[ \t]*(?:{_BOLD}[\w' ]{{0,20}}\b(?:answer|response|reply|assistant)\b[^:\n]{{0,40}}:{_BOLD}"
    r"|#{1,6}[ \t]+(?:[\w' ]{0,20}\b)?(?:answer|response|reply)\b[^\n]{0,40})[ \t]*$",
    _FLAGS,
)
_DATE_LINE = re.compile(rf"^[ \t]*{_BOLD}{_DATE}{_BOLD}[ \t]*:{_BOLD}[ \t]*\S.*$", _FLAGS)
_BLANK_LINE = re.compile(r"\n[ \t]*\n")
_TEXT = re.compile(r"\S")
_INSTRUCTIONS = re.compile(
    r"(?:instructions?|rules|guidelines|task|requirements|constraints|(?:output|answer|response)"
    r"[ _-]format|format)",
    re.IGNORECASE,
)
_LONGEST_NAME = 100
_ADDRESSES_READER = re.compile(
    r"(?:please|now|using|use|based on|answer|respond|reply|cite|if|do not|don't|only|given)\b"
    r"(?=.*\b(?:question|context|evidence|passages|excerpts|retrieved"
    r"|(?:facts|notes|sources|documents|information|memories) (?:above|below|provided|given))\b)",
    re.IGNORECASE | re.DOTALL,
)
"""How a paragraph begins that tells the reader what to do."""


class UnreadablePromptError(ValueError):
    """A prompt has no structure in which the reader can find what it needs."""

    def __init__(self, reason: str, *, code: str = "unreadable_prompt") -> None:
        super().__init__(f"the scripted reader cannot read this prompt: {reason}. {ACCEPTED}")
        self.code = code


@dataclass(frozen=True, slots=True)
class ReaderPrompt:
    """The parts of a prompt that the reader needs."""

    question: str
    notes: list[Note]


@dataclass(frozen=True, slots=True)
class _Question:
    start: int
    end: int
    text: str


def read_prompt(system: str, users: Sequence[str]) -> ReaderPrompt:
    """Find question and evidence in the messages of a chat.

    `users` are the user messages, of which the last one holds the question.

    Raises:
        UnreadablePromptError: if either cannot be found beyond doubt.
    """
    if (fenced := _FENCED.match(users[-1])) is not None:
        return ReaderPrompt(fenced[3], [("", _FENCED_HEADING.sub("", fenced[2]))])
    reference = _read_reference(users[-1])
    if reference is not None:
        return reference
    *earlier, user = users
    marks = sections(user)
    questions = list(_questions(user, marks))
    if not questions:
        return _read_bare_question(system, earlier, user, marked=bool(marks))
    question = questions[-1]
    if not marks:
        rest = f"{user[: question.start]}\n{user[question.end :]}"
        if _DATE_LINE.sub("", _ANSWER.sub("", rest)).strip():
            raise UnreadablePromptError("it has a question, but no marked evidence")
        return ReaderPrompt(question.text, _notes_elsewhere(system, earlier))
    if question.start < marks[0].start:
        return ReaderPrompt(question.text, _notes(user, marks[0], len(user)))
    if questions[0].start < marks[0].start:
        raise UnreadablePromptError("it has a question before the evidence and another one after")
    return ReaderPrompt(question.text, _notes(user, marks[0], question.start))


def _read_reference(user: str) -> ReaderPrompt | None:
    """Read a prompt of rule ask.reader.prompt exactly; None if it is another one."""
    opening = _REFERENCE.match(user)
    start = user.rfind("\nQuestion: ")
    if opening is None or start < 0:
        return None
    body = _REFERENCE_DATE.sub("", user[opening.end() : start]).rstrip("\n")
    question = user[start + len("\nQuestion: ") :]
    heads: list[re.Match[str]] = []
    for head in _REFERENCE_NOTE.finditer(body):
        first_line = head.start() == 0 or body[head.start() - 2 : head.start()] == "\n\n"
        # The text of a note may hold such a line, too.
        if first_line and int(head[1]) == len(heads) + 1:
            heads.append(head)
    ends = [*(head.start() for head in heads[1:]), len(body)]
    notes = [(head[1], body[head.end() : end]) for head, end in zip(heads, ends, strict=False)]
    return ReaderPrompt(question, notes)


def _questions(text: str, marks: Sequence[Section]) -> Iterator[_Question]:
    """Yield the marked questions of a message, in order, unless they are empty.

    Raises:
        UnreadablePromptError: if one has several paragraphs.
    """
    tagged = list(elements(_TAG, text))
    headings, labels = list(_HEADING.finditer(text)), list(_LABEL.finditer(text))
    # Where the text below a question ends: at the next heading, cue, date, question or evidence.
    marks_of_others = (_ANY_HEADING, _ANSWER, _DATE_LINE)
    ends = [match.start() for mark in marks_of_others for match in mark.finditer(text)]
    ends += [match.start() for match in labels] + [start for start, _, _ in tagged]
    ends = sorted([*ends, *(section.start for section in marks), len(text)])
    paragraph_ends = [*(match.start() for match in _BLANK_LINE.finditer(text)), len(text)]

    candidates = [_Question(start, end, content.strip()) for start, end, content in tagged]
    for match in headings:
        end = ends[bisect_left(ends, match.end())]
        candidates.append(_Question(match.start(), end, text[match.end() : end].strip()))
    for match in labels:
        begin = match.start(1)
        if not match[1].strip() and (first := _TEXT.search(text, begin)):
            begin = first.start()
        end = min(
            ends[bisect_left(ends, match.end())],
            paragraph_ends[bisect_left(paragraph_ends, begin)],
        )
        candidates.append(_Question(match.start(), max(end, match.end()), text[begin:end].strip()))
    for question in sorted(candidates, key=lambda question: question.start):
        if _BLANK_LINE.search(question.text):
            raise UnreadablePromptError("its question has several paragraphs")
        if question.text:
            yield question


def _read_bare_question(
    system: str, earlier: Sequence[str], user: str, *, marked: bool
) -> ReaderPrompt:
    """Read a chat whose last user message is nothing but the question."""
    question = user.strip()
    if marked or not question or "\n" in question:
        raise UnreadablePromptError("it has no marked question")
    notes = _find_notes(system, earlier)
    if notes is None:
        raise UnreadablePromptError("it has neither a marked question nor marked evidence")
    return ReaderPrompt(question, notes)


def _notes_elsewhere(system: str, earlier: Sequence[str]) -> list[Note]:
    """The notes of the other messages; none if they can only be instructions."""
    notes = _find_notes(system, earlier)
    if notes is None and (earlier or "\n" in system.strip()):
        raise UnreadablePromptError("it has a question, but no marked evidence")
    return notes or []


def _find_notes(system: str, earlier: Sequence[str]) -> list[Note] | None:
    for message in (*reversed(earlier), system):
        for section in sections(message)[:1]:
            return _notes(message, section, len(message))
    return None


def _notes(message: str, section: Section, end: int) -> list[Note]:
    """The notes between a mark of evidence and `end`.

    Raises:
        UnreadablePromptError: if instructions to the reader may follow them.
    """
    if section.closed_at is not None:
        return split_notes(message[section.end : section.closed_at], section)
    lines = message[section.end : end].rstrip().split("\n")
    while lines and (not lines[-1].strip() or _ends_evidence(lines[-1])):
        lines.pop()
    notes = split_notes("\n".join(lines), section)
    if notes:
        _require_evidence(notes[-1][1], section)
    return notes


def _ends_evidence(line: str) -> bool:
    return bool(_DATE_LINE.match(line) or _ANSWER.match(line))


def _require_evidence(last: str, section: Section) -> None:
    """Raise UnreadablePromptError if the last note may run on into instructions."""
    paragraphs = [part.strip() for part in _BLANK_LINE.split(last) if part.strip()]
    if len(paragraphs) > 1 and _ADDRESSES_READER.match(paragraphs[-1]):
        raise UnreadablePromptError(
            "instructions follow its evidence, and nothing tells them from the evidence"
        )
    heading = rf"#{{1,{section.level}}}[ \t]+(.*?)[ \t]*:?"
    label = r"(?:\*\*)?([\w ]+?)(?:\*\*)?:(?:\*\*)?[ \t]*"
    for line in last.split("\n"):
        is_short = len(line) <= _LONGEST_NAME
        match = is_short and re.fullmatch(heading if section.style == "heading" else label, line)
        if match and _INSTRUCTIONS.fullmatch(match[1].strip()):
            raise UnreadablePromptError(
                f"{line.strip()!r} follows its evidence, and nothing tells it from the evidence"
            )
