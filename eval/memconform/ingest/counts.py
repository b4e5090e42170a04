"""Compares what a brain counts with what was sent to it."""

from memconform.client.client import ContractClient
from memconform.contract.core import Brain
from memconform.contract.terms import terms
from memconform.errors import DaemonError
from memconform.ingest.indexing_time import IndexingTime, StillPendingError
from memconform.ingest.ingested import IngestedDocuments
from memconform.ingest.probe_queries import searchable_text
from memconform.ingest.provable_modes import INCOMPLETE_HINT

_POLL_SECONDS = 0.1


async def wait_until_indexed(
    client: ContractClient, brain: str, indexing: IndexingTime | None = None
) -> Brain:
    """Wait until no document is pending, if the daemon says so; returns the brain's counts.

    Raises:
        CallError: if the daemon does not answer.
        StillPendingError: `index_incomplete` if documents are still pending when the time for
            indexing, or the client's gap timeout, is over.
    """
    indexing = indexing or IndexingTime(client.timeouts.gap)
    while (counts := await client.brain(brain)).pending:
        if indexing.is_over:
            raise StillPendingError(
                f"{counts.pending} documents of brain {brain!r} are still pending after"
                f" {indexing.seconds:g} s",
                code="index_incomplete",
                hint=INCOMPLETE_HINT,
            )
        await indexing.clock.sleep(_POLL_SECONDS)
    return counts


def require_acknowledged(ingested: IngestedDocuments) -> None:
    """Raise DaemonError (`index_incomplete`) for words that were acknowledged with no chunks."""
    for path in ingested.paths:
        # A file name that begins with `_` is stored but not indexed (core.ingest.hidden).
        if ingested.chunk_count(path) != 0 or path.rpartition("/")[2].startswith("_"):
            continue
        if terms(searchable_text(ingested.document(path))):
            raise incomplete(f"{path} contains words but was acknowledged with no chunks")


def require_counts(counts: Brain, ingested: IngestedDocuments) -> None:
    """Raise DaemonError (`index_incomplete`) for counts of other documents than were ingested."""
    if counts.documents not in (None, len(ingested)):
        raise incomplete(
            f"{len(ingested)} documents were sent, but the brain counts {counts.documents}"
        )
    chunk_counts = [ingested.chunk_count(path) for path in ingested.paths]
    if counts.chunks is None or None in chunk_counts:
        return
    chunks = sum(count or 0 for count in chunk_counts)
    if counts.chunks != chunks:
        raise incomplete(f"{chunks} chunks were acknowledged, but the brain counts {counts.chunks}")


def incomplete(message: str) -> DaemonError:
    """The error of an index that lacks a part of what was sent."""
    return DaemonError(message, code="index_incomplete", hint=INCOMPLETE_HINT)
