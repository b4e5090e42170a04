"""Which SDKs can run on this machine."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

from memconform.daemons.runner import Progress, SdkRunner
from memconform.errors import DaemonError, MemconformError


@dataclass(frozen=True, slots=True)
class Absence:
    """An SDK that is left out, and why."""

    sdk: str
    error: MemconformError


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
