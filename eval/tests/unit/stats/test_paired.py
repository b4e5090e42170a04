"""Statistics of pairs, held to published examples and to other ways of computing them."""

from math import sqrt

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize_scalar
from scipy.stats import binom, binomtest

from memconform.reports.parity import contrast_line
from memconform.stats.paired import equivalent, holm, mcnemar, questions_to_settle, tango
from memconform.stats.paired_comparison import (
    Counts,
    PairedComparison,
    ParityVerdict,
    compare_pairs,
)

_COUNT = st.integers(0, 60)


def test_mcnemar_of_a_published_example() -> None:
    # Bentur et al. (2009) in Fagerland, Lydersen & Laake (2013): 1 and 7 of 21.
    result = mcnemar(1, 7)
    assert result.exact == pytest.approx(0.0703, abs=5e-5)
    assert result.mid_p == pytest.approx(0.0391, abs=5e-5)


@given(_COUNT, _COUNT)
def test_mcnemar_is_the_binomial_test(b: int, c: int) -> None:
    result = mcnemar(b, c)
    if b + c == 0:
        assert (result.exact, result.mid_p) == (1, 1)
        return
    assert result.exact == pytest.approx(binomtest(b, b + c).pvalue)
    seen = binom.pmf(min(b, c), b + c, 0.5)
    mid_p = 1 - seen / 2 if b == c else result.exact - seen
    assert result.mid_p == pytest.approx(mid_p)
    assert mcnemar(c, b) == result


def test_tango_of_a_published_example() -> None:
    # The same patients in Fagerland, Lydersen & Laake (2014): -0.517 to -0.026.
    assert tango(1, 7, 21) == pytest.approx((-0.517, -0.026), abs=5e-4)


@given(_COUNT, _COUNT, st.integers(0, 200))
@settings(max_examples=50)
def test_tango_is_where_the_score_test_just_rejects(b: int, c: int, concordant: int) -> None:
    """The likelihood is maximized anew, by search, at each end."""
    n = b + c + concordant
    if n == 0:
        assert tango(b, c, n) == (-1, 1)
        return
    low, high = tango(b, c, n)
    assert -1 <= low <= (b - c) / n <= high <= 1
    for end in (low, high):
        if abs(end) < 1 - 1e-9:
            assert _score(b, c, n, end) == pytest.approx(1.959964, rel=1e-3)


def _score(b: int, c: int, n: int, difference: float) -> float:
    """Standard errors between what was seen and a difference, at the likeliest other rate."""

    def unlikely(second: float) -> float:
        return -sum(
            binom_term
            for count, rate in ((b, second + difference), (c, second), (n - b - c, rest(second)))
            if count
            for binom_term in [count * _log(rate)]
        )

    def rest(second: float) -> float:
        return 1 - 2 * second - difference

    bounds = (max(0.0, -difference), (1 - difference) / 2)
    second = minimize_scalar(unlikely, bounds=bounds, method="bounded", options={"xatol": 1e-12}).x
    variance = 2 * second + difference - difference * difference
    return float(abs((b - c) / n - difference) / sqrt(variance / n))


def _log(rate: float) -> float:
    from math import log  # noqa: PLC0415 - here alone

    return log(max(rate, 1e-300))


def test_holm_of_a_worked_example() -> None:
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert holm([0.9, 0.6]) == [1.0, 1.0]
    assert holm([]) == []


@pytest.mark.parametrize(("b", "c", "n"), [(-1, 0, 5), (3, 3, 5)])
def test_counts_that_cannot_be_are_refused(b: int, c: int, n: int) -> None:
    with pytest.raises(ValueError, match="of 5 pairs"):
        tango(b, c, n)


def test_the_returned_number_of_questions_is_conclusive() -> None:
    for b, c, n in ((3, 4, 100), (0, 0, 50), (9, 4, 200), (1, 0, 12)):
        enough = questions_to_settle(b, c, n, margin=0.02, alpha=0.05)
        assert enough is not None
        assert enough > n
        rates = max(b, 0.5) / n, max(c, 0.5) / n
        scaled = [round(rate * enough) for rate in rates]
        first, second = scaled
        assert equivalent(first, second, enough, 0.02, 0.05) or mcnemar(first, second).mid_p < 0.05


