"""Agreement of raters, held to published examples and to another implementation."""

import random
from collections import Counter
from itertools import permutations

import krippendorff
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memconform.stats.raters import (
    Ratings,
    alpha_agreement,
    cohen_agreement,
    cohen_kappa,
    fleiss_agreement,
    fleiss_kappa,
    krippendorff_alpha,
    percent_agreement,
)

# Thirty patients, six psychiatrists each; depression, personality disorder, schizophrenia,
# neurosis, other (Fleiss 1971, table 1).
_FLEISS = [
    [0, 0, 0, 6, 0],
    [0, 3, 0, 0, 3],
    [0, 1, 4, 0, 1],
    [0, 0, 0, 0, 6],
    [0, 3, 0, 3, 0],
    [2, 0, 4, 0, 0],
    [0, 0, 4, 0, 2],
    [2, 0, 3, 1, 0],
    [2, 0, 0, 4, 0],
    [0, 0, 0, 0, 6],
    [1, 0, 0, 5, 0],
    [1, 1, 0, 4, 0],
    [0, 3, 3, 0, 0],
    [1, 0, 0, 5, 0],
    [0, 2, 0, 3, 1],
    [0, 0, 5, 0, 1],
    [3, 0, 0, 1, 2],
    [5, 1, 0, 0, 0],
    [0, 2, 0, 4, 0],
    [1, 0, 2, 0, 3],
    [0, 0, 0, 0, 6],
    [0, 1, 0, 5, 0],
    [0, 2, 0, 1, 3],
    [2, 0, 0, 4, 0],
    [1, 0, 0, 4, 1],
    [0, 5, 0, 1, 0],
    [4, 0, 0, 0, 2],
    [0, 2, 0, 4, 0],
    [1, 0, 5, 0, 0],
    [0, 0, 0, 0, 6],
]

# Four observers of twelve units (Krippendorff 2011, section C).
_OBSERVERS = (
    (1, 2, 3, 3, 2, 1, 4, 1, 2, None, None, None),
    (1, 2, 3, 3, 2, 2, 4, 1, 2, 5, None, 3),
    (None, 3, 3, 3, 2, 3, 4, 2, 2, 5, 1, None),
    (1, 2, 3, 3, 2, 4, 4, 1, 2, 5, 1, None),
)
_KRIPPENDORFF = list(zip(*_OBSERVERS, strict=True))


def test_kappa_of_cohens_example() -> None:
    # Two judges of 200 patients (Cohen 1960, table 2).
    table = [[88, 14, 18], [10, 40, 10], [2, 6, 12]]
    one = [row for row in range(3) for column in range(3) for _ in range(table[row][column])]
    other = [column for row in range(3) for column in range(3) for _ in range(table[row][column])]
    assert cohen_kappa(one, other) == pytest.approx(0.492, abs=5e-4)
    assert percent_agreement(list(zip(one, other, strict=True))) == pytest.approx(0.70)


def test_kappa_of_fleiss_example() -> None:
    assert fleiss_kappa(_FLEISS) == pytest.approx(0.430, abs=5e-4)


@pytest.mark.parametrize(
    ("observers", "alpha"),
    [
        # Krippendorff (2011): binary, nominal by two observers, nominal with missing data.
        (("0100000010", "1110010000"), 0.095),
        (("aabbdcccedda", "babbbccceddd"), 0.692),
        (_OBSERVERS, 0.743),
    ],
)
def test_alpha_of_krippendorffs_examples(observers: Ratings, alpha: float) -> None:
    units = list(zip(*observers, strict=True))
    assert krippendorff_alpha(units) == pytest.approx(alpha, abs=5e-4)


_RATINGS = st.integers(2, 5).flatmap(
    lambda raters: st.lists(
        st.lists(st.sampled_from([0, 1, 2, None]), min_size=raters, max_size=raters), max_size=25
    )
)
_PAIRS = st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from("abc")), max_size=25)
_COUNTS = st.integers(2, 6).flatmap(
    lambda raters: st.lists(
        st.lists(st.integers(0, 2), min_size=raters, max_size=raters).map(
            lambda ratings: [ratings.count(category) for category in range(3)]
        ),
        max_size=25,
    )
)


