"""Several SDKs held to the cases side by side, and what is kept of it on disk."""

import asyncio
import re
import shutil
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from pathlib import Path

from memconform.conformance.catalog import CaseVariant
from memconform.conformance.known import KnownFailure
from memconform.conformance.results import RED, ConformReport
from memconform.conformance.running import CaseRun
from memconform.conformance.step_result import StepResult
from memconform.conformance.suite import CaseFinished, Event, MakeRunner, conform
from memconform.errors import UsageError, nearest
from memconform.storage.folders import RunFolder
from memconform.storage.writing import replacing

REPORT = "conform.json"


@dataclass(frozen=True, slots=True)
class Target:
    """An SDK, and what the user called it."""

    name: str
    reference: str
    make_runner: MakeRunner


async def run_session(
    targets: Sequence[Target],
    entries: Sequence[CaseVariant],
    known: Sequence[KnownFailure],
    run: RunFolder,
    *,
    daemons: int,
    stop_at_first: bool,
    trace: bool,
) -> AsyncGenerator[Event, None]:
    """Events of all SDKs as they happen; at most `daemons` daemons run at once.

    The wire of cases that are red, or with `trace` of all, is kept in the run's folder.
    """
    slots = asyncio.Semaphore(daemons)
    queue: asyncio.Queue[Event | None] = asyncio.Queue()

    async def one(target: Target) -> None:
        events = conform(
            target.name,
            target.make_runner,
            entries,
            known=known,
            folder=run.path / "daemons",
            run_id=run.path.name,
            slots=slots,
            stop=lambda case: stop_at_first and case.result in RED,
        )
        async with aclosing(events):
            async for event in events:
                await queue.put(event)

    async def all_of_them() -> None:
        try:
            async with asyncio.TaskGroup() as group:
                for target in targets:
                    group.create_task(one(target))
        finally:
            queue.put_nowait(None)

    working = asyncio.create_task(all_of_them())
    try:
        while (event := await queue.get()) is not None:
            if isinstance(event, CaseFinished) and (trace or event.ran.result.result in RED):
                await asyncio.to_thread(keep_wire, run.path, event.sdk, event.ran)
            yield event
        await working
    finally:
        working.cancel()
        await asyncio.gather(working, return_exceptions=True)
        await asyncio.to_thread(_drop_state, run.path / "daemons")


def keep_wire(folder: Path, sdk: str, ran: CaseRun) -> None:
    """Every exchange of a case, as bytes, in a file of its own."""
    path = folder / "wire" / sdk / f"{re.sub(r'[^A-Za-z0-9.,-]+', '_', ran.result.case)}.txt"
    path.parent.mkdir(parents=True, exist_ok=True)
    with replacing(path) as file:
        file.write_bytes(b"\n".join(transcript(outcome) for outcome in ran.exchanges))


def transcript(outcome: StepResult) -> bytes:
    """What was sent and what came; of a step without a request, what it brought."""
    failed = f"\n({outcome.failure})\n" if outcome.failure else "\n"
    if outcome.exchange is not None:
        return outcome.exchange.transcript() + failed.encode()
    lines = [f"# {outcome.what}", f"statuses {outcome.statuses}" if outcome.statuses else ""]
    shown = (
        str(outcome.json()) if outcome.status is None else outcome.body.decode("utf-8", "replace")
    )
    return "\n".join([*lines, shown]).encode("utf-8", "replace") + failed.encode()


def _drop_state(folder: Path) -> None:
    """Of the daemons only what they wrote is kept."""
    if folder.is_dir():
        for state in [*folder.glob("*/state"), *folder.glob("*/upstream")]:
            shutil.rmtree(state, ignore_errors=True)


def write_suite_report(run: RunFolder, report: ConformReport) -> Path:
    """The run's record; logs of daemons go where nothing is red."""
    path = run.path / REPORT
    with replacing(path) as file:
        file.write_json(report)
    if report.exit_code == 0:
        shutil.rmtree(run.path / "daemons", ignore_errors=True)
    return path


def read_report(output: Path, run: str) -> ConformReport:
    """The record of a run, by its id or its folder.

    Raises:
        UsageError: where there is none.
    """
    runs = output / "runs"
    for folder in (runs / run, Path(run)):
        path = folder / REPORT
        if path.is_file():
            try:
                return ConformReport.model_validate_json(path.read_bytes())
            except ValueError as error:
                raise UsageError(
                    f"{path} is not the record of a conform run",
                    code="run_invalid",
                    hint="was it written by another version?",
                    excerpt=str(error),
                ) from error
    known = [p.parent.name for p in runs.glob(f"*/{REPORT}")]
    raise UsageError(
        f"no conform run {run!r} in {runs}",
        code="run_missing",
        hint=nearest(run, known) or "give the run's id, as conform printed it, or its folder",
    )
