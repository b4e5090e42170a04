"""The verdict on two runs from counts of questions; the only place where it is decided."""

from collections.abc import Sequence
from dataclasses import dataclass

from memconform.parity.records import PairedComparison, ParityVerdict, RateInterval
from memconform.stats.paired import holm, mcnemar, questions_to_settle, tango

MARGIN = 0.02
ALPHA = 0.05


@dataclass(slots=True)
class Counts:
    """Questions that two runs both measured, by which of the runs pass them."""

    both: int = 0
    first_only: int = 0
    second_only: int = 0
    neither: int = 0
    same: bool = True
    """Whether every question was measured in both runs and has the same answer in both."""

    def add(self, *, first: bool, second: bool) -> None:
        """Count a question by whether each run passes it."""
        match first, second:
            case True, True:
                self.both += 1
            case True, False:
                self.first_only += 1
            case False, True:
                self.second_only += 1
            case _:
                self.neither += 1

    @property
    def compared(self) -> int:
        return self.both + self.first_only + self.second_only + self.neither


def compare_pairs(
    pairs: Sequence[Counts], *, margin: float = MARGIN, alpha: float = ALPHA
) -> list[PairedComparison]:
    """The verdict on each pair, with significance adjusted for the number of pairs.

    Drift is a McNemar mid-p below `alpha` after Holm's adjustment; parity is a Tango interval of
    confidence 1 - 2 alpha inside the margin. A significant difference is drift, even inside the
    margin.
    """
    tests = [mcnemar(counts.first_only, counts.second_only) for counts in pairs]
    adjusted = holm([test.mid_p for test in tests])
    comparisons = []
    for counts, test, p in zip(pairs, tests, adjusted, strict=True):
        b, c, n = counts.first_only, counts.second_only, counts.compared
        observed = (b - c) / n if n else 0.0
        equivalence = RateInterval(value=observed, **tango(b, c, n, 1 - 2 * alpha)._asdict())
        verdict = _verdict(counts, p, equivalence, margin=margin, alpha=alpha)
        comparisons.append(
            PairedComparison(
                verdict=verdict,
                compared=n,
                both=counts.both,
                first_only=b,
                second_only=c,
                neither=counts.neither,
                difference=RateInterval(value=observed, **tango(b, c, n)._asdict()),
                equivalence=equivalence,
                mid_p=test.mid_p,
                exact_p=test.exact,
                holm_p=p,
                settled_by=questions_to_settle(
                    b, c, n, margin=margin, alpha=alpha, tests=len(pairs)
                )
                if verdict is ParityVerdict.INCONCLUSIVE
                else None,
            )
        )
    return comparisons


def _verdict(
    counts: Counts, p: float, equivalence: RateInterval, *, margin: float, alpha: float
) -> ParityVerdict:
    if counts.compared == 0:
        return ParityVerdict.INCONCLUSIVE
    if counts.same:
        return ParityVerdict.IDENTICAL
    if p < alpha:
        return ParityVerdict.DRIFT
    within = -margin < equivalence.low and equivalence.high < margin
    return ParityVerdict.PARITY if within else ParityVerdict.INCONCLUSIVE
