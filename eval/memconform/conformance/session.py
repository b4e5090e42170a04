"""Runs cases on several SDKs concurrently, and stores the report and the wire traces."""

import asyncio
import re
import shutil
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from pathlib import Path

from memconform.client.recorder import keep_bodies
from memconform.concurrency import Slots
from memconform.conformance.case_runner import CaseRun
from memconform.conformance.catalog import CaseVariant
from memconform.conformance.job_runner import MakeRunner
from memconform.conformance.kept_daemons import KeptDaemons
from memconform.conformance.known_failures import KnownFailure
from memconform.conformance.pointer import MISSING
from memconform.conformance.results import FAILING, RED, ConformReport, has_result
from memconform.conformance.step_result import StepResult
from memconform.conformance.suite import CaseFinished, Event, conform
from memconform.errors import UsageError, nearest
from memconform.storage.body_files import BodyFiles
from memconform.storage.folders import RunFolder
from memconform.storage.sink import redact_file, replacing

REPORT = "conform.json"


@dataclass(frozen=True, slots=True)
class Target:
    """An SDK to test; `reference` is the user's value of `--sdk`."""

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
    keep: KeptDaemons | None = None,
) -> AsyncGenerator[Event, None]:
    """Run the cases on all SDKs and yield events as they happen.

    Args:
        targets: The SDKs.
        entries: The cases; those that do not apply to an SDK are skipped for it.
        known: Known failures.
        run: Folder of the run, for wire traces and logs of daemons.
        daemons: Maximum number of daemons that run at once.
        stop_at_first: Start no more cases on an SDK after the first one with a check that fails;
            an untestable check shows nothing, and does not stop.
        trace: Store the wire traces of all cases instead of the failing ones only.
        keep: Takes over daemons that stay up; the caller then calls `tidy` once they have ended.
    """
    slots = Slots(daemons)
    queue: asyncio.Queue[Event | None] = asyncio.Queue()

    async def run_target(target: Target) -> None:
        events = conform(
            target.name,
            target.make_runner,
            entries,
            known=known,
            folder=run.path / "daemons",
            run_id=run.path.name,
            slots=slots,
            stop=lambda case: stop_at_first and has_result(case, FAILING),
            keep=keep,
        )
        async with aclosing(events):
            async for event in events:
                await queue.put(event)

    bodies = BodyFiles(run.path)

    async def run_all() -> None:
        try:
            with keep_bodies(bodies.keep):
                async with asyncio.TaskGroup() as group:
                    for target in targets:
                        group.create_task(run_target(target))
        finally:
            queue.put_nowait(None)

    worker = asyncio.create_task(run_all())
    try:
        while (event := await queue.get()) is not None:
            if isinstance(event, CaseFinished) and (trace or event.run.result.result in RED):
                await asyncio.to_thread(save_wire, run.path, event.sdk, event.run, bodies)
            yield event
        await worker
    finally:
        worker.cancel()
        await asyncio.gather(worker, return_exceptions=True)
        if keep is None:
            await asyncio.to_thread(tidy, run)


def save_wire(folder: Path, sdk: str, run: CaseRun, bodies: BodyFiles) -> None:
    """Write all exchanges of a case, byte by byte, to `wire/<sdk>/<case>.txt`.

    Commands in it are for the run's folder, in which long bodies are files.
    """
    path = folder / "wire" / sdk / f"{re.sub(r'[^A-Za-z0-9.,-]+', '_', run.result.case)}.txt"
    path.parent.mkdir(parents=True, exist_ok=True)
    with replacing(path) as file:
        with keep_bodies(bodies.keep):
            text = b"\n".join(transcript(outcome) for outcome in run.exchanges)
        file.write_bytes(text)


def transcript(outcome: StepResult) -> bytes:
    """Return the bytes sent and received; for a step without a request, its result."""
    failed = f"\n({outcome.failure})\n" if outcome.failure else "\n"
    if outcome.exchange is not None:
        return outcome.exchange.transcript() + failed.encode()
    lines = [f"# {outcome.label}", f"statuses {outcome.statuses}" if outcome.statuses else ""]
    value = MISSING if outcome.status is not None else outcome.json()
    body = (outcome.body or outcome.sent).decode("utf-8", "replace")
    shown = body if value is MISSING else str(value)
    return "\n".join([*lines, shown]).encode("utf-8", "replace") + failed.encode()


def tidy(run: RunFolder) -> None:
    """Delete the state folders of the daemons, and mask the secrets in their logs, which stay."""
    folder = run.path / "daemons"
    if folder.is_dir():
        for log in folder.rglob("daemon.log"):
            redact_file(log)
        for state in [*folder.glob("*/state"), *folder.glob("*/upstream")]:
            shutil.rmtree(state, ignore_errors=True)


def write_suite_report(run: RunFolder, report: ConformReport) -> Path:
    """Write the report to the run's folder."""
    path = run.path / REPORT
    with replacing(path) as file:
        file.write_json(report)
    return path


def drop_logs(run: RunFolder) -> None:
    """Delete the logs of daemons and drivers, which nobody needs if nothing failed."""
    for folder in ("daemons", "drivers"):
        shutil.rmtree(run.path / folder, ignore_errors=True)


def read_report(folder: Path) -> ConformReport:
    """Read the report in a run's folder; its commands are for the current folder.

    Raises:
        UsageError: if it cannot be read (`run_invalid`).
    """
    path = folder / REPORT
    try:
        report = ConformReport.model_validate_json(path.read_bytes())
    except ValueError as error:
        raise UsageError(
            f"{path} is not a report of a conform run",
            code="run_invalid",
            hint="it may have been written by another version",
            excerpt=str(error),
        ) from error
    return report.from_here(folder)


def find_run(output: Path, run: str) -> Path:
    """Find the folder of a run, given its id or its folder.

    Raises:
        UsageError: if there is none with a report (`run_missing`).
    """
    runs = output / "runs"
    for folder in (runs / run, Path(run)):
        if (folder / REPORT).is_file():
            return folder
    known = [p.parent.name for p in runs.glob(f"*/{REPORT}")]
    raise UsageError(
        f"no conform run {run!r} in {runs}",
        code="run_missing",
        hint=nearest(run, known) or "give the run's id, as conform printed it, or its folder",
    )
