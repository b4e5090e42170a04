"""A hostile daemon in the test process, and runs of the engine against it."""

import asyncio
import json
import secrets
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from memconform.bench.raw_http import RawExchange, RawRequest, serving
from memconform.client.timings import Timeouts
from memconform.contract.wire import Mode
from memconform.daemons.sdk_runner import Launch, SdkRunner
from memconform.daemons.url_runner import UrlRunner
from memconform.datasets.registry import open_dataset
from memconform.datasets.selection import Selection, select
from memconform.ingest.documents import ReferenceAnswers
from memconform.runs.events import RunFinished
from memconform.runs.plan import DEFAULT_FLOOR, Plan, Settings
from memconform.runs.results import RunResult
from memconform.runs.schedule import execute
from memconform.scoring.exact import ExactScorer
from tests.fakes.hostile import Fault, HostileDaemon

QUESTIONS = 24
HOPELESS = (5, 11, 17)
"""Rows whose expected text is in no document, so that the true score is below 1."""


def write_dataset(folder: Path) -> Path:
    """Write questions that one document each answers, except for the hopeless ones."""
    rows = (
        {
            "id": f"q{n}",
            "question": f"What is the secret word of box{n}?",
            "expected_substrings": ["elsewhere" if n in HOPELESS else f"word{n}x"],
            "reference_answer": f"The secret of box{n} is word{n}x",
        }
        for n in range(QUESTIONS)
    )
    path = folder / "boxes.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


TRUTH = {f"q{n}": "incorrect" if n in HOPELESS else "correct" for n in range(QUESTIONS)}


class InProcessRunner(SdkRunner):
    """Serves a hostile daemon from this event loop."""

    name = "hostile"
    modes = (Mode.AUTO, Mode.BM25)

    def __init__(self, faults: Sequence[Fault], delay: float = 0.0) -> None:
        """`delay` is the duration of a search and an ask, in seconds."""
        self._daemon = HostileDaemon(faults)
        self._delay = delay

    @asynccontextmanager
    async def serve(self, launch: Launch) -> AsyncIterator["object"]:  # type: ignore[override]
        async with (
            serving(self._answer, "127.0.0.1", 0) as port,
            UrlRunner(f"http://127.0.0.1:{port}").serve(launch) as daemon,
        ):
            yield daemon

    async def _answer(self, request: RawRequest, exchange: RawExchange) -> None:
        if request.path.endswith(("/search", "/ask")):
            await asyncio.sleep(self._delay)  # short limit: it may take any time
        await self._daemon.answer(request, exchange)


@dataclass(frozen=True)
class FaultyRun:
    """A run against a daemon with these faults."""

    faults: tuple[Fault, ...]
    scenario: str
    concurrency: int
    mode: Mode = Mode.BM25


def plan_of(faulty_run: FaultyRun, dataset: Path, output: Path) -> Plan:
    selected = select(open_dataset(str(dataset)), Selection())
    settings = Settings(
        dataset=selected.dataset.name,
        dataset_sha256=selected.dataset.sha256,
        questions=selected.size,
        scenario=faulty_run.scenario,
        mode=faulty_run.mode,
        seeding="reference",
    )
    return Plan(
        settings=settings,
        selected=selected,
        output=output / secrets.token_hex(4),
        floors=(DEFAULT_FLOOR,),
        scorer=ExactScorer(),
        corpus=ReferenceAnswers(selected.dataset),
        concurrency=faulty_run.concurrency,
        # short limit: the daemon shares this process, whose stalls do not count.
        timeouts=Timeouts(total=20, connect=20, first=3, gap=3),
    )


async def run(faulty_run: FaultyRun, dataset: Path, output: Path) -> RunResult:
    """Execute the run and read its result back from disk."""
    return await run_plan(plan_of(faulty_run, dataset, output), faulty_run.faults)


async def run_plan(plan: Plan, faults: Sequence[Fault] = (), delay: float = 0.0) -> RunResult:
    """Execute a plan and read its result back from disk."""
    async for event in execute(plan, InProcessRunner(faults, delay)):
        if isinstance(event, RunFinished):
            return RunResult.model_validate_json(event.result.read_bytes())
    raise AssertionError("the run ended without its result")


def false_scores(result: RunResult) -> list[str]:
    """Measured questions whose score differs from that of the daemon without faults."""
    return [
        f"{question.id}: {question.verdict.value}, in truth {TRUTH[question.id]}"
        for question in result.questions
        if question.verdict.measured and question.verdict.value != TRUTH[question.id]
    ]
