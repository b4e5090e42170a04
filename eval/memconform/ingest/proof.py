"""Proof that an index is whole: every document is found by words of its own."""

import asyncio
import random
import secrets
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass

from memconform.client.client import ContractClient
from memconform.client.failures import ContractViolatedError, DaemonFailedError
from memconform.contract.core import DEEPEST, Brain, Filters, SearchRequest, SearchResponse
from memconform.contract.terms import terms
from memconform.contract.wire import Mode
from memconform.errors import DaemonError
from memconform.ingest.ingested import IngestedDocuments
from memconform.ingest.probing import RareWords, long_query, searchable_text
from memconform.ingest.records import ProofRecord

EVERY = 10_000
"""Up to so many documents each one is proven; of more, a random sample."""
CONFIDENCE = 0.95
SAMPLE = 2_995
"""ln(1 - CONFIDENCE) / ln(0.999): if 0.1 % of the documents were missing, a sample of this size
would hold none of them with a probability of 5 %."""
AGAIN = 299
"""Documents that are proven at the end of a run, where there are more. If 1 % of all were missing,
with a probability of 5 % none of them is drawn; what questions lacked was asked for before."""
_BATCH = 100
"""Documents asked for by one query, a word each; the contract lets a daemon use 256 of them."""
_IN_FLIGHT = 4
_WORDS_ALONE = 8
"""Words of a query for one document, which a batch had not brought back."""
_ATTEMPTS = 3
_ALONE_DEPTH = 50
_OPENLY = 64
"""Documents of a verification that are asked for without a filter."""
_DRAWN_OPENLY = 3
"""Besides, documents that nobody is known to need."""
_SCORE_TOLERANCE = 1e-9
"""What scores are rounded to (core.search.order)."""
_FUSED = (Mode.HYBRID, Mode.HYBRID_RERANK)
_SHOWN = 3


@dataclass(frozen=True, slots=True)
class Legs:
    """In which modes an index is proven."""

    modes: tuple[Mode, ...]
    keyword: Mode | None
    """The one that searches by keywords, under whatever name."""


