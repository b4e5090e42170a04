"""Looks for a program about which daemons part, and makes it as small as it will get."""

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
from memconform.daemons.runner import Launch, SdkRunner
from memconform.fuzzing.answers import ProgramAnswer
from memconform.fuzzing.comparing import AnswerDifference, compare_answers
from memconform.fuzzing.program_runner import BrainLostError, ProgramRunner
from memconform.fuzzing.programs import Program
from memconform.fuzzing.strategies import programs

_REPEATS = 3
"""How often the smallest program is put again: what does not part each time is said to be so."""


@dataclass(frozen=True, slots=True)
class Disagreement:
    program: Program
    answers: dict[str, list[ProgramAnswer]]
    difference: AnswerDifference
    steady: bool
    """Whether it comes each time that the program is put."""


@dataclass(frozen=True, slots=True)
class Sought:
    examples: int
    """That were put to all, those of the shrinking among them."""
    requests: int
    """To each daemon."""
    disagreement: Disagreement | None


class _PartedError(Exception):
    pass


class _StoppedError(BaseException):
    """Not an example's failure, which Hypothesis would shrink."""


@asynccontextmanager
async def serve_sdks(runners: Sequence[SdkRunner], folder: Path) -> AsyncIterator[dict[str, str]]:
    """The addresses of all daemons, by SDK; raises DaemonError where one does not start."""
    async with AsyncExitStack() as stack:
        addresses = {}
        for runner in runners:
            own = folder / runner.name
            await asyncio.to_thread(own.mkdir, parents=True)
            # Its own, or stopping it would end the daemons of a session beside this one as strays.
            run_id = f"fuzz-{runner.name}-{secrets.token_hex(4)}"
            launch = Launch(run_id=run_id, folder=own)
            addresses[runner.name] = (
                await stack.enter_async_context(runner.serve(launch))
            ).base_url
        yield addresses


def seek(
    addresses: Mapping[str, str],
    profiles: set[Profile],
    *,
    examples: int,
    seed_value: int,
    tried: Callable[[], None],
    stop: threading.Event,
) -> Sought:
    """Put so many programs to all daemons, until they part; then smaller ones that part too.

    Blocks. `tried` is called after each program; `stop` ends it with what was found so far.

    Raises:
        BrainLostError: where a daemon cannot be asked any more, and nothing was found before.
    """
    seeker = _Seeker(addresses, tried, stop)
    look = given(programs(profiles))(seeker.look)
    look = settings(
        max_examples=examples,
        database=None,
        deadline=None,
        phases=(Phase.generate, Phase.shrink),
        suppress_health_check=list(HealthCheck),
        report_multiple_bugs=False,
        print_blob=False,
    )(look)
    try:
        with suppress(_PartedError, Flaky, _StoppedError):
            seed(seed_value)(look)()
        seeker.repeat()
    finally:
        seeker.close()
    return seeker.sought()


class _Seeker:
    def __init__(
        self, addresses: Mapping[str, str], tried: Callable[[], None], stop: threading.Event
    ) -> None:
        self._askers = {name: ProgramRunner(address) for name, address in addresses.items()}
        self._threads = ThreadPoolExecutor(len(self._askers))
        self._tried = tried
        self._stop = stop
        self._examples = self._requests = 0
        self._smallest: Disagreement | None = None
        self._lost: BrainLostError | None = None

    def look(self, program: Program) -> None:
        if self._stop.is_set():
            raise _StoppedError
        try:
            answers = self._answers(program)
        except BrainLostError as error:
            # Hypothesis would put it again, find that it is well, and call that flaky.
            self._lost = error
            raise _StoppedError from error
        found = compare_answers(answers)
        self._examples += 1
        self._requests += len(program.calls)
        self._tried()
        if found is not None:
            # Hypothesis puts the smallest one last.
            self._smallest = Disagreement(program, answers, found, steady=True)
            raise _PartedError

    def _answers(self, program: Program) -> dict[str, list[ProgramAnswer]]:
        asked = {
            name: self._threads.submit(asker.ask, program) for name, asker in self._askers.items()
        }
        answers = {}
        for name, future in asked.items():
            try:
                answers[name] = future.result()
            except BrainLostError as error:
                raise BrainLostError(f"{name}: {error}") from error
        return answers

    def sought(self) -> Sought:
        if self._lost is not None and self._smallest is None:
            raise self._lost
        return Sought(self._examples, self._requests, self._smallest)

    def repeat(self) -> None:
        """Whether the smallest program parts them each time."""
        if self._smallest is None or self._stop.is_set():
            return
        try:
            again = [
                compare_answers(self._answers(self._smallest.program)) for _ in range(_REPEATS)
            ]
            steady = all(each is not None for each in again)
        except BrainLostError:
            steady = False
        self._smallest = replace(self._smallest, steady=steady)

    def close(self) -> None:
        self._threads.shutdown()
        for asker in self._askers.values():
            asker.close()
