"""Daemons that answer untruthfully; none of their lies may become a score."""

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.conftest import Ended

Call = Callable[..., Ended]
Scripted = Callable[..., Path]

_COMMON = ("--scorer", "exact", "--mode", "bm25", "--quiet")


def _run(memconform: Call, sdk: Path | str, dataset: Path, *more: str | Path) -> Ended:
    return memconform("run", "--sdk", sdk, "--dataset", dataset, *_COMMON, *more)


@pytest.mark.parametrize(
    ("fault", "code"),
    [
        ("fell_back_lie", "bad_trace"),
        ("other_requested_mode", "bad_trace"),
        ("text_html", "bad_media_type"),
        ("empty_text", "bad_ranking"),
        ("foreign_chunk", "foreign_chunk"),
        ("accepted_202", "unexpected_status"),
        ("endless_body", "too_large"),
    ],
)
def test_a_lie_in_a_search_is_not_measured(
    memconform: Call, scripted: Scripted, dataset: Path, fault: str, code: str
) -> None:
    sdk = scripted(fault)
    search = ("--scenario", "search-retrieve-only", "--seed-reference-brain")
    ended = _run(memconform, sdk, dataset, *search)
    assert (ended.question["verdict"], ended.question["error"]["code"]) == ("protocol_error", code)
    assert ended.result["counts"]["correct"] == 11


@pytest.mark.parametrize("fault", ["silent_reader", "misspelt_delta"])
def test_a_missing_answer_is_not_a_wrong_answer(
    memconform: Call, scripted: Scripted, dataset: Path, fault: str
) -> None:
    ended = _run(
        *(memconform, scripted(fault), dataset, "--scenario", "ask-basic"),
        "--seed-reference-brain",
    )
    error = ended.question["error"]
    assert (ended.question["verdict"], error["code"]) == ("protocol_error", "no_answer")
    assert ("answer-delta" in error["message"]) == (fault == "misspelt_delta")


def test_a_brain_that_changes_during_the_run_is_detected(
    memconform: Call, scripted: Scripted, dataset: Path
) -> None:
    ended = _run(
        *(memconform, scripted("loses_document"), dataset),
        *("--scenario", "search-retrieve-only", "--seed-reference-brain"),
    )
    assert ended.code == 3
    assert ended.result["incident"]["code"] == "brain_changed"


def test_claimed_modes_are_proven_before_a_run(
    memconform: Call, scripted: Scripted, dataset: Path
) -> None:
    sdk = scripted("mode_not_served", on="What")
    search = ("--scenario", "search-retrieve-only", "--seed-reference-brain")
    ended = _run(memconform, sdk, dataset, *search)
    assert (ended.code, ended.result["incident"]["code"]) == (3, "claim_refuted")
    assert ended.result["counts"]["not_run"] == 12


def test_a_fallback_is_scored_only_if_allowed(
    memconform: Call, scripted: Scripted, dataset: Path
) -> None:
    ended = _run(
        *(memconform, scripted("mode_not_served"), dataset, "--allow-fallback"),
        *("--scenario", "search-retrieve-only", "--seed-reference-brain"),
    )
    assert (ended.code, ended.result["passed"]) == (0, 12)
    assert ended.result["served_modes"] == {"bm25": 11, "semantic": 1}


@pytest.mark.parametrize(
    ("fault", "code"),
    [
        ("no_version", "no_version"),
        ("brain_500", "seed_failed"),
        ("other_brain", "seed_failed"),
        ("stays_pending", "index_incomplete"),
    ],
)
def test_a_daemon_that_cannot_be_trusted_is_not_asked(
    memconform: Call, scripted: Scripted, dataset: Path, fault: str, code: str
) -> None:
    ended = _run(
        # short limit: none of these daemons is asked, however quick it is.
        *(memconform, scripted(fault), dataset, "--timeout-gap", "3"),
        *("--scenario", "search-retrieve-only", "--seed-reference-brain"),
    )
    assert (ended.code, ended.result["incident"]["code"]) == (3, code)
    assert ended.result["counts"]["not_run"] == 12
    assert None not in [ended.result["daemon"][name] for name in ("ready_ms", "rss_peak_bytes")]


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"", "no ingested document contains a word"),
        (b"!!! ???", "no ingested document contains a word"),
        (b"---\ntitle: Only front matter\n---\n", "no ingested document contains a word"),
    ],
)
def test_a_corpus_with_nothing_to_search_for_is_refused(
    memconform: Call, scripted: Scripted, dataset: Path, content: bytes, says: str
) -> None:
    corpus = dataset.parent / "corpus"
    corpus.mkdir()
    (corpus / "a.md").write_bytes(content)
    ended = _run(memconform, scripted(), dataset, "--corpus", corpus, "--scenario", "ask-basic")
    assert ended.code == 2
    assert says in ended.err


def test_documents_with_front_matter_are_probed_too(
    memconform: Call, scripted: Scripted, dataset: Path
) -> None:
    """A broken index once passed if every document began with front matter."""
    corpus = dataset.parent / "corpus"
    corpus.mkdir()
    for name in "abc":
        (corpus / f"{name}.md").write_text(f"---\ntitle: {name}\n---\nThe body of {name}.")
    ended = _run(
        memconform,
        scripted("not_searchable"),
        dataset,
        "--corpus",
        corpus,
        "--scenario",
        "ask-basic",
    )
    assert (ended.code, ended.result["incident"]["code"]) == (3, "not_searchable")


@pytest.mark.capability("faults")
def test_a_run_without_measurements_fails_even_without_a_floor(
    memconform: Call, scripted: Scripted, dataset: Path
) -> None:
    ended = _run(
        *(memconform, scripted("http_500", on="What"), dataset, "--floor", "0"),
        *("--scenario", "search-retrieve-only", "--seed-reference-brain", "--allow-fallback"),
    )
    assert ended.code == 3
    assert "nothing was measured" in ended.err