class IndexProver:
    """Proves documents of one brain to be searchable.

    Every method raises CallError where the daemon does not answer, or answers with chunks that are
    not of the documents that were ingested.
    """

    def __init__(
        self,
        client: ContractClient,
        brain: str,
        documents: IngestedDocuments,
        legs: Legs,
        *,
        filters: bool,
    ) -> None:
        """`filters`: whether the daemon honours a filter by paths."""
        self._client = client
        self._brain = brain
        self._documents = documents
        self.legs = legs.modes
        self._keyword = legs.keyword
        # Nobody can know what will be asked for, a daemon of ours that has read this file included.
        self._rng = random.Random(secrets.randbits(64))  # noqa: S311 - seeded by secrets
        self._filters = filters
        self._exact = self._proven = False
        self._words = RareWords(documents, self._rng)
        self._in_flight = asyncio.Semaphore(_IN_FLIGHT)
        self._blank: set[str] = set()

    async def prove_all(self) -> ProofRecord:
        """Prove every document once, or of more than EVERY a random sample.

        Raises:
            DaemonError: `not_searchable`, where one is not found.
        """
        if self._keyword is not None and not self._proven:
            # A daemon that searches by likeness may find anything; then that proves nothing.
            self._exact = not await self.finds_nonsense()
        paths = self._documents.paths
        sampled = len(paths) > EVERY
        if sampled:
            paths = self._rng.sample(paths, SAMPLE)
        proven = await self.prove(paths)
        self._proven = True
        return ProofRecord(
            documents=proven,
            of=len(self._documents) - (0 if sampled else len(self._blank)),
            without_words=len(self._blank),
            modes=[leg.value for leg in self.legs],
            share=(1 - CONFIDENCE) ** (1 / proven) if sampled and proven else None,
            confidence=CONFIDENCE if sampled and proven else None,
        )

    async def prove_some(self, count: int, besides: Iterable[str] = ()) -> None:
        """Prove `besides`, and `count` documents drawn anew; raises as `prove_all` does."""
        paths = self._documents.paths
        drawn = self._rng.sample(paths, min(count, len(paths)))
        await self.prove(list(dict.fromkeys((*besides, *drawn))))

    async def prove_again(self, besides: Iterable[str] = ()) -> None:
        """Prove `besides`, and all documents or AGAIN of them; raises as `prove_all` does."""
        await self.prove_some(AGAIN, besides)

    async def prove_openly(self, paths: Collection[str]) -> None:
        """Prove some of these documents, and some drawn anew, as questions are asked.

        That is without a filter: a daemon may have two ways to search, of which one has lost its
        index. Drawn, because of a question that nothing answers no document is known.

        Raises:
            DaemonError: `not_searchable`.
        """
        if not self._filters:
            return
        every = self._documents.paths
        drawn = self._rng.sample(every, min(_DRAWN_OPENLY, len(every)))
        needed = self._rng.sample(sorted(paths), min(_OPENLY, len(paths)))
        asked = list(dict.fromkeys((*needed, *drawn)))
        for leg in self.legs:
            missing = [path for path in asked if await self._lost_openly(path, leg)]
            if missing:
                raise _not_searchable(missing, len(asked))
        if self._exact and await self.finds_nonsense():
            raise ContractViolatedError(
                "foreign_chunk",
                "a word that no document holds was found: is it an answer to the request before?",
            )

    async def _lost_openly(self, path: str, leg: Mode) -> bool:
        """Whether a document is missing where others stand that score less.

        Filters change no score (core.filter.post): what scores more with a filter than the last of
        a ranking without one belongs into it. Of texts that many documents share, none need.
        """
        text = searchable_text(self._documents.document(path))
        query = " ".join(self._words.draw(text, _WORDS_ALONE))
        if not query:
            return False
        openly = await self._own(SearchRequest(query=query, top_k=_ALONE_DEPTH, mode=leg))
        if any(chunk.path == path for chunk in openly.chunks):
            return False
        alone = await self._search(query, [path], leg, 1)
        if not alone.chunks:
            return True
        whole = len(openly.chunks) == _ALONE_DEPTH
        return not whole or alone.chunks[0].score > openly.chunks[-1].score + _SCORE_TOLERANCE

    async def finds_nonsense(self) -> bool:
        """Whether a keyword search finds a word that was made up just now."""
        word = f"zq{secrets.token_hex(12)}"
        request = SearchRequest(query=word, top_k=1, mode=self._keyword or Mode.BM25)
        return bool((await self._own(request)).chunks)

    async def prove(self, paths: Sequence[str]) -> int:
        """Prove these documents; returns how many hold a word to search for.

        Raises:
            DaemonError: `not_searchable`, naming some that were not found.
        """
        work = [self._missing(batch, leg) for leg in self.legs for batch in self._cut(paths)]
        tasks = [asyncio.create_task(each) for each in work]
        try:
            missing = [path for found in await asyncio.gather(*tasks) for path in found]
        finally:
            # After the first failure nothing more is asked.
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
        proven = len(set(paths) - self._blank)
        if missing:
            raise _not_searchable(missing, proven)
        return proven

    def _cut(self, paths: Iterable[str]) -> Iterator[list[str]]:
        """Batches whose chunks all fit into one response."""
        batch: list[str] = []
        chunks = 0
        size = _BATCH if self._filters else 1
        for path in paths:
            more = self._documents.chunk_count(path)
            if batch and (len(batch) == size or chunks + more > DEEPEST):
                yield batch
                batch, chunks = [], 0
            batch.append(path)
            chunks += more
        if batch:
            yield batch

    async def _missing(self, batch: list[str], leg: Mode) -> list[str]:
        """Those of a batch that a query for their words does not bring back."""
        async with self._in_flight:
            texts = {path: searchable_text(self._documents.document(path)) for path in batch}
            words = {
                path: self._words.draw(text, 1) if self._documents.chunk_count(path) else []
                for path, text in texts.items()
            }
            self._blank.update(path for path in batch if not words[path])
            missing = {path for path in batch if words[path]}
            if self._filters and len(missing) > 1:
                query = " ".join(word for path in batch for word in words[path])
                missing -= await self._found(query, sorted(missing), leg)
            # A single word may be cut otherwise by a daemon; several in a row are not.
            for attempt in range(_ATTEMPTS):
                for path in sorted(missing):
                    last = attempt + 1 == _ATTEMPTS
                    several = self._words.draw(texts[path], _WORDS_ALONE)
                    query = long_query(texts[path]) if last else " ".join(several)
                    # Without a filter, equal documents stand before it.
                    depth = DEEPEST if last and not self._filters else _ALONE_DEPTH
                    if path in await self._found(query, [path], leg, depth):
                        missing.discard(path)
            return sorted(missing)

    async def _found(
        self, query: str, paths: list[str], leg: Mode, depth: int = _ALONE_DEPTH
    ) -> set[str]:
        """Which of these documents come back, in a vector mode with all of their chunks."""
        wanted = Counter({path: self._documents.chunk_count(path) for path in paths})
        top_k = min(max(wanted.total(), 1), DEEPEST)
        answer = await self._search(query, paths, leg, top_k, depth)
        found = Counter(chunk.path for chunk in answer.chunks)
        ranks_all = answer.trace.effective_mode is Mode.SEMANTIC and top_k == wanted.total()
        if self._filters and ranks_all:
            return {path for path in paths if found[path] == wanted[path]}
        return {path for path in paths if found[path]}

    async def _search(
        self, query: str, paths: list[str], leg: Mode, top_k: int, depth: int = _ALONE_DEPTH
    ) -> SearchResponse:
        if not self._filters:
            # Then the document must be among the best of all.
            request = SearchRequest(query=query, top_k=max(top_k, depth), mode=leg)
            return await self._own(request)
        request = SearchRequest(query=query, top_k=top_k, mode=leg, filters=Filters(paths=paths))
        answer = await self._own(request)
        outside = next((c.path for c in answer.chunks if c.path not in paths), None)
        if outside is not None:
            raise ContractViolatedError(
                "filter_ignored", f"{outside} was retrieved, which the filter leaves out"
            )
        return answer

    async def _own(self, request: SearchRequest) -> SearchResponse:
        answer, _ = await self._client.search(self._brain, request)
        self._documents.require_own(answer.chunks)
        return answer


