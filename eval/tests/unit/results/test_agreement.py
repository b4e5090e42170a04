"""What counts as agreement of runs, and what does not."""

import io
from pathlib import Path

import pytest

from memconform.errors import ExitCode
from memconform.records import Record
from memconform.reports.machine import agreement_banner
from memconform.reports.matrix import show_matrix
from memconform.results.agreement import Agreement, compare_rankings
from memconform.results.divergence import ranking_difference
from memconform.runs.results import CitedChunk, QuestionResult, RankedChunk
from memconform.runs.stored_run import read_questions, read_summary
from memconform.scoring.statuses import QuestionStatus
from memconform.storage.result_file import write_result
from memconform.storage.sink import json_bytes, replacing
from tests.run_results import question, write_run


class _Head(Record):
    run_id: str = "r"


def _question(
    id_: str,
    *hits: tuple[str, float],
    answer: str = "yes",
    verdict: QuestionStatus = QuestionStatus.CORRECT,
    ordinal: int = 0,
    cites: str = "a#0",
) -> QuestionResult:
    ranking = [
        RankedChunk(chunk_id=f"{path}#{ordinal}", document_id=path, path=path, score=score)
        for path, score in hits
    ]
    return QuestionResult(
        id=id_,
        question="?",
        tags=[],
        verdict=verdict,
        passed=verdict is QuestionStatus.CORRECT,
        score=1.0 if verdict is QuestionStatus.CORRECT else None,
        answer=answer,
        latency_ms=1.0,
        timings=None,
        citations=[CitedChunk(chunk_id=cites, path="a", score=1.0)],
        ranking=ranking,
        trace=None,
        error=None,
        attempts=[],
    )


def _compare(folder: Path, *runs: list[QuestionResult], answers: bool = False) -> Agreement:
    named = []
    for number, questions in enumerate(runs):
        path = folder / f"{number}.json"
        with replacing(path) as file:
            write_result(file, _Head(), map(json_bytes, questions))
        assert [q.id for q in read_questions(path)] == [q.id for q in questions]
        named.append((f"sdk{number}", path))
    return compare_rankings(named, answers=answers)


_AB = (("a", 2.0), ("b", 1.0))


def test_equal_runs_agree(tmp_path: Path) -> None:
    agreement = _compare(tmp_path, *[[_question("q", *_AB), _question("r")]] * 3, answers=True)
    assert (agreement.questions, agreement.rankings_equal, agreement.answers_equal) == (2, 2, 2)
    assert agreement.complete


@pytest.mark.parametrize(
    ("other", "detail"),
    [
        ([("b", 2.0), ("a", 1.0)], "b at rank 1, not a"),
        ([("a", 2.0), ("b", 1.0 + 2e-6)], "score differs by 2e-06 at rank 2"),
        ([("a", 2.0)], "1 chunk, not 2"),
    ],
)
def test_reports_a_different_ranking(
    tmp_path: Path, other: list[tuple[str, float]], detail: str
) -> None:
    one, two = [_question("q", *_AB)], [_question("q", *other)]
    agreement = _compare(tmp_path, one, one, two)
    assert (agreement.rankings_equal, agreement.complete) == (0, False)
    [difference] = agreement.differences
    assert (difference.question, difference.sdk, difference.detail) == ("q", "sdk2", detail)


def test_scores_may_differ_in_their_last_bits(tmp_path: Path) -> None:
    other = [("a", 2.0), ("b", 1.0 + 5e-7)]
    agreement = _compare(tmp_path, [_question("q", *_AB)], [_question("q", *other)])
    assert agreement.complete
    assert agreement.largest_score_difference == pytest.approx(5e-7)


@pytest.mark.parametrize(
    ("other", "line"),
    [
        (_AB, "rankings: sdk0, sdk1 equal on 1 of 1 question, scores identical"),
        (
            (("a", 2.0), ("b", 1.0 + 5e-7)),
            "rankings: sdk0, sdk1 equal on 1 of 1 question, scores differ by at most 5e-07",
        ),
        ((("a", 2.0),), "  q: sdk1: 1 chunk, not 2"),
    ],
)
def test_the_console_states_how_far_rankings_agree(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    other: tuple[tuple[str, float], ...],
    line: str,
) -> None:
    runs = [_question("q", *_AB)], [_question("q", *other)]
    show_matrix([], [], _compare(tmp_path, *runs))
    assert line in capsys.readouterr().err.splitlines()


def test_the_matrix_ends_with_the_reasons_of_each_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """They stood at the end of each run, which had scrolled away when the last one ended."""
    low = "pass rate 0.000 is below the floor 0.900"
    reasons = {"go": [low], "ts": []}
    paths = [
        write_run(tmp_path / f"{sdk}.json", sdk, [question("q")], reasons=lines)
        for sdk, lines in reasons.items()
    ]
    show_matrix([read_summary(path) for path in paths], [], None)
    lines = capsys.readouterr().err.splitlines()
    assert [line for line in lines if "floor" in line] == [f"go: {low}"]


