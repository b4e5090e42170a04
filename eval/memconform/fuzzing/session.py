"""Searches for a program on which daemons disagree, and shrinks it to a minimal one."""

import asyncio
import secrets
import signal
import threading
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from pathlib import Path

from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis.errors import Flaky
from hypothesis.strategies import SearchStrategy

from memconform.contract.wire import Profile
from memconform.daemons.sdk_runner import Daemon, Launch, SdkRunner
from memconform.daemons.upstream import restartable
from memconform.errors import DaemonError
from memconform.fuzzing.corpus import Corpus
from memconform.fuzzing.counterexample_search import (
    DisagreementError,
    FuzzResult,
    Search,
    StoppedError,
)
from memconform.fuzzing.failures import FuzzTarget
from memconform.fuzzing.judges import Judge, PeerJudge
from memconform.fuzzing.programs import Program
from memconform.fuzzing.strategies import programs


@asynccontextmanager
async def serve_sdks(
    runners: Sequence[SdkRunner], folder: Path
) -> AsyncIterator[dict[str, FuzzTarget]]:
    """Start all daemons and yield them, by SDK.

    Raises:
        DaemonError: if one of them does not start.
    """
    async with AsyncExitStack() as stack:
        targets = {}
        for runner in runners:
            subfolder = folder / runner.name
            await asyncio.to_thread(subfolder.mkdir, parents=True)
            # With a shared id, stopping a daemon would also end those of a concurrent session.
            run_id = f"fuzz-{runner.name}-{secrets.token_hex(4)}"
            launch = Launch(run_id=run_id, folder=subfolder)
            daemon = await stack.enter_async_context(runner.serve(launch))
            targets[runner.name] = _target(daemon, stack)
        yield targets


def _target(daemon: Daemon, stack: AsyncExitStack) -> FuzzTarget:
    """The daemon for the threads of a search; until the stack is left, its end is noticed."""
    if daemon.process is None:
        return FuzzTarget(daemon.base_url)
    endings = [asyncio.ensure_future(daemon.wait_exit())]

    def stop_watching() -> None:
        endings[-1].cancel()

    stack.callback(stop_watching)
    loop = asyncio.get_running_loop()
    again = restartable(daemon)

    def exit_status() -> str:
        last = endings[-1]
        return last.result() if last.done() and not last.cancelled() else ""

    async def restart(how: str) -> str:
        if again is None or daemon.process is None:
            raise ValueError("this daemon cannot be restarted")
        if how == "kill":
            # Nothing is awaited before the lock of `restart` is taken, so this end is not taken
            # for one of the daemon's own.
            daemon.process.signal(signal.SIGKILL)
        try:
            await again.restart()
        except DaemonError as error:
            return f"process ended: {error.code}"
        if endings[-1].done():
            endings.append(asyncio.ensure_future(daemon.wait_exit()))
        return ""

    def restart_and_wait(how: str) -> str:
        return asyncio.run_coroutine_threadsafe(restart(how), loop).result()

    return FuzzTarget(daemon.base_url, exit_status, restart_and_wait if again else None)


def find_disagreement(
    targets: Mapping[str, FuzzTarget],
    profiles: set[Profile],
    *,
    examples: int,
    seed_value: int,
    tried: Callable[[], None],
    stop: threading.Event,
    judge: Judge | None = None,
    seconds: float | None = None,
    keep_going: bool = False,
    corpus: Corpus | None = None,
    shrinks: bool = True,
) -> FuzzResult:
    """Run random programs on all daemons until an answer is wrong, then shrink the program.

    Blocks the thread.

    Args:
        targets: The daemons, by SDK.
        profiles: Profiles that all of them claim.
        examples: Maximum number of programs to try before shrinking.
        seed_value: The same seed generates the same programs.
        tried: Called after each program.
        stop: Ends the search with the result so far once it is set.
        judge: Decides which answers are wrong; by default those that differ between daemons.
        seconds: After that time no new program is tried; None: no limit.
        keep_going: Whether to search on, for differences of other kinds.
        corpus: Programs to begin with; it gets those that found something or reached a new kind of
            answer.
        shrinks: Whether to look for a smaller program that shows the same.

    Raises:
        BrainLostError: if a daemon stops working before a disagreement was found.
    """
    search = Search(targets, judge or PeerJudge(), tried, stop, seconds=seconds, corpus=corpus)
    strategy = programs(profiles, restarts=all(t.restart is not None for t in targets.values()))
    try:
        search.replay(keep_going=keep_going)
        left = examples
        while left > 0 and (keep_going or not search.found) and not search.is_over:
            found, before = len(search.found), search.examples
            phases = (Phase.generate, Phase.shrink) if shrinks else (Phase.generate,)
            _search_once(search, strategy, left, seed_value + found, phases)
            if len(search.found) == found:
                break
            if shrinks:
                search.repeat()
            left -= search.examples - before
    finally:
        search.close()
    return search.result()


def _search_once(
    search: Search,
    strategy: SearchStrategy[Program],
    examples: int,
    seed_value: int,
    phases: Sequence[Phase],
) -> None:
    run_example = given(strategy)(search.run_example)
    run_example = settings(
        max_examples=examples,
        database=None,
        deadline=None,
        phases=phases,
        suppress_health_check=list(HealthCheck),
        report_multiple_bugs=False,
        print_blob=False,
    )(run_example)
    with suppress(DisagreementError, Flaky, StoppedError):
        seed(seed_value)(run_example)()
    if Phase.shrink in phases:
        with suppress(StoppedError):
            search.drop_calls()
    search.finish_shrinking()
