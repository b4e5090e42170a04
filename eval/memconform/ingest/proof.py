"""Proves that an index is complete: every document is found by its own words.

Of scores nothing is assumed but the order of one response, which is the order of its chunks. They
may be ranks, may be normalized to the response, all be equal, or rise: a filter may change each of
them, so scores of two responses are never compared.
"""

import asyncio
import random
import secrets
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from memconform.client.client import ContractClient
from memconform.client.failures import ContractViolatedError
from memconform.contract.core import DEEPEST, Chunk, Filters, SearchRequest, SearchResponse
from memconform.contract.wire import Mode
from memconform.errors import DaemonError
from memconform.ingest.ingested import IngestedDocuments
from memconform.ingest.legs import Legs
from memconform.ingest.probing import RareWords, long_query, searchable_text
from memconform.ingest.records import ProofRecord

EVERY = 10_000
"""Every document is proven up to this many; beyond, a random sample."""
CONFIDENCE = 0.95
SAMPLE = 2_995
"""ln(1 - CONFIDENCE) / ln(0.999): if 0.1 % of the documents were missing, a sample of this size
would contain none of them with a probability of 5 %."""
AGAIN = 299
"""Documents proven at the end of a run, if there are more. If 1 % of all were missing, a sample of
this size would contain none of them with a probability of 5 %. Documents that questions lacked were
probed before."""
_BATCH = 100
"""Documents probed by one query, one word each; the contract lets a daemon use 256 words."""
_IN_FLIGHT = 4
_UNCOUNTED_DEPTH = 300
"""Chunks requested for a batch of documents whose chunks the daemon does not count."""
_LARGEST_POOL = 10_000
"""The largest candidateK that the contract allows."""
_WORDS_ALONE = 8
"""Words in the query for a single document that a batch did not find."""
_ATTEMPTS = 3
_ALONE_DEPTH = 50
_DEEPEST_BYTES = 16 * 2**20
"""The size up to which a deep ranking is requested, by the mean size of a document."""
_BEST = 10
"""A document is lost if it is among the best tenth of the rivals that were returned without it. Of
ranks fused by 1 / (60 + rank), one that every pool had just missed came as far as the best 26 % of
them with two pools, and 12 % with eight, in 500 simulated corpora each."""
_UNFILTERED = 64
"""Documents that a verification probes without a filter."""
_RANDOM_UNFILTERED = 3
"""Further documents, drawn from all, that it probes without a filter."""
_SHOWN = 3


