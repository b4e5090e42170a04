"""Stages of a mode that a daemon skipped are counted in every report."""

from memconform.bench.records import QueryRecord
from memconform.bench.rows import row
from memconform.contract.skipped_stages import count_skips, skipped_stage
from memconform.reports.console import skipped
from memconform.reports.lme import ranking_notes
from tests.unit.lme_results import question, result_of

_STORED = {"effectiveMode": "hybrid-rerank", "reranked": False, "rerankSkipReason": "unanimity"}


def test_a_stored_trace_says_why_it_was_not_reranked() -> None:
    assert skipped_stage(_STORED) == "reranking (unanimity)"
    assert (
        skipped_stage(_STORED | {"rerankSkipReason": f"a\n{'b' * 99}"})
        == f"reranking (a {'b' * 58})"
    )
    for other in ({"effectiveMode": "hybrid"}, {"reranked": True}, {"rerankSkipReason": None}):
        assert skipped_stage(_STORED | other) is None


def test_a_daemon_that_invents_a_reason_for_each_question_does_not_fill_the_report() -> None:
    counts = count_skips(f"reason {number}" for number in range(1_000))
    assert (len(counts), counts["other reasons"]) == (21, 980)
    assert count_skips(["reranking (unanimity)", None, "reranking (unanimity)"]) == {
        "reranking (unanimity)": 2
    }


def test_a_bench_row_counts_them() -> None:
    record = QueryRecord(
        system="go", strategy="hybrid-rerank", haystack="h", query="q", category="", views={},
        ranking=[], latency_ms=1, search_ms=None,
    )  # fmt: skip
    records = [record, record.model_copy(update={"skipped_stage": "reranking (unanimity)"})]
    counts = row("go", "hybrid-rerank", 2, records, None, ks=(5,)).skipped_stages
    assert skipped(counts, 2) == "skipped on 1 of 2 questions: reranking (unanimity) 1"


def test_a_replay_counts_them() -> None:
    result = result_of([question("a"), question("b")])
    result = result.model_copy(update={"sdk": "go", "skipped_stages": {"reranking (unanimity)": 1}})
    [note] = ranking_notes([result])
    assert note == "go: stages skipped on 1 of 2 questions: reranking (unanimity) 1"
