"""What the reader is shown of a question's hits: all of them, or what fits into a budget."""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from memconform.contract.chunking import bodies
from memconform.contract.terms import terms
from memconform.datasets.conversations import Turn
from memconform.replay.hits import Hit
from memconform.scoring.reader.passages import BYTES_PER_TOKEN, Passage
from memconform.upstream.extractive import STOP_WORDS

CUT = "[…]"
"""Stands where text of a hit was left out."""

_TURN = re.compile(r"^(user|assistant): ", re.MULTILINE)
_LONGEST_SPAN = 1_000
"""Characters of a turn that is never split; longer ones are cut at their lines."""
_LINE = re.compile(r"[^\n]*\n+|[^\n]+\Z")
_PIECE = re.compile(rf".{{1,{_LONGEST_SPAN}}}(?!\S)|.{{1,{_LONGEST_SPAN}}}", re.DOTALL)
_OUR_FRONT_MATTER = b"\nsession_id: "
_BLANK_LINE = "\n\n"


@dataclass(frozen=True, slots=True)
class Evidence:
    """The hits of a question as a reader is shown them."""

    passages: tuple[Passage, ...]
    """One a session, in the order in which sessions first occur; each turn is a hit."""
    shown: int
    """Hits that are shown, whole or in part."""
    left_out: int
    """Hits that are not shown whole."""


def select_evidence(hits: Sequence[Hit], question: str, budget_tokens: int) -> Evidence:
    """The hits that fit into a budget, by session.

    The first sessions are kept whole as long as they fit. Of all behind them, the turns with most
    terms of the question are shown, with their neighbours, then each hit's first turns; long turns
    count line by line. A text that occurs twice on one date is shown once.

    Args:
        hits: as they are ranked.
        question: as it is asked; the daemon's query.
        budget_tokens: for `evidence_text`, in tokens of `BYTES_PER_TOKEN` bytes.
    """
    room = budget_tokens * BYTES_PER_TOKEN
    groups, first_of = _group(hits)
    whole: list[_Group] = []
    for group in groups:
        size = _size(_block(group.passage(), len(whole) + 1)) + bool(whole) * len(_BLANK_LINE)
        if size > room:
            break
        whole.append(group)
        room -= size
    rest = groups[len(whole) :]
    _choose_spans(rest, question, room, number=len(whole) + 1)
    for group in whole:
        for text in group.texts:
            text.chosen.update(range(len(text.spans)))
    passages = [group.passage() for group in whole] + [
        group.passage(chosen=True) for group in rest if any(text.chosen for text in group.texts)
    ]
    return Evidence(
        passages=tuple(passages),
        shown=sum(bool(text.chosen) for text in first_of),
        left_out=sum(not text.is_whole for text in first_of),
    )


def evidence_text(passages: Iterable[Passage]) -> str:
    """The passages as text: below a line for each session, below a line for each hit.

    Sessions are numbered: the ids of LongMemEval tell which of them hold the answer.
    """
    return _BLANK_LINE.join(_block(passage, at) for at, passage in enumerate(passages, start=1))


def _block(passage: Passage, number: int) -> str:
    return _BLANK_LINE.join(
        [f"[Session {number}, {passage.date}]"]
        + [f"{turn.speaker}:\n{turn.text}" for turn in passage.turns]
    )


@dataclass(frozen=True, slots=True)
class _Span:
    """A part of a text that is shown whole or not at all: a turn, or a line of a long one."""

    text: str
    role: str = ""
    """Role of the turn, if this is a later part of a turn."""


@dataclass(slots=True)
class _Text:
    """The text of a hit, and which of its spans are shown."""

    hit: Hit
    spans: list[_Span]
    chosen: set[int] = field(default_factory=set)

    @property
    def is_whole(self) -> bool:
        return len(self.chosen) == len(self.spans)

    def turn(self, *, chosen: bool) -> Turn:
        numbers = sorted(self.chosen) if chosen else range(len(self.spans))
        return Turn(
            id=self.hit.path,
            speaker=f"hit {self.hit.rank}, {self.hit.kind}",
            text="\n".join(self._runs(numbers)),
            by_user=True,
        )

    def _runs(self, numbers: Sequence[int]) -> Iterator[str]:
        """Consecutive spans as they stand in the text, with a mark wherever some are missing."""
        shown, run = 0, ""
        for number in numbers:
            if number != shown or not number:
                if run:
                    yield run.strip()
                if number:
                    yield _cut_mark(self.spans[number])
                run = ""
            run += self.spans[number].text
            shown = number + 1
        yield run.strip()
        if shown < len(self.spans):
            yield CUT


