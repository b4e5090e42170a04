"""Which ingested documents a question needs."""

import mmap
import tempfile
from bisect import bisect_right
from collections.abc import Iterator
from unicodedata import normalize

from memconform.datasets.model import Question
from memconform.ingest.ingested import IngestedDocuments
from memconform.ingest.probing import searchable_text

_SEARCHED = 256 * 2**20
"""Bytes of a corpus that is searched. Of a larger one all documents, or a stated sample, are proven
at the end of the run, whatever a question needs."""
_MOST = 320
"""Documents of one question: an expectation such as `4` is in every other one."""
_SEPARATOR = b"\0"


class RelevantDocuments:
    """Finds the documents that hold what a question expects, by its letters without their case."""

    def __init__(self, documents: IngestedDocuments | None) -> None:
        usable = documents is not None and 0 < documents.size <= _SEARCHED
        self._documents = documents if usable else None
        self._text: mmap.mmap | None = None
        self._starts: list[int] = []
        self._paths: list[str] = []

    def paths(self, question: Question) -> set[str]:
        """Of at most `_MOST` documents."""
        if self._documents is None:
            return set()
        if self._text is None:
            self._text = self._folded(self._documents)
        found: set[str] = set()
        for expected in question.expected_substrings:
            found.update(self._holding(self._text, _fold(expected), _MOST - len(found)))
        return found

    def _folded(self, documents: IngestedDocuments) -> mmap.mmap:
        with tempfile.TemporaryFile(prefix="memconform-") as file:
            for document in documents.documents():
                self._starts.append(file.tell())
                self._paths.append(document.path)
                file.write(_fold(searchable_text(document)) + _SEPARATOR)
            file.flush()
            return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)

    def _holding(self, text: mmap.mmap, needle: bytes, most: int) -> Iterator[str]:
        start = 0
        while needle and most > 0 and (place := text.find(needle, start)) >= 0:
            document = bisect_right(self._starts, place) - 1
            yield self._paths[document]
            most -= 1
            start = self._starts[document + 1] if document + 1 < len(self._starts) else len(text)


def _fold(text: str) -> bytes:
    return normalize("NFC", text).casefold().encode("utf-8", "surrogatepass")