def test_no_questions_settle_nothing() -> None:
    assert questions_to_settle(0, 0, 0, margin=0.02, alpha=0.05) is None


@pytest.mark.parametrize(
    ("counts", "verdict"),
    [
        (Counts(both=10), ParityVerdict.IDENTICAL),
        (Counts(both=10, same=False), ParityVerdict.INCONCLUSIVE),
        (Counts(both=900, first_only=1, second_only=2, same=False), ParityVerdict.PARITY),
        (Counts(both=80, first_only=16, second_only=2, same=False), ParityVerdict.DRIFT),
        # Little, and yet no accident: that is drift, whatever the margin.
        (Counts(both=9970, first_only=30, same=False), ParityVerdict.DRIFT),
        (Counts(both=90, first_only=6, second_only=2, same=False), ParityVerdict.INCONCLUSIVE),
        (Counts(), ParityVerdict.INCONCLUSIVE),
    ],
)
def test_verdicts(counts: Counts, verdict: ParityVerdict) -> None:
    [comparison] = compare_pairs([counts])
    assert comparison.verdict is verdict
    assert (comparison.settled_by is None) == (
        verdict is not ParityVerdict.INCONCLUSIVE or not counts.compared
    )


def test_more_pairs_ask_for_more_evidence() -> None:
    close = Counts(both=80, first_only=9, second_only=2, same=False)
    alone, *together = compare_pairs([close]) + compare_pairs(
        [close, Counts(both=91), Counts(both=91)]
    )
    assert alone.verdict is ParityVerdict.DRIFT
    assert together[0].verdict is ParityVerdict.INCONCLUSIVE
    assert together[0].holm_p == pytest.approx(3 * together[0].mid_p)


@pytest.mark.parametrize("tests", [1, pytest.param(3, marks=pytest.mark.exhaustive)])
def test_no_small_set_is_too_small_for_a_verdict(tests: int) -> None:
    # Several comparisons differ from one by Holm's factor alone: fewer sizes show it.
    for n in range(1, 26, tests):
        for b in range(n + 1):
            for c in range(n + 1 - b):
                counts = Counts(both=n - b - c, first_only=b, second_only=c, same=False)
                for comparison in compare_pairs([counts] * tests):
                    assert comparison.verdict is not ParityVerdict.IDENTICAL
                    assert comparison.settled_by is None or comparison.settled_by > n


def test_what_settles_one_pair_of_three_is_equivalence_at_the_same_alpha() -> None:
    counts = Counts(both=96, first_only=2, second_only=2, same=False)
    enough = compare_pairs([counts] * 3)[0].settled_by
    assert enough is not None
    share = round(2 / 100 * enough)
    more = Counts(both=enough - 2 * share, first_only=share, second_only=share, same=False)
    assert compare_pairs([more] * 3)[0].verdict is ParityVerdict.PARITY


def _clustered(*clusters: tuple[int, int, int]) -> Counts:
    """Questions of clusters (size, first only, second only); the others pass in both runs."""
    counts = Counts(same=False)
    for number, (size, b, c) in enumerate(clusters):
        for question in range(size):
            first, second = not b <= question < b + c, question >= b
            counts.add(first=first, second=second, cluster=f"conversation {number}")
    return counts


# By question 60 to 30 is no accident; by conversation, three of ten lost what seven won.
_SEVEN_OF_TEN = ((100, 8, 1),) * 7 + ((100, 1, 8),) * 2 + ((100, 2, 7),)


def test_what_is_drift_by_question_may_be_an_accident_by_conversation() -> None:
    counts = _clustered(*_SEVEN_OF_TEN)
    assert (counts.first_only, counts.second_only, counts.compared) == (60, 30, 1_000)
    [clustered] = compare_pairs([counts])
    [by_question] = compare_pairs([Counts(both=910, first_only=60, second_only=30, same=False)])
    assert by_question.verdict is ParityVerdict.DRIFT
    assert clustered.verdict is ParityVerdict.INCONCLUSIVE
    assert clustered.mid_p == by_question.mid_p < 0.002
    assert clustered.sign_flip_p == clustered.holm_p == 0.1796875
    assert clustered.settled_by is None
    assert clustered.settled_by_clusters is not None
    assert clustered.settled_by_clusters > 10
    assert clustered.equivalence.low < by_question.equivalence.low
    assert clustered.equivalence.high > by_question.equivalence.high


