"""What is known of a mutant while cases are run against it."""

from itertools import chain

from memconform.conformance.mutation.mutant import Mutant
from memconform.conformance.mutation.results import Fate, MutantResult, result_of
from memconform.conformance.results import CaseResult, Check, Result
from memconform.printing.logs import Logger

_log = Logger()


class MutantProgress:
    """The results so far of the cases that were run against a mutant."""

    def __init__(self, mutant: Mutant) -> None:
        self.mutant = mutant
        self.detection: Check | None = None
        """The check that detected the mutant."""
        self.took_s = 0.0
        self.unfit: list[str] = []
        """Why cases citing its rule cannot be used: they do not pass on the unmodified daemon."""
        self._cases = 0
        self._untested: dict[str, list[str]] = {}
        """Why each case could not be completed, by its id."""
        self._repeated: set[str] = set()

    @property
    def detecting_case(self) -> str:
        """Id of the case that detected it; empty if none did."""
        return self.detection.id.partition("#")[0] if self.detection is not None else ""

    def add(self, case: CaseResult) -> bool:
        """Record the result of a case; return whether the mutant is detected now."""
        self._cases += 1
        self.detection = self.detection or detecting_check(self.mutant, case)
        if untested := [
            f"{check.id}: {' '.join(check.got)}"
            for check in case.checks
            if check.result in (Result.UNTESTABLE, Result.ERROR)
        ]:
            self._untested[case.case] = untested
        return self.detection is not None

    @property
    def untested(self) -> frozenset[str]:
        """Ids of the cases to repeat, because they could not be completed; each once."""
        if self.detection is not None:
            return frozenset()
        return frozenset(self._untested) - self._repeated

    def begin_repeat(self) -> None:
        """Discard the results of the cases to repeat."""
        for case in self.untested:
            self._repeated.add(case)
            del self._untested[case]
            self._cases -= 1

    def result(self) -> MutantResult:
        """Return the result, which is final once no more cases are run."""
        if self.detection is not None:
            fate, by, got = Fate.KILLED, self.detection.id, self.detection.got
        else:
            by, got = "", [*chain.from_iterable(self._untested.values()), *self.unfit]
            fate = Fate.UNTESTABLE if got or not self._cases else Fate.SURVIVED
        _log.info("mutant", id=self.mutant.id, fate=fate.value, by=by, took_s=self.took_s)
        return result_of(self.mutant, fate, by=by, got=got, cases=self._cases, took_s=self.took_s)


def detecting_check(mutant: Mutant, case: CaseResult) -> Check | None:
    """Return the check that detects a mutant; None if no check of the case does.

    A check detects it by failing or, for a mutant of a SHOULD, by warning. If the mutant names a
    check, no other counts.
    """
    failing = (Result.FAIL,) if mutant.level == "must" else (Result.FAIL, Result.WARN)
    checks = (check for check in case.checks if mutant.check in ("", check.id))
    return next((check for check in checks if check.result in failing), None)
