"""Filling a brain, and proving that what went in can be found."""

import asyncio
import base64
import re
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain

import structlog

from memconform.client.client import ContractClient
from memconform.client.failures import CallError, DaemonFailedError
from memconform.contract.core import Brain, Filters, Ingested, IngestFile, SearchRequest
from memconform.contract.wire import Mode
from memconform.daemons.runner import SdkRunner
from memconform.errors import DaemonError, UsageError
from memconform.runs.corpus import Document
from memconform.runs.results import SeedRecord

_log = structlog.get_logger()

_BATCH_DOCUMENTS = 256
_BATCH_BYTES = 4 * 2**20
_PROBES = 8
_PROBE_CHARACTERS = 1_000
_PROBE_DEPTH = 50
_WORD = re.compile(r"[^\W_]{2,}")


@dataclass(frozen=True, slots=True)
class Seeded:
    """A brain that was filled, and proven to hold what went in."""

    record: SeedRecord
    chunk_counts: dict[str, int]
    """Of each path."""


def refuse_foreign_brain(runner: SdkRunner, brain: str, *, allowed: bool) -> None:
    """Raises UsageError where recreating `brain` could destroy what is not ours."""
    if not (runner.owned or allowed or brain.startswith("mc-")):
        raise UsageError(
            f"seeding empties the brain {brain!r} of a daemon that the harness did not start",
            code="foreign_brain",
            hint="use --brain mc-…, or --i-own-this-brain if its content may go",
        )


