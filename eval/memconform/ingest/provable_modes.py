"""Finds out in which modes an index can be proven, and whether a daemon honours filters."""

import secrets
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from memconform.client.client import ContractClient
from memconform.client.failures import ContractViolatedError, DaemonFailedError
from memconform.contract.core import Brain, Filters, SearchRequest, Trace
from memconform.contract.terms import terms
from memconform.contract.wire import Mode
from memconform.errors import DaemonError
from memconform.ingest.ingested import IngestedDocuments
from memconform.ingest.probe_queries import long_query, searchable_text

_FUSED = (Mode.HYBRID, Mode.HYBRID_RERANK, Mode.CONVERSATION)
"""Modes whose legs are searched instead, as far as they are served."""

_WORDS_EACH = 100
"""Words of each of two documents in one query, of which a daemon must use 256."""

TURNS_HINT = "ingest turns of conversations: documents with metadata.session_id"
"""What to try where the mode conversation is served as another (core.mode.served)."""

INCOMPLETE_HINT = (
    "index every acknowledged document whole, and count it (core.brain.counts, core.ingest.batch);"
    " memconform conform --case 'brain-counts*' --case 'ingest-*' shows the call that differs"
)
"""What to try for `index_incomplete`."""


@dataclass(frozen=True, slots=True)
class Legs:
    """The modes in which an index is proven."""

    modes: tuple[Mode, ...]
    keyword: Mode | None
    """The mode that searches by keywords, whatever its name; None if there is none."""
    auto: Mode | None = None
    """What `auto` stands for; None if it was not tried, or no trace confirms it."""


async def honours_filters(
    client: ContractClient, brain: str, documents: IngestedDocuments, mode: Mode
) -> bool:
    """Whether a filter by paths has an effect: of two documents that match, it excludes the first.

    A single document must be excluded by a nonexistent path. With two, something is found: one
    daemon was seen to deny that it used an embedder where its vectors found nothing. A daemon may
    refuse filters. Ignoring them violates the contract, which the conformance suite reports.

    Raises:
        CallError: if the daemon does not answer.
    """
    queries = matching_queries(documents)
    _, query = next(queries)
    path, words = next(queries, (f"nowhere/{secrets.token_hex(8)}.md", ""))
    # Words alone, because quotes and operators may exclude a document.
    both = " ".join(terms(query)[:_WORDS_EACH] + terms(words)[:_WORDS_EACH])
    request = SearchRequest(query=both, top_k=10, mode=mode, filters=Filters(paths=[path]))
    try:
        answer, _ = await client.search(brain, request, rank_by="position")
    except DaemonFailedError as error:
        if error.code != "http_400":
            raise
        return False
    return {chunk.path for chunk in answer.chunks} == ({path} if words else set())


def matching_queries(documents: IngestedDocuments) -> Iterator[tuple[str, str]]:
    """Yield the path of each document that has any words, and a query of them."""
    for document in documents.documents():
        query = long_query(searchable_text(document))
        if terms(query):
            yield document.path, query