class IndexProver:
    """Proves that documents of one brain are searchable.

    Every coroutine raises CallError if the daemon does not answer, or returns chunks that do not
    belong to the ingested documents.
    """

    def __init__(
        self,
        client: ContractClient,
        brain: str,
        documents: IngestedDocuments,
        legs: Legs,
        *,
        filters: bool,
        counted: bool,
    ) -> None:
        """Create a prover.

        Args:
            client: The client of the daemon.
            brain: The brain's id.
            documents: The ingested documents.
            legs: The modes in which to prove the index.
            filters: Whether the daemon honours a filter by paths.
            counted: Whether the daemon counts chunks and vectors.
        """
        self._client = client
        self._brain = brain
        self._documents = documents
        self.legs = legs.modes
        self._keyword = legs.keyword
        # Nobody can predict the probes, not even a daemon whose author has read this file.
        self._rng = random.Random(secrets.randbits(64))  # noqa: S311 - seeded by secrets
        self._filters = filters
        self._counted = counted
        self._exact = self._proven = False
        self._words = RareWords(documents, self._rng)
        self._in_flight = asyncio.Semaphore(_IN_FLIGHT)
        self._blank: set[str] = set()

    async def prove_all(self, proven: Collection[Mode] = ()) -> ProofRecord:
        """Prove every document once, or a random sample if there are more than EVERY.

        Legs that are `proven` already are left out.

        Raises:
            DaemonError: `not_searchable` if a document is not found.
        """
        if self._keyword is not None and not self._proven:
            # A search by similarity may find a made-up word too; then finding one proves nothing.
            self._exact = not await self.finds_nonsense()
        paths = self._documents.paths
        sampled = len(paths) > EVERY
        if sampled:
            paths = self._rng.sample(paths, SAMPLE)
        found = await self.prove(paths, [leg for leg in self.legs if leg not in proven])
        self._proven = True
        return ProofRecord(
            documents=found,
            of=len(self._documents) - (0 if sampled else len(self._blank)),
            without_words=len(self._blank),
            modes=[leg.value for leg in self.legs],
            share=(1 - CONFIDENCE) ** (1 / found) if sampled and found else None,
            confidence=CONFIDENCE if sampled and found else None,
        )

    async def prove_some(self, count: int, extra: Iterable[str] = ()) -> None:
        """Prove the documents `extra` and `count` random ones; raises as `prove_all` does."""
        paths = self._documents.paths
        sample = self._rng.sample(paths, min(count, len(paths)))
        await self.prove(list(dict.fromkeys((*extra, *sample))))

    async def prove_again(self, extra: Iterable[str] = ()) -> None:
        """Prove `extra` and up to AGAIN random documents; raises as `prove_all` does."""
        await self.prove_some(AGAIN, extra)

    async def prove_unfiltered(self, paths: Collection[str]) -> None:
        """Prove some of `paths` and some random documents the way questions search: unfiltered.

        A daemon may have two code paths for search, one of which has lost its index. Random
        documents are included because no document is known for a question without an answer. Does
        nothing if the daemon does not honour filters, because all probes are unfiltered then.

        Raises:
            DaemonError: `not_searchable` if a document is not found.
            ContractViolatedError: `foreign_chunk` if a made-up word is found.
        """
        if not self._filters:
            return
        corpus = self._documents.paths
        sample = self._rng.sample(corpus, min(_RANDOM_UNFILTERED, len(corpus)))
        needed = self._rng.sample(sorted(paths), min(_UNFILTERED, len(paths)))
        probed = list(dict.fromkeys((*needed, *sample)))
        for leg in self.legs:
            missing = [path for path in probed if await self._is_lost_unfiltered(path, leg)]
            if missing:
                raise _not_searchable(dict.fromkeys(missing, leg), len(probed))
        if self._exact and await self.finds_nonsense():
            raise ContractViolatedError(
                "foreign_chunk",
                "a search for a made-up word found chunks; they may answer an earlier request",
            )

    async def _is_lost_unfiltered(self, path: str, leg: Mode) -> bool:
        """Whether a document is missing from the unfiltered index, and not just ranked low.

        Queries of its own words, and more of them, should put it among the best; the last one is
        repeated as deep as the daemon goes. If none finds it, it competes with those that were
        returned in its stead: scores of two responses say nothing about each other, so this takes
        one response, to a filter by all of their paths.
        """
        text = searchable_text(self._documents.document(path))
        rankings: list[tuple[str, int, SearchResponse]] = []
        for query, depth in self._unfiltered_queries(text, leg):
            pool = self._largest_pool if depth > _ALONE_DEPTH else None
            request = SearchRequest(query=query, top_k=depth, mode=leg, candidate_k=pool)
            found = await self._verified_search(request)
            if any(chunk.path == path for chunk in found.chunks):
                return False
            if self._has_twin(text, found.chunks):
                return False
            rankings.append((query, depth, found))
        if not rankings:
            return False
        longest = max(len(found.chunks) for _, _, found in rankings)
        for query, depth, found in rankings:
            rivals = list(dict.fromkeys(chunk.path for chunk in found.chunks))
            size = len(found.chunks)
            is_short = size < min(depth, longest) or len(rivals) + 1 == len(self._documents)
            if await self._is_wronged(path, query, leg, rivals, is_short=is_short):
                return True
        # Found by a filter for it alone, or lost altogether.
        queries = dict.fromkeys(query for query, _, _ in rankings)
        alone = [await self._search(query, [path], leg, 1) for query in queries]
        return not any(answer.chunks for answer in alone)

    def _unfiltered_queries(self, text: str, leg: Mode) -> Iterator[tuple[str, int]]:
        """Yield queries for a document, and the number of chunks to request."""
        few = " ".join(self._words.draw(text, _WORDS_ALONE))
        if not few:
            return
        many = " ".join(self._words.shuffle(text))
        # Of a few words alone, a vector search may find many documents nearer.
        yield from (
            (q, _ALONE_DEPTH) for q in ((few, many) if leg is self._keyword else (many, few))
        )
        if self._is_exact_leg(leg):
            yield long_query(text), _ALONE_DEPTH
        yield many, self._deepest

    async def _is_wronged(
        self, path: str, query: str, leg: Mode, rivals: list[str], *, is_short: bool
    ) -> bool:
        """Whether a document beats the `rivals` that an unfiltered search returned without it.

        If the ranking `is_short`, nothing crowded the document out, and being found beside the
        rivals suffices. Otherwise it must be among the best tenth of them: a fusion of ranks, or a
        normalization, may order two documents differently among other candidates.
        """
        rivals = rivals[: _BATCH - 1]
        top_k = DEEPEST if is_short else max(1, len(rivals) // _BEST)
        answer = await self._search(query, [path, *rivals], leg, top_k)
        return any(chunk.path == path for chunk in answer.chunks)

    def _has_twin(self, text: str, chunks: Sequence[Chunk]) -> bool:
        """Whether a daemon that counts nothing returned a document's text under another path.

        It may return equal texts once, and does not say so.
        """
        return not self._counted and any(chunk.text.strip() == text.strip() for chunk in chunks)

    async def finds_nonsense(self) -> bool:
        """Whether a keyword search finds a random word of 26 characters, which no document has.

        A daemon that searches by similarity alone may find one. From any other daemon, its chunks
        answer another request.

        Raises:
            DaemonError: if the search fails.
        """
        word = f"zq{secrets.token_hex(12)}"
        request = SearchRequest(query=word, top_k=1, mode=self._keyword or Mode.BM25)
        return bool((await self._verified_search(request)).chunks)

    async def prove(self, paths: Sequence[str], legs: Iterable[Mode] | None = None) -> int:
        """Prove these documents; returns how many of them contain a word to search for.

        Without `legs`, in all of them.

        Raises:
            DaemonError: `not_searchable`, naming some of the documents that were not found.
        """
        legs = self.legs if legs is None else list(legs)
        if not legs:
            self._blank.update(path for path in paths if not self._has_words(path))
        work = [(leg, batch) for leg in legs for batch in self._cut(paths)]
        tasks = [asyncio.create_task(self._missing(batch, leg)) for leg, batch in work]
        try:
            batches = await asyncio.gather(*tasks)
            missing = {
                path: leg for (leg, _), batch in zip(work, batches, strict=True) for path in batch
            }
        finally:
            # The first failure cancels the remaining queries.
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
        proven = len(set(paths) - self._blank)
        if missing:
            raise _not_searchable(missing, proven)
        return proven

    def _has_words(self, path: str) -> bool:
        text = searchable_text(self._documents.document(path))
        return self._documents.chunk_count(path) != 0 and bool(self._words.draw(text, 1))

    def _cut(self, paths: Iterable[str]) -> Iterator[list[str]]:
        """Split documents into batches whose chunks all fit into one response."""
        batch: list[str] = []
        chunks = 0
        size = _BATCH if self._filters else 1
        for path in paths:
            count = self._documents.chunk_count(path) or 1
            if batch and (len(batch) == size or chunks + count > DEEPEST):
                yield batch
                batch, chunks = [], 0
            batch.append(path)
            chunks += count
        if batch:
            yield batch

    async def _missing(self, batch: list[str], leg: Mode) -> list[str]:
        """The documents of a batch that queries for their words do not find."""
        async with self._in_flight:
            texts = {path: searchable_text(self._documents.document(path)) for path in batch}
            words = {
                path: [] if self._documents.chunk_count(path) == 0 else self._words.draw(text, 1)
                for path, text in texts.items()
            }
            self._blank.update(path for path in batch if not words[path])
            missing = {path for path in batch if words[path]}
            if self._filters and len(missing) > 1:
                query = " ".join(word for path in batch for word in words[path])
                missing -= await self._found(query, sorted(missing), leg)
            for attempt in range(_ATTEMPTS):
                for path in sorted(missing):
                    query = self._query_alone(texts[path], leg, attempt)
                    # Without a filter, documents with the same text may rank above it.
                    depth = self._deepest if attempt and not self._filters else _ALONE_DEPTH
                    if path in await self._found(query, [path], leg, depth):
                        missing.discard(path)
            return sorted(missing)

    def _query_alone(self, text: str, leg: Mode, attempt: int) -> str:
        """A query for one document: a few words, then many, then its own text.

        A daemon may tokenize a single word differently, but not several in a row. A vector search
        with a pool needs many words to draw the document at all.
        """
        if attempt == 1:
            return " ".join(self._words.shuffle(text))
        if attempt and self._is_exact_leg(leg):
            return long_query(text)
        return " ".join(self._words.draw(text, _WORDS_ALONE))

    def _is_exact_leg(self, leg: Mode) -> bool:
        """Whether a document's own text as the query proves that this leg finds it.

        A daemon whose vectors are not counted may answer a search without vectors by comparing
        texts, which would hide that they are missing.
        """
        return self._counted or leg is Mode.BM25

    async def _found(
        self, query: str, paths: list[str], leg: Mode, depth: int = _ALONE_DEPTH
    ) -> set[str]:
        """Which of these documents are found, in a vector mode with all of their chunks."""
        counts = {path: self._documents.chunk_count(path) for path in paths}
        expected = Counter({path: count for path, count in counts.items() if count is not None})
        is_counted = None not in counts.values()
        # Of documents whose chunks nobody counts, one may have many.
        top_k = min(max(expected.total(), 1), DEEPEST) if is_counted else _UNCOUNTED_DEPTH
        answer = await self._search(query, paths, leg, top_k, depth)
        found = Counter(chunk.path for chunk in answer.chunks)
        ranks_all = (
            is_counted
            and answer.trace.effective_mode is Mode.SEMANTIC
            and top_k == expected.total()
        )
        if self._filters and ranks_all:
            return {path for path in paths if found[path] == expected[path]}
        if not self._filters:
            for path in paths:
                text = searchable_text(self._documents.document(path))
                found[path] += self._has_twin(text, answer.chunks)
        return {path for path in paths if found[path]}

    async def _search(
        self, query: str, paths: list[str], leg: Mode, top_k: int, depth: int = _ALONE_DEPTH
    ) -> SearchResponse:
        pool = self._largest_pool
        if not self._filters:
            # The document must be among the best of the whole brain.
            request = SearchRequest(
                query=query, top_k=max(top_k, depth), mode=leg, candidate_k=pool
            )
            return await self._verified_search(request)
        request = SearchRequest(
            query=query, top_k=top_k, mode=leg, candidate_k=pool, filters=Filters(paths=paths)
        )
        answer = await self._verified_search(request)
        outsider = next((c.path for c in answer.chunks if c.path not in paths), None)
        if outsider is not None:
            raise ContractViolatedError(
                "filter_ignored", f"{outsider} was retrieved although the filter excludes it"
            )
        return answer

    @property
    def _largest_pool(self) -> int | None:
        """Candidates from which a probe is answered; None leaves it to the daemon.

        A daemon that counts nothing may filter after it has drawn its candidates.
        """
        size = max(_UNCOUNTED_DEPTH, len(self._documents))
        return None if self._counted else min(size, _LARGEST_POOL)

    @property
    def _deepest(self) -> int:
        """Chunks of the deepest ranking, whose texts must fit into a response."""
        mean = max(1, self._documents.size // max(1, len(self._documents)))
        return max(_ALONE_DEPTH, min(DEEPEST, _DEEPEST_BYTES // mean))

    async def _verified_search(self, request: SearchRequest) -> SearchResponse:
        # Random words must not fail a proof because the daemon reorders for some of them, as one
        # was seen to do for `now` and `current`; conform reports it (core.search.order).
        answer, _ = await self._client.search(self._brain, request, rank_by="position")
        self._documents.require_own(answer.chunks)
        return answer


def _not_searchable(missing: Mapping[str, Mode], total: int) -> DaemonError:
    """Name some of the documents that were not found, and the modes in which they were not."""
    names = ", ".join(list(missing)[:_SHOWN]) + (", …" if len(missing) > _SHOWN else "")
    modes = " or ".join(dict.fromkeys(mode.value for mode in missing.values()))
    return DaemonError(
        f"a search for their own words (mode {modes}) does not find {len(missing)} of {total}"
        f" ingested documents: {names}",
        code="not_searchable",
        hint="make an acknowledged document visible to the next search"
        " (core.ingest.read-your-writes); memconform conform --case 'ingest-*' repeats the calls",
    )
