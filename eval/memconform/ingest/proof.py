"""Proves that an index is complete: every document is found by its own words."""

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
_WORDS_ALONE = 8
"""Words in the query for a single document that a batch did not find."""
_ATTEMPTS = 3
_ALONE_DEPTH = 50
_UNFILTERED = 64
"""Documents that a verification probes without a filter."""
_RANDOM_UNFILTERED = 3
"""Further documents, drawn from all, that it probes without a filter."""
_SCORE_TOLERANCE = 1e-9
"""The precision to which scores are rounded (core.search.order)."""
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
        self._misshapen = ""
        """Why the last ranking of a wrong shape, which was taken to be empty, is one."""

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
                raise _not_searchable(dict.fromkeys(missing, leg), len(probed), self._misshapen)
        if self._exact and await self.finds_nonsense():
            raise ContractViolatedError(
                "foreign_chunk",
                "a search for a made-up word found chunks; they may answer an earlier request",
            )

    async def _is_lost_unfiltered(self, path: str, leg: Mode) -> bool:
        """Whether a document is missing from a ranking that contains lower scores.

        Filters change no score (core.filter.post): a document that scores higher with a filter
        than the last of an unfiltered ranking belongs in that ranking. Documents with a text that
        many share may all be crowded out.
        """
        text = searchable_text(self._documents.document(path))
        query = " ".join(self._words.draw(text, _WORDS_ALONE))
        if not query:
            return False
        unfiltered = await self._verified_search(
            SearchRequest(query=query, top_k=_ALONE_DEPTH, mode=leg)
        )
        if any(chunk.path == path for chunk in unfiltered.chunks):
            return False
        if self._has_twin(text, unfiltered.chunks):
            return False
        filtered = await self._search(query, [path], leg, 1)
        if not filtered.chunks:
            return True
        if len(unfiltered.chunks) != _ALONE_DEPTH:
            return True
        lowest = unfiltered.chunks[-1].score
        return filtered.chunks[0].score > lowest + _SCORE_TOLERANCE

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
        try:
            return bool((await self._verified_search(request)).chunks)
        except ContractViolatedError as error:
            if error.code != "bad_body" or self._proven:
                raise
            # An empty ranking in a wrong shape, which conform reports (wire.shape): from now on,
            # finding nothing proves nothing.
            return True

    async def prove(self, paths: Sequence[str], legs: Iterable[Mode] | None = None) -> int:
        """Prove these documents; returns how many of them contain a word to search for.

        Without `legs`, in all of them.

        Raises:
            DaemonError: `not_searchable`, naming some of the documents that were not found.
        """
        legs = self.legs if legs is None else legs
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
            raise _not_searchable(missing, proven, self._misshapen)
        return proven

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
            # A daemon may tokenize a single word differently, but not several in a row.
            for attempt in range(_ATTEMPTS):
                for path in sorted(missing):
                    last = attempt + 1 == _ATTEMPTS and self._is_exact_leg(leg)
                    words_alone = self._words.draw(texts[path], _WORDS_ALONE)
                    query = long_query(texts[path]) if last else " ".join(words_alone)
                    # Without a filter, documents with the same text may rank above it.
                    depth = DEEPEST if last and not self._filters else _ALONE_DEPTH
                    if path in await self._found(query, [path], leg, depth):
                        missing.discard(path)
            return sorted(missing)

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
        try:
            answer = await self._search(query, paths, leg, top_k, depth)
        except ContractViolatedError as error:
            # An empty ranking in a wrong shape, which conform reports (wire.shape).
            if error.code != "bad_body" or self._counted:
                raise
            self._misshapen = error.message
            return set()
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
        # A daemon that counts nothing may filter after it has drawn its candidates.
        pool = None if self._counted else _UNCOUNTED_DEPTH
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

    async def _verified_search(self, request: SearchRequest) -> SearchResponse:
        answer, _ = await self._client.search(self._brain, request)
        self._documents.require_own(answer.chunks)
        return answer


def _not_searchable(missing: Mapping[str, Mode], total: int, misshapen: str) -> DaemonError:
    """Name some of the documents that were not found, and the modes in which they were not.

    `misshapen` says what is wrong with a ranking that was taken to be empty.
    """
    names = ", ".join(list(missing)[:_SHOWN]) + (", …" if len(missing) > _SHOWN else "")
    modes = " or ".join(dict.fromkeys(mode.value for mode in missing.values()))
    return DaemonError(
        f"a search for their own words (mode {modes}) does not find {len(missing)} of {total}"
        f" ingested documents: {names}" + (f"; the last answer: {misshapen}" if misshapen else ""),
        code="not_searchable",
        hint="make an acknowledged document visible to the next search"
        " (core.ingest.read-your-writes); memconform conform --case 'ingest-*' repeats the calls",
    )