def test_a_matrix_of_long_names_fits_80_columns_and_says_what_it_omits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stream = io.StringIO()
    stream.isatty = lambda: True  # type: ignore[method-assign]
    for variable, value in (("COLUMNS", "80"), ("LINES", "50"), ("TERM", "dumb")):
        monkeypatch.setenv(variable, value)
    monkeypatch.setattr("sys.stderr", stream)
    name = "a-memory-daemon-in-some-language"
    rows = [question(f"q{n}", status) for n, status in enumerate(QuestionStatus)]
    show_matrix([read_summary(write_run(tmp_path / "a.json", name, rows))] * 2, [], None)
    table, _, note = stream.getvalue().partition("not shown, for lack of room: ")
    assert max(map(len, stream.getvalue().splitlines())) <= 80
    assert "…" not in table
    words = {word.strip(",") for word in table.split()}
    assert {name, *(status.value for status in QuestionStatus)} <= words
    assert "ready ms" in note
    assert "the result files have them" in " ".join(note.split())


def test_reports_a_different_answer_if_answers_are_compared(tmp_path: Path) -> None:
    runs = [_question("q", *_AB)], [_question("q", *_AB, answer="no")]
    assert _compare(tmp_path, *runs).complete
    agreement = _compare(tmp_path, *runs, answers=True)
    assert (agreement.rankings_equal, agreement.answers_equal, agreement.complete) == (1, 0, False)
    assert agreement.differences[0].detail == "answers 'no', not 'yes'"


def test_different_chunks_of_the_same_documents_disagree(tmp_path: Path) -> None:
    agreement = _compare(tmp_path, [_question("q", *_AB)], [_question("q", *_AB, ordinal=1)])
    assert (agreement.rankings_equal, agreement.exit_code) == (0, ExitCode.FAILED)
    assert agreement.differences[0].detail == "different chunk of a at rank 1"


def _placed(question: QuestionResult, prefix: str) -> QuestionResult:
    """The same texts under other paths."""
    ranking = [
        chunk.model_copy(update={"content": chunk.path, "path": f"{prefix}{chunk.path}"})
        for chunk in question.ranking
    ]
    return question.model_copy(update={"ranking": ranking})


def test_one_output_does_not_contradict_itself_about_rankings(tmp_path: Path) -> None:
    """Joined by path here and by text there, they were equal in one line and not in the next."""
    one, other = _question("q", *_AB), _placed(_question("q", *_AB), "elsewhere/")
    assert ranking_difference(_placed(one, ""), other) is None
    assert _compare(tmp_path, [_placed(one, "")], [other]).complete


def test_different_citations_disagree(tmp_path: Path) -> None:
    runs = [_question("q", *_AB)], [_question("q", *_AB, cites="b#0")]
    agreement = _compare(tmp_path, *runs, answers=True)
    assert (agreement.answers_equal, agreement.exit_code) == (0, ExitCode.FAILED)


def test_an_unmeasured_question_prevents_agreement(tmp_path: Path) -> None:
    failed = _question("q", verdict=QuestionStatus.TIMEOUT)
    agreement = _compare(tmp_path, [_question("q", *_AB)], [failed])
    assert (agreement.questions, agreement.compared, agreement.rankings_equal) == (1, 0, 0)
    assert agreement.exit_code is ExitCode.INCONCLUSIVE
    assert not agreement.complete
    assert not _compare(tmp_path, [failed], [failed]).complete


def test_an_unmeasured_question_is_not_reported_as_a_difference(tmp_path: Path) -> None:
    failed, good = _question("q", verdict=QuestionStatus.TIMEOUT), _question("r", *_AB)
    one = _compare(tmp_path, [_question("q", *_AB), good], [failed, good])
    assert agreement_banner(one) == "sdk0, sdk1: rankings equal 1/1, 1 of 2 not measured"
    none = _compare(tmp_path, [failed], [failed])
    assert agreement_banner(none) == "sdk0, sdk1: nothing to compare, 1 of 1 not measured"


def test_questions_that_do_not_apply_are_skipped(tmp_path: Path) -> None:
    skipped = _question("s", verdict=QuestionStatus.NOT_APPLICABLE)
    agreement = _compare(tmp_path, *[[_question("q", *_AB), skipped]] * 2)
    assert (agreement.questions, agreement.complete) == (1, True)


def test_empty_runs_do_not_agree(tmp_path: Path) -> None:
    assert not _compare(tmp_path, [], []).complete


def test_different_questions_cannot_be_compared(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="different questions: q, r"):
        _compare(tmp_path, [_question("q")], [_question("r")])