def _not_searchable(missing: Sequence[str], of: int) -> DaemonError:
    names = ", ".join(missing[:_SHOWN]) + (", …" if len(missing) > _SHOWN else "")
    return DaemonError(
        f"{len(missing)} of {of} documents were ingested, and a search for their own words does not"
        f" find them: {names}",
        code="not_searchable",
        hint="an ingest that answered 200 must be found by the very next search",
    )


async def honours_filters(client: ContractClient, brain: str, query: str, mode: Mode) -> bool:
    """Whether a filter by paths has an effect: a path that there is not must leave nothing.

    A daemon may refuse filters; that it may not ignore them is for its conformance to show.

    Raises:
        CallError: where it does not answer.
    """
    nowhere = f"nowhere/{secrets.token_hex(8)}.md"
    try:
        request = SearchRequest(query=query, top_k=1, mode=mode, filters=Filters(paths=[nowhere]))
        answer, _ = await client.search(brain, request)
    except DaemonFailedError as error:
        if error.code != "http_400":
            raise
        return False
    return not answer.chunks


def first_query(documents: IngestedDocuments) -> str:
    """Words of the first document that has any; empty where none has."""
    texts = map(searchable_text, documents.documents())
    return next((query for query in map(long_query, texts) if terms(query)), "")


async def find_legs(
    client: ContractClient,
    counts: Brain,
    query: str,
    modes: Iterable[Mode],
    claimed: Sequence[Mode] | None,
) -> Legs:
    """The modes to prove an index in: of a fused one its legs, which a fusion would hide.

    A document that only one leg finds is ranked by a fused search all the same, and lower.

    Raises:
        CallError: where a mode is not served.
        DaemonError: where chunks lack the vectors that a search by them would need.
    """
    legs: dict[Mode, Mode] = {}
    for mode in modes:
        effective = await _served(client, counts, query, mode)
        apart = (Mode.BM25, Mode.SEMANTIC) if effective in _FUSED else (effective,)
        found = [
            leg
            for leg in apart
            if (claimed is None or leg in claimed) and await _serves(client, counts, query, leg)
        ]
        legs |= {leg: leg for leg in found} or {mode: effective}
    keyword = next((mode for mode, served in legs.items() if served is Mode.BM25), None)
    return Legs(tuple(legs), keyword)


async def _serves(client: ContractClient, counts: Brain, query: str, mode: Mode) -> bool:
    try:
        return await _served(client, counts, query, mode) is mode
    except DaemonFailedError as error:
        # A mode that was not asked for may be refused; any other failure is one of the proof.
        if error.code != "http_400":
            raise
        return False


async def _served(client: ContractClient, counts: Brain, query: str, mode: Mode) -> Mode:
    """The mode in which a query is served."""
    answer, _ = await client.search(counts.brain_id, SearchRequest(query=query, top_k=1, mode=mode))
    if answer.trace.embedder_used and counts.vectors != counts.chunks:
        raise DaemonError(
            f"a search used the embedder, and {counts.vectors} of {counts.chunks} chunks have a"
            " vector",
            code="index_incomplete",
            hint="nothing was asked, since a half-filled brain would look like a bad one",
        )
    return answer.trace.effective_mode