async def find_legs(
    client: ContractClient,
    counts: Brain,
    query: str,
    modes: Iterable[Mode],
    claimed: Sequence[Mode] | None,
    *,
    settled: bool = False,
) -> Legs:
    """Determine the modes in which to prove an index: for a fused mode, its legs.

    Fusion would hide a missing document: one that only a single leg finds is still ranked, but
    lower. With `settled`, each mode must be served as itself, and with auto also hybrid if that is
    claimed: a daemon that embeds in the background serves other modes until it has finished.

    Raises:
        CallError: if a mode is not served.
        DaemonError: `index_incomplete` if a search uses vectors that some chunks lack, or if a mode
            is not `settled`.
    """
    legs: dict[Mode, Mode | None] = {}
    auto = None
    for mode in modes:
        lacks_hybrid = False
        if mode in (Mode.AUTO, Mode.CONVERSATION) and Mode.HYBRID in (claimed or ()):
            # First: without vectors, or before they are there, bm25 is no choice of the daemon.
            fused = await _effective_mode(client, counts, query, Mode.HYBRID)
            lacks_hybrid = fused not in (None, Mode.HYBRID)
            if settled:
                _require_settled(Mode.HYBRID, fused)
        effective = await _effective_mode(client, counts, query, mode)
        if settled:
            _require_settled(mode, effective)
        if effective is Mode.CONVERSATION and (claimed is None or Mode.AUTO in claimed):
            await _require_same_vectors(client, counts, query)
        if mode is Mode.AUTO:
            auto = Mode.HYBRID if lacks_hybrid else effective
        # A mode that no trace confirms is proven as it was requested.
        candidates = (Mode.BM25, Mode.SEMANTIC) if effective in _FUSED else (effective or mode,)
        available = [
            leg
            for leg in candidates
            # A fused mode that is served without a claim is proven in every leg that it may have.
            if (claimed is None or effective not in claimed or leg in claimed)
            and await _serves(client, counts, query, leg, claimed)
        ]
        if not available:
            legs[mode] = effective
        legs |= dict[Mode, Mode | None](zip(available, available, strict=True))
    keyword = next((mode for mode, served in legs.items() if served is Mode.BM25), None)
    return Legs(tuple(legs), keyword, auto)


def _require_settled(mode: Mode, served: Mode | None) -> None:
    if served is None or mode in (Mode.AUTO, served):
        return
    if mode is Mode.CONVERSATION:
        raise DaemonError(
            f"mode conversation is served as {served.value}, as if there were no turns",
            code="mode_not_served",
            hint=f"{TURNS_HINT}; or measure with --mode {served.value}",
        )
    raise DaemonError(
        f"mode {mode.value} is still served as {served.value}",
        code="index_incomplete",
        hint=f"measure with --mode {served.value}; or fix what {mode.value} needs, such"
        " as the embedder's address, and see the daemon's log",
    )


async def _require_same_vectors(client: ContractClient, counts: Brain, query: str) -> None:
    """Raise DaemonError unless conversation compares vectors exactly where auto does.

    Its name is the same with and without them (core.rank.conversation), its ranking is not.
    """
    used = [
        (await _trace(client, counts, query, mode)).embedder_used
        for mode in (Mode.CONVERSATION, Mode.AUTO)
    ]
    if None not in used and used[0] != used[1]:
        raise DaemonError(
            f"embedderUsed is {used[0]} in mode conversation and {used[1]} in mode auto",
            code="index_incomplete",
            hint="conversation must compare vectors where auto is hybrid (core.rank.conversation)",
        )


async def _serves(
    client: ContractClient,
    counts: Brain,
    query: str,
    mode: Mode,
    claimed: Sequence[Mode] | None,
) -> bool:
    try:
        return await _effective_mode(client, counts, query, mode) is mode
    except DaemonFailedError as error:
        # A mode that was not requested may be refused; any other failure fails the proof.
        if error.code != "http_400":
            raise
        return False
    except ContractViolatedError as error:
        # Nor is one that is not claimed, and whose trace denies it.
        if error.code != "bad_trace" or claimed is None or mode in claimed:
            raise
        return False


async def _effective_mode(
    client: ContractClient, counts: Brain, query: str, mode: Mode
) -> Mode | None:
    """The mode in which the daemon serves a query; None if no trace confirms it."""
    return (await _trace(client, counts, query, mode)).effective_mode


async def _trace(client: ContractClient, counts: Brain, query: str, mode: Mode) -> Trace:
    answer, _ = await client.search(counts.brain_id, SearchRequest(query=query, top_k=1, mode=mode))
    is_counted = None not in (counts.vectors, counts.chunks)
    if answer.trace.embedder_used and is_counted and counts.vectors != counts.chunks:
        raise DaemonError(
            f"a search used the embedder, but only {counts.vectors} of {counts.chunks} chunks have"
            " a vector",
            code="index_incomplete",
            hint=INCOMPLETE_HINT,
        )
    return answer.trace
