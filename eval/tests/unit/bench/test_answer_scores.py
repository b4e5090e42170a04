"""Accuracies by what was shown, and the share of the oracle's gain that an arm keeps."""

import random
from dataclasses import replace
from types import SimpleNamespace
from typing import cast

import pytest

from memconform.bench.answering.plan import AnswerTask, Arm, is_gold_shown, unanswerable
from memconform.bench.answering.records import ArmAnswer
from memconform.bench.answering.scores import by_gold, kept_gain
from memconform.bench.records import QueryRecord
from memconform.bench.stored_rows import StoredRow
from memconform.datasets.conversations import Conversation, Session, Turn
from memconform.datasets.question import Question
from memconform.records import Failure
from memconform.scoring.reader.names import Speakers, Unit
from memconform.scoring.reader.passages import fit_passages, retrieved_passages
from memconform.scoring.statuses import QuestionStatus
from memconform.stats.ratios import ratio_interval

_IDS = [f"q{number}" for number in range(20)]
_QUESTIONS = [Question(id=name, question=f"{name}?", category="c") for name in _IDS]


def _record(name: str, *, shown: bool | None, right: bool) -> ArmAnswer:
    status = QuestionStatus.CORRECT if right else QuestionStatus.INCORRECT
    return ArmAnswer.unanswered(
        "a", Question(id=name, question="?"), Failure(code="", message=""), gold_shown=shown
    ).model_copy(update={"status": status})


def test_each_part_has_the_questions_of_which_it_is_known() -> None:
    records = [
        _record(name, shown=number % 2 == 0, right=number % 2 == 0)
        for number, name in enumerate(_IDS)
    ]
    shown, missing = by_gold(_QUESTIONS, records, None)
    assert shown is not None
    assert missing is not None
    assert (shown.correct, shown.expected) == (10, 10)
    assert (missing.correct, missing.expected) == (0, 10)


def test_a_failed_call_leaves_bounds_in_the_part_that_was_shown() -> None:
    """A reader that fails on long contexts alone would look better than it is."""
    failed = ArmAnswer.unanswered(
        "a", _QUESTIONS[0], Failure(code="llm_timeout", message=""), gold_shown=True
    )
    records = [failed, *(_record(name, shown=True, right=True) for name in _IDS[1:])]
    shown, missing = by_gold(_QUESTIONS, records, None)
    assert shown is not None
    assert (shown.rate, shown.bounds, missing) == (None, (95, 100), None)


def test_what_was_not_retrieved_may_belong_to_either_part() -> None:
    lost = ArmAnswer.unanswered("a", _QUESTIONS[0], Failure(code="not_retrieved", message=""))
    records = [lost, *(_record(name, shown=True, right=True) for name in _IDS[1:])]
    shown, missing = by_gold(_QUESTIONS, records, None)
    assert shown is not None
    assert missing is not None
    assert (shown.rate, missing.rate, missing.expected) == (None, None, 1)


_TALK = Conversation(
    "h",
    tuple(
        Session(
            name,
            "2023/05/20",
            tuple(Turn(f"{name}_{n}", "user", "x", by_user=n % 2 == 1) for n in (1, 2, 3)),
        )
        for name in ("s", "t")
    ),
)


@pytest.mark.parametrize(
    ("gold", "ranking", "unit", "speakers", "shown"),
    [
        (("s_1",), ["s_1"], "turn", "all", True),
        (("s_1", "t_1"), ["s_1"], "turn", "all", False),
        # The file says only that the assistant's answer is somewhere in this session.
        (("s",), ["s_1"], "round", "all", None),
        (("s",), ["t_1"], "round", "all", False),
        (("s", "t"), ["s_1"], "round", "all", False),
        (("s",), ["s_1"], "session", "all", True),
        (("s",), ["s"], "session", "user", None),
        (("s", "t_1"), ["s_1", "t_1"], "turn", "all", None),
    ],
)
def test_a_gold_session_that_is_shown_in_part_is_neither_shown_nor_missing(
    gold: tuple[str, ...],
    ranking: list[str],
    unit: Unit,
    speakers: Speakers,
    *,
    shown: bool | None,
) -> None:
    """All 51 questions about the assistant's turns counted as missing their gold."""
    task = AnswerTask(Question(id="q", question="?"), "h", gold)
    passages = fit_passages(retrieved_passages(_TALK, ranking, unit), 1_000, speakers)
    assert is_gold_shown(task, passages) is shown


def _passed(right: int) -> dict[str, bool]:
    return {name: number < right for number, name in enumerate(_IDS)}


def test_the_share_kept_is_of_the_gain_on_the_same_questions() -> None:
    kept = kept_gain(_QUESTIONS, _passed(12), _passed(18), _passed(2), None)
    assert kept.share is not None
    assert kept.share.value == pytest.approx(100 * 10 / 16)
    assert kept.share.low < kept.share.value < kept.share.high


