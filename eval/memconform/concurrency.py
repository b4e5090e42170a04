"""Work on several items at once, and the error of work that was interrupted."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import TypeVar

from memconform.errors import ExitCode, MemconformError

_Item = TypeVar("_Item")
_Result = TypeVar("_Result")


class InterruptedRunError(MemconformError):
    """The user interrupted the run."""

    exit_code = ExitCode.INTERRUPTED


def interruption(again: str = "--resume") -> InterruptedRunError:
    """Create the error of an interrupted run; `again` is what continues it."""
    return InterruptedRunError(
        "stopped before the end",
        code="interrupted",
        hint=f"measurements are kept; {again} asks the remaining questions",
    )


def is_cancelled() -> bool:
    """Whether the current task was cancelled, even if another error hides the cancellation."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


async def work_through(
    items: Iterator[_Item], work: Callable[[_Item], Awaitable[_Result]], concurrency: int
) -> AsyncGenerator[_Result, None]:
    """Yield the results of `work` as they complete, with `concurrency` items in progress.

    A worker starts its next item only after its result was consumed and the iteration continues, so
    that code between two results, such as a proof of the index, runs concurrently with at most the
    items of the other workers. The first error of `work` is raised after all earlier results.
    Closing the generator, or cancelling the iterating task, cancels the items in progress.

    Args:
        items: consumed one by one as workers are free.
        work: called with each item.
        concurrency: the number of workers, at least 1.
    """
    results: asyncio.Queue[tuple[_Result, asyncio.Event] | None] = asyncio.Queue()

    async def worker() -> None:
        for item in items:
            consumed = asyncio.Event()
            results.put_nowait((await work(item), consumed))
            await consumed.wait()

    async def end(workers: "list[asyncio.Task[None]]") -> None:
        await asyncio.wait(workers, return_when=asyncio.FIRST_EXCEPTION)
        results.put_nowait(None)

    workers = [asyncio.create_task(worker()) for _ in range(concurrency)]
    ending = asyncio.create_task(end(workers))
    try:
        while (entry := await results.get()) is not None:
            result, consumed = entry
            yield result
            consumed.set()
        for task in workers:
            if task.done():
                task.result()
    finally:
        for task in (*workers, ending):
            task.cancel()
        await asyncio.gather(*workers, ending, return_exceptions=True)


class Slots(asyncio.Semaphore):
    """Bounds how many tasks run at once; a task may also ask for all slots, to run alone."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self._number = number
        self._for_all = asyncio.Lock()

    @asynccontextmanager
    async def all(self) -> AsyncIterator[None]:
        """Hold all slots, once every other task has released its own."""
        # Without the lock, two tasks would each hold some and wait for the rest.
        async with self._for_all, AsyncExitStack() as held:
            for _ in range(self._number):
                await held.enter_async_context(self)
            yield
