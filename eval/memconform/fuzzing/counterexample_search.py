"""Runs programs on daemons, judges the answers, and keeps what was found."""

import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, replace

from memconform.fuzzing.blame import rank
from memconform.fuzzing.comparison import AnswerDifference
from memconform.fuzzing.corpus import Corpus
from memconform.fuzzing.failures import BrainLostError, FuzzTarget
from memconform.fuzzing.judges import Finding, Judge
from memconform.fuzzing.normalized_answer import ProgramAnswer
from memconform.fuzzing.program_runner import ProgramRunner
from memconform.fuzzing.programs import RESTARTS, Program

_REPEATS = 3
"""How often the minimal program is repeated, to tell whether the disagreement is reproducible."""
_SHRINK_SECONDS = 60.0
"""How long a program may be shrunk after the time of a search is over."""


@dataclass(frozen=True, slots=True)
class Disagreement:
    """A program on which daemons disagree, with each other or with the oracle, and the answers."""

    program: Program
    answers: dict[str, list[ProgramAnswer]]
    difference: AnswerDifference
    steady: bool
    """Whether it occurs each time the program is run."""
    key: str = ""
    """What `Finding.key` is."""
    found_after: int = 0
    """Number of programs that had been run when it first occurred, this one included."""


@dataclass(frozen=True, slots=True)
class FuzzResult:
    """The result of a search."""

    examples: int
    """Number of programs run on all daemons, including those of shrinking."""
    requests: int
    """Number of requests sent to each daemon."""
    disagreements: tuple[Disagreement, ...]
    """At most one of each kind; without `keep_going` at most one. Basic rules first."""
    resets: dict[str, dict[str, int]]
    """By SDK: how often it reset the connection of which request of the harness itself."""

    @property
    def disagreement(self) -> Disagreement | None:
        """The first one."""
        return next(iter(self.disagreements), None)


class DisagreementError(Exception):
    """An example on which daemons disagree, for Hypothesis to shrink."""


class StoppedError(BaseException):
    """Stops the search. A BaseException, so Hypothesis does not take it for a failing example."""