def _cut_mark(span: _Span) -> str:
    return f"{span.role}: {CUT}" if span.role else CUT


@dataclass(slots=True)
class _Group:
    """The hits of one session and date."""

    texts: list[_Text] = field(default_factory=list)

    def passage(self, *, chosen: bool = False) -> Passage:
        first = self.texts[0].hit
        return Passage(
            id=first.path,
            session=first.session,
            date=first.date,
            turns=tuple(
                text.turn(chosen=chosen) for text in self.texts if text.chosen or not chosen
            ),
            is_cut=chosen and not all(text.is_whole for text in self.texts),
        )


def _group(hits: Iterable[Hit]) -> tuple[list[_Group], list[_Text]]:
    """The groups in first-seen order, and for each hit with a text where that is shown."""
    groups: dict[tuple[str, str], _Group] = {}
    texts: dict[tuple[str, str], _Text] = {}
    first_of: list[_Text] = []
    for hit in hits:
        content = _without_front_matter(hit.text).strip()
        if not content:
            continue
        if (key := (hit.date, content)) not in texts:
            texts[key] = _Text(hit, list(_split(content)))
            groups.setdefault((hit.session, hit.date), _Group()).texts.append(texts[key])
        first_of.append(texts[key])
    return list(groups.values()), first_of


def _without_front_matter(text: str) -> str:
    """The text without the front matter of a brain's document; a daemon should leave it out."""
    content = text.encode("utf-8", "surrogatepass")
    *_, body = bodies(content)
    # Anything else that looks like front matter is text of the user.
    if _OUR_FRONT_MATTER not in content[: len(content) - len(body)]:
        return text
    return body.decode("utf-8", "surrogatepass")


def _split(text: str) -> Iterator[_Span]:
    """The spans of a text; joined, they equal it."""
    starts = sorted({0, *(match.start() for match in _TURN.finditer(text))})
    for start, end in zip(starts, [*starts[1:], len(text)], strict=True):
        turn = text[start:end]
        if len(turn) <= _LONGEST_SPAN:
            yield _Span(turn)
            continue
        label = _TURN.match(turn)
        role = ""
        for line in _LINE.findall(turn):
            for piece in _PIECE.findall(line):
                yield _Span(piece, role)
                role = label[1] if label else ""


def _choose_spans(groups: Sequence[_Group], question: str, room: int, number: int) -> None:
    """Choose spans until the room is full; `number` is that of the first group."""
    query_terms = set(terms(question)) - STOP_WORDS
    candidates = [
        (-len(query_terms.intersection(terms(span.text))), at, group, text)
        for group in groups
        for text in group.texts
        for at, span in enumerate(text.spans)
    ]
    # Stable: of equal ones, those of better hits come first. Without a term of the question each
    # hit has its turn: one retrieved by meaning alone may be short, and behind long ones.
    candidates.sort(key=lambda candidate: (candidate[0], 0 if candidate[0] else candidate[1]))
    last_number = number + len(groups)
    for score, at, group, text in candidates:
        for neighbour in (at, at - 1, at + 1) if score else (at,):
            if neighbour in text.chosen or not 0 <= neighbour < len(text.spans):
                continue
            size = _most_bytes(group, text, neighbour, last_number)
            if size > room:
                break
            text.chosen.add(neighbour)
            room -= size


def _most_bytes(group: _Group, text: _Text, at: int, number: int) -> int:
    """What a span adds to the evidence at most, with marks before and after it, and headings."""
    span = text.spans[at]
    size = _size(span.text) + _size(f"{_cut_mark(span)}\n\n{CUT}\n\n")
    if not text.chosen:
        turn = text.turn(chosen=True)
        size += _size(f"{turn.speaker}:\n{_BLANK_LINE}")
    if not any(other.chosen for other in group.texts):
        size += _size(f"[Session {number}, {text.hit.date}]{_BLANK_LINE}")
    return size


def _size(text: str) -> int:
    return len(text.encode("utf-8", "surrogatepass"))
