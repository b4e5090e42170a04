"""Quantiles of Student's t, held to scipy's."""

import pytest
import scipy.stats

from memconform.stats.student import t_quantile

_PROBABILITIES = (0.01, 0.5, 0.501, 0.6, 0.9, 0.95, 0.975, 0.99, 0.999, 0.9999)


@pytest.mark.parametrize("df", [*range(1, 31), 99, 100, 199, 200, 201, 500, 1_981, 99_999])
def test_quantiles_are_scipys(df: int) -> None:
    for probability in _PROBABILITIES:
        wanted = float(scipy.stats.t.ppf(probability, df))
        assert t_quantile(probability, df) == pytest.approx(wanted, rel=1e-9, abs=1e-12)


def test_a_printed_table() -> None:
    # Student's t at 97.5 %, as any textbook prints it.
    table = {1: 12.706, 2: 4.303, 5: 2.571, 9: 2.262, 10: 2.228, 30: 2.042, 120: 1.980}
    assert {df: round(t_quantile(0.975, df), 3) for df in table} == table


@pytest.mark.parametrize(("probability", "df"), [(0.0, 3), (1.0, 3), (0.9, 0)])
def test_what_has_no_quantile_is_refused(probability: float, df: int) -> None:
    with pytest.raises(ValueError, match="no quantile"):
        t_quantile(probability, df)
