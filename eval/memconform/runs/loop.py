"""The loop that runs and benches share: so much in flight, until done, halted or interrupted."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator
from typing import TypeVar

from memconform.errors import ExitCode, MemconformError

_Item = TypeVar("_Item")
_Result = TypeVar("_Result")


class InterruptedRunError(MemconformError):
    exit_code = ExitCode.INTERRUPTED


def interruption() -> InterruptedRunError:
    return InterruptedRunError(
        "interrupted", code="interrupted", hint="what was measured is kept; --resume asks the rest"
    )


def is_cancelled() -> bool:
    """Whether the current task is to end; an error that is raised meanwhile hides that."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


async def work_through(
    items: Iterator[_Item], work: Callable[[_Item], Awaitable[_Result]], concurrency: int
) -> AsyncGenerator[_Result, None]:
    """Results as they come, with `concurrency` items in work.

    Nothing new is begun while results wait to be taken. The first error ends it, once the results
    before it were taken; so does closing it, or a cancellation of the task that iterates, which
    cancel what is in work.

    Args:
        items: taken one by one, as there is room; where it ends, so does the work.
        work: called with each.
        concurrency: 1 at least.
    """
    results: asyncio.Queue[tuple[_Result] | None] = asyncio.Queue(concurrency)

    async def worker() -> None:
        for item in items:
            await results.put((await work(item),))

    async def end(workers: "list[asyncio.Task[None]]") -> None:
        await asyncio.wait(workers, return_when=asyncio.FIRST_EXCEPTION)
        await results.put(None)

    workers = [asyncio.create_task(worker()) for _ in range(concurrency)]
    ending = asyncio.create_task(end(workers))
    try:
        while (result := await results.get()) is not None:
            yield result[0]
        for task in workers:
            if task.done():
                task.result()
    finally:
        for task in (*workers, ending):
            task.cancel()
        await asyncio.gather(*workers, ending, return_exceptions=True)
