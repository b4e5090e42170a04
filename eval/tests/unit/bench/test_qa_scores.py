"""Accuracies of judged answers: what counts, what is not measured, and the official figures."""

from collections.abc import Mapping, Sequence

import pytest

from memconform.bench.qa.authors_log import (
    ACCEPTED_MODEL,
    log_rows,
    official_figures,
    official_lines,
    substring_labels,
)
from memconform.bench.qa.records import Judgement
from memconform.bench.qa.scores import span, views
from memconform.bench.qa.text_scores import text_records, text_scores
from memconform.datasets.question import Question
from memconform.scoring.accuracy import accuracy, qa_scores
from memconform.scoring.statuses import QuestionStatus
from memconform.stats.intervals import wilson
from memconform.stats.mean_of_rates import clustered_mean_of_rates, mean_of_rates
from memconform.stats.student import t_quantile


def _questions(category: str, count: int, *, abstain: int = 0) -> list[Question]:
    return [
        Question(
            id=f"{category}{n}" + ("_abs" if n < abstain else ""),
            question="?",
            category=category,
            answers=("boat",),
            abstain=n < abstain,
        )
        for n in range(count)
    ]


def _passed(questions: Sequence[Question], correct: int) -> dict[str, bool]:
    return {question.id: n < correct for n, question in enumerate(questions)}


def test_accuracies_overall_by_category_task_averaged_and_of_abstention() -> None:
    one, two = _questions("a", 10, abstain=2), _questions("b", 40)
    scores = qa_scores([*one, *two], _passed(one, 5) | _passed(two, 30), categories=["a", "b"])
    assert scores.overall.rate is not None
    assert scores.overall.rate.value == pytest.approx(70)
    low, high = wilson(35, 50)
    assert (scores.overall.rate.low, scores.overall.rate.high) == (100 * low, 100 * high)
    assert [each.correct for each in scores.by_category.values()] == [5, 30]
    assert scores.task_averaged.rate is not None
    assert scores.task_averaged.rate.value == pytest.approx((50 + 75) / 2)
    assert (scores.abstention.correct, scores.abstention.expected) == (2, 2)


def test_an_unmeasured_question_leaves_bounds_and_no_rate() -> None:
    questions = _questions("a", 10)
    passed = _passed(questions, 6)
    del passed["a0"], passed["a9"]
    result = accuracy(questions, passed)
    assert result.rate is None
    assert (result.measured, result.correct) == (8, 5)
    assert result.bounds == (50.0, 70.0)
    assert result.of_measured == pytest.approx(62.5)
    assert qa_scores(questions, passed, categories=["a"]).task_averaged.rate is None


def test_a_task_average_needs_every_type() -> None:
    """Answers to one type of question had a task average, where the released code has none."""
    one = _questions("a", 10)
    assert qa_scores(one, _passed(one, 5), categories=["a"]).task_averaged.rate is not None
    assert qa_scores(one, _passed(one, 5), categories=["a", "b"]).task_averaged.rate is None


def test_no_question_is_no_rate() -> None:
    result = accuracy([], {})
    assert (result.rate, result.bounds, result.of_measured) == (None, None, None)
    assert qa_scores([], {}, categories=[]).task_averaged.rate is None


