"""Seeds a brain and proves that its documents can be found."""

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
from memconform.ingest.proof import (
    INCOMPLETE_HINT,
    IndexProver,
    find_legs,
    first_query,
    honours_filters,
)
from memconform.ingest.records import SeedRecord
from memconform.printing.logs import Logger

_log = Logger()

_BATCH_DOCUMENTS = 256
_BATCH_BYTES = 4 * 2**20


@dataclass(frozen=True, slots=True)
class SeededBrain:
    """A brain that was filled from a corpus and whose index was proven."""

    record: SeedRecord
    counts: Brain
    """The brain's counts once nothing was pending."""
    documents: IngestedDocuments
    prover: IndexProver


def require_own_brain(runner: SdkRunner, brain: str, *, allowed: bool) -> None:
    """Raise UsageError `foreign_brain` if recreating `brain` could destroy a user's data.

    Brains of managed daemons and brains named `mc-…` are the harness's own.
    """
    if not (runner.managed or allowed or brain.startswith("mc-")):
        raise UsageError(
            f"seeding would empty brain {brain!r} of a daemon that memconform did not start",
            code="foreign_brain",
            hint="use --brain mc-…, or --i-own-this-brain if its content may be lost",
        )


@asynccontextmanager
async def seeded_brain(
    client: ContractClient,
    runner: SdkRunner,
    brain: str,
    corpus: Corpus,
    modes: Iterable[Mode],
) -> AsyncIterator[SeededBrain]:
    """Recreate `brain`, ingest a corpus, and prove that every document is found in `modes`.

    Raises:
        UsageError: if the documents cannot be read, or `nothing_searchable` if they hold no words.
        DaemonError: if the daemon refuses (`seed_failed`), miscounts (`index_incomplete`) or does
            not find (`not_searchable`) the documents. An incomplete index would show up as a low
            score.
    """
    # A faulty corpus fails at its first document, before anything is deleted.
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
) -> SeededBrain:
    lease = f"leased by memconform, {secrets.token_hex(8)}"
    elapsed = 0.0
    try:
        await client.delete_brain(brain)
        await client.create_brain(brain, description=lease)
        for batch in _batches(documents):
            started = time.perf_counter()
            answers = await _ingest(client, runner, brain, batch)
            elapsed += time.perf_counter() - started
            for document, answer in zip(batch, answers, strict=True):
                ingested.add(document, answer)
            _log.debug("documents ingested", brain=brain, documents=len(ingested))
        started = time.perf_counter()
        counts = await wait_until_indexed(client, brain)
        elapsed += time.perf_counter() - started
        _require_counts(counts, ingested)
        query = first_query(ingested)
        if not query:
            raise UsageError(
                "no ingested document contains a word to search for",
                code="nothing_searchable",
                hint="use UTF-8 text; otherwise every question would be asked of an empty index",
            )
        legs = await find_legs(client, counts, query, modes, runner.modes)
        filters = await honours_filters(client, brain, query, legs.modes[0])
        prover = IndexProver(client, brain, ingested, legs, filters=filters)
        proof = await prover.prove_all()
    except CallError as error:
        raise DaemonError(
            f"seeding brain {brain!r} failed: {error.message}",
            code="seed_failed",
            hint="run memconform doctor, which prints a curl command for a call that fails;"
            " no question was asked",
            excerpt=error.body,
        ) from error
    record = SeedRecord(
        documents=counts.documents,
        chunks=counts.chunks,
        vectors=counts.vectors,
        took_ms=elapsed * 1e3,
        proof=proof,
        leased=counts.description == lease,
    )
    return SeededBrain(record, counts, ingested, prover)


def _batches(documents: Iterable[Document]) -> Iterator[list[Document]]:
    batch: list[Document] = []
    size = 0
    for document in documents:
        too_large = size + len(document.content) > _BATCH_BYTES
        if batch and (too_large or len(batch) == _BATCH_DOCUMENTS):
            yield batch
            batch, size = [], 0
        batch.append(document)
        size += len(document.content)
    if batch:
        yield batch


async def _ingest(
    client: ContractClient, runner: SdkRunner, brain: str, batch: list[Document]
) -> list[Ingested]:
    """Send a batch by the runner's `seed_via`; returns one acknowledgement for each document."""
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
        raise _incomplete(f"{len(batch)} documents were sent, but {len(answers)} acknowledged")
    for document, answer in zip(batch, answers, strict=True):
        _require_same_document(document, answer)
    return answers


def _require_same_document(document: Document, answer: Ingested) -> None:
    if (answer.path, answer.bytes) != (document.path, len(document.content)):
        raise _incomplete(
            f"{document.path} ({len(document.content)} bytes) was acknowledged as"
            f" {answer.path} ({answer.bytes} bytes)"
        )


async def wait_until_indexed(client: ContractClient, brain: str) -> Brain:
    """Wait until no document is pending; returns the brain's counts.

    Raises:
        CallError: if the daemon does not answer.
        DaemonError: `index_incomplete` if documents are still pending after the client's gap
            timeout.
    """
    timeout = client.timeouts.gap
    deadline = time.monotonic() + timeout
    while (counts := await client.brain(brain)).pending:
        if time.monotonic() > deadline:
            raise _incomplete(
                f"{counts.pending} documents of brain {brain!r} are still pending after"
                f" {timeout:g} s"
            )
        await asyncio.sleep(0.1)
    return counts


def _require_counts(counts: Brain, ingested: IngestedDocuments) -> None:
    if counts.documents != len(ingested):
        raise _incomplete(
            f"{len(ingested)} documents were sent, but the brain counts {counts.documents}"
        )
    chunks = sum(map(ingested.chunk_count, ingested.paths))
    for path in ingested.paths:
        # A file name that begins with `_` is stored but not indexed (core.ingest.hidden).
        if ingested.chunk_count(path) or path.rpartition("/")[2].startswith("_"):
            continue
        if terms(searchable_text(ingested.document(path))):
            raise _incomplete(f"{path} contains words but was acknowledged with no chunks")
    if counts.chunks != chunks:
        raise _incomplete(
            f"{chunks} chunks were acknowledged, but the brain counts {counts.chunks}"
        )


def _incomplete(message: str) -> DaemonError:
    return DaemonError(message, code="index_incomplete", hint=INCOMPLETE_HINT)
