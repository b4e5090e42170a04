"""The requests of a load, and what an answer must be to count."""

import base64
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import islice
from time import perf_counter

from memconform.client.client import ContractClient
from memconform.client.failures import CallError, ContractViolatedError
from memconform.client.timings import Timings
from memconform.contract.ask import AskRequest
from memconform.contract.core import IngestFile, SearchRequest
from memconform.contract.wire import Mode
from memconform.daemons.sdk_runner import SdkRunner
from memconform.errors import DaemonError, UsageError
from memconform.ingest.documents import Corpus, Document
from memconform.load.arrivals import Arrival
from memconform.load.generator import Reply
from memconform.measuring.proven_brain import ProvenBrain
from memconform.measuring.requirements import require_strategy

_DOCUMENTS = 64
"""Documents of the corpus that writes repeat, under new paths."""


@dataclass(slots=True)
class WriteBrain:
    """The brain that is written to, beside the one that is searched.

    Writes into the searched brain would change what its proof is about: no search could be held to
    a known ranking, and a document that was lost could not be told from one that was never there.
    Each write has a path of its own, so that the documents can be counted.
    """

    client: ContractClient
    name: str
    via: str
    """How the SDK takes documents: `http`, `batch` or `documents`."""
    documents: Sequence[Document]
    acknowledged: int = 0
    unknown: int = 0
    """Failed writes, of which the daemon may have stored the document."""
    written: int = 0

    @classmethod
    async def create(
        cls, client: ContractClient, runner: SdkRunner, name: str, corpus: Corpus
    ) -> "WriteBrain":
        """Create an empty brain.

        Raises:
            UsageError: `not_writable` if the SDK takes documents from the disk only.
            CallError: if the daemon refuses.
        """
        if runner.seed.via == "disk" or runner.seed.restart:
            raise UsageError(
                f"{runner.name} takes documents from the disk or by a restart, not while it serves",
                code="not_writable",
                hint="leave ingest out of --mix",
            )
        await client.delete_brain(name)
        await client.create_brain(name)
        documents = list(islice(corpus.documents(), _DOCUMENTS))
        return cls(client, name, runner.seed.via, documents)

    async def write(self) -> None:
        """Write one document; raises CallError if that fails or another one is acknowledged."""
        number, self.written = self.written, self.written + 1
        document = self.documents[number % len(self.documents)]
        path = f"load/{number:08}.md"
        try:
            await self._write(path, document)
        except CallError:
            self.unknown += 1
            raise
        self.acknowledged += 1

    async def _write(self, path: str, document: Document) -> None:
        if self.via == "documents":
            await self.client.put_document(self.name, path, document.content)
            return
        body = IngestFile(
            path=path,
            content_type=document.content_type,
            content_base64=base64.b64encode(document.content).decode(),
        )
        if self.via == "batch":
            answers = (await self.client.ingest_batch(self.name, [body])).items
        else:
            answers = [await self.client.ingest_file(self.name, body)]
        if [answer.path for answer in answers] != [path]:
            raise ContractViolatedError("bad_body", f"{path} was not acknowledged by its path")

    async def require_complete(self) -> None:
        """Compare the brain's documents with the acknowledged ones.

        Raises:
            DaemonError: `writes_lost` if it has fewer, or more than were written.
            CallError: if it cannot be counted.
        """
        counted = (await self.client.brain(self.name)).documents
        most = self.acknowledged + self.unknown
        if counted is not None and not self.acknowledged <= counted <= most:
            raise DaemonError(
                f"{self.acknowledged} documents were acknowledged, and the brain counts {counted}",
                code="writes_lost",
                hint="the daemon must have stored what it acknowledged; try a lower rate",
            )


@dataclass(slots=True)
class Operations:
    """Sends the requests of arrivals to one daemon."""

    brain: ProvenBrain
    mode: Mode
    top_k: int
    questions: Sequence[str]
    writes: WriteBrain | None
    rankings: dict[int, tuple[str, ...]] = field(default_factory=dict)
    """Ids of the chunks that the searches before the load found, by question."""
    slow_asks: list[bytes] = field(default_factory=list)
    """Requests of the slow readers, as they are sent."""

    async def warm_up(self) -> None:
        """Search for each question twice, and remember its ranking if both agree.

        A search under load must find the same: a daemon that answers fast and finds nothing is
        not fast. It also has the daemon compile and cache what its first requests need.

        Raises:
            CallError: if a search fails.
            DaemonError: if the daemon died.
        """
        for row in range(len(self.questions)):
            first, again = await self._ranking(row), await self._ranking(row)
            if first == again:
                self.rankings[row] = first

    async def _ranking(self, row: int) -> tuple[str, ...]:
        with self.brain.accounted():
            answer, _ = await self.brain.search(self._search_request(row))
        return tuple(chunk.chunk_id for chunk in answer.chunks)

    def prepare_slow_asks(self) -> None:
        """Prepare an ask for each question, for a reader with a connection of its own.

        Raises:
            CallError: if the dialect cannot express one.
        """
        client, name = self.brain.client, self.brain.name
        self.slow_asks = [
            client.ask_message(name, self._ask_request(row)) for row in range(len(self.questions))
        ]

    async def call(self, arrival: Arrival) -> Reply:
        """Send the request of an arrival, and say how it ended."""
        began = perf_counter()
        try:
            timings = await self._send(arrival)
        except CallError as error:
            # A broken connection casts doubt on the index, which is then proven whole.
            self.brain.queries.failed(error)
            return Reply(error.code, began, perf_counter())
        if timings is None or timings.sent_at is None:
            return Reply(None, began, perf_counter())
        return Reply(None, timings.sent_at, timings.sent_at + timings.done_ms / 1e3)

    async def _send(self, arrival: Arrival) -> Timings | None:
        match arrival.operation:
            case "search":
                return await self._search(arrival.row)
            case "ask":
                return await self._ask(arrival.row)
            case "ingest" if self.writes is not None:
                await self.writes.write()
        return None

    async def _search(self, row: int) -> Timings:
        request = self._search_request(row)
        # Without the monitor of its daemon, which would make two tasks of each call.
        answer, timings = await self.brain.client.search(self.brain.name, request)
        require_strategy(answer.trace, request, self.brain.auto_modes)
        expected = self.rankings.get(row)
        if expected is not None and tuple(c.chunk_id for c in answer.chunks) != expected:
            raise ContractViolatedError(
                "other_ranking", "the search found other chunks than before the load"
            )
        return timings

    async def _ask(self, row: int) -> Timings:
        answer, timings = await self.brain.client.ask(self.brain.name, self._ask_request(row))
        request = self._search_request(row)
        require_strategy(answer.retrieve.trace, request, self.brain.auto_modes)
        return timings

    def _search_request(self, row: int) -> SearchRequest:
        return SearchRequest(query=self.questions[row], mode=self.mode, top_k=self.top_k)

    def _ask_request(self, row: int) -> AskRequest:
        return AskRequest(question=self.questions[row], mode=self.mode, top_k=self.top_k)