async def seed(
    client: ContractClient,
    runner: SdkRunner,
    brain: str,
    documents: Iterable[Document],
    modes: Iterable[Mode],
) -> Seeded:
    """Recreate `brain`, ingest `documents` (one at least), and prove that `modes` find them.

    Raises:
        UsageError: where the documents cannot be read, or hold nothing to search for.
        DaemonError: where the daemon refuses, miscounts or does not find what it took in. A
            corpus that is only half there would show up as a low score.
    """
    # What is wrong with the source shows at its first document, before anything is deleted.
    documents = iter(documents)
    documents = chain([next(documents)], documents)
    probes: list[Document] = []
    chunk_counts: dict[str, int] = {}
    count, took = 0, 0.0
    try:
        await client.delete_brain(brain)
        await client.create_brain(brain)
        for batch in _batches(documents):
            started = time.perf_counter()
            chunk_counts |= await _ingest(client, runner, brain, batch)
            took += time.perf_counter() - started
            count += len(batch)
            _log.debug("documents ingested", brain=brain, documents=count)
            _keep_probes(probes, batch)
        started = time.perf_counter()
        counts = await settled(client, brain)
        took += time.perf_counter() - started
        _refuse_miscount(counts, documents=count, chunks=sum(chunk_counts.values()))
        if not probes:
            raise UsageError(
                "no document that went in holds a word to search for",
                code="nothing_searchable",
                hint="documents are UTF-8 text; every question would be answered from nothing",
            )
        for document in probes[:: max(1, len(probes) // _PROBES)]:
            for mode in modes:
                await _probe(client, counts, document, mode)
    except CallError as error:
        raise DaemonError(
            f"seeding brain {brain!r} failed: {error.message}",
            code="seed_failed",
            hint="nothing was asked, since the corpus is not complete",
            excerpt=error.body,
        ) from error
    record = SeedRecord(
        documents=counts.documents, chunks=counts.chunks, vectors=counts.vectors, took_ms=took * 1e3
    )
    return Seeded(record, chunk_counts)


async def refuse_changed(client: ContractClient, brain: str, seeded: SeedRecord) -> None:
    """Raises DaemonError where the brain is no longer the one that was seeded.

    Somebody else may have emptied or filled it while it was asked, and the answers are then
    about another corpus.
    """
    try:
        counts = await client.brain(brain)
    except CallError as error:
        raise _changed(brain, error.message) from error
    now = (counts.documents, counts.chunks, counts.vectors)
    if now != (seeded.documents, seeded.chunks, seeded.vectors):
        was = f"{seeded.documents} documents, {seeded.chunks} chunks, {seeded.vectors} vectors"
        raise _changed(brain, f"{was} went in, now there are {now[0]}, {now[1]}, {now[2]}")


def _changed(brain: str, why: str) -> DaemonError:
    return DaemonError(
        f"brain {brain!r} changed while it was asked: {why}",
        code="brain_changed",
        hint="is another run using the same brain of the same daemon?",
    )


def _batches(documents: Iterable[Document]) -> Iterator[list[Document]]:
    batch: list[Document] = []
    size = 0
    for document in documents:
        too_much = size + len(document.content) > _BATCH_BYTES
        if batch and (too_much or len(batch) == _BATCH_DOCUMENTS):
            yield batch
            batch, size = [], 0
        batch.append(document)
        size += len(document.content)
    if batch:
        yield batch


async def _ingest(
    client: ContractClient, runner: SdkRunner, brain: str, batch: list[Document]
) -> dict[str, int]:
    """Send the batch as the daemon likes it; how many chunks each path was made into."""
    bodies = [
        IngestFile(
            path=document.path,
            content_type=document.content_type,
            content_base64=base64.b64encode(document.content).decode(),
            metadata=None if document.metadata is None else dict(document.metadata),
        )
        for document in batch
    ]
    if runner.seed_via == "batch":
        answers = (await client.ingest_batch(brain, bodies)).items
    else:
        answers = [await client.ingest_file(brain, body) for body in bodies]
    if len(answers) != len(batch):
        raise _incomplete(f"{len(batch)} documents were sent, {len(answers)} acknowledged")
    for document, answer in zip(batch, answers, strict=True):
        _refuse_other_document(document, answer)
    return {answer.path: answer.chunk_count for answer in answers}


def _refuse_other_document(document: Document, answer: Ingested) -> None:
    if (answer.path, answer.bytes) != (document.path, len(document.content)):
        raise _incomplete(
            f"{document.path} ({len(document.content)} bytes) was acknowledged as"
            f" {answer.path} ({answer.bytes} bytes)"
        )


async def settled(client: ContractClient, brain: str) -> Brain:
    """The brain's counts, once nothing is pending.

    Raises:
        DaemonError: where documents are still pending after the client's gap time limit.
    """
    patience = client.timeouts.gap
    end = time.monotonic() + patience
    while (counts := await client.brain(brain)).pending:
        if time.monotonic() > end:
            raise _incomplete(
                f"{counts.pending} documents of brain {brain!r} are still pending after"
                f" {patience:g} s"
            )
        await asyncio.sleep(0.1)
    return counts


def _refuse_miscount(counts: Brain, *, documents: int, chunks: int) -> None:
    if counts.documents != documents:
        raise _incomplete(f"{documents} documents went in, the brain counts {counts.documents}")
    if counts.chunks != chunks:
        raise _incomplete(f"{chunks} chunks were acknowledged, the brain counts {counts.chunks}")


def _keep_probes(probes: list[Document], batch: list[Document]) -> None:
    """Keep documents that a search can be made from, a few of each batch."""
    candidates = batch[:: max(1, len(batch) // _PROBES)]
    probes.extend(document for document in candidates if _probe_query(document))


def _probe_query(document: Document) -> str:
    """The end of a text document, behind any front matter; empty where it has no words."""
    try:
        text = document.content.decode()
    except UnicodeDecodeError:
        return ""
    if text.startswith("---"):
        text = text.rpartition("\n---")[2]
    return text[-_PROBE_CHARACTERS:] if _WORD.search(text[-_PROBE_CHARACTERS:]) else ""


async def _probe(client: ContractClient, counts: Brain, document: Document, mode: Mode) -> None:
    """Raises DaemonError unless searching for a document's own words brings it back."""
    request = SearchRequest(
        query=_probe_query(document),
        top_k=_PROBE_DEPTH,
        mode=mode,
        filters=Filters(paths=[document.path]),
    )
    try:
        answer, _ = await client.search(counts.brain_id, request)
    except DaemonFailedError as error:
        if error.code != "http_400":
            raise
        # A daemon may refuse a filter; then the document must be among the best of all.
        answer, _ = await client.search(
            counts.brain_id, request.model_copy(update={"filters": None})
        )
    if answer.trace.embedder_used and counts.vectors != counts.chunks:
        raise _incomplete(
            f"a search used the embedder, and {counts.vectors} of {counts.chunks} chunks have a"
            " vector"
        )
    if all(chunk.path != document.path for chunk in answer.chunks):
        raise DaemonError(
            f"{document.path} was ingested, but a search for its own words does not find it",
            code="not_searchable",
            hint="an ingest that answered 200 must be found by the very next search",
        )


def _incomplete(message: str) -> DaemonError:
    return DaemonError(
        message,
        code="index_incomplete",
        hint="nothing was asked, since a half-filled brain would look like a bad one",
    )
