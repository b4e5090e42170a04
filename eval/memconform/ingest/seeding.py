"""Filling a brain, and proving that what went in can be found."""

import asyncio
import base64
import secrets
import time
from collections.abc import AsyncIterator, Iterable, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from itertools import chain

from memconform.client.client import ContractClient
from memconform.client.failures import CallError
from memconform.contract.core import Brain, Ingested, IngestFile
from memconform.contract.terms import terms
from memconform.contract.wire import Mode
from memconform.daemons.runner import SdkRunner
from memconform.errors import DaemonError, UsageError
from memconform.ingest.documents import Corpus, Document
from memconform.ingest.ingested import IngestedDocuments
from memconform.ingest.probing import searchable_text
from memconform.ingest.proof import IndexProver, find_legs, first_query, honours_filters
from memconform.ingest.records import SeedRecord
from memconform.printing.logs import Logger

_log = Logger()

_BATCH_DOCUMENTS = 256
_BATCH_BYTES = 4 * 2**20


@dataclass(frozen=True, slots=True)
class Seeded:
    """A brain that was filled, and proven to hold what went in."""

    record: SeedRecord
    counts: Brain
    """As the brain was once nothing was pending."""
    documents: IngestedDocuments
    prover: IndexProver


def require_own_brain(runner: SdkRunner, brain: str, *, allowed: bool) -> None:
    """Raises UsageError where recreating `brain` could destroy what is not ours."""
    if not (runner.managed or allowed or brain.startswith("mc-")):
        raise UsageError(
            f"seeding empties the brain {brain!r} of a daemon that the harness did not start",
            code="foreign_brain",
            hint="use --brain mc-…, or --i-own-this-brain if its content may go",
        )


@asynccontextmanager
async def seeded_brain(
    client: ContractClient,
    runner: SdkRunner,
    brain: str,
    corpus: Corpus,
    modes: Iterable[Mode],
) -> AsyncIterator[Seeded]:
    """Recreate `brain`, ingest a corpus of one document at least, and prove that `modes` find each.

    Raises:
        UsageError: where the documents cannot be read, or hold nothing to search for.
        DaemonError: where the daemon refuses, miscounts or does not find what it took in. A
            corpus that is only half there would show up as a low score.
    """
    # What is wrong with the source shows at its first document, before anything is deleted.
    documents = iter(corpus.documents())
    documents = chain([next(documents)], documents)
    with IngestedDocuments() as ingested:
        yield await _seed(client, runner, brain, documents, ingested, list(modes))


async def _seed(  # noqa: PLR0917 - as its caller
    client: ContractClient,
    runner: SdkRunner,
    brain: str,
    documents: Iterable[Document],
    ingested: IngestedDocuments,
    modes: list[Mode],
) -> Seeded:
    lease = f"leased by memconform, {secrets.token_hex(8)}"
    took = 0.0
    try:
        await client.delete_brain(brain)
        await client.create_brain(brain, description=lease)
        for batch in _batches(documents):
            started = time.perf_counter()
            answers = await _ingest(client, runner, brain, batch)
            took += time.perf_counter() - started
            for document, answer in zip(batch, answers, strict=True):
                ingested.add(document, answer)
            _log.debug("documents ingested", brain=brain, documents=len(ingested))
        started = time.perf_counter()
        counts = await settled(client, brain)
        took += time.perf_counter() - started
        _require_counts(counts, ingested)
        query = first_query(ingested)
        if not query:
            raise UsageError(
                "no document that went in holds a word to search for",
                code="nothing_searchable",
                hint="documents are UTF-8 text; every question would be answered from nothing",
            )
        legs = await find_legs(client, counts, query, modes, runner.modes)
        filters = await honours_filters(client, brain, query, legs.modes[0])
        prover = IndexProver(client, brain, ingested, legs, filters=filters)
        proof = await prover.prove_all()
    except CallError as error:
        raise DaemonError(
            f"seeding brain {brain!r} failed: {error.message}",
            code="seed_failed",
            hint="nothing was asked, since the corpus is not complete",
            excerpt=error.body,
        ) from error
    record = SeedRecord(
        documents=counts.documents,
        chunks=counts.chunks,
        vectors=counts.vectors,
        took_ms=took * 1e3,
        proof=proof,
        leased=counts.description == lease,
    )
    return Seeded(record, counts, ingested, prover)


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
) -> list[Ingested]:
    """Send the batch as the daemon likes it; what it acknowledged of each document."""
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
        _require_same_document(document, answer)
    return answers


def _require_same_document(document: Document, answer: Ingested) -> None:
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


def _require_counts(counts: Brain, ingested: IngestedDocuments) -> None:
    if counts.documents != len(ingested):
        raise _incomplete(f"{len(ingested)} documents went in, the brain counts {counts.documents}")
    chunks = sum(map(ingested.chunk_count, ingested.paths))
    for path in ingested.paths:
        # A base name that begins with `_` is stored and not indexed (core.ingest.hidden).
        if ingested.chunk_count(path) or path.rpartition("/")[2].startswith("_"):
            continue
        if terms(searchable_text(ingested.document(path))):
            raise _incomplete(f"{path} holds words, and was acknowledged with no chunk")
    if counts.chunks != chunks:
        raise _incomplete(f"{chunks} chunks were acknowledged, the brain counts {counts.chunks}")


def _incomplete(message: str) -> DaemonError:
    return DaemonError(
        message,
        code="index_incomplete",
        hint="nothing was asked, since a half-filled brain would look like a bad one",
    )
