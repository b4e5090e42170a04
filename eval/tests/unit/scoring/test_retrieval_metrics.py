"""Metrics of rankings: worked by hand, and held to ir-measures where it has them."""

from math import log2

import ir_measures
import pytest
from hypothesis import given
from hypothesis import strategies as st
from ir_measures import RR, P, R, Success, nDCG

from memconform.scoring.retrieval import metrics, official_metrics

_IDS = [f"d{n}" for n in range(12)]
_rankings = st.lists(st.sampled_from(_IDS), unique=True, max_size=12)
_golds = st.sets(st.sampled_from([*_IDS, "nowhere"]), min_size=1, max_size=5)


@given(ranking=_rankings, gold=_golds, k=st.integers(1, 15))
def test_metrics_are_those_of_ir_measures(ranking: list[str], gold: set[str], k: int) -> None:
    values = metrics(ranking, gold, [k])
    qrels = {"q": dict.fromkeys(gold, 1)}
    run = {"q": {name: float(-rank) for rank, name in enumerate(ranking)} or {"none": 0.0}}
    wanted = [Success @ k, P @ k, nDCG @ k, RR @ k, R @ k]
    theirs = {
        str(name): value for name, value in ir_measures.calc_aggregate(wanted, qrels, run).items()
    }
    assert values[f"recall_any@{k}"] == theirs[f"Success@{k}"]
    assert values[f"precision@{k}"] == pytest.approx(theirs[f"P@{k}"])
    assert values[f"ndcg@{k}"] == pytest.approx(theirs[f"nDCG@{k}"])
    assert values[f"mrr@{k}"] == pytest.approx(theirs[f"RR@{k}"])
    # They have no recall_all: it is where recall is whole.
    assert values[f"recall_all@{k}"] == float(theirs[f"R@{k}"] == 1)


@given(ranking=_rankings, gold=_golds, k=st.integers(1, 15))
def test_ndcg_of_longmemeval_follows_its_released_formula(
    ranking: list[str], gold: set[str], k: int
) -> None:
    relevances = [float(item in gold) for item in ranking][:k]
    ideal = [1.0] * min(len(gold), k)

    def dcg(values: list[float]) -> float:
        later = sum(value / log2(place) for place, value in enumerate(values[1:], 2))
        return (values[0] if values else 0.0) + later

    assert metrics(ranking, gold, [k])[f"ndcg_any@{k}"] == pytest.approx(
        dcg(relevances) / dcg(ideal)
    )


def test_metrics_of_a_hand_computed_ranking() -> None:
    values = metrics(["a", "x", "b", "y"], {"b", "c"}, [2, 4])
    assert (values["recall_any@2"], values["recall_any@4"]) == (0.0, 1.0)
    assert (values["recall_all@4"], values["precision@4"], values["mrr@4"]) == (0.0, 0.25, 1 / 3)
    assert values["ndcg@4"] == pytest.approx((1 / log2(4)) / (1 + 1 / log2(3)))
    assert values["ndcg_any@4"] == pytest.approx((1 / log2(3)) / (1 + 1))
    # MRR is computed once, at the largest k.
    assert "mrr@2" not in values


@pytest.mark.parametrize(
    ("ranking", "gold", "ks"),
    [([], [], [5]), (["a", "a"], ["a"], [5]), (["a"], ["a"], [0]), (["a"], ["a"], [])],
)
def test_invalid_arguments_are_refused(ranking: list[str], gold: list[str], ks: list[int]) -> None:
    with pytest.raises(ValueError, match="distinct ids"):
        metrics(ranking, gold, ks)


def test_official_metrics_by_session_rank_sessions_and_gain_by_turn() -> None:
    # Of session s, two of three turns hold the answer; the other one is in a session of its own.
    turns = ["noans_s", "t", "s", "t", "s", "u"]
    values = official_metrics(turns, ["s"], [1, 2, 3, 4, 9], relevant=2, by_session=True)
    assert [values[f"recall_any@{k}"] for k in (1, 2, 3, 4)] == [0, 0, 1, 1]
    # Three sessions take three turns, four sessions take six.
    best = 1 + 1 / log2(2)
    assert values["ndcg_any@3"] == pytest.approx((1 / log2(3)) / best)
    assert values["ndcg_any@4"] == pytest.approx((1 / log2(3) + 1 / log2(5)) / best)
    # Nine sessions do not exist: the ranking counts as it is.
    assert values["ndcg_any@9"] == values["ndcg_any@4"]


def test_official_metrics_count_an_entry_that_is_indexed_twice_twice() -> None:
    ranking = ["x", "x", "a", "a"]
    values = official_metrics(ranking, ["a"], [2, 3, 4], relevant=2, by_session=False)
    assert [values[f"recall_all@{k}"] for k in (2, 3, 4)] == [0, 1, 1]
    assert values["ndcg_any@4"] == pytest.approx((1 / log2(3) + 1 / log2(4)) / 2)
    with pytest.raises(ValueError, match="0 entries for 1 relevant ids"):
        official_metrics(ranking, ["a"], [1], relevant=0, by_session=False)
