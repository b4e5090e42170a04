"""Seeds a brain and proves that its documents can be found."""

import asyncio
import base64
import json
import secrets
import time
from collections.abc import AsyncIterator, Collection, Iterable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from itertools import chain
from typing import Literal

from memconform.client.client import ContractClient
from memconform.client.failures import CallError, CallTimeoutError
from memconform.contract.core import Brain, Ingested, IngestFile
from memconform.contract.wire import Mode
from memconform.daemons.sdk_runner import Daemon, RestartableDaemon, SdkRunner
from memconform.daemons.upstream import restartable
from memconform.errors import DaemonError, UsageError
from memconform.ingest.counts import (
    incomplete,
    require_acknowledged,
    require_counts,
    wait_until_indexed,
)
from memconform.ingest.documents import Corpus, Document, batches
from memconform.ingest.indexing_time import SYSTEM_CLOCK, Clock, IndexingTime
from memconform.ingest.ingested import IngestedDocuments
from memconform.ingest.proof import IndexProver
from memconform.ingest.provable_modes import Legs, find_legs, honours_filters, matching_queries
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
_IN_THE_BACKGROUND = (
    "if the daemon indexes in the background, set [seed] timeout_s = 60 in its sdk.toml, for which"
    " the proof is repeated; otherwise "
)


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
    *,
    clock: Clock = SYSTEM_CLOCK,
) -> AsyncIterator[SeededBrain]:
    """Recreate `brain`, ingest a corpus, and prove that every document is found in `modes`.

    Raises:
        UsageError: if the documents cannot be read, or `nothing_searchable` if they hold no words.
        DaemonError: if the daemon refuses (`seed_failed`), miscounts (`index_incomplete`) or does
            not find (`not_searchable`) the documents. An incomplete index would show up as a low
            score.
    """
    async with filled_brain(client, runner, daemon, brain, corpus, clock=clock) as filled:
        yield await filled.prove(modes)


@asynccontextmanager
async def filled_brain(
    client: ContractClient,
    runner: SdkRunner,
    daemon: Daemon,
    brain: str,
    corpus: Corpus,
    *,
    clock: Clock = SYSTEM_CLOCK,
) -> AsyncIterator["FilledBrain"]:
    """Recreate `brain` and ingest a corpus; each mode is then proven for itself.

    Raises:
        UsageError: as `seeded_brain`.
        DaemonError: if the daemon refuses or miscounts the documents, whatever is searched.
    """
    # A faulty corpus fails at its first document, before anything is deleted.
    documents = iter(corpus.documents())
    documents = chain([next(documents)], documents)
    with IngestedDocuments(is_exact=runner.has_contract) as ingested:
        yield await _Seeder(client, runner, daemon, brain, ingested, clock).fill(documents)


@asynccontextmanager
async def adopted_brain(
    client: ContractClient, runner: SdkRunner, daemon: Daemon, brain: str, corpus: Corpus
) -> AsyncIterator["FilledBrain"]:
    """A brain that somebody else has filled with exactly the documents of a corpus.

    Nothing is written.

    Raises:
        UsageError: if the documents cannot be read.
        DaemonError: if the brain does not exist (`seed_failed`), or has another number of documents
            (`index_incomplete`).
    """
    with IngestedDocuments(is_exact=runner.has_contract) as ingested:
        for document in corpus.documents():
            ingested.add(document, None)
        yield await _Seeder(client, runner, daemon, brain, ingested).adopt()


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
    settled_after: float
    """Seconds from then until nothing was pending."""
    leased: bool
    indexing: IndexingTime
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
            proof = await seeder.prove(self, list(modes), self._proven)
        self.counts = proof.counts
        self._proven.update(proof.prover.legs)
        record = SeedRecord(
            documents=len(self.documents),
            chunks=self.counts.chunks,
            vectors=self.counts.vectors,
            took_ms=(self.elapsed + proof.indexed_after) * 1e3,
            proof=proof.record,
            leased=self.leased,
        )
        return SeededBrain(record, self.counts, self.documents, proof.prover)


@dataclass(frozen=True, slots=True)
class _Proof:
    """What the attempt that succeeded proved."""

    counts: Brain
    prover: IndexProver
    record: ProofRecord
    indexed_after: float
    """Seconds from the last document until it began."""


