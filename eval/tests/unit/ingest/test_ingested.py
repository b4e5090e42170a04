"""Returned chunks are verified against the ingested documents."""

from collections.abc import Iterator

import pytest

from memconform.client.failures import ContractViolatedError
from memconform.contract.core import Chunk, Ingested
from memconform.ingest.documents import Document
from memconform.ingest.ingested import IngestedDocuments

_LONG = "".join(f"paragraph {n} " + "word " * 300 + "\n\n" for n in range(100))
_DOCUMENTS = {
    "a.md": ("The harbour lamp is lit at dusk.\n", 1),
    "b.md": ("---\ntitle: B\n---\nThe kiln holds forty bowls.", 1),
    "long.md": (_LONG, 20),
    "own-way.md": ("One. Two. Three.", 3),
    "empty.md": ("", 0),
}


@pytest.fixture
def ingested() -> Iterator[IngestedDocuments]:
    with IngestedDocuments() as documents:
        for path, (text, chunks) in _DOCUMENTS.items():
            document = Document(path, text.encode(), "text/markdown")
            documents.add(
                document,
                Ingested(
                    document_id=f"id-{path}",
                    path=path,
                    chunk_count=chunks,
                    bytes=len(document.content),
                    took_ms=0.0,
                ),
            )
        yield documents


def _chunk(path: str, text: str, document_id: str | None = None) -> Chunk:
    return Chunk(
        chunk_id=f"{path}#0",
        document_id=document_id or f"id-{path}",
        path=path,
        score=1.0,
        text=text,
    )


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("a.md", "The harbour lamp is lit at dusk.\n"),
        ("a.md", "The harbour lamp is lit at dusk."),
        ("b.md", "The kiln holds forty bowls."),
        ("b.md", "---\ntitle: B\n---\nThe kiln holds forty bowls."),
        ("long.md", _LONG[: _LONG.encode()[:8192].rindex(b"\n\n") + 2]),
        ("own-way.md", "Two."),
    ],
)
def test_a_chunk_of_a_document_passes(ingested: IngestedDocuments, path: str, text: str) -> None:
    ingested.require_own([_chunk(path, text)])


@pytest.mark.parametrize(
    ("chunk", "code"),
    [
        (_chunk("made/up.md", "The harbour lamp is lit at dusk."), "foreign_chunk"),
        (_chunk("a.md", "The kiln holds forty bowls."), "foreign_text"),
        (_chunk("a.md", "The harbour lamp"), "foreign_text"),
        (_chunk("a.md", "The harbour l\u0430mp is lit at dusk."), "foreign_text"),
        (_chunk("a.md", "the harbour lamp is lit at dusk."), "foreign_text"),
        (_chunk("a.md", ""), "foreign_text"),
        (_chunk("a.md", "The harbour lamp is lit at dusk.", "id-b.md"), "foreign_text"),
        (_chunk("b.md", "forty bowls."), "foreign_text"),
        (_chunk("long.md", "paragraph 7 word word"), "foreign_text"),
        (_chunk("long.md", _LONG), "foreign_text"),
        (_chunk("own-way.md", "Two, Three."), "foreign_text"),
        (_chunk("own-way.md", " "), "foreign_text"),
        (_chunk("empty.md", "x"), "foreign_chunk"),
        (_chunk("a.md", "\ud800"), "foreign_text"),
    ],
)
def test_a_chunk_that_does_not_match_its_document_is_refused(
    ingested: IngestedDocuments, chunk: Chunk, code: str
) -> None:
    with pytest.raises(ContractViolatedError) as caught:
        ingested.require_own([chunk])
    assert caught.value.code == code


def test_documents_are_read_back_unchanged(ingested: IngestedDocuments) -> None:
    assert {d.path: d.content.decode() for d in ingested.documents()} == {
        path: text for path, (text, _) in _DOCUMENTS.items()
    }
    assert len(ingested) == 5


def test_a_document_indexed_twice_is_refused(ingested: IngestedDocuments) -> None:
    """Duplicate index entries once crowded out others in every ranking and passed as chunks."""
    chunk = _chunk("a.md", "The harbour lamp is lit at dusk.")
    again = chunk.model_copy(update={"chunk_id": "a.md#1000"})
    with pytest.raises(ContractViolatedError, match=r"2 chunks of a\.md were retrieved"):
        ingested.require_own([chunk, again])


def test_outer_whitespace_and_byte_order_marks_may_be_dropped() -> None:
    with IngestedDocuments() as documents:
        for path, text in (("b.md", "\ufeffA text\u3000\n"), ("blank.md", " \n")):
            document = Document(path, text.encode(), "text/plain")
            documents.add(
                document,
                Ingested(
                    document_id=f"id-{path}",
                    path=path,
                    chunk_count=1,
                    bytes=len(document.content),
                    took_ms=0.0,
                ),
            )
        documents.require_own([_chunk("b.md", "A text")])
        documents.require_own([_chunk("blank.md", " \n")])
