"""The project's own question sets as a benchmark: the corpus beside one is its haystack."""

import io
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from memconform.datasets.corpus import corpus_files
from memconform.datasets.files import PieceReader, read_whole, unfit, unreadable
from memconform.datasets.haystacks import Dropped, Haystack, Item
from memconform.datasets.jsonl import open_jsonl
from memconform.datasets.model import Question
from memconform.datasets.registry import corpus_of


def read_question_set(source: PieceReader) -> Iterator[Haystack]:
    """One haystack: an item a document, by its path; a query a row.

    A row that has no evidence and is not to be abstained from is a query without gold.

    Raises:
        UsageError: for lines that are no rows, or where there is no corpus of texts.
    """
    dataset = open_jsonl(source.path, source.path.stem)
    # For its digest; its rows are read by what reads them for a run.
    while source.read():
        pass
    folder = corpus_of(dataset)
    if folder is None:
        expected = source.path.with_suffix("") / "corpus"
        raise unfit(source.path, f"{expected} is missing", "put the documents of `evidence` there")
    items = tuple(_document(path, folder) for path in corpus_files(folder))
    known = {item.id for item in items}
    dropped: list[Dropped] = []
    queries: list[Question] = []
    for question in dataset:
        queries.append(replace(question, answers=_answers(question)))
        if not question.gold and not question.abstain:
            dropped.append(Dropped(question.id, "it has no evidence, and so no gold"))
        dropped += [
            Dropped(question.id, f"document {path} does not exist")
            for path in queries[-1].gold
            if path not in known
        ]
    yield Haystack(dataset.name, items, tuple(queries), tuple(dropped))


def _document(path: Path, folder: Path) -> Item:
    try:
        text = io.IncrementalNewlineDecoder(None, translate=True).decode(read_whole(path).decode())
        return Item(path.relative_to(folder).as_posix(), text)
    except UnicodeDecodeError as error:
        raise unreadable(path, error) from error


def _answers(question: Question) -> tuple[str, ...]:
    """The reference answer; else the expected strings, each of them, or all as one."""
    expected = question.expected_substrings
    if question.answers or not expected:
        return question.answers
    return ("; ".join(expected),) if question.match == "all" else expected
