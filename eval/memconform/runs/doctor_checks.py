"""The checks that `doctor` makes of a started daemon."""

import base64
from collections.abc import Awaitable, Callable

import httpx
from pydantic import ValidationError

from memconform.client.client import ContractClient
from memconform.client.failures import ContractViolatedError, DaemonFailedError
from memconform.client.recorder import record_exchanges
from memconform.contract.core import IngestFile, score_rise
from memconform.contract.problem import MEDIA_TYPE as PROBLEM
from memconform.contract.problem import STATUS, Problem
from memconform.contract.wire import JsonValue, Mode, mode_name
from memconform.daemons.sdk_runner import Daemon, SdkRunner
from memconform.datasets.question import Question
from memconform.errors import DaemonError, ExitCode, MemconformError
from memconform.ingest.documents import Document, InMemoryCorpus
from memconform.ingest.seeding import seeded_brain
from memconform.measuring.daemon_session import read_version
from memconform.measuring.scenario import RetrievalSettings
from memconform.measuring.scenarios import SCENARIOS
from memconform.runs.preflight import auto_claim
from memconform.validation_faults import first_fault

_WORDS = (
    ("lamp", "The harbour lamp is lit by Ilse at dusk."),
    ("kiln", "The kiln in the yard holds forty bowls."),
    ("mule", "A mule named Pepper carries the post uphill."),
)
_PATHS = frozenset(f"raw/{name}.md" for name, _ in _WORDS)
_QUESTION = "Who carries the post uphill?"
_EXPECTED = "Pepper"
_ASKED = Question(id="doctor", question=_QUESTION)
LIST_BRAINS = "list brains"
"""The check that such a brain does not affect, because its request names none."""

Check = Callable[[], Awaitable[str]]


class RefutedClaimError(MemconformError):
    """The daemon does not do what it claims: a measured verdict, hence exit code 1."""

    exit_code = ExitCode.FAILED


