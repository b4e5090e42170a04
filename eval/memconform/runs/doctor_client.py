"""`doctor`: checks an SDK's client step by step: build, driver, and one answer."""

from collections.abc import AsyncGenerator
from pathlib import Path

from memconform.conformance.clients.case_runner import run_client_case, skip_reason
from memconform.conformance.clients.catalog import client_catalog
from memconform.conformance.clients.driver import running_driver
from memconform.conformance.results import Check, Result
from memconform.daemons.client_program import ClientProgram
from memconform.daemons.sdk_runner import Progress
from memconform.errors import DaemonError, MemconformError
from memconform.printing.commands import suggested_command
from memconform.printing.plurals import plural
from memconform.runs.doctor import Step

_CASE = "client-answer[chunked,events]"
"""The plainest of the cases: a whole answer."""


async def examine_client(
    program: ClientProgram, folder: Path, progress: Progress
) -> AsyncGenerator[Step, None]:
    """Check a client; ends early once no further step is possible.

    Args:
        program: the client.
        folder: holds the log of its driver.
        progress: receives lines for the user.
    """
    stage = "client build"
    try:
        await program.build(progress)
        yield Step(stage, "up to date")
        stage = "client driver"
        async with running_driver(
            program.name,
            program.argv(),
            env=program.environment(),
            cwd=program.folder,
            log=folder / "driver.log",
        ) as (driver, hello):
            yield Step(stage, f"{hello.driver}, claims {', '.join(hello.claims) or 'nothing'}")
            stage = "client answer"
            [entry] = [entry for entry in client_catalog() if entry.id == _CASE]
            if (why := skip_reason(entry, hello)) is not None:
                yield Step(stage, untested=why)
                return
            run = await run_client_case(entry, driver, hello)
            failed = [check for check in run.result.checks if check.result is not Result.PASS]
            if failed and failed[0].result is Result.FAIL:
                yield Step(stage, error=_failure(failed[0], program.reference))
            elif failed:
                yield Step(stage, untested="; ".join(failed[0].got))
            else:
                yield Step(stage, plural(len(run.result.checks), "check"))
    except MemconformError as error:
        yield Step(stage, error=error)


def _failure(check: Check, reference: str) -> DaemonError:
    return DaemonError(
        f"expected {check.expected}, got {'; '.join(check.got)}",
        code="client_answer_failed",
        hint=f"{suggested_command('client', 'replay', _CASE, '--sdk', reference)} shows both sides",
    )
