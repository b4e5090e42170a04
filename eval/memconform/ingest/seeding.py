"""Seeds a brain and proves that its documents can be found."""

import asyncio
import base64
import json
import secrets
import time
from collections.abc import AsyncIterator, Collection, Iterable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from itertools import chain
from typing import Literal

from memconform.client.client import ContractClient
from memconform.client.failures import CallError, ContractViolatedError
from memconform.contract.core import NO_CHUNKS, Brain, Ingested, IngestFile
from memconform.contract.wire import Mode
from memconform.daemons.runner import Daemon, RestartableDaemon, SdkRunner
from memconform.daemons.upstream import restartable
from memconform.errors import DaemonError, UsageError
from memconform.ingest.counts import incomplete, require_counts, wait_until_indexed
from memconform.ingest.documents import Corpus, Document
from memconform.ingest.ingested import IngestedDocuments
from memconform.ingest.legs import (
    find_legs,
    honours_filters,
    matching_queries,
    unsettled_mode,
)
from memconform.ingest.proof import IndexProver
from memconform.ingest.records import ProofRecord, SeedRecord
from memconform.printing.logs import Logger

_log = Logger()

_SEE_DOCTOR = (
    "run memconform doctor, which prints a curl command for a call that fails; no question was"
    " asked"
)
_BY_POSITION = (
    "fix the order (core.search.order), or measure with --rank-by position or [dialect] rank_by ="
    ' "position", which report the violation; no question was asked'
)
_PAUSE_SECONDS = 0.2
_LONGEST_PAUSE_SECONDS = 5.0
"""Pauses between attempts to prove an index of which the daemon does not say what is pending."""
_PASSING_FAULTS = ("not_searchable", "index_incomplete", "bad_trace")
"""Codes of a failed proof that may only mean that indexing has not finished. A daemon that embeds
in the background was seen to report mode hybrid without an embedder until it had finished; in one
of 40 starts its first search by vectors came before them, and found nothing (`NO_CHUNKS`)."""
_WITHOUT_RERANKER = "without reranking"
"""In a `bad_trace` that lasts: a reranker is not waited for, because it indexes nothing."""

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
async def seeded_brain(  # noqa: PLR0917 - what is filled, and with what
    client: ContractClient,
    runner: SdkRunner,
    daemon: Daemon,
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
    async with filled_brain(client, runner, daemon, brain, corpus) as filled:
        yield await filled.prove(modes)


@asynccontextmanager
async def filled_brain(
    client: ContractClient, runner: SdkRunner, daemon: Daemon, brain: str, corpus: Corpus
) -> AsyncIterator["FilledBrain"]:
    """Recreate `brain` and ingest a corpus; each mode is then proven for itself.

    Raises:
        UsageError: as `seeded_brain`.
        DaemonError: if the daemon refuses or miscounts the documents, whatever is searched.
    """
    # A faulty corpus fails at its first document, before anything is deleted.
    documents = iter(corpus.documents())
    documents = chain([next(documents)], documents)
    with IngestedDocuments() as ingested:
        yield await _Seeder(client, runner, daemon, brain, ingested).fill(documents)


@asynccontextmanager
async def adopted_brain(  # noqa: PLR0917 - what is expected, and where
    client: ContractClient,
    runner: SdkRunner,
    daemon: Daemon,
    brain: str,
    corpus: Corpus,
    modes: Iterable[Mode],
) -> AsyncIterator[SeededBrain]:
    """Prove that a brain which somebody else has filled holds exactly the documents of a corpus.

    Nothing is written.

    Raises:
        UsageError: if the documents cannot be read.
        DaemonError: if the brain does not exist (`seed_failed`), has another number of documents
            (`index_incomplete`), or does not find all of them (`not_searchable`).
    """
    with IngestedDocuments() as ingested:
        for document in corpus.documents():
            ingested.add(document, None)
        filled = await _Seeder(client, runner, daemon, brain, ingested).adopt()
        yield await filled.prove(modes)


@dataclass(slots=True)
class FilledBrain:
    """A brain that holds as many documents as were sent, and of which nothing is proven yet."""

    seeder: "_Seeder"
    doing: str
    """What fails if a search fails, such as `seeding`."""
    counts: Brain
    """The brain's counts once nothing was pending."""
    query: str
    """Words of a document."""
    elapsed: float
    """Seconds of ingestion."""
    leased: bool
    _proven: set[Mode] = field(default_factory=set, init=False)
    """Legs in which every document was found."""

    @property
    def documents(self) -> IngestedDocuments:
        return self.seeder.ingested

    async def prove(self, modes: Iterable[Mode]) -> SeededBrain:
        """Prove that every document is found in `modes`; a leg is proven once.

        Raises:
            DaemonError: if one is not found (`not_searchable`), a mode is not served yet or lacks
                vectors (`index_incomplete`), or a search fails (`seed_failed`).
        """
        seeder = self.seeder
        with seeder.failing(self.doing):
            prover, proof, indexed_after = await seeder.prove(
                self.counts, self.query, list(modes), self._proven
            )
        self._proven.update(prover.legs)
        record = SeedRecord(
            documents=len(self.documents),
            chunks=self.counts.chunks,
            vectors=self.counts.vectors,
            took_ms=(self.elapsed + indexed_after) * 1e3,
            proof=proof,
            leased=self.leased,
        )
        return SeededBrain(record, self.counts, self.documents, prover)


@dataclass(frozen=True, slots=True)
class _Seeder:
    """Fills one brain in the way of its SDK."""

    client: ContractClient
    runner: SdkRunner
    daemon: Daemon
    brain: str
    ingested: IngestedDocuments

    async def fill(self, documents: Iterable[Document]) -> FilledBrain:
        """Recreate and fill the brain; raises as `filled_brain`."""
        lease = f"leased by memconform, {secrets.token_hex(8)}"
        with self.failing("seeding"):
            await self.client.delete_brain(self.brain)
            await self.client.create_brain(self.brain, description=lease)
            elapsed = await self._ingest_all(documents)
            return await self._filled(elapsed, lease)

    async def adopt(self) -> FilledBrain:
        """Count the documents of a brain that is there; raises as `adopted_brain`."""
        with self.failing("looking into"):
            return await self._filled(0.0, None)

    @contextmanager
    def failing(self, doing: str) -> Iterator[None]:
        """Raise DaemonError (`seed_failed`) for a call that fails."""
        try:
            yield
        except CallError as error:
            raise DaemonError(
                f"{doing} brain {self.brain!r} failed: {error.message}",
                code="seed_failed",
                hint=_BY_POSITION if "score rises" in error.message else _SEE_DOCTOR,
                excerpt=error.body,
            ) from error

    async def _filled(self, elapsed: float, lease: str | None) -> FilledBrain:
        """Wait until nothing is pending, and compare counts; `elapsed` are the seconds so far."""
        started = time.perf_counter()
        counts = await wait_until_indexed(self.client, self.brain, self._patience)
        require_counts(counts, self.ingested)
        _, query = next(matching_queries(self.ingested), ("", ""))
        if not query:
            raise UsageError(
                "no ingested document contains a word to search for",
                code="nothing_searchable",
                hint="use UTF-8 text; otherwise every question would be asked of an empty index",
            )
        elapsed += time.perf_counter() - started
        leased = lease is not None and counts.description == lease
        doing = "looking into" if lease is None else "seeding"
        return FilledBrain(self, doing, counts, query, elapsed, leased)

    @property
    def _patience(self) -> float:
        """How long indexing may take after the last document, in seconds."""
        return self.runner.seed.timeout_s or self.client.timeouts.gap

    async def _ingest_all(self, documents: Iterable[Document]) -> float:
        """Send every document, and restart the daemon if it needs that; returns the seconds."""
        elapsed = 0.0
        for batch in _batches(documents):
            started = time.perf_counter()
            answers = await self._ingest(batch)
            elapsed += time.perf_counter() - started
            for document, answer in zip(batch, answers, strict=True):
                self.ingested.add(document, answer)
            _log.debug("documents ingested", brain=self.brain, documents=len(self.ingested))
        if self.runner.seed.restart:
            started = time.perf_counter()
            setting = f"[seed] restart = {json.dumps(self.runner.seed.restart)}"
            await self._restartable(setting).restart()
            elapsed += time.perf_counter() - started
        return elapsed

    def _restartable(self, setting: str) -> RestartableDaemon:
        daemon = restartable(self.daemon)
        if daemon is None:
            raise UsageError(
                f"{setting} needs a daemon that memconform starts, and {self.runner.name} is not",
                code="not_restartable",
                hint="describe the daemon in an sdk.toml, or seed it by http, batch or documents",
            )
        return daemon

    async def _ingest(self, batch: list[Document]) -> list[Ingested] | list[None]:
        """Send a batch in the SDK's way; returns the acknowledgement of each document, if any."""
        match self.runner.seed.via:
            case "batch" | "http" as via:
                return await _ingest(self.client, via, self.brain, batch)
            case "documents":
                for document in batch:
                    await self.client.put_document(self.brain, document.path, document.content)
            case "disk":
                await asyncio.to_thread(self._write, batch)
        return [None] * len(batch)

    def _write(self, batch: list[Document]) -> None:
        """Write documents into the brain's folder below the daemon's state folder."""
        state = self._restartable('[seed] via = "disk"').state.resolve()
        folder = (state / self.runner.seed.folder.replace("{brain}", self.brain)).resolve()
        dialect = self.client.dialect
        for document in batch:
            path = dialect.paths.to_daemon(document.path) if dialect else document.path
            file = (folder / path).resolve()
            if not (folder.is_relative_to(state) and file.is_relative_to(folder)):
                raise UsageError(
                    f"document {document.path} would be written outside the daemon's state folder",
                    code="seed_outside",
                    hint="check [seed] folder and the paths of the corpus",
                )
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(document.content)

    async def prove(
        self, counts: Brain, query: str, modes: list[Mode], proven: Collection[Mode]
    ) -> tuple[IndexProver, ProofRecord, float]:
        """Prove the index in those legs of `modes` that are not `proven`.

        A daemon that does not say what is pending gets time to finish.

        Returns:
            The prover, what it proved, and the seconds until the attempt that succeeded began.
        """
        began = time.monotonic()
        pause = _PAUSE_SECONDS
        while True:
            started = time.monotonic()
            is_late = started - began > self._patience
            try:
                if counts.pending is None:
                    await self._require_settled(query, modes)
                legs = await find_legs(self.client, counts, query, modes, self.runner.modes)
                filters = await honours_filters(
                    self.client, self.brain, self.ingested, legs.modes[0]
                )
                prover = IndexProver(
                    self.client, self.brain, self.ingested, legs,
                    filters=filters, counted=counts.chunks is not None,
                )  # fmt: skip
                return prover, await prover.prove_all(proven), started - began
            except (DaemonError, ContractViolatedError) as error:
                is_passing = error.code in _PASSING_FAULTS or error.message.startswith(NO_CHUNKS)
                is_lasting = not is_passing or _WITHOUT_RERANKER in str(error)
                if counts.pending is not None or is_late or is_lasting:
                    raise
            await asyncio.sleep(pause)
            pause = min(2 * pause, _LONGEST_PAUSE_SECONDS)

    async def _require_settled(self, query: str, modes: list[Mode]) -> None:
        claimed = self.runner.modes
        unsettled = await unsettled_mode(self.client, self.brain, query, modes, claimed)
        if unsettled is not None:
            raise unsettled


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
    client: ContractClient, via: Literal["batch", "http"], brain: str, batch: list[Document]
) -> list[Ingested]:
    """Send a batch of documents; returns one acknowledgement for each."""
    bodies = [
        IngestFile(
            path=document.path,
            content_type=document.content_type,
            content_base64=base64.b64encode(document.content).decode(),
            metadata=None if document.metadata is None else dict(document.metadata),
        )
        for document in batch
    ]
    if via == "batch":
        answers = (await client.ingest_batch(brain, bodies)).items
    else:
        answers = [await client.ingest_file(brain, body) for body in bodies]
    if len(answers) != len(batch):
        raise incomplete(f"{len(batch)} documents were sent, but {len(answers)} acknowledged")
    for document, answer in zip(batch, answers, strict=True):
        _require_same_document(document, answer)
    return answers


def _require_same_document(document: Document, answer: Ingested) -> None:
    size = len(document.content)
    if answer.path != document.path or answer.bytes not in (None, size):
        raise incomplete(
            f"{document.path} ({size} bytes) was acknowledged as {answer.path}"
            f" ({answer.bytes} bytes)"
        )