@given(_RATINGS)
def test_alpha_is_that_of_the_reference_implementation(units: list[list[int | None]]) -> None:
    ours = krippendorff_alpha(units)
    compared = [[r for r in unit if r is not None] for unit in units]
    if len({r for unit in compared if len(unit) > 1 for r in unit}) < 2:
        assert ours is None
        return
    data = np.array([[np.nan if r is None else r for r in unit] for unit in units]).T
    theirs = krippendorff.alpha(reliability_data=data, level_of_measurement="nominal")
    assert ours == pytest.approx(theirs, abs=1e-12)


@given(_RATINGS, st.randoms(use_true_random=False))
def test_alpha_knows_no_order(units: list[list[int | None]], rng: random.Random) -> None:
    alpha = krippendorff_alpha(units)
    order = rng.sample(range(len(units[0])), len(units[0])) if units else []
    shuffled = [[unit[rater] for rater in order] for unit in rng.sample(units, len(units))]
    assert krippendorff_alpha(shuffled) == alpha
    assert percent_agreement(shuffled) == percent_agreement(units)
    renamed = [[None if r is None else "xyz"[r] for r in unit] for unit in units]
    assert krippendorff_alpha(renamed) == alpha
    assert alpha is None or alpha <= 1


@given(_PAIRS)
def test_cohens_kappa_is_symmetric_and_in_range(pairs: list[tuple[str, str]]) -> None:
    one, other = [first for first, _ in pairs], [second for _, second in pairs]
    kappa = cohen_kappa(one, other)
    assert kappa == cohen_kappa(other, one)
    assert kappa is None or -1 <= kappa <= 1
    assert (kappa == 1) == (one == other and len(set(one)) > 1)
    assert (kappa is None) == (len(set(one + other)) < 2)


@given(_COUNTS)
def test_fleiss_kappa_is_in_range_and_near_alpha(counts: list[list[int]]) -> None:
    kappa = fleiss_kappa(counts)
    units = [list(Counter(dict(enumerate(unit))).elements()) for unit in counts]
    alpha = krippendorff_alpha(units)
    assert (kappa is None) == (alpha is None)
    if kappa is None or alpha is None:
        return
    assert -1 <= kappa <= 1
    # Alpha corrects the agreement of chance for the number of ratings (Krippendorff 2011).
    n = sum(map(sum, counts))
    assert alpha == pytest.approx(1 - (1 - kappa) * (n - 1) / n)
    for order in permutations(range(3)):
        assert fleiss_kappa([[unit[category] for category in order] for unit in counts]) == kappa


def test_undefined_agreement_is_none() -> None:
    assert cohen_kappa([], []) is None
    assert cohen_kappa("aaa", "aaa") is None
    assert cohen_kappa("aaa", "aab") == 0
    assert fleiss_kappa([]) is None
    assert fleiss_kappa([[3, 0], [3, 0]]) is None
    assert fleiss_agreement([]) is None
    undefined: tuple[Ratings, ...] = (
        [],
        [[1, None]],
        [[1, 1], [1, 1]],
        [[1, None], [2, None]],
        [[1, 1], [2, None]],
    )
    for ratings in undefined:
        assert krippendorff_alpha(ratings) is None
        assert alpha_agreement(ratings) is None
    assert percent_agreement([]) is None
    assert percent_agreement([[1, None]]) is None
    assert percent_agreement([[1, 1, 2], [None, 2, 2]]) == 0.5


def test_a_unit_of_one_rating_counts_for_nothing() -> None:
    rated: list[list[int | None]] = [[1, 1, 1], [2, 2, None], [1, 2, None]]
    with_single: list[list[int | None]] = [*rated, [3, None, None], [None, None, None]]
    assert krippendorff_alpha(with_single) == krippendorff_alpha(rated)
    agreement = alpha_agreement(with_single)
    assert agreement is not None
    assert agreement.units == 3


def test_ratings_that_do_not_fit_are_refused() -> None:
    with pytest.raises(ValueError, match="2 ratings by one rater and 1"):
        cohen_kappa("ab", "a")
    unequal: tuple[list[list[int]], ...] = (
        [[1, 1], [1, 2]],
        [[1, 0], [0, 1]],
        [[1, 1], [1, 0, 1]],
        [[]],
    )
    for counts in unequal:
        with pytest.raises(ValueError, match="units differ"):
            fleiss_kappa(counts)
    with pytest.raises(ValueError, match="less than no rating"):
        fleiss_kappa([[3, -1]])
    with pytest.raises(ValueError, match="confidence"):
        alpha_agreement(_KRIPPENDORFF, confidence=1)


