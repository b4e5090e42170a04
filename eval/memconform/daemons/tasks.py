"""Tasks that own processes: whoever awaits them goes on only once they have ended."""

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

Value = TypeVar("Value")


async def finish(work: Coroutine[Any, Any, None]) -> None:
    """Await `work` to completion even if cancelled; the cancellation is raised afterwards.

    A cancellation takes precedence over an error of `work`: a daemon that leaves processes behind
    must not turn the user's interrupt into a failure of one case, after which the others run.
    """
    task = asyncio.ensure_future(work)
    cancelled: asyncio.CancelledError | None = None
    while not task.done():
        try:
            await asyncio.shield(task)
        except asyncio.CancelledError as error:
            cancelled = error
        except Exception:  # noqa: BLE001 - raised below, as the task's own result
            break
    if cancelled is None:
        task.result()
        return
    raise cancelled from (None if task.cancelled() else task.exception())


async def run_together(*work: Coroutine[Any, Any, Value]) -> list[Value]:
    """Run `work` concurrently and return the results in order.

    If one fails, or the caller is cancelled, the others are cancelled and awaited. `asyncio.gather`
    would return while they still stop the daemons that they have started.
    """
    tasks = [asyncio.ensure_future(each) for each in work]
    if not tasks:
        return []
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_EXCEPTION)
    finally:
        # Cancel each once: a second time would interrupt the end of its daemons.
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)
    errors = [error for task in tasks if not task.cancelled() and (error := task.exception())]
    if errors:
        raise errors[0]
    return [task.result() for task in tasks]
