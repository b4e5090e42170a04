"""Which SDKs can run on this machine."""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass

from memconform.daemons.runner import Progress, SdkRunner
from memconform.errors import DaemonError, ExitCode, MemconformError

_PATIENCE_SECONDS = 1.0
"""How long those that are built wait for one that stands before them: most are in the cache."""
_THIS_MACHINE = ("toolchain_missing", "build_unavailable")


@dataclass(frozen=True, slots=True)
class SkippedSdk:
    """An SDK that is left out, and why."""

    sdk: str
    error: MemconformError

    @property
    def exit_code(self) -> ExitCode:
        """Of what it comes to: a machine that lacks a tool is no failure, a broken build is one."""
        broken = isinstance(self.error, DaemonError) and self.error.code not in _THIS_MACHINE
        return self.error.exit_code if broken else ExitCode.OK


async def build_all(
    runners: Sequence[SdkRunner], progress: Progress
) -> tuple[list[SdkRunner], list[SkippedSdk]]:
    """Build at once whatever is not built; those that cannot be are told apart."""
    absences = await asyncio.gather(*(_build(runner, progress) for runner in runners))
    present = [r for r, absence in zip(runners, absences, strict=True) if absence is None]
    return present, [absence for absence in absences if absence is not None]


async def as_built(
    runners: Sequence[SdkRunner], progress: Progress
) -> AsyncGenerator[tuple[SdkRunner, SkippedSdk | None], None]:
    """Build all at once, and hand out each when it is built, or cannot be.

    In the order given, unless one keeps others waiting. Closing it ends what is still building.
    """
    building = {runner: asyncio.create_task(_build(runner, progress)) for runner in runners}
    try:
        while building:
            first = next(iter(building))
            await asyncio.wait([building[first]], timeout=_PATIENCE_SECONDS)
            await asyncio.wait(building.values(), return_when=asyncio.FIRST_COMPLETED)
            runner = next(runner for runner, task in building.items() if task.done())
            absence = building.pop(runner).result()
            if busy := [other.name for other, task in building.items() if not task.done()]:
                progress(
                    f"{', '.join(busy)} still building: latencies are not those of an idle machine"
                )
            yield runner, absence
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