@dataclass(frozen=True, slots=True)
class _Seeder:
    """Fills one brain in the way of its SDK."""

    client: ContractClient
    runner: SdkRunner
    daemon: Daemon
    brain: str
    ingested: IngestedDocuments
    clock: Clock = SYSTEM_CLOCK

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
                hint=_hint(error, self.runner),
                excerpt=error.body,
            ) from error

    async def _filled(self, elapsed: float, lease: str | None) -> FilledBrain:
        """Wait until nothing is pending, and compare counts; `elapsed` are the seconds so far."""
        indexing = IndexingTime(self.runner.seed.timeout_s or self.client.timeouts.gap, self.clock)
        require_acknowledged(self.ingested)
        counts, _ = await indexing.repeat(lambda _: self._count(indexing))
        _, query = next(matching_queries(self.ingested), ("", ""))
        if not query:
            raise UsageError(
                "no ingested document contains a word to search for",
                code="nothing_searchable",
                hint="use UTF-8 text; otherwise every question would be asked of an empty index",
            )
        leased = lease is not None and counts.description == lease
        doing = "looking into" if lease is None else "seeding"
        return FilledBrain(self, doing, counts, query, elapsed, indexing.elapsed, leased, indexing)

    async def _count(self, indexing: IndexingTime) -> Brain:
        """Wait until nothing is pending, and compare the counts with what was sent."""
        counts = await wait_until_indexed(self.client, self.brain, indexing)
        if counts.pending is not None and self.runner.seed.timeout_s is None:
            # The contract requires that it finds what it has acknowledged, and what it counts.
            indexing.close()
        require_counts(counts, self.ingested)
        return counts

    async def _ingest_all(self, documents: Iterable[Document]) -> float:
        """Send every document, and restart the daemon if it needs that; returns the seconds."""
        elapsed = 0.0
        for batch in batches(documents, self.runner.seed.batch):
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
        self, filled: FilledBrain, modes: list[Mode], proven: Collection[Mode]
    ) -> _Proof:
        """Prove the index in those legs of `modes` that are not `proven`.

        A daemon that does not say what is pending, or whose sdk.toml gives it time, gets that to
        finish. Of one that promises nothing, it is only observed what it finds.
        """
        if not self.runner.has_contract:
            return await self._observe(filled, modes)
        known: Brain | None = filled.counts

        async def attempt(is_last: bool) -> tuple[Brain, IndexProver, ProofRecord]:  # noqa: FBT001 - as `repeat` calls it
            nonlocal known
            counts, known = known or await self._count(filled.indexing), None
            legs = await find_legs(
                self.client, counts, filled.query, modes, self.runner.modes,
                settled=counts.pending is None or not is_last,
            )  # fmt: skip
            filters = await honours_filters(self.client, self.brain, self.ingested, legs.modes[0])
            prover = IndexProver(
                self.client, self.brain, self.ingested, legs,
                filters=filters, counted=counts.chunks is not None,
            )  # fmt: skip
            return counts, prover, await prover.prove_all(proven, stops_early=not is_last)

        try:
            (counts, prover, proof), began = await filled.indexing.repeat(attempt)
        except DaemonError as error:
            if error.code in ("not_searchable", "index_incomplete") and filled.indexing.is_closed:
                error.hint = f"{_IN_THE_BACKGROUND}{error.hint}"
            raise
        took = filled.settled_after if began is None else began
        if began is not None:
            proof = proof.model_copy(update={"after_ms": began * 1e3})
        return _Proof(counts, prover, proof, took)

    async def _observe(self, filled: FilledBrain, modes: Sequence[Mode]) -> _Proof:
        """See what is found of a daemon that promises nothing; raises as `IndexProver.observe`."""
        prover = IndexProver(
            self.client, self.brain, self.ingested, Legs(tuple(modes[:1]), None),
            filters=False, counted=False,
        )  # fmt: skip
        return _Proof(filled.counts, prover, await prover.observe(), filled.settled_after)


def _hint(error: CallError, runner: SdkRunner) -> str:
    """What to try after a call of seeding that failed."""
    if isinstance(error, CallTimeoutError):
        if not runner.has_contract:
            return "timeout_s of its system.toml allows a call more time"
        return (
            "--timeout, or --timeout-first of run, allows a call more time, and [seed] batch sends"
            " fewer documents in one"
        )
    return _BY_POSITION if "score rises" in error.message else _SEE_DOCTOR


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
