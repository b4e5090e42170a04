"""Searches for a program on which daemons disagree, and shrinks it to a minimal one."""

import asyncio
import secrets
import threading
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path

from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis.errors import Flaky

from memconform.contract.wire import Profile
from memconform.daemons.runner import Daemon, Launch, SdkRunner
from memconform.fuzzing.answers import ProgramAnswer
from memconform.fuzzing.comparing import AnswerDifference, compare_answers
from memconform.fuzzing.failures import BrainLostError, FuzzTarget
from memconform.fuzzing.program_runner import ProgramRunner
from memconform.fuzzing.programs import Program
from memconform.fuzzing.strategies import programs

_REPEATS = 3
"""How often the minimal program is repeated, to tell whether the disagreement is reproducible."""


@dataclass(frozen=True, slots=True)
class Disagreement:
    """A program on which daemons disagree, and their answers."""

    program: Program
    answers: dict[str, list[ProgramAnswer]]
    difference: AnswerDifference
    steady: bool
    """Whether it occurs each time the program is run."""


@dataclass(frozen=True, slots=True)
class FuzzResult:
    """The result of a search."""

    examples: int
    """Number of programs run on all daemons, including those of shrinking."""
    requests: int
    """Number of requests sent to each daemon."""
    disagreement: Disagreement | None
    resets: dict[str, dict[str, int]]
    """By SDK: how often it reset the connection of which request of the harness itself."""


class _DisagreementError(Exception):
    """An example on which daemons disagree, for Hypothesis to shrink."""


class _StoppedError(BaseException):
    """Stops the search. A BaseException, so Hypothesis does not take it for a failing example."""


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
    ending = asyncio.ensure_future(daemon.wait_exit())
    stack.callback(ending.cancel)

    def exit_status() -> str:
        return ending.result() if ending.done() and not ending.cancelled() else ""

    return FuzzTarget(daemon.base_url, exit_status)


def find_disagreement(
    targets: Mapping[str, FuzzTarget],
    profiles: set[Profile],
    *,
    examples: int,
    seed_value: int,
    tried: Callable[[], None],
    stop: threading.Event,
) -> FuzzResult:
    """Run random programs on all daemons until they disagree, then shrink the disagreement.

    Blocks the thread.

    Args:
        targets: The daemons, by SDK.
        profiles: Profiles that all of them claim.
        examples: Maximum number of programs to try before shrinking.
        seed_value: The same seed generates the same programs.
        tried: Called after each program.
        stop: Ends the search with the result so far once it is set.

    Raises:
        BrainLostError: if a daemon stops working before a disagreement was found.
    """
    search = _Search(targets, tried, stop)
    run_example = given(programs(profiles))(search.run_example)
    run_example = settings(
        max_examples=examples,
        database=None,
        deadline=None,
        phases=(Phase.generate, Phase.shrink),
        suppress_health_check=list(HealthCheck),
        report_multiple_bugs=False,
        print_blob=False,
    )(run_example)
    try:
        with suppress(_DisagreementError, Flaky, _StoppedError):
            seed(seed_value)(run_example)()
        search.repeat()
    finally:
        search.close()
    return search.result()


class _Search:
    def __init__(
        self, targets: Mapping[str, FuzzTarget], tried: Callable[[], None], stop: threading.Event
    ) -> None:
        self._runners = {name: ProgramRunner(target) for name, target in targets.items()}
        self._threads = ThreadPoolExecutor(len(self._runners))
        self._tried = tried
        self._stop = stop
        self._examples = self._requests = 0
        self._smallest: Disagreement | None = None
        self._lost: BrainLostError | None = None

    def run_example(self, program: Program) -> None:
        if self._stop.is_set():
            raise _StoppedError
        try:
            answers = self._answers(program)
        except BrainLostError as error:
            # Hypothesis would repeat the example, see it succeed, and report it as flaky.
            self._lost = error
            raise _StoppedError from error
        difference = compare_answers(answers)
        self._examples += 1
        self._requests += len(program.calls)
        self._tried()
        if difference is not None:
            # Hypothesis runs the minimal example last.
            self._smallest = Disagreement(program, answers, difference, steady=True)
            raise _DisagreementError

    def _answers(self, program: Program) -> dict[str, list[ProgramAnswer]]:
        futures = {
            name: self._threads.submit(runner.run, program)
            for name, runner in self._runners.items()
        }
        answers = {}
        for name, future in futures.items():
            try:
                answers[name] = future.result()
            except BrainLostError as error:
                raise error.of(name) from error
        return answers

    def result(self) -> FuzzResult:
        if self._lost is not None and self._smallest is None:
            raise self._lost
        resets = {name: dict(runner.resets) for name, runner in self._runners.items()}
        resets = {name: requests for name, requests in resets.items() if requests}
        return FuzzResult(self._examples, self._requests, self._smallest, resets)

    def repeat(self) -> None:
        """Repeat the minimal program, and record whether the daemons disagree each time."""
        if self._smallest is None or self._stop.is_set():
            return
        try:
            differences = [
                compare_answers(self._answers(self._smallest.program)) for _ in range(_REPEATS)
            ]
            steady = all(difference is not None for difference in differences)
        except BrainLostError:
            steady = False
        self._smallest = replace(self._smallest, steady=steady)

    def close(self) -> None:
        self._threads.shutdown()
        for runner in self._runners.values():
            runner.close()
