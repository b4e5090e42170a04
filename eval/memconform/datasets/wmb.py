"""WMB-100K: ten conversations of about 10,000 turns each, ten documents, and questions."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from memconform.contract.strict_json import decode
from memconform.datasets.files import PACKED, PieceReader, lines, unfit
from memconform.datasets.haystacks import DroppedEntry, Haystack, Item
from memconform.datasets.json_array import elements
from memconform.datasets.question import Question
from memconform.datasets.rows import reason_of, text, texts
from memconform.datasets.wmb_names import FALSE_MEMORY, Part

QUESTIONS = "datasets/all_questions.json"

_DOCUMENT_MARK = ".DOC."
"""Occurs in the ids of questions about documents."""

_SECOND = " (second category)"
"""Ends the id of the search of a question's second category."""

_Numbered = dict[tuple[str, int], str]
"""Item ids by category and turn number."""


@dataclass(frozen=True, slots=True)
class WmbKey:
    """The questions of both parts, by which answers are scored."""

    path: Path
    sha256: str
    """Digest of the decompressed file."""
    questions: dict[str, Question]
    """In the order of the file. The rubric of each is its required memories, one a line; the gold
    answer is left out, because no judge may see it."""


def is_document(question: str) -> bool:
    """Whether an id is that of a question about documents (Part A)."""
    return _DOCUMENT_MARK in question


def read_wmb_key(folder: Path) -> WmbKey:
    """Read the questions without the conversations and documents.

    Raises:
        UsageError: naming the file and the invalid question (`dataset_invalid`).
    """
    [path] = _files(folder, QUESTIONS).values()
    questions: dict[str, Question] = {}
    with PieceReader(path) as source:
        for row in _questions(source):
            name = row["id"]
            if name in questions:
                raise unfit(path, f"the id {name} occurs twice")
            try:
                questions[name] = Question(
                    id=name,
                    question=text(row, "text"),
                    category=text(row, "qtype"),
                    rubric="\n".join(texts(row, "required_memories")) or None,
                    abstain=row["qtype"] == FALSE_MEMORY,
                )
            except (KeyError, TypeError) as error:
                raise unfit(path, f"question {name!r}: {reason_of(error)}") from error
        return WmbKey(path, source.sha256, questions)


def read_wmb(folder: Path, part: Part) -> Iterator[Haystack]:
    """Yield the haystack of a part, or those of both.

    Questions about documents, across two categories (S3) and about things never said name no turn,
    and so have no gold.

    Raises:
        UsageError: naming the file and the invalid line or question (`dataset_invalid`).
    """
    for each in ("A", "B") if part == "both" else (part,):
        # Nothing here refers to the haystack that was yielded: its reader decides when it goes.
        yield _read_part(folder, each)


def _read_part(folder: Path, part: Part) -> Haystack:
    items: list[Item] = []
    numbered: _Numbered = {}
    if part == "A":
        for name, path in _files(folder, "documents/*.txt").items():
            items.append(_document(name, path))
    else:
        for name, path in _files(folder, "datasets/*.jsonl").items():
            _read_conversation(name, path, items, numbered)
    queries: list[Question] = []
    dropped: list[DroppedEntry] = []
    groups = {item.group for item in items}
    [questions] = _files(folder, QUESTIONS).values()
    with PieceReader(questions) as source:
        for row in _questions(source):
            if is_document(row["id"]) == (part == "A"):
                try:
                    query, unknown = _query(row, numbered, groups)
                except (KeyError, TypeError, ValueError) as error:
                    raise unfit(
                        source.path, f"question {row['id']!r}: {reason_of(error)}"
                    ) from error
                queries.append(query)
                dropped += unknown
    return Haystack(f"part-{part.lower()}", tuple(items), tuple(queries), tuple(dropped))


