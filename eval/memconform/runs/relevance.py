"""Finds the ingested documents that a question needs."""

import mmap
import tempfile
from bisect import bisect_right
from collections.abc import Iterator
from unicodedata import normalize

from memconform.datasets.question import Question
from memconform.ingest.ingested import IngestedDocuments
from memconform.ingest.probe_queries import searchable_text

_MAX_BYTES = 256 * 2**20
"""The largest corpus that is searched. For a larger one, the proof at the end of the run still
covers all documents or a stated sample, whatever a question needs."""
_MAX_DOCUMENTS = 320
"""Per question, because an expected string such as `4` occurs in every other document."""
_SEPARATOR = b"\0"


class RelevantDocuments:
    """Finds the documents that contain a question's expected strings, ignoring case."""

    def __init__(self, documents: IngestedDocuments | None) -> None:
        usable = documents is not None and 0 < documents.size <= _MAX_BYTES
        self._documents = documents if usable else None
        self._text: mmap.mmap | None = None
        self._starts: list[int] = []
        self._paths: list[str] = []

    def paths(self, question: Question) -> set[str]:
        """The paths of at most `_MAX_DOCUMENTS` documents; empty for a corpus that is too large."""
        if self._documents is None:
            return set()
        if self._text is None:
            self._text = self._fold_all(self._documents)
        paths: set[str] = set()
        for expected in question.expected_substrings:
            limit = _MAX_DOCUMENTS - len(paths)
            paths.update(self._search(self._text, _fold(expected), limit))
        return paths

    def _fold_all(self, documents: IngestedDocuments) -> mmap.mmap:
        with tempfile.TemporaryFile(prefix="memconform-") as file:
            for document in documents.documents():
                self._starts.append(file.tell())
                self._paths.append(document.path)
                file.write(_fold(searchable_text(document)) + _SEPARATOR)
            file.flush()
            return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)

    def _search(self, text: mmap.mmap, needle: bytes, limit: int) -> Iterator[str]:
        start = 0
        while needle and limit > 0 and (offset := text.find(needle, start)) >= 0:
            document = bisect_right(self._starts, offset) - 1
            yield self._paths[document]
            limit -= 1
            start = self._starts[document + 1] if document + 1 < len(self._starts) else len(text)


def _fold(text: str) -> bytes:
    return normalize("NFC", text).casefold().encode("utf-8", "surrogatepass")