class Search:
    """The state of a search. Not thread-safe."""

    def __init__(
        self,
        targets: Mapping[str, FuzzTarget],
        judge: Judge,
        tried: Callable[[], None],
        stop: threading.Event,
        *,
        seconds: float | None = None,
        corpus: Corpus | None = None,
    ) -> None:
        self._runners = {name: ProgramRunner(target) for name, target in targets.items()}
        self._targets = targets
        self._can_restart = all(target.restart is not None for target in targets.values())
        self._threads = ThreadPoolExecutor(len(self._runners))
        self._judge = judge
        self._tried = tried
        self._stop = stop
        self._deadline = None if seconds is None else time.monotonic() + seconds
        self._corpus = corpus
        self.examples = self._requests = 0
        self.found: list[Disagreement] = []
        self._known: set[str] = set()
        self._adds = False
        """Whether programs that reach something new are added to the corpus."""
        self._smallest: Disagreement | None = None
        self._lost: BrainLostError | None = None

    @property
    def is_over(self) -> bool:
        """Whether no new program should be tried."""
        late = self._deadline is not None and time.monotonic() > self._deadline
        return late or self._stop.is_set() or self._lost is not None

    def run_example(self, program: Program) -> None:
        """Run a program; raises DisagreementError if an answer is wrong in a new way."""
        shrinking = self._smallest is not None
        grace = time.monotonic() - _SHRINK_SECONDS
        late = self._deadline is not None and grace > self._deadline
        if self._stop.is_set() or (self.is_over and not shrinking) or late:
            raise StoppedError
        finding = self._finding(program)
        self._tried()
        if finding is not None:
            # Hypothesis runs the minimal example last.
            self._smallest = Disagreement(
                program,
                finding.answers,
                finding.difference,
                steady=True,
                key=finding.key,
                found_after=self._smallest.found_after if self._smallest else self.examples,
            )
            raise DisagreementError

    def _finding(self, program: Program) -> Finding | None:
        """Run a program; return what it shows: while shrinking, only more of the same."""
        try:
            answers = self._answers(program)
        except BrainLostError as error:
            # Hypothesis would repeat the example, see it succeed, and report it as flaky.
            self._lost = error
            raise StoppedError from error
        self.examples += 1
        self._requests += len(program.calls)
        if self._corpus is not None:
            for row in answers.values():
                self._corpus.observe(program, row, keeps=self._adds and self._smallest is None)
        findings = (f for f in self._judge.findings(program, answers) if f.key not in self._known)
        wanted = self._smallest.key if self._smallest and self._judge.distinguishes else None
        return next((f for f in findings if wanted in (None, f.key)), None)

    def _revive(self) -> None:
        """Start daemons again that an earlier program ended, so that it can be shrunk."""
        for name, target in self._targets.items():
            if target.restart is None or not (status := target.exit_status()):
                continue
            if failure := target.restart("restart"):
                raise BrainLostError("the start", "process ended", f"{status}, {failure}", name)

    def _answers(self, program: Program) -> dict[str, list[ProgramAnswer]]:
        self._revive()
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

    def replay(self, *, keep_going: bool) -> None:
        """Run the programs of the corpus as they are; from then on, others are added to it."""
        self._replay(keep_going=keep_going)
        self._adds = True

    def _replay(self, *, keep_going: bool) -> None:
        for program in self._corpus.programs() if self._corpus is not None else ():
            restarts = any(call.route in RESTARTS for call in program.calls)
            if restarts and not self._can_restart:
                continue
            try:
                self.run_example(program)
            except DisagreementError:
                self.finish_shrinking(is_new=False)
                if not keep_going:
                    return
            except StoppedError:
                return

    def finish_shrinking(self, *, is_new: bool = True) -> None:
        """Keep the smallest program that was found, and look for other findings from now on."""
        if self._smallest is None:
            return
        self.found.append(self._smallest)
        self._known.add(self._smallest.key)
        if self._corpus is not None and is_new:
            self._corpus.keep(self._smallest.program)
        self._smallest = None

    def result(self) -> FuzzResult:
        """Everything that was found; raises BrainLostError if nothing was and a brain was lost."""
        if self._lost is not None and not self.found:
            raise self._lost
        resets = {name: dict(runner.resets) for name, runner in self._runners.items()}
        resets = {name: requests for name, requests in resets.items() if requests}
        found = sorted(self.found, key=lambda item: rank(item.difference.rule))
        return FuzzResult(self.examples, self._requests, tuple(found), resets)

    def drop_calls(self) -> None:
        """Leave out each call of the smallest program without which it shows the same.

        Hypothesis may stop before: five calls were left of which one mattered. What it tries also
        depends on the constants of all modules that are imported.
        """
        if self._smallest is None:
            return
        for index in reversed(range(len(self._smallest.program.calls))):
            program = self._smallest.program
            calls = program.calls[:index] + program.calls[index + 1 :]
            with suppress(DisagreementError):
                self.run_example(replace(program, calls=calls))

    def repeat(self) -> None:
        """Repeat the last minimal program, and record whether the answers are wrong each time."""
        if not self.found or self._stop.is_set() or self._lost is not None:
            return
        last = self.found[-1]
        try:
            repeated = [self._answers(last.program) for _ in range(_REPEATS)]
        except BrainLostError:
            steady = False
        else:
            steady = all(self._shows(last, answers) for answers in repeated)
        self.found[-1] = replace(last, steady=steady)

    def _shows(self, item: Disagreement, answers: Mapping[str, list[ProgramAnswer]]) -> bool:
        findings = self._judge.findings(item.program, answers)
        return any(not self._judge.distinguishes or f.key == item.key for f in findings)

    def close(self) -> None:
        """Close all connections."""
        self._threads.shutdown()
        for runner in self._runners.values():
            runner.close()
