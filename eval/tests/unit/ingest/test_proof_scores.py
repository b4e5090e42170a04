"""The proof assumes nothing of scores but the order of one response.

Complete daemons are always proven, however they score, draw, filter and reorder candidates; one
that has lost a single document never is.
"""

import math
import random
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memconform.client.client import ContractClient
from memconform.client.timings import Timings
from memconform.contract.core import Chunk, SearchRequest, SearchResponse, Trace, ranking_fault
from memconform.contract.terms import terms
from memconform.contract.wire import Mode, RankBy
from memconform.errors import DaemonError
from memconform.ingest.documents import Document
from memconform.ingest.ingested import IngestedDocuments
from memconform.ingest.proof import IndexProver
from memconform.ingest.provable_modes import Legs

Scores = Sequence[float]

_SCORES: dict[str, Callable[[Scores], Scores]] = {
    "relevance": lambda found: found,
    "rank": lambda found: [1 / (60 + rank) for rank in range(1, len(found) + 1)],
    "min-max": lambda found: [
        (x - found[-1]) / (found[0] - found[-1]) if found[0] > found[-1] else 1.0 for x in found
    ],
    "log": lambda found: [math.log(x + 1e-9) for x in found],
    "constant": lambda found: [1.0] * len(found),
    "negative": lambda found: [x - 1e3 for x in found],
    "share of the response": lambda found: [x / (sum(found) or 1) for x in found],
    "rising": lambda found: [float(rank) for rank in range(len(found))],
}
_ORDERS: dict[str, Callable[[list[str]], list[str]]] = {
    "by score": lambda paths: paths,
    "by path": sorted,
    "worst first": lambda paths: paths[::-1],
    "at random": lambda paths: random.Random(len(paths)).sample(paths, len(paths)),
}


@dataclass(frozen=True)
class _Style:
    """How a daemon ranks."""

    scores: str = "relevance"
    order: str = "by score"
    """In which order the chunks of a response come, whatever their scores."""
    pool: int | None = None
    """Candidates that a leg draws, whatever was requested."""
    filters: Literal["before the pool", "after ten pools"] = "before the pool"
    filtered_statistics: bool = False
    """Whether the rarity of words is that among the documents that the filter leaves."""
    unique: bool = False
    """Whether equal texts are returned once."""
    threshold: float = 0.0
    """The share of the best score below which nothing is returned."""


@dataclass(frozen=True)
class _Loss:
    """Where one document is missing."""

    path: str
    legs: tuple[Mode, ...] = (Mode.BM25, Mode.SEMANTIC, Mode.HYBRID)
    only_unfiltered: bool = False

    def hides(self, path: str, leg: Mode, *, filtered: bool) -> bool:
        return path == self.path and leg in self.legs and not (self.only_unfiltered and filtered)


class _Daemon(ContractClient):
    """A daemon behind the client's interface, without a wire."""

    def __init__(self, texts: dict[str, str], style: _Style, loss: _Loss | None = None) -> None:
        super().__init__("http://127.0.0.1:9")
        self._words = {path: Counter(terms(text)) for path, text in texts.items()}
        self._texts, self._style, self._loss = texts, style, loss

    async def search(
        self,
        brain_id: str,  # noqa: ARG002 - the client's interface
        request: SearchRequest,
        *,
        rank_by: RankBy | None = None,
    ) -> tuple[SearchResponse, Timings]:
        assert rank_by == "position"
        ranked = self._ranked(request)[: request.top_k]
        order = _ORDERS[self._style.order]([path for path, _ in ranked])
        scores = _SCORES[self._style.scores]([score for _, score in ranked])
        chunks = [
            Chunk(chunk_id=path, document_id=path, path=path, score=score, text=self._texts[path])
            for path, score in zip(order, scores, strict=True)
        ]
        assert ranking_fault(chunks, request.top_k, ranks_all=False, rank_by=rank_by) is None
        vectors = request.mode is not Mode.BM25
        trace = Trace(
            requested_mode=request.mode, effective_mode=request.mode, embedder_used=vectors,
            reranked=False, fell_back_to_bm25=False, candidate_k=60, search_ms=0.0,
        )  # fmt: skip
        return SearchResponse(chunks=chunks, took_ms=0.0, trace=trace), Timings(0.0, 0.0)

    def _ranked(self, request: SearchRequest) -> list[tuple[str, float]]:
        legs = (Mode.BM25, Mode.SEMANTIC) if request.mode is Mode.HYBRID else (request.mode,)
        lists = [self._leg(request, leg) for leg in legs]
        if len(lists) == 1:
            [ranked] = lists
        else:
            fused: Counter[str] = Counter()
            for found in lists:
                fused.update({path: 1 / (61 + rank) for rank, (path, _) in enumerate(found)})
            ranked = _sorted(fused)
        if self._style.unique:
            first = {self._texts[path]: path for path, _ in reversed(ranked)}
            ranked = [hit for hit in ranked if first[self._texts[hit[0]]] == hit[0]]
        best = ranked[0][1] if ranked else 0.0
        return [hit for hit in ranked if hit[1] >= self._style.threshold * best]

    def _leg(self, request: SearchRequest, leg: Mode) -> list[tuple[str, float]]:
        style = self._style
        wanted = request.filters.paths if request.filters else None
        filtered = wanted is not None
        visible = [
            path
            for path in self._words
            if self._loss is None or not self._loss.hides(path, leg, filtered=filtered)
        ]
        allowed = visible if wanted is None else [path for path in visible if path in wanted]
        drawn = allowed if style.filters == "before the pool" else visible
        counted = allowed if style.filtered_statistics else list(self._words)
        ranked = self._relevance(request.query, drawn, counted, leg)
        pools = 10 if filtered and style.filters == "after ten pools" else 1
        ranked = ranked[: style.pool and style.pool * pools]
        return [hit for hit in ranked if hit[0] in allowed][: style.pool]

    def _relevance(
        self, query: str, drawn: list[str], counted: list[str], leg: Mode
    ) -> list[tuple[str, float]]:
        asked = Counter(terms(query))
        if leg is Mode.SEMANTIC:
            similar = {path: _cosine(asked, self._words[path]) for path in drawn}
            return _sorted(Counter(similar))
        frequency = Counter(word for path in counted for word in self._words[path])
        scores = {
            path: sum(
                math.log(1 + len(counted) / (frequency[word] or 1)) * count / (count + 1)
                for word, count in self._words[path].items()
                if word in asked
            )
            for path in drawn
        }
        return [hit for hit in _sorted(Counter(scores)) if hit[1] > 0]