class Checks:
    """The checks of a started daemon; each returns a line of detail or raises."""

    def __init__(
        self, runner: SdkRunner, daemon: Daemon, client: ContractClient, brain: str
    ) -> None:
        self._runner = runner
        self._daemon = daemon
        self._client = client
        self._brain = brain

    async def health(self) -> str:
        health = await self._client.health()
        if health.ok is False:
            raise DaemonError(
                "/healthz answers ok: false", code="unhealthy", hint="read the daemon's log"
            )
        return "ok" if health.ok else "answers"

    async def version(self) -> str:
        version = await read_version(self._client)
        if version is None:
            known_by = (
                "the process and its port identify"
                if self._daemon.process
                else "nothing identifies"
            )
            return f"the dialect has none; {known_by} the daemon"
        contract = "" if version.contract is None else f", contract {version.contract}"
        return f"{version.name or 'version'} {version.version}{contract}"

    async def ingest(self) -> str:
        documents = [
            Document(f"raw/{name}.md", text.encode(), "text/markdown", self._metadata(name))
            for name, text in _WORDS
        ]
        async with seeded_brain(
            self._client,
            self._runner,
            self._daemon,
            self._brain,
            InMemoryCorpus(documents),
            [Mode.AUTO],
        ) as seeded:
            record = seeded.record
        detail = (
            f"{record.documents} documents ingested by {self._runner.seed.via} and found by their"
            " words"
        )
        if record.proof is not None and not record.proof.promised:
            return f"by {self._runner.seed.via}; {record.proof.describe()}"
        if record.proof is not None and record.proof.after_ms is not None:
            detail += f" after {record.proof.after_ms / 1e3:.3g} s"
        if self._client.null_lists:
            detail += "; where nothing is found, chunks is null, not [] (core.search.shape)"
        return detail

    def _metadata(self, session: str) -> dict[str, JsonValue] | None:
        """What makes a document a turn, without which the mode conversation is not served."""
        return {"session_id": session} if Mode.CONVERSATION in (self._runner.modes or ()) else None

    def search(self, mode: Mode) -> Callable[[], Awaitable[str]]:
        async def check() -> str:
            response = await SCENARIOS["search-retrieve-only"].put(
                self._client, _ASKED, self._settings(mode)
            )
            for chunk in response.chunks:
                if chunk.path not in _PATHS and self._runner.has_contract:
                    raise ContractViolatedError(
                        "foreign_chunk", f"{chunk.path} was retrieved but never ingested"
                    )
            _require_text(
                _EXPECTED, response.chunks[0].text if response.chunks else "", "the top result"
            )
            served = mode_name(response.trace.effective_mode)
            rises = score_rise([chunk.score for chunk in response.chunks]) is not None
            order = "; scores rise, ranked by position" if rises else ""
            return f"served as {served}, {response.timings.done_ms:.1f} ms{order}"

        return check

    def ask(self, scenario: str) -> Check:
        async def check() -> str:
            response = await SCENARIOS[scenario].put(
                self._client, _ASKED, self._settings(self._default_mode())
            )
            detail = f"answered {response.text!r} with {len(response.citations)} citations"
            if _EXPECTED.casefold() not in response.text.casefold():
                detail += f", without {_EXPECTED!r}: answers of this reader will score low"
                if self._runner.upstream == "own" and self._runner.can_be_scripted:
                    detail += "; --upstream scripted has another"
            return detail

        return check

    def _default_mode(self) -> Mode:
        """The mode of `run` without `--mode`, or the first one that is claimed."""
        modes = (*(self._runner.modes or ()), *self._runner.optional_modes)
        return Mode.AUTO if Mode.AUTO in modes or not modes else modes[0]

    def unneeded(self) -> dict[str, Check]:
        """Checks of what the contract requires and no measurement needs, by name.

        Without those that the dialect says the daemon does not have, or that were made before.
        """
        dialect = self._client.dialect
        checks: dict[str, Check] = {}
        if self._runner.seed.via != "batch" and (dialect is None or dialect.has("ingest_batch")):
            checks["ingest batch"] = self.ingest_batch
        if dialect is None or dialect.has("list_brains"):
            checks[LIST_BRAINS] = self.list_brains
        if dialect is None or dialect.has("brain"):
            checks["error response"] = self.error_response
        return checks

    async def ingest_batch(self) -> str:
        """Ingest one of the documents again, in a batch of its own."""
        name, text = _WORDS[0]
        document = IngestFile(
            path=f"raw/{name}.md",
            content_type="text/markdown",
            content_base64=base64.b64encode(text.encode()).decode(),
        )
        batch = await self._client.ingest_batch(self._brain, [document])
        if [item.path for item in batch.items] != [document.path]:
            raise ContractViolatedError(
                "bad_body", f"a batch of {document.path} was acknowledged as {batch.items!r}"
            )
        return "1 document ingested again"

    async def list_brains(self) -> str:
        brains = await self._client.list_brains()
        if self._brain not in brains:
            raise ContractViolatedError(
                "bad_body", f"{self._brain} exists, but is not among the {len(brains)} listed"
            )
        return f"{len(brains)} listed"

    async def error_response(self) -> str:
        """Ask for a brain that does not exist."""
        missing = f"{self._brain}-missing"
        with record_exchanges() as exchanges:
            try:
                await self._client.brain(missing)
            except DaemonFailedError as error:
                if error.code != "http_404":
                    raise
            else:
                raise ContractViolatedError(
                    "unexpected_status", f"GET of {missing}, which does not exist, succeeds"
                )
        [*_, last] = exchanges
        media_type = dict(last.response_headers).get("content-type", "").partition(";")[0]
        if media_type != PROBLEM:
            raise ContractViolatedError(
                "bad_media_type",
                f"a 404 has Content-Type {media_type!r}, expected {PROBLEM!r}",
                body=bytes(last.body).decode("utf-8", "replace"),
            )
        try:
            problem = Problem.model_validate_json(bytes(last.body))
        except ValidationError as error:
            raise ContractViolatedError(
                "bad_body",
                f"a 404: {first_fault(error)}",
                body=bytes(last.body).decode("utf-8", "replace"),
            ) from error
        if STATUS.get(problem.code) != problem.status or problem.status != httpx.codes.NOT_FOUND:
            raise ContractViolatedError(
                "bad_body",
                f"a 404 says status {problem.status} and code {problem.code!r}, expected 404 and"
                " 'not_found'",
            )
        return f"404 {problem.code}"

    async def delete(self) -> str:
        if not await self._client.delete_brain(self._brain):
            raise RefutedClaimError(
                f"brain {self._brain} exists, but deleting it answers 404",
                code="delete_failed",
                hint="DELETE with X-Confirm-Delete: yes must answer 204",
            )
        return "deleted"

    def _settings(self, mode: Mode) -> RetrievalSettings:
        return RetrievalSettings(
            brain=self._brain, mode=mode, top_k=3, auto_modes=auto_claim(self._runner)
        )


def _require_text(expected: str, text: str, where: str) -> None:
    if expected not in text:
        raise RefutedClaimError(
            f"one of three documents answers {_QUESTION!r}, but {where} is {text!r}",
            code="bad_retrieval",
            hint="check that the text is indexed and that rankings are best first",
        )