def by_category(haystacks: Iterable[Haystack], *, every: bool = False) -> Iterator[Haystack]:
    """Split each haystack by the category of its items, in the order in which they first occur.

    The gold of a question is in its own category. One that spans two (S3) has no gold, and goes to
    the first of them; with `every`, it is searched in both, and the second search has an id of its
    own (`question_of`).
    """
    for haystack in haystacks:
        for category in dict.fromkeys(item.group for item in haystack.items):
            queries = tuple(
                query if query.tags[0] == category else replace(query, id=f"{query.id}{_SECOND}")
                for query in haystack.queries
                if category in (query.tags if every else query.tags[:1])
            )
            ids = {query.id for query in queries}
            yield Haystack(
                # A conversation and a document are called daily_life.
                category if haystack.id != "part-a" else f"document {category}",
                tuple(item for item in haystack.items if item.group == category),
                queries,
                tuple(entry for entry in haystack.dropped if entry.id in ids),
            )


def question_of(query: str) -> str:
    """The id of the question that a query searches for."""
    return query.removesuffix(_SECOND)


def _questions(source: PieceReader) -> Iterator[dict[str, Any]]:
    for number, row in enumerate(elements(source)):
        if not isinstance(row, dict) or not isinstance(row.get("id"), str):
            raise unfit(source.path, f"element {number} is not a WMB-100K question")
        yield row


def _files(folder: Path, pattern: str) -> dict[str, Path]:
    files = found(folder, pattern)
    if not files:
        raise unfit(folder, f"has no {pattern}", "give the folder that holds datasets/, documents/")
    return files


def found(folder: Path, pattern: str) -> dict[str, Path]:
    """The files that match a pattern, compressed or not, by their names without suffixes.

    Raises:
        UsageError: if a file exists both compressed and uncompressed (`dataset_invalid`).
    """
    files: dict[str, Path] = {}
    for ending in ("", *PACKED):
        for path in folder.glob(pattern + ending):
            name = Path(path.name.removesuffix(ending)).stem
            if name in files:
                raise unfit(path, f"{files[name].name} exists too", "keep only one of them")
            files[name] = path
    return dict(sorted(files.items()))


def _document(name: str, path: Path) -> Item:
    with PieceReader(path) as source:
        content = source.rest()
    try:
        return Item(name, content.decode(), group=name)
    except UnicodeDecodeError as error:
        raise unfit(path, f"is not UTF-8, at byte {error.start}") from error


def _read_conversation(category: str, path: Path, items: list[Item], numbered: _Numbered) -> None:
    """Read the rows of a category as items, with ids `category/line`."""
    with PieceReader(path) as source:
        for line, raw in enumerate(lines(source), start=1):
            try:
                row = _row(raw)
                content = f"{text(row, 'speaker')}: {text(row, 'text')}"
                item = Item(f"{category}/{line}", content, group=category)
                items.append(item)
                turn = (category, row["turn_id"])
                # 5,557 turns share their number with another one; the one with facts is meant.
                if row["embedded_facts"] or turn not in numbered:
                    numbered[turn] = item.id
            except (ValueError, KeyError, TypeError) as error:
                raise unfit(path, f"line {line}: {reason_of(error)}") from error


def _row(raw: bytes) -> dict[str, Any]:
    row = decode(raw.decode())
    if not isinstance(row, dict):
        raise TypeError("is not an object")
    return row


def _query(
    row: dict[str, Any], numbered: _Numbered, groups: set[str]
) -> tuple[Question, list[DroppedEntry]]:
    category = text(row, "category")
    tags = (category, *([text(row, "category2")] if "category2" in row else []))
    for tag in tags:
        if tag not in groups:
            raise ValueError(f"the file of {tag!r} is missing")
    gold, dropped = [], []
    for number in row["gold_turn_ids"]:
        if (category, number) not in numbered:
            dropped.append(DroppedEntry(row["id"], f"{category} has no turn {number}"))
        gold.append(numbered.get((category, number), f"{category}/turn {number}"))
    query = Question(
        id=row["id"],
        question=text(row, "text"),
        category=text(row, "qtype"),
        gold=tuple(dict.fromkeys(gold)),
        answers=(text(row, "gold_answer"),),
        # The judge sees these, and never the answer.
        rubric="\n".join(texts(row, "required_memories")) or None,
        abstain=row["qtype"] == FALSE_MEMORY,
        tags=tags,
    )
    return query, dropped
