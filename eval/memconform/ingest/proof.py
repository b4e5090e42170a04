"""Proves that an index is complete: every document is found by its own words.

Of scores nothing is assumed but the order of one response, which is the order of its chunks. They
may be ranks, may be normalized to the response, all be equal, or rise: a filter may change each of
them, so scores of two responses are never compared.
"""

import asyncio
import random
import secrets
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from memconform.client.client import ContractClient
from memconform.client.failures import CallError, CallTimeoutError, ContractViolatedError
from memconform.contract.core import DEEPEST, SearchRequest, SearchResponse
from memconform.contract.terms import terms
from memconform.contract.wire import Mode
from memconform.errors import DaemonError
from memconform.ingest.ingested import IngestedDocuments
from memconform.ingest.probe_queries import RareWords, long_query, searchable_text
from memconform.ingest.probe_search import ALONE_DEPTH, WORDS_ALONE, ProbeSearch
from memconform.ingest.provable_modes import Legs
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
_ATTEMPTS = 3
_BEST = 10
"""A document is lost if it is among the best tenth of the rivals that were returned without it. Of
ranks fused by 1 / (60 + rank), one that every pool had just missed came as far as the best 26 % of
them with two pools, and 12 % with eight, in 500 simulated corpora each."""
_UNFILTERED = 64
"""Documents that a verification probes without a filter."""
_RANDOM_UNFILTERED = 3
"""Further documents, drawn from all, that it probes without a filter."""
_SHOWN = 3
_OBSERVED = 300
"""Documents that are searched for by their own words if the system promises nothing. This many give
a share to within 6 points; at 0.1 s for a search they take half a minute."""
_OBSERVED_DEPTH = 10


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
        self._documents = documents
        self.legs = legs.modes
        self.auto = legs.auto
        self._keyword = legs.keyword
        # Nobody can predict the probes, not even a daemon whose author has read this file.
        self._rng = random.Random(secrets.randbits(64))  # noqa: S311 - seeded by secrets
        self._exact = self._proven = False
        self._words = RareWords(documents, self._rng)
        self._probe = ProbeSearch(
            client, brain, documents, self._words, filters=filters, counted=counted
        )
        self._in_flight = asyncio.Semaphore(_IN_FLIGHT)
        self._blank: set[str] = set()

    async def prove_all(
        self, proven: Collection[Mode] = (), *, stops_early: bool = False
    ) -> ProofRecord:
        """Prove every document once, or a random sample if there are more than EVERY.

        Legs that are `proven` already are left out. If it `stops_early`, the error names only the
        first documents that were not found, which saves three searches for each of the others.

        Raises:
            DaemonError: `not_searchable` if a document is not found.
        """
        if self._keyword is not None and not self._proven:
            # A search by similarity may find a made-up word too; then finding one proves nothing.
            self._exact = not await self._probe.finds_nonsense(self._keyword)
        paths = self._documents.paths
        sampled = len(paths) > EVERY
        if sampled:
            paths = self._rng.sample(paths, SAMPLE)
        found = await self.prove(
            paths, [leg for leg in self.legs if leg not in proven], stops_early=stops_early
        )
        self._proven = True
        return ProofRecord(
            documents=found,
            of=len(self._documents) - (0 if sampled else len(self._blank)),
            without_words=len(self._blank),
            modes=[leg.value for leg in self.legs],
            share=(1 - CONFIDENCE) ** (1 / found) if sampled and found else None,
            confidence=CONFIDENCE if sampled and found else None,
        )

    async def observe(self) -> ProofRecord:
        """Count how many of up to _OBSERVED random documents are found by their own words.

        For a system that promises nothing: it may rank approximately, or drop what it takes for a
        duplicate. Searches that fail are counted apart.

        Raises:
            CallError: if every search failed, or one took too long.
            DaemonError: `not_searchable` if no search returned anything.
        """
        paths = self._documents.paths
        sample = self._rng.sample(paths, min(_OBSERVED, len(paths)))
        texts = {path: searchable_text(self._documents.document(path)) for path in sample}
        queries = {path: long_query(text) for path, text in texts.items() if terms(text)}
        found, is_empty, failures = 0, True, list[CallError]()
        for path, query in queries.items():
            try:
                paths = await self._probe.paths(query, self.legs[0], _OBSERVED_DEPTH)
            except CallTimeoutError:
                raise
            except CallError as error:
                failures.append(error)
            else:
                found += path in paths
                is_empty &= not paths
        if failures and len(failures) == len(queries):
            raise failures[-1]
        if is_empty and queries:
            raise DaemonError(
                f"no search for the own words of {len(queries)} documents returned anything",
                code="not_searchable",
                hint="return what is stored; every question would count as incorrect",
            )
        return ProofRecord(
            documents=found,
            of=len(queries) - len(failures),
            without_words=len(sample) - len(queries),
            failed=len(failures),
            modes=[self.legs[0].value],
            promised=False,
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
        if not self._probe.filters:
            return
        corpus = self._documents.paths
        sample = self._rng.sample(corpus, min(_RANDOM_UNFILTERED, len(corpus)))
        needed = self._rng.sample(sorted(paths), min(_UNFILTERED, len(paths)))
        probed = list(dict.fromkeys((*needed, *sample)))
        for leg in self.legs:
            missing = [path for path in probed if await self._is_lost_unfiltered(path, leg)]
            if missing:
                raise _not_searchable(dict.fromkeys(missing, leg), len(probed))
        if self._exact and await self._probe.finds_nonsense(self._keyword):
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
            pool = self._probe.largest_pool if depth > ALONE_DEPTH else None
            request = SearchRequest(query=query, top_k=depth, mode=leg, candidate_k=pool)
            found = await self._probe.verified_search(request)
            if any(chunk.path == path for chunk in found.chunks):
                return False
            if self._probe.has_twin(text, found.chunks):
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
        alone = [await self._probe.search(query, [path], leg, 1) for query in queries]
        return not any(answer.chunks for answer in alone)

    def _unfiltered_queries(self, text: str, leg: Mode) -> Iterator[tuple[str, int]]:
        """Yield queries for a document, and the number of chunks to request."""
        few = " ".join(self._words.draw(text, WORDS_ALONE))
        if not few:
            return
        many = " ".join(self._words.shuffle(text))
        # Of a few words alone, a vector search may find many documents nearer.
        yield from (
            (q, ALONE_DEPTH) for q in ((few, many) if leg is self._keyword else (many, few))
        )
        if self._probe.is_exact_leg(leg):
            yield long_query(text), ALONE_DEPTH
        yield many, self._probe.deepest

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
        answer = await self._probe.search(query, [path, *rivals], leg, top_k)
        return any(chunk.path == path for chunk in answer.chunks)

    async def prove(
        self,
        paths: Sequence[str],
        legs: Iterable[Mode] | None = None,
        *,
        stops_early: bool = False,
    ) -> int:
        """Prove these documents; returns how many of them contain a word to search for.

        Without `legs`, in all of them. `stops_early` as in `prove_all`.

        Raises:
            DaemonError: `not_searchable`, naming some of the documents that were not found.
        """
        legs = self.legs if legs is None else list(legs)
        if not legs:
            self._blank.update(path for path in paths if not self._has_words(path))
        work = [(leg, batch) for leg in legs for batch in self._cut(paths)]
        tasks = [
            asyncio.create_task(self._missing(batch, leg, stops_early=stops_early))
            for leg, batch in work
        ]
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
        size = _BATCH if self._probe.filters else 1
        for path in paths:
            count = self._documents.chunk_count(path) or 1
            if batch and (len(batch) == size or chunks + count > DEEPEST):
                yield batch
                batch, chunks = [], 0
            batch.append(path)
            chunks += count
        if batch:
            yield batch

    async def _missing(self, batch: list[str], leg: Mode, *, stops_early: bool) -> list[str]:
        """The documents of a batch that queries for their words do not find.

        Raises:
            DaemonError: `not_searchable` for the first one, if it `stops_early`.
        """
        async with self._in_flight:
            texts = {path: searchable_text(self._documents.document(path)) for path in batch}
            words = {
                path: [] if self._documents.chunk_count(path) == 0 else self._words.draw(text, 1)
                for path, text in texts.items()
            }
            self._blank.update(path for path in batch if not words[path])
            unfound = {path for path in batch if words[path]}
            if self._probe.filters and len(unfound) > 1:
                query = " ".join(word for path in batch for word in words[path])
                unfound -= await self._probe.found(query, sorted(unfound), leg)
            missing = []
            for path in sorted(unfound):
                if await self._is_found_alone(path, texts[path], leg):
                    continue
                missing.append(path)
                if stops_early:
                    raise _not_searchable({path: leg}, len(self._documents))
            return missing

    async def _is_found_alone(self, path: str, text: str, leg: Mode) -> bool:
        """Whether a document is found by one of several queries for it alone."""
        for attempt in range(_ATTEMPTS):
            query = self._probe.query_alone(text, leg, attempt)
            # Without a filter, documents with the same text may rank above it.
            is_deep = attempt and not self._probe.filters
            depth = self._probe.deepest if is_deep else ALONE_DEPTH
            if path in await self._probe.found(query, [path], leg, depth):
                return True
        return False


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
