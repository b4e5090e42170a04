"""Builds SDKs and reports those that cannot run on this machine."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Sequence
from dataclasses import dataclass

from memconform.daemons.sdk_runner import Progress, SdkRunner
from memconform.daemons.tasks import run_together
from memconform.errors import DaemonError, ExitCode, MemconformError
from memconform.records import SkipRecord

_ORDER_SECONDS = 1.0
"""How long finished builds wait for an earlier one; most builds are cached."""
_MACHINE_CODES = ("toolchain_missing", "build_unavailable")


@dataclass(frozen=True, slots=True)
class SkippedSdk:
    """An SDK that is skipped, and the reason."""

    sdk: str
    error: MemconformError
    is_named: bool = False
    """Whether the command line names it, so that leaving it out is a failure."""

    @property
    def exit_code(self) -> ExitCode:
        """OK if this machine lacks a tool, because only a broken build is a failure."""
        if self.is_named:
            return self.error.exit_code
        broken = isinstance(self.error, DaemonError) and self.error.code not in _MACHINE_CODES
        return self.error.exit_code if broken else ExitCode.OK

    def record(self) -> SkipRecord:
        """What a report says of it."""
        return SkipRecord(sdk=self.sdk, reason=f"{self.error.code}: {self.error.message}")


async def build_all(
    runners: Sequence[SdkRunner], progress: Progress
) -> tuple[list[SdkRunner], list[SkippedSdk]]:
    """Build all SDKs concurrently; returns the usable runners and the skipped SDKs."""
    skips = await run_together(*(_build(runner, progress) for runner in runners))
    usable = [runner for runner, skip in zip(runners, skips, strict=True) if skip is None]
    return usable, [skip for skip in skips if skip is not None]


async def as_built(
    runners: Sequence[SdkRunner],
    progress: Progress,
    on_state: Callable[[str, str], None] = lambda _name, _state: None,
) -> AsyncGenerator[tuple[SdkRunner, SkippedSdk | None], None]:
    """Build all SDKs concurrently and yield each once its build has succeeded or failed.

    The order is that of `runners`, unless a slow build would delay others. Closing the generator
    cancels unfinished builds. `on_state` gets the name of an SDK and what becomes of it.
    """

    async def build(runner: SdkRunner) -> SkippedSdk | None:
        on_state(runner.name, "building")
        skip = await _build(runner, progress)
        on_state(runner.name, "waiting" if skip is None else "skipped")
        return skip

    building = {runner: asyncio.create_task(build(runner)) for runner in runners}
    try:
        while building:
            first = next(iter(building))
            await asyncio.wait([building[first]], timeout=_ORDER_SECONDS)
            await asyncio.wait(building.values(), return_when=asyncio.FIRST_COMPLETED)
            runner = next(runner for runner, task in building.items() if task.done())
            skip = building.pop(runner).result()
            if busy := [other.name for other, task in building.items() if not task.done()]:
                progress(
                    f"still building {', '.join(busy)}: latencies exceed those of an idle machine"
                )
            yield runner, skip
    finally:
        for task in building.values():
            task.cancel()
        await asyncio.gather(*building.values(), return_exceptions=True)


async def _build(runner: SdkRunner, progress: Progress) -> SkippedSdk | None:
    try:
        await runner.build(progress)
    except DaemonError as error:
        return SkippedSdk(runner.name, error)
    return None
