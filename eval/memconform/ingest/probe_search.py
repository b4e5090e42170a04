"""Searches for documents by words of their own."""

import secrets
from collections import Counter
from collections.abc import Sequence

from memconform.client.client import ContractClient
from memconform.client.failures import ContractViolatedError
from memconform.contract.core import DEEPEST, Chunk, Filters, SearchRequest, SearchResponse
from memconform.contract.wire import Mode
from memconform.ingest.ingested import IngestedDocuments
from memconform.ingest.probe_queries import RareWords, long_query, searchable_text

_UNCOUNTED_DEPTH = 300
"""Chunks requested for a batch of documents whose chunks the daemon does not count."""
_LARGEST_POOL = 10_000
"""The largest candidateK that the contract allows."""
WORDS_ALONE = 8
"""Words in the query for a single document that a batch did not find."""
ALONE_DEPTH = 50
"""Chunks requested for a single document."""
_DEEPEST_BYTES = 16 * 2**20
"""The size up to which a deep ranking is requested, by the mean size of a document."""


class ProbeSearch:
    """Searches one brain for its documents.

    Every coroutine raises CallError if the daemon does not answer, or returns chunks that do not
    belong to the ingested documents.
    """

    def __init__(
        self,
        client: ContractClient,
        brain: str,
        documents: IngestedDocuments,
        words: RareWords,
        *,
        filters: bool,
        counted: bool,
    ) -> None:
        """Create it; `filters` and `counted` are those of `IndexProver`."""
        self._client = client
        self._brain = brain
        self._documents = documents
        self._words = words
        self.filters = filters
        self._counted = counted

    def has_twin(self, text: str, chunks: Sequence[Chunk]) -> bool:
        """Whether a daemon that counts nothing returned a document's text under another path.

        It may return equal texts once, and does not say so.
        """
        return not self._counted and any(chunk.text.strip() == text.strip() for chunk in chunks)

    async def finds_nonsense(self, keyword: Mode | None) -> bool:
        """Whether a keyword search finds a random word of 26 characters, which no document has.

        A daemon that searches by similarity alone may find one. From any other daemon, its chunks
        answer another request.

        Raises:
            DaemonError: if the search fails.
        """
        word = f"zq{secrets.token_hex(12)}"
        request = SearchRequest(query=word, top_k=1, mode=keyword or Mode.BM25)
        return bool((await self.verified_search(request)).chunks)

    def query_alone(self, text: str, leg: Mode, attempt: int) -> str:
        """A query for one document: a few words, then many, then its own text.

        A daemon may tokenize a single word differently, but not several in a row. A vector search
        with a pool needs many words to draw the document at all.
        """
        if attempt == 1:
            return " ".join(self._words.shuffle(text))
        if attempt and self.is_exact_leg(leg):
            return long_query(text)
        return " ".join(self._words.draw(text, WORDS_ALONE))

    def is_exact_leg(self, leg: Mode) -> bool:
        """Whether a document's own text as the query proves that this leg finds it.

        A daemon whose vectors are not counted may answer a search without vectors by comparing
        texts, which would hide that they are missing.
        """
        return self._counted or leg is Mode.BM25

    async def found(
        self, query: str, paths: list[str], leg: Mode, depth: int = ALONE_DEPTH
    ) -> set[str]:
        """Which of these documents are found, in a vector mode with all of their chunks."""
        counts = {path: self._documents.chunk_count(path) for path in paths}
        expected = Counter({path: count for path, count in counts.items() if count is not None})
        is_counted = None not in counts.values()
        # Of documents whose chunks nobody counts, one may have many.
        top_k = min(max(expected.total(), 1), DEEPEST) if is_counted else _UNCOUNTED_DEPTH
        answer = await self.search(query, paths, leg, top_k, depth)
        found = Counter(chunk.path for chunk in answer.chunks)
        ranks_all = (
            is_counted
            and answer.trace.effective_mode is Mode.SEMANTIC
            and top_k == expected.total()
        )
        if self.filters and ranks_all:
            return {path for path in paths if found[path] == expected[path]}
        if not self.filters:
            for path in paths:
                text = searchable_text(self._documents.document(path))
                found[path] += self.has_twin(text, answer.chunks)
        return {path for path in paths if found[path]}

    async def search(
        self, query: str, paths: list[str], leg: Mode, top_k: int, depth: int = ALONE_DEPTH
    ) -> SearchResponse:
        pool = self.largest_pool
        if not self.filters:
            # The document must be among the best of the whole brain.
            request = SearchRequest(
                query=query, top_k=max(top_k, depth), mode=leg, candidate_k=pool
            )
            return await self.verified_search(request)
        request = SearchRequest(
            query=query, top_k=top_k, mode=leg, candidate_k=pool, filters=Filters(paths=paths)
        )
        answer = await self.verified_search(request)
        outsider = next((c.path for c in answer.chunks if c.path not in paths), None)
        if outsider is not None:
            raise ContractViolatedError(
                "filter_ignored", f"{outsider} was retrieved although the filter excludes it"
            )
        return answer

    @property
    def largest_pool(self) -> int | None:
        """Candidates from which a probe is answered; None leaves it to the daemon.

        A daemon that counts nothing may filter after it has drawn its candidates.
        """
        size = max(_UNCOUNTED_DEPTH, len(self._documents))
        return None if self._counted else min(size, _LARGEST_POOL)

    @property
    def deepest(self) -> int:
        """Chunks of the deepest ranking, whose texts must fit into a response."""
        mean = max(1, self._documents.size // max(1, len(self._documents)))
        return max(ALONE_DEPTH, min(DEEPEST, _DEEPEST_BYTES // mean))

    async def paths(self, query: str, leg: Mode, depth: int) -> list[str]:
        """The paths of the first `depth` chunks, whatever they are."""
        request = SearchRequest(query=query, top_k=depth, mode=leg)
        answer, _ = await self._client.search(self._brain, request, rank_by="position")
        return [chunk.path for chunk in answer.chunks]

    async def verified_search(self, request: SearchRequest) -> SearchResponse:
        # Random words must not fail a proof because the daemon reorders for some of them, as one
        # was seen to do for `now` and `current`; conform reports it (core.search.order).
        answer, _ = await self._client.search(self._brain, request, rank_by="position")
        self._documents.require_own(answer.chunks)
        return answer