def test_a_question_for_each_cluster_is_compared_as_without() -> None:
    plain, named = Counts(same=False), Counts(same=False)
    for number in range(91):
        first, second = number >= 2, not 10 <= number < 19
        plain.add(first=first, second=second)
        named.add(first=first, second=second, cluster=str(number))
    assert compare_pairs([named]) == compare_pairs([plain])


def test_questions_without_a_cluster_are_clusters_of_their_own() -> None:
    counts = _clustered((5, 3, 1), (4, 2, 0))
    counts.add(first=True, second=False)
    counts.add(first=False, second=True)
    counts.add(first=True, second=True)
    clusters = counts.clusters()
    assert clusters == [(5, 3, 1), (4, 2, 0), (1, 1, 0), (1, 0, 1), (1, 0, 0)]


def test_few_clusters_show_neither_drift_nor_parity() -> None:
    for pairs, fewest in ((1, 6), (3, 7)):
        lost = [_clustered(*[(500, 400, 0)] * (fewest - 1))] * pairs
        equal = [_clustered(*[(500, 0, 0)] * (fewest - 1))] * pairs
        for comparison in compare_pairs(lost) + compare_pairs(equal):
            assert comparison.verdict is ParityVerdict.INCONCLUSIVE
            assert (comparison.clusters, comparison.fewest_clusters) == (fewest - 1, fewest)
            assert comparison.settled_by_clusters is None
        lost = [_clustered(*[(500, 400, 0)] * fewest)] * pairs
        equal = [_clustered(*[(500, 0, 0)] * fewest)] * pairs
        assert {c.verdict for c in compare_pairs(lost)} == {ParityVerdict.DRIFT}
        assert {c.verdict for c in compare_pairs(equal)} == {ParityVerdict.PARITY}


def test_one_cluster_is_described_and_not_judged() -> None:
    counts = _clustered((500, 40, 10))
    [comparison] = compare_pairs([counts])
    [plain] = compare_pairs([Counts(both=450, first_only=40, second_only=10, same=False)])
    assert comparison.verdict is ParityVerdict.INCONCLUSIVE
    assert (comparison.difference, comparison.mid_p) == (plain.difference, plain.mid_p)


def test_identical_runs_are_identical_in_any_number_of_clusters() -> None:
    counts = _clustered((9, 0, 0), (3, 0, 0))
    counts.same = True
    assert compare_pairs([counts])[0].verdict is ParityVerdict.IDENTICAL


def test_lines_name_clusters_and_both_p_values() -> None:
    [clustered] = compare_pairs([_clustered(*_SEVEN_OF_TEN)])
    line = contrast_line("go", "py", clustered, "conversation")
    assert line.startswith("go, py: inconclusive on 1000 questions of 10 conversations: pass rates")
    assert "(p 0.18 by conversation, McNemar's 0.0015 by question); about" in line
    assert line.endswith(f"{clustered.settled_by_clusters} conversations would settle it")
    [drift] = compare_pairs([_clustered(*[(100, 8, 1)] * 10)])
    line = contrast_line("go", "py", drift)
    assert "drift: go alone passes 80 questions, py alone 10 (p 0.002 by cluster, McNemar's" in line
    [parity] = compare_pairs([_clustered(*[(500, 1, 1)] * 10)])
    line = contrast_line("go", "py", parity)
    assert line.endswith("within the margin (p 1 by cluster, McNemar's 0.91 by question)")
    earlier = drift.model_copy(update={"clusters": None, "holm_p": 0.0012})
    assert contrast_line("go", "py", earlier).endswith("py alone 10 (p 0.0012)")


def test_reports_of_earlier_versions_load() -> None:
    [comparison] = compare_pairs([Counts(both=90, first_only=6, second_only=2, same=False)])
    new = ("clusters", "fewest_clusters", "sign_flip_p", "settled_by_clusters")
    stored = comparison.model_dump(exclude=set(new))
    assert PairedComparison.model_validate(stored) == comparison
