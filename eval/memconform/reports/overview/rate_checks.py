"""Whether a result's rates are those of its questions; an edited one is not shown."""

from dataclasses import dataclass, field

from memconform.errors import UsageError
from memconform.results.loaded_runs import LoadedRun
from memconform.runs.plan import Floor
from memconform.runs.results import FloorResult, QuestionResult
from memconform.runs.verdict import Tally, check_floor
from memconform.stats.stored_figures import is_same_figure


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
        if not is_same_figure(summary.pass_rate, rate):
            raise self._edited("pass_rate", summary.pass_rate, rate)
        interval = tally.interval() if tally.measured else (0.0, 1.0)
        if not all(map(is_same_figure, summary.pass_rate_interval, interval)):
            raise self._edited("pass_rate_interval", summary.pass_rate_interval, tuple(interval))
        answered = tally.passed / tally.measured if tally.measured else None
        if not is_same_figure(summary.pass_rate_answered, answered):
            raise self._edited("pass_rate_answered", summary.pass_rate_answered, answered)
        for floor in summary.floors:
            actual = check_floor(tally, Floor(floor.floor, floor.tag))
            if not _is_same_floor(floor, actual):
                raise self._edited(f"the floor {floor.floor:g}", floor, actual)

    def _edited(self, what: str, stored: object, actual: object) -> UsageError:
        return UsageError(
            f"{self.run.path}: {what} is {stored}, but its questions give {actual}",
            code="unlike_runs",
            hint="check whether the file was edited",
        )


def _is_same_floor(stored: FloorResult, actual: FloorResult) -> bool:
    rates = {"rate": actual.rate, "best_rate": actual.best_rate}
    return stored.model_copy(update=rates) == actual and all(
        is_same_figure(getattr(stored, name), rate) for name, rate in rates.items()
    )
