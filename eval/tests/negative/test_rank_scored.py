"""A daemon in another style is measured where it is right, and not measured where it is wrong."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from memconform.reports.console import null_lists
from tests.conftest import Ended

Call = Callable[..., Ended]

_DAEMON = Path(__file__).with_name("rank_scored.py")
_DOCUMENTS = 70
"""More than the 50 chunks that a proof without a filter asks for."""
_ASKED = 12
_MODES = ("auto", "bm25", "semantic", "hybrid", "hybrid-rerank")


@pytest.fixture
def rank_scored(workspace: Path) -> Callable[..., Path]:
    """Writes the manifest of the daemon, with a fault or without."""

    def write(fault: str = "none") -> Path:
        argv = ["{python}", str(_DAEMON), "--addr", "{addr}", "--fault", fault]
        path = workspace / "sdk.toml"
        path.write_text(
            # short limit: it indexes at once or never
            'name = "rank-scored"\nlanguage = "python"\n'
            f'dialect = "jeffs-brain"\n[serve]\nargv = {json.dumps(argv)}\nport = "announced"\n'
            '[seed]\nvia = "documents"\ntimeout_s = 1\n'
            f'[capabilities]\nprofiles = ["core"]\nmodes = {json.dumps(_MODES)}\n'
        )
        return path

    return write


@pytest.fixture
def questions(workspace: Path) -> Path:
    """Rows whose documents share most words; one of which nothing is found."""
    rows: list[dict[str, Any]] = []
    for number in range(_DOCUMENTS):
        kind = "Which key" if number % 2 else "What key"
        rows.append(
            {
                "id": f"q{number}",
                "question": f"{kind} opens box{number} of shelf{number % 7}?",
                "expected_substrings": [f"secret{number * 17}"],
                "reference_answer": f"The key of box{number} on shelf{number % 7}"
                f" is named secret{number * 17} in the list.",
            }
        )
    rows.append({"id": "nothing", "question": "zyzzyva?", "expected_substrings": ["quagga"]})
    path = workspace / "boxes.jsonl"
    path.write_text("\n".join(map(json.dumps, rows)) + "\n")
    return path


@pytest.fixture
def benchmark(questions: Path) -> Path:
    """The same documents and questions, as a benchmark."""
    rows = [json.loads(line) for line in questions.read_text().splitlines()][:_DOCUMENTS]
    path = questions.with_suffix(".json")
    path.write_text(
        json.dumps(
            {
                "name": "boxes",
                "items": [{"id": row["id"], "content": row["reference_answer"]} for row in rows],
                "questions": [
                    {"query": row["question"], "gold": [row["id"]]} for row in rows[:_ASKED]
                ],
            }
        )
    )
    return path


def _run(memconform: Call, sdk: Path, questions: Path, *more: str) -> Ended:
    return memconform(
        *(
            "run",
            "--sdk",
            sdk,
            "--dataset",
            questions,
            "--seed-reference-brain",
            "--limit",
            str(_ASKED),
        ),
        *("--scenario", "search-retrieve-only", "--scorer", "exact", "--floor", "0.5", *more),
    )


@pytest.mark.parametrize("mode", [*_MODES, None])
def test_scores_that_say_ranks_are_no_reason_to_measure_nothing(
    memconform: Call, rank_scored: Callable[..., Path], questions: Path, mode: str | None
) -> None:
    ended = _run(memconform, rank_scored(), questions, *(("--mode", mode) if mode else ()))
    assert ended.code == 0, ended.out + ended.err
    assert ended.result["passed"] == ended.result["total"] == _ASKED
    assert ended.result["served_modes"] == {mode if mode and mode != "auto" else "hybrid": _ASKED}


def test_a_reranker_that_says_why_it_did_not_run_is_counted_and_one_that_ran_is_not(
    memconform: Call, rank_scored: Callable[..., Path], questions: Path
) -> None:
    ended = _run(memconform, rank_scored(), questions, "--mode", "hybrid-rerank")
    assert ended.code == 0, ended.out + ended.err
    reranked = sum("Which" in row["question"] for row in ended.result["questions"])
    assert 0 < reranked < _ASKED
    assert ended.result["skipped_stages"] == {"reranking (unanimity)": _ASKED - reranked}
    assert ended.result["rising_scores"] == reranked


def test_each_mode_of_a_bench_is_measured_in_both_indexes(
    memconform: Call, rank_scored: Callable[..., Path], benchmark: Path
) -> None:
    for index in ("shared", "isolated"):
        ended = memconform(
            *(
                "bench",
                "--sdk",
                rank_scored(),
                "--suite",
                "file",
                "--data",
                benchmark,
            ),
            *("--index", index, "--modes", ",".join(_MODES[1:]), "--json", "bench.json"),
        )
        assert ended.code == 0, ended.out + ended.err
        rows = json.loads((ended.folder / "bench.json").read_text())["rows"]
        assert [row["measured"] for row in rows] == [True] * 4, rows


def test_a_document_without_a_vector_costs_the_vector_modes_and_not_the_keyword_mode(
    memconform: Call, rank_scored: Callable[..., Path], benchmark: Path
) -> None:
    ended = memconform(
        *("bench", "--sdk", rank_scored("loses_vector"), "--suite", "file"),
        *("--data", benchmark, "--modes", "bm25,semantic,hybrid"),
        *("--json", "bench.json"),
    )
    assert ended.code == 3, ended.out + ended.err
    rows = json.loads((ended.folder / "bench.json").read_text())["rows"]
    measured = {row["strategy"]: row["measured"] for row in rows}
    assert measured == {"bm25": True, "semantic": False, "hybrid": False}
    assert all("not_searchable" in row["why"][0] for row in rows if not row["measured"])


def test_a_search_that_found_nothing_is_an_empty_ranking_and_one_finding(
    memconform: Call, rank_scored: Callable[..., Path], questions: Path
) -> None:
    ended = _run(memconform, rank_scored(), questions, "--ids", "q0,nothing", "--mode", "bm25")
    assert ended.result["counts"]["protocol_error"] == 0, ended.out + ended.err
    assert ended.result["null_lists"] == 1
    assert null_lists(1) in ended.out + ended.err


@pytest.mark.parametrize(
    ("fault", "mode", "reason"),
    [
        ("loses", "bm25", "not_searchable"),
        ("loses", "hybrid", "not_searchable"),
        ("loses_unfiltered", "bm25", "not_searchable"),
        ("loses_vector", "hybrid", "not_searchable"),
        ("no_reason", "hybrid-rerank", "hybrid-rerank without reranking"),
        ("no_reranker", "hybrid-rerank", "hybrid-rerank without reranking: http 503"),
        ("no_vectors", "hybrid", "hybrid without an embedder: connection refused"),
        ("null_for_failed", "bm25", "the answer reports a failure"),
        ("no_list", "bm25", "chunks: missing"),
    ],
)
def test_what_is_wrong_is_not_measured_whatever_the_style(
    memconform: Call,
    rank_scored: Callable[..., Path],
    questions: Path,
    fault: str,
    mode: str,
    reason: str,
) -> None:
    ended = _run(memconform, rank_scored(fault), questions, "--mode", mode)
    assert ended.code == 3, ended.out + ended.err
    assert reason in ended.out + ended.err
    assert ended.result["pass_rate"] is None
