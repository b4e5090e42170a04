"""Which SDKs can run on this machine."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

from memconform.daemons.runner import Progress, SdkRunner
from memconform.errors import DaemonError, ExitCode, MemconformError

_THIS_MACHINE = ("toolchain_missing", "build_unavailable")


@dataclass(frozen=True, slots=True)
class Absence:
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
) -> tuple[list[SdkRunner], list[Absence]]:
    """Build at once whatever is not built; those that cannot be are told apart."""

    async def attempt(runner: SdkRunner) -> Absence | None:
        try:
            await runner.build(progress)
        except DaemonError as error:
            return Absence(runner.name, error)
        return None

    absences = await asyncio.gather(*(attempt(runner) for runner in runners))
    present = [r for r, absence in zip(runners, absences, strict=True) if absence is None]
    return present, [absence for absence in absences if absence is not None]
