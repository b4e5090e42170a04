"""Whether a result's rates are those of its questions; an edited one is not shown."""

from dataclasses import dataclass, field

from memconform.errors import UsageError
from memconform.parity.loaded_runs import LoadedRun
from memconform.runs.plan import Floor
from memconform.runs.results import QuestionResult
from memconform.runs.verdict import Tally, check_floor

_ROUNDING = 1e-9


@dataclass(slots=True)
class RateCheck:
    """Counts a run's questions, and compares what its summary says of them."""

    run: LoadedRun
    _tally: Tally = field(default_factory=Tally)

    def __post_init__(self) -> None:
        tags = frozenset(floor.tag for floor in self.run.summary.floors if floor.tag is not None)
        self._tally = Tally(tags=tags)

    def add(self, question: QuestionResult) -> None:
        self._tally.add(question)

    def require_consistent(self) -> None:
        """Raise UsageError `unlike_runs` if a rate, its interval or a floor is another one.

        A run that an incident ended has none that is shown.
        """
        summary, tally = self.run.summary, self._tally
        if summary.incident is not None:
            return
        rate = tally.passed / tally.total if tally.measured else None
        if not _equal(summary.pass_rate, rate):
            raise self._edited("pass_rate", summary.pass_rate, rate)
        interval = tally.interval() if tally.measured else (0.0, 1.0)
        if not all(map(_equal, summary.pass_rate_interval, interval)):
            raise self._edited("pass_rate_interval", summary.pass_rate_interval, tuple(interval))
        for floor in summary.floors:
            actual = check_floor(tally, Floor(floor.floor, floor.tag))
            if floor != actual:
                raise self._edited(f"the floor {floor.floor:g}", floor, actual)

    def _edited(self, what: str, stored: object, actual: object) -> UsageError:
        return UsageError(
            f"{self.run.path}: {what} is {stored}, but its questions give {actual}",
            code="unlike_runs",
            hint="check whether the file was edited",
        )


def _equal(stored: float | None, actual: float | None) -> bool:
    if stored is None or actual is None:
        return stored is actual
    return abs(stored - actual) <= _ROUNDING