@pytest.mark.parametrize(
    ("arm", "perfect", "nothing", "why"),
    [
        (_passed(18), _passed(18), _passed(2), "the same outcome as oracle on every question"),
        (_passed(2), _passed(18), _passed(2), "the same outcome as no-memory on every question"),
        (_passed(9), _passed(3), _passed(2), "is not significantly above 0"),
        (_passed(9), _passed(2), _passed(8), "is not significantly above 0"),
        (_passed(9), None, _passed(2), "oracle is not among the arms"),
        ({"q0": True}, _passed(18), _passed(2), "this arm was not measured on every question"),
    ],
)
def test_there_is_no_share_without_a_gain_or_a_difference(
    arm: dict[str, bool], perfect: dict[str, bool] | None, nothing: dict[str, bool], why: str
) -> None:
    kept = kept_gain(_QUESTIONS, arm, perfect, nothing, None)
    assert kept.share is None
    assert why in kept.why


@pytest.mark.parametrize("size", [287, 288, 1_000])
def test_equal_outcomes_are_no_share_whatever_the_rounding(size: int) -> None:
    """With 287 questions the interval was (99.999998 to 100.000002)."""
    draw = random.Random(size)
    questions = [Question(id=f"q{n}", question="?") for n in range(size)]
    clusters = {question.id: f"c{n % 23}" for n, question in enumerate(questions)}
    oracle = {question.id: draw.random() < 0.8 for question in questions}
    nothing = {question.id: draw.random() < 0.1 for question in questions}
    for same, name in ((oracle, "oracle"), (nothing, "no-memory")):
        kept = kept_gain(questions, same, oracle, nothing, clusters)
        assert (kept.share, kept.why) == (None, f"the same outcome as {name} on every question")


def test_fiellers_interval_solves_its_own_equation() -> None:
    """At its ends the t statistic of above - r * below is the quantile: 2.262 with 9 degrees."""
    above = [1.0, 0, 1, 1, 0, 1, 0, 0, 1, 1]
    below = [1.0, 1, 1, 1, 0, 1, 1, 0, 1, 1]
    interval = ratio_interval(above, below, range(10))
    assert interval is not None
    for r in interval:
        values = [a - r * b for a, b in zip(above, below, strict=True)]
        mean = sum(values) / 10
        error = (sum((value - mean) ** 2 for value in values) / 9 / 10) ** 0.5
        assert abs(mean / error) == pytest.approx(2.2622, abs=1e-3)
    assert interval.low < 6 / 8 < interval.high


def test_the_interval_covers_the_ratio_as_often_as_it_says() -> None:
    draw = random.Random(5)
    covered = 0
    for _ in range(400):
        above, below = [], []
        for _ in range(60):
            level = draw.random()
            nothing, perfect, arm = level < 0.1, level < 0.85, draw.random() < 0.8 and level < 0.85
            above.append(float(arm) - nothing)
            below.append(float(perfect) - nothing)
        interval = ratio_interval(above, below, range(60))
        assert interval is not None
        # 0.8 of 0.85 less 0.1, of 0.75.
        covered += interval.low <= (0.8 * 0.85 - 0.1) / 0.75 <= interval.high
    assert 0.92 <= covered / 400 <= 0.98


def test_few_conversations_are_taken_question_by_question() -> None:
    above, below = [1.0, 0, 1, 0] * 5, [1.0] * 20
    assert ratio_interval(above, below, ["one"] * 20) == ratio_interval(above, below, range(20))
    assert ratio_interval([1.0], [1.0], ["one"]) is None


def test_the_answers_of_a_daemons_own_reader_lose_their_reasoning() -> None:
    texts = {"a": "<think>Orn?</think>In Brel.", "b": "<think>It may be", "c": "In Orn.", "d": None}
    records = {
        name: QueryRecord(
            system="go",
            strategy="bm25",
            haystack="h",
            query=name,
            category="",
            views={},
            ranking=[],
            latency_ms=None,
            search_ms=None,
            answer=text,
        )
        for name, text in texts.items()
    }
    row = cast("StoredRow", SimpleNamespace(records=records, measured=records.get))
    kept = Arm("go /ask", row=row, is_daemons_own=True)
    stripped = replace(kept, strip_reasoning=True)
    assert [kept.own_answer(name) for name in texts] == list(texts.values())
    assert [stripped.own_answer(name) for name in texts] == ["In Brel.", "", "In Orn.", None]
    assert (kept.reasoning, stripped.reasoning) == (2, 2)
    assert replace(kept, is_daemons_own=False).reasoning == 0
    tasks = {name: AnswerTask(Question(id=name, question="?"), "h", ()) for name in texts}
    assert [name for name, task in tasks.items() if unanswerable(kept, task)] == ["d"]
    failures = {name: unanswerable(stripped, task) for name, task in tasks.items()}
    assert [name for name, failure in failures.items() if failure] == ["b", "d"]
    cut = failures["b"]
    assert cut is not None
    assert cut.message == "reasoning without an answer behind it"