def test_questions_of_one_conversation_widen_the_interval() -> None:
    questions = _questions("a", 200)
    passed = {question.id: n // 20 % 2 == 0 for n, question in enumerate(questions)}
    clusters = {question.id: str(n // 20) for n, question in enumerate(questions)}
    alone, together = accuracy(questions, passed).rate, accuracy(questions, passed, clusters).rate
    assert alone is not None
    assert together is not None
    assert together.high - together.low > 2 * (alone.high - alone.low)


def test_disputed_questions_are_left_out_of_their_view() -> None:
    questions = _questions("a", 3)
    assert list(views(questions, None)) == ["all"]
    split = views(questions, frozenset({"a1"}))
    assert [q.id for q in split["undisputed"]] == ["a0", "a2"]
    assert split["all"] == questions


def _judgement(rubric: str, question: str, status: QuestionStatus, **more: object) -> Judgement:
    return Judgement.model_validate(
        {
            "rubric": rubric,
            "question": question,
            "category": "a",
            "status": status,
            "score": None,
            "reason": "",
            "votes": [],
            **more,
        }
    )


RIGHT, WRONG, FAILED = (
    QuestionStatus.CORRECT,
    QuestionStatus.INCORRECT,
    QuestionStatus.JUDGE_ERROR,
)


def test_the_span_is_of_answers_that_every_rubric_measured() -> None:
    outcomes: Mapping[str, list[QuestionStatus]] = {
        "lenient": [RIGHT, RIGHT, RIGHT, RIGHT, RIGHT],
        "strict": [RIGHT, WRONG, QuestionStatus.ABSTAINED, RIGHT, FAILED],
    }
    judgements = {
        name: [_judgement(name, str(n), status) for n, status in enumerate(statuses)]
        for name, statuses in outcomes.items()
    }
    result = span(judgements)
    assert result is not None
    assert (result.answers, result.lowest, result.highest) == (4, "strict", "lenient")
    assert result.points == pytest.approx(50)
    assert span({"strict": judgements["strict"]}) is None
    failed = [_judgement("b", str(n), FAILED) for n in range(5)]
    assert span({"strict": judgements["strict"], "b": failed}) is None


def test_a_log_has_the_labels_and_no_answer_without_one() -> None:
    rows = [_judgement("longmemeval", name, status) for name, status in
            (("a", RIGHT), ("b", WRONG), ("c", FAILED), ("d", QuestionStatus.NOT_RUN))]  # fmt: skip
    logged = list(log_rows(rows, {"a": "x", "b": "y", "c": "z", "d": "w"}, "gpt"))
    assert logged == [
        {"question_id": "a", "hypothesis": "x", "autoeval_label": {"model": "gpt", "label": True}},
        {"question_id": "b", "hypothesis": "y", "autoeval_label": {"model": "gpt", "label": False}},
    ]


def test_official_figures_are_rounded_as_numpy_rounds() -> None:
    # 1/160 = 0.00625: numpy rounds it to 0.0062, Python's round to 0.0063.
    questions = {q.id: q for q in _questions("multi-session", 160, abstain=4)}
    figures = official_figures(_passed(list(questions.values()), 1), questions, [ACCEPTED_MODEL])
    assert figures.by_task["multi-session"] == (0.0062, 160)
    assert figures.abstention == (0.25, 4)
    assert figures.overall == 0.0062
    # The mean of six types of which five have no row is not a number there.
    assert figures.task_averaged is None
    assert "Task-averaged Accuracy: nan" in official_lines(figures)
    assert figures.model_accepted
    assert not official_figures({}, questions, ["other"]).model_accepted


def test_labels_by_letters_are_reported_beside_ours() -> None:
    rows = [
        _judgement("longmemeval", "a", RIGHT, contains_yes=True),
        _judgement("longmemeval", "b", WRONG, contains_yes=True),
        _judgement("longmemeval", "c", FAILED, contains_yes=False),
        _judgement("longmemeval", "d", FAILED, contains_yes=True),
        _judgement("longmemeval", "e", WRONG),
    ]
    labels = substring_labels(rows)
    assert labels is not None
    assert (labels.correct, labels.contains_yes, labels.differing) == (1, 3, ["b", "d"])
    assert substring_labels(rows[-1:]) is None


def test_the_interval_of_a_mean_of_rates() -> None:
    mean, interval = mean_of_rates([(30, 40)])
    assert mean == 0.75
    assert interval == pytest.approx(wilson(30, 40))
    _, of_four = mean_of_rates([(30, 40)] * 4)
    assert of_four.high - of_four.low == pytest.approx((interval.high - interval.low) / 2)
    assert mean_of_rates([(0, 5), (5, 5)])[1].low > 0
    with pytest.raises(ValueError, match="trials of each"):
        mean_of_rates([(1, 2), (0, 0)])


def test_categories_that_share_conversations_are_not_independent() -> None:
    """The interval of LoCoMo's task average was that of five independent samples."""
    alike = [{f"c{n}": (2 * (n % 2), 2) for n in range(10)}] * 5
    mean, interval = clustered_mean_of_rates(alike)
    assert mean == 0.5
    # Ten conversations that are wholly right or wholly wrong are ten observations.
    half = t_quantile(0.975, 9) * 0.5 / 3
    assert interval == pytest.approx((0.5 - half, 0.5 + half))
    independent = mean_of_rates([(10, 20)] * 5)[1]
    assert interval.high - interval.low > 3 * (independent.high - independent.low)
    few = [{f"c{n}": (n % 2, 1) for n in range(9)}] * 5
    assert clustered_mean_of_rates(few) == mean_of_rates([(4, 9)] * 5)
    right = [{f"c{n}": (2, 2) for n in range(10)}] * 5
    assert clustered_mean_of_rates(right) == mean_of_rates([(20, 20)] * 5)

    questions = [*_questions("one", 10), *_questions("two", 10)]
    passed = {question.id: int(question.id[-1]) % 2 == 0 for question in questions}
    clusters = {question.id: f"c{question.id[-1]}" for question in questions}
    widths = []
    for groups in (None, clusters):
        average = qa_scores(questions, passed, groups, categories=["one", "two"]).task_averaged
        assert average.rate is not None
        widths.append(average.rate.high - average.rate.low)
    assert widths[1] > 1.3 * widths[0]


def test_scores_by_words_need_every_answer() -> None:
    questions = _questions("single-hop", 4)
    clusters = {question.id: "c" for question in questions}
    answers = {question.id: "a boat" for question in questions[:3]}
    complete = text_scores(questions[:3], text_records(questions[:3], answers), clusters)
    assert complete.f1.mean is not None
    assert complete.f1.mean.value == 100
    assert complete.bleu1 is not None
    assert complete.bleu1.mean is not None
    assert complete.bleu1.mean.value == 50
    partly = text_scores(questions, text_records(questions[:3], answers), clusters)
    assert partly.f1.mean is None
    assert (partly.f1.answered, partly.f1.questions, partly.f1.of_answered) == (3, 4, 100)