def test_the_interval_is_of_the_units_drawn_anew() -> None:
    agreement = alpha_agreement(_KRIPPENDORFF, seed=3, resamples=2_000)
    assert agreement is not None
    assert agreement.interval is not None
    assert agreement == alpha_agreement(_KRIPPENDORFF, seed=3, resamples=2_000)
    drawn = np.random.default_rng(3).integers(0, 11, size=(2_000, 11))
    units = [unit for unit in _KRIPPENDORFF if sum(r is not None for r in unit) > 1]
    assert agreement.units == len(units) == 11
    alphas = [krippendorff_alpha([units[place] for place in places]) for places in drawn.tolist()]
    defined = [alpha for alpha in alphas if alpha is not None]
    assert agreement.interval == pytest.approx(np.quantile(defined, [0.025, 0.975]))
    assert agreement.undefined == pytest.approx(1 - len(defined) / 2_000)


def test_the_interval_of_fleiss_kappa_holds_it() -> None:
    agreement = fleiss_agreement(_FLEISS)
    assert agreement is not None
    assert agreement.interval is not None
    assert (agreement.units, agreement.undefined) == (30, 0)
    assert agreement.value == fleiss_kappa(_FLEISS)
    assert agreement.interval.low < agreement.value < agreement.interval.high
    # The bootstrap's spread, against the jackknife's.
    kappas = [fleiss_kappa(_FLEISS[:place] + _FLEISS[place + 1 :]) for place in range(30)]
    spread = float(np.std([kappa for kappa in kappas if kappa is not None])) * 29**0.5
    assert agreement.interval.high - agreement.interval.low == pytest.approx(
        3.92 * spread, rel=0.15
    )


def test_resamples_of_one_category_are_counted() -> None:
    agreement = alpha_agreement([["yes", "yes"]] * 9 + [["no", "no"]], resamples=4_000)
    assert agreement is not None
    assert agreement.undefined == pytest.approx(0.9**10 + 0.1**10, abs=0.03)
    assert agreement.interval == (1, 1)
    alone = alpha_agreement([["yes", "yes"], ["no", "no"]], seed=1, resamples=1)
    assert alone is not None
    assert (alone.interval is None) == (alone.undefined == 1)


_VERDICTS = st.lists(st.tuples(st.booleans(), st.booleans()), min_size=1, max_size=30)


@given(_VERDICTS)
def test_kappa_with_an_interval_is_kappa(pairs: list[tuple[bool, bool]]) -> None:
    one, other = zip(*pairs, strict=True)
    kappa = cohen_kappa(one, other)
    agreement = cohen_agreement(one, other, resamples=100)
    assert (agreement is None) == (kappa is None)
    if agreement is not None:
        assert agreement.value == pytest.approx(kappa)
        assert agreement.units == len(pairs)


def test_the_interval_of_kappa_is_that_of_its_resamples() -> None:
    draw = random.Random(3)
    one = [draw.random() < 0.6 for _ in range(80)]
    other = [rating if draw.random() < 0.85 else not rating for rating in one]
    resampled = []
    for _ in range(4_000):
        units = draw.choices(range(80), k=80)
        kappa = cohen_kappa([one[unit] for unit in units], [other[unit] for unit in units])
        resampled.append(np.nan if kappa is None else kappa)
    agreement = cohen_agreement(one, other)
    assert agreement is not None
    assert agreement.interval is not None
    expected = np.quantile(resampled, [0.025, 0.975])
    assert agreement.interval == pytest.approx(tuple(expected), abs=0.02)


def test_raters_who_agree_throughout_have_a_kappa_of_one() -> None:
    ratings = ["a", "b"] * 20
    agreement = cohen_agreement(ratings, ratings)
    assert agreement is not None
    assert (agreement.value, agreement.interval) == (1.0, (1.0, 1.0))
    assert cohen_agreement(["a"] * 5, ["a"] * 5) is None


def test_ratings_of_different_units_have_no_kappa() -> None:
    with pytest.raises(ValueError, match="1 ratings by one rater and 2"):
        cohen_agreement(["a"], ["a", "b"])
