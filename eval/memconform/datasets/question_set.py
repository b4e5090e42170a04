"""Question sets of the project as benchmarks: the corpus of a set is its haystack."""

import io
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from memconform.datasets.corpus import corpus_files
from memconform.datasets.files import PieceReader, read_whole, unfit, unreadable
from memconform.datasets.haystacks import DroppedEntry, Haystack, Item
from memconform.datasets.jsonl import open_jsonl
from memconform.datasets.question import Question
from memconform.datasets.registry import corpus_of


def read_question_set(source: PieceReader) -> Iterator[Haystack]:
    """Yield one haystack: each document is an item, with its path as id, and each row a query.

    A row without evidence, unless it is to be abstained from, is a query without gold.

    Raises:
        UsageError: if lines are invalid, the corpus is missing (`dataset_invalid`) or empty
            (`corpus_empty`), or a document is not UTF-8 (`dataset_unreadable`).
    """
    dataset = open_jsonl(source.path, source.path.stem)
    # Only for the digest: the rows are read by the reader that runs use too.
    while source.read():
        pass
    folder = corpus_of(dataset)
    if folder is None:
        expected = source.path.with_suffix("") / "corpus"
        # A run seeds the reference answers of such a set, which are no haystack.
        raise unfit(
            source.path,
            f"{expected} is missing: this is a question set, not a benchmark",
            "put the documents of `evidence` there; `memconform datasets lint` describes a set"
            " without them",
        )
    items = tuple(_document(path, folder) for path in corpus_files(folder))
    item_ids = {item.id for item in items}
    dropped: list[DroppedEntry] = []
    queries: list[Question] = []
    for question in dataset:
        # Its cluster is never the haystack, which is the same for all: as in a run, a row without
        # one is independent.
        cluster = question.cluster or question.id
        queries.append(replace(question, answers=_answers(question), cluster=cluster))
        if not question.gold and not question.abstain:
            dropped.append(DroppedEntry(question.id, "it has no evidence, and so no gold"))
        dropped += [
            DroppedEntry(question.id, f"document {path} does not exist")
            for path in queries[-1].gold
            if path not in item_ids
        ]
    yield Haystack(dataset.name, items, tuple(queries), tuple(dropped))


def _document(path: Path, folder: Path) -> Item:
    try:
        text = io.IncrementalNewlineDecoder(None, translate=True).decode(read_whole(path).decode())
        return Item(path.relative_to(folder).as_posix(), text)
    except UnicodeDecodeError as error:
        raise unreadable(path, error) from error


def _answers(question: Question) -> tuple[str, ...]:
    """The reference answer, or otherwise the expected strings: each, or all joined for `all`."""
    expected = question.expected_substrings
    if question.answers or not expected:
        return question.answers
    return ("; ".join(expected),) if question.match == "all" else expected