def _sorted(scores: Counter[str]) -> list[tuple[str, float]]:
    return sorted(scores.items(), key=lambda hit: (-hit[1], hit[0]))


def _cosine(a: Counter[str], b: Counter[str]) -> float:
    shared = sum(count * b[word] for word, count in a.items())
    return shared / math.sqrt(sum(n * n for n in a.values()) * sum(n * n for n in b.values()))


def _corpus(rng: random.Random, size: int) -> dict[str, str]:
    """Texts of common words and a few of their own; some twice, and some all but twice."""
    common = [f"common{n}" for n in range(30)]
    texts: dict[str, str] = {}
    for n in range(size):
        own = [f"own{n}x{k}" for k in range(rng.randint(3, 12))]
        shared = rng.choices(common, weights=range(30, 0, -1), k=rng.randint(0, 25))
        words = [*own, *shared]
        rng.shuffle(words)
        texts[f"raw/{n}.md"] = " ".join(words)
    for n in range(size // 10):
        twin = rng.choice(list(texts.values()))
        texts[f"raw/twin{n}.md"] = twin + rng.choice(["", "", f" again{n}"])
    return texts


async def _prove(
    texts: dict[str, str],
    style: _Style,
    legs: tuple[Mode, ...],
    loss: _Loss | None = None,
    *,
    counted: bool = False,
) -> None:
    """Prove a daemon as a seeding and the verification of a failed question do."""
    with IngestedDocuments() as documents:
        for path, text in texts.items():
            documents.add(Document(path, text.encode(), "text/plain"), None)
        keyword = Mode.BM25 if Mode.BM25 in legs else None
        prover = IndexProver(
            _Daemon(texts, style, loss), "b", documents, Legs(legs, keyword),
            filters=True, counted=counted,
        )  # fmt: skip
        await prover.prove_all()
        await prover.prove_unfiltered(texts if loss is None else [loss.path])


_LEGS = [(Mode.BM25, Mode.SEMANTIC), (Mode.HYBRID,)]
_STYLES = st.builds(
    _Style,
    scores=st.sampled_from(list(_SCORES)),
    order=st.sampled_from(list(_ORDERS)),
    pool=st.sampled_from([None, 20, 60]),
    filters=st.sampled_from(["before the pool", "after ten pools"]),
    filtered_statistics=st.booleans(),
    unique=st.booleans(),
    threshold=st.sampled_from([0.0, 0.3]),
)


@settings(max_examples=60)
@given(
    style=_STYLES,
    legs=st.sampled_from(_LEGS),
    size=st.integers(1, 90),
    seed=st.integers(),
    counted=st.booleans(),
)
async def test_a_complete_daemon_is_proven_however_it_scores(
    style: _Style, legs: tuple[Mode, ...], size: int, seed: int, *, counted: bool
) -> None:
    # Who counts documents does not return equal texts only once.
    counted = counted and not style.unique
    await _prove(_corpus(random.Random(seed), size), style, legs, counted=counted)


def _losses(path: str, legs: tuple[Mode, ...]) -> Iterator[_Loss]:
    yield _Loss(path)
    yield _Loss(path, only_unfiltered=True)
    if len(legs) > 1:
        for leg in legs:
            yield _Loss(path, (leg,))
            yield _Loss(path, (leg,), only_unfiltered=True)


@settings(max_examples=60)
@given(
    style=_STYLES,
    legs=st.sampled_from(_LEGS),
    size=st.integers(2, 90),
    seed=st.integers(),
    counted=st.booleans(),
)
async def test_a_daemon_that_lost_one_document_is_never_proven(
    style: _Style, legs: tuple[Mode, ...], size: int, seed: int, *, counted: bool
) -> None:
    rng = random.Random(seed)
    texts = _corpus(rng, size)
    times = Counter(texts.values())
    lost = rng.choice([path for path, text in texts.items() if times[text] == 1])
    for loss in _losses(lost, legs):
        with pytest.raises(DaemonError, match=r"own words") as caught:
            await _prove(texts, style, legs, loss, counted=counted and not style.unique)
        assert caught.value.code == "not_searchable"


async def test_reciprocal_ranks_are_no_reason_to_call_a_document_lost() -> None:
    """A hit of a filter has rank 1 and outscored the 50th of a ranking without one (issue 35)."""
    texts = _corpus(random.Random(1), 137)
    await _prove(texts, _Style(scores="rank", pool=60), (Mode.BM25, Mode.SEMANTIC))
    await _prove(texts, _Style(scores="rank", pool=60, filters="after ten pools"), (Mode.HYBRID,))


async def test_a_text_that_many_documents_share_crowds_out_none() -> None:
    texts = {f"raw/{n}.md": "thanks a lot for all of it" for n in range(200)}
    for style in (_Style(scores="rank", pool=60), _Style(unique=True), _Style(order="at random")):
        await _prove(texts, style, (Mode.BM25, Mode.SEMANTIC))
