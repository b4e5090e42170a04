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

    Whoever is done with an item begins the next one when its result was taken and the iteration
    goes on: what is done between two results, such as a proof of the index, has no more than the
    items of others beside it. The first error ends it, once the results before it were taken; so
    does closing it, or a cancellation of the task that iterates, which cancel what is in work.

    Args:
        items: taken one by one, as there is room; where it ends, so does the work.
        work: called with each.
        concurrency: 1 at least.
    """
    results: asyncio.Queue[tuple[_Result, asyncio.Event] | None] = asyncio.Queue()

    async def worker() -> None:
        for item in items:
            taken = asyncio.Event()
            results.put_nowait((await work(item), taken))
            await taken.wait()

    async def end(workers: "list[asyncio.Task[None]]") -> None:
        await asyncio.wait(workers, return_when=asyncio.FIRST_EXCEPTION)
        results.put_nowait(None)

    workers = [asyncio.create_task(worker()) for _ in range(concurrency)]
    ending = asyncio.create_task(end(workers))
    try:
        while (finished := await results.get()) is not None:
            result, taken = finished
            yield result
            taken.set()
        for task in workers:
            if task.done():
                task.result()
    finally:
        for task in (*workers, ending):
            task.cancel()
        await asyncio.gather(*workers, ending, return_exceptions=True)
