"""WMB-100K's score: by the README's rules, by those of the released script, and what is unusual."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from memconform.bench.records import BenchSettings, QueryRecord
from memconform.bench.wmb.answers_file import answer_row
from memconform.bench.wmb.plan import WmbPlan
from memconform.bench.wmb.stored_answers import memories_digest, read_stored_answers
from memconform.datasets.files import PieceReader
from memconform.datasets.question import Question
from memconform.datasets.wmb import read_wmb_key
from memconform.datasets.wmb_answers import RowOrigin, read_answer_rows
from memconform.errors import NothingSelectedError, UsageError
from memconform.reports.wmb import _minus
from memconform.scoring.judge.scorer import JudgeScorer
from memconform.scoring.judge.wmb import MAX_MEMORIES, WmbRubric, parse_verdict, read_wmb_prompt
from memconform.scoring.wmb import (
    PROFILES,
    Profile,
    ProfileScore,
    Range,
    grade,
    score_answers,
    speed_penalty,
)
from memconform.scoring.wmb_rows import (
    ScoredAnswers,
    ScoredRow,
    row_faults,
)
from tests.unit.wmb_files import RIGHT, answers, questions, write_answers, write_benchmark

_RELEASED = [
    (
        *(1, 20),
        {"a": (16, 24), "b": (30, 78), "false": (19, 22), "speed": 3.9, "total": 29.8},
        {"S1Situational": (25, 46), "S2MultiMemory": (3, 9), "S3CrossCategory": (3, 9)}
        | {"S4Temporal": (5, 8), "S5Adversarial": (3, 10), "S6Contradiction": (6, 10)}
        | {"S7ReasoningChain": (1, 10), "FalseMemory": (3, 22)},
        (301, 60_000),
    ),
    (
        *(2, 200),
        {"a": (85, 185), "b": (352, 788), "false": (153, 199), "speed": 38.9, "total": -32.5},
        {"S1Situational": (177, 377), "S2MultiMemory": (35, 98), "S3CrossCategory": (37, 92)}
        | {"S4Temporal": (47, 102), "S5Adversarial": (47, 102), "S6Contradiction": (46, 106)}
        | {"S7ReasoningChain": (48, 96), "FalseMemory": (46, 199)},
        (500, 60_000),
    ),
]
"""What `score` of the released scripts/score.py (v2.1, commit 436cba8) computes of `answers`, by
seed and number of S1 questions, with a judge that looks for the right memory in what it is shown.
"""


def _plan(folder: Path, asked: list[dict[str, Any]], rows: list[dict[str, Any]]) -> WmbPlan:
    key = read_wmb_key(write_benchmark(folder / "wmb", asked))
    stored = read_stored_answers(write_answers(folder / "answers.json", rows), key.questions)
    return WmbPlan(
        key=key,
        answers=stored,
        scorer=JudgeScorer([], rubric=WmbRubric()),
        prompts="own",
        label="",
        profiles=PROFILES,
    )


def _judged(plan: WmbPlan) -> dict[tuple[str, str], bool]:
    """The verdicts of a judge that looks for the right memory."""
    return {
        (question.id, memories_digest(text)): RIGHT in text for question, text in plan.texts(set())
    }


def _score(plan: WmbPlan, profile: Profile) -> ProfileScore:
    return score_answers(plan.scored(_judged(plan)), profile)


@pytest.mark.parametrize(("seed", "scored", "figures", "by_type", "latencies"), _RELEASED)
def test_the_script_profile_is_what_the_released_script_computes(
    seed: int,
    scored: int,
    figures: dict[str, Any],
    by_type: dict[str, tuple[int, int]],
    latencies: tuple[float, float],
    tmp_path: Path,
) -> None:
    asked = questions(scored=scored, probes=scored // 2, analysed=scored // 4)
    score = _score(_plan(tmp_path, asked, answers(asked, seed)), "script")
    assert score.part_a is not None
    assert score.score is not None
    assert (score.part_a.correct, score.part_a.total) == figures["a"]
    assert (score.part_b.correct, score.part_b.total) == figures["b"]
    probes = (score.false_memory.false_positives, score.false_memory.probes)
    assert probes == figures["false"]
    assert score.speed.penalty.value is not None
    assert score.score.value is not None
    assert round(score.speed.penalty.value, 1) == figures["speed"]
    assert round(score.score.value, 1) == figures["total"]
    assert (score.speed.p50, score.speed.p95) == latencies
    assert {name: (each.correct, each.total) for name, each in score.by_type.items()} == by_type


def _answered(asked: list[dict[str, Any]], **changes: Any) -> list[dict[str, Any]]:
    """Right answers to all questions, and nothing for the probes, each in 12 ms."""
    return [
        {
            "question_id": question["id"],
            "memories_returned": (
                memories := [] if question["qtype"] == "FalseMemory" else [RIGHT]
            ),
            "system_response": " ".join(memories) or "NO_RESULT",
            "latency_ms": 12,
        }
        | changes
        for question in asked
    ]


def test_a_perfect_system_has_100_points_by_both_profiles(tmp_path: Path) -> None:
    asked = questions()
    plan = _plan(tmp_path, asked, _answered(asked))
    for profile in PROFILES:
        score = _score(plan, profile)
        assert score.score is not None
        assert score.score.value == 100
        assert score.part_a is not None
        assert score.part_a.percent is not None
        assert score.part_a.percent.value == 100
    assert _score(plan, "readme").grade == "Exceptional"
    assert _score(plan, "script").grade is None


def test_an_unanswered_question_is_wrong_by_the_readme_and_ignored_by_the_script(
    tmp_path: Path,
) -> None:
    asked = questions()
    rows = [
        row
        for row in _answered(asked)
        if not row["question_id"].startswith("daily_life.S1")
        and row["question_id"] != "daily_life.FalseMemory.0"
    ]
    plan = _plan(tmp_path, asked, rows)
    readme, script = _score(plan, "readme"), _score(plan, "script")
    assert (readme.part_b.correct, readme.part_b.total) == (10, 20)
    # A probe without a row is wrong too: leaving probes out must not pay.
    assert (readme.false_memory.false_positives, readme.false_memory.probes) == (1, 8)
    assert readme.score is not None
    assert readme.score.value == 50 - 0.25
    assert script.score is not None
    assert script.score.value == 100
    faults = row_faults(plan.scored({}))
    assert len(faults.missing) == 11
    assert (faults.unknown, faults.repeated, faults.contradicted) == ([], [], [])


def test_what_a_run_lost_is_not_measured_and_leaves_bounds(tmp_path: Path) -> None:
    asked = questions()
    lost = {"daily_life.S1Situational.0", "daily_life.FalseMemory.0", "daily_life.S4Temporal.0"}
    plan = _plan(tmp_path, asked, [r for r in _answered(asked) if r["question_id"] not in lost])
    scored = replace(plan.scored(_judged(plan)), lost=lost)
    readme = score_answers(scored, "readme")
    assert readme.score is not None
    assert readme.score.value is None
    assert readme.score.high == 100
    # One S1 of 20, one probe, and the latencies of both.
    assert readme.score.low == pytest.approx(95 - 0.25 - 0.2)
    assert readme.part_b.unmeasured == readme.false_memory.unmeasured == 1
    assert readme.by_type["S4Temporal"].unmeasured == 1
    assert readme.grade == "Exceptional"
    script = score_answers(scored, "script")
    assert script.score is not None
    assert script.score.value is None
    # Two of the script's 56 questions of Part B, which has S2 to S7 too.
    assert script.score.low == pytest.approx(100 * 54 / 56 - 0.25 - 0.3)
    assert not row_faults(scored).missing


def test_questions_that_were_not_asked_are_not_measured_by_the_readme(tmp_path: Path) -> None:
    asked = questions()
    rows = _answered(asked)[:5]
    plan = _plan(tmp_path, asked, rows)
    others = {row["id"] for row in asked[5:]}
    scored = replace(plan.scored(_judged(plan)), not_asked=others)
    readme = score_answers(scored, "readme")
    assert readme.score is not None
    assert (readme.score.value, readme.score.high) == (None, 100)
    assert readme.part_a is None
    assert readme.grade is None


@pytest.mark.parametrize("probe", [True, False])
@pytest.mark.parametrize("sole_memory", [True, False])
def test_a_stored_error_message_is_not_measured_by_the_readme(
    *, probe: bool, sole_memory: bool, tmp_path: Path
) -> None:
    asked = questions()
    rows = _answered(asked)
    name = "daily_life.FalseMemory.0" if probe else "daily_life.S1Situational.0"
    [row] = [row for row in rows if row["question_id"] == name]
    message = "Error code: 429 - rate limit reached"
    row |= {"memories_returned": [message] if sole_memory else [], "system_response": message}
    readme = _score(_plan(tmp_path, asked, rows), "readme")
    assert readme.score is not None
    assert (readme.score.value, readme.score.high) == (None, 100)
    assert readme.score.low == pytest.approx(100 - (0.25 if probe else 5) - 0.1)
    assert readme.part_b.unmeasured + readme.false_memory.unmeasured == 1


def test_memories_that_mention_an_error_are_an_answer(tmp_path: Path) -> None:
    asked = questions()
    said = {"memories_returned": ["user: Error code: 429", RIGHT], "system_response": ""}
    asked[0]["text"] = "Which status had the call, 503 Service Unavailable or another?"
    rows = _answered(asked)
    rows[0] |= {"memories_returned": ["503 Service Unavailable"], "system_response": "x"}
    rows[1] |= said
    rows[2] |= {"memories_returned": ["Error code: 429", RIGHT]}
    rows[2] |= {"system_response": " ".join(rows[2]["memories_returned"])}
    assert [row.error for row in _plan(tmp_path, asked, rows).answers.rows[:3]] == [None] * 3


def test_a_judge_that_failed_leaves_bounds_and_no_vote(tmp_path: Path) -> None:
    asked = questions()
    plan = _plan(tmp_path, asked, _answered(asked))
    verdicts = _judged(plan)
    del verdicts["daily_life.S1Situational.0", memories_digest(RIGHT)]
    for profile in PROFILES:
        score = score_answers(plan.scored(verdicts), profile).score
        assert score is not None
        assert score.value is None
        assert score.low < 100
        assert score.high == 100


def test_an_answer_without_a_latency_does_not_count_as_fast_by_the_readme(tmp_path: Path) -> None:
    asked = questions()
    rows = _answered(asked)
    del rows[0]["latency_ms"]
    plan = _plan(tmp_path, asked, rows)
    readme = _score(plan, "readme").speed
    assert (readme.unmeasured, readme.penalty.low, readme.penalty.high) == (1, 0, 0.1)
    assert _score(plan, "script").speed.penalty.value == 0


@pytest.mark.parametrize(
    ("latency", "readme", "script"),
    [
        *((0, 0, 0), (299.9, 0, 0), (300, 0.01, 0), (300.1, 0.01, 0.01), (500, 0.05, 0.01)),
        *((501, 0.05, 0.05), (1_000, 0.1, 0.05), (1_000.5, 0.1, 0.1), (1e9, 0.1, 0.1)),
    ],
)
def test_the_two_profiles_differ_at_the_ends_of_speed_tiers(
    latency: float, readme: float, script: float
) -> None:
    assert speed_penalty(latency, "readme") == readme
    assert speed_penalty(latency, "script") == script


def test_only_questions_of_the_score_pay_for_speed_by_the_readme(tmp_path: Path) -> None:
    asked = questions()
    plan = _plan(tmp_path, asked, _answered(asked, latency_ms=2_000))
    assert _score(plan, "readme").speed.answers == 20 + 8
    assert _score(plan, "script").speed.answers == len(asked)


def test_no_score_is_cut_off_at_0(tmp_path: Path) -> None:
    asked = questions()
    wrong = _answered(asked, memories_returned=["A cat."], system_response="A cat.")
    readme = _score(_plan(tmp_path, asked, wrong), "readme")
    assert readme.score is not None
    assert readme.score.value == -2
    assert readme.grade == "Failing"


def test_a_question_that_occurs_again_counts_once_by_the_readme_and_its_last_row_decides(
    tmp_path: Path,
) -> None:
    asked = questions()
    rows = _answered(asked)
    same, other = rows[0], rows[1]
    rows += [same, other | {"memories_returned": ["A cat."], "system_response": "A cat."}]
    rows.append({"question_id": "nobody asked", "memories_returned": ["x"], "latency_ms": 2_000})
    plan = _plan(tmp_path, asked, rows)
    faults = row_faults(plan.scored({}))
    assert faults.repeated == [same["question_id"]]
    assert faults.contradicted == [other["question_id"]]
    assert faults.unknown == ["nobody asked"]
    readme, script = _score(plan, "readme"), _score(plan, "script")
    assert (readme.part_b.correct, readme.part_b.total) == (19, 20)
    assert readme.speed.penalty.value == 0
    assert (script.part_b.correct, script.part_b.total) == (57, 58)
    assert script.speed.penalty.value == 0.1


def test_the_order_of_the_rows_is_reported_and_changes_nothing(tmp_path: Path) -> None:
    asked = questions()
    rows = _answered(asked)
    scores = []
    for name, each in (("straight", rows), ("reversed", rows[::-1])):
        (tmp_path / name).mkdir()
        plan = _plan(tmp_path / name, asked, each)
        assert row_faults(plan.scored({})).reordered is (name == "reversed")
        scores.append([_score(plan, profile) for profile in PROFILES])
    assert scores[0] == scores[1]


def test_the_parts_may_be_answered_one_after_the_other(tmp_path: Path) -> None:
    asked = questions()
    rows = sorted(_answered(asked), key=lambda row: ".DOC." in row["question_id"])
    assert not row_faults(_plan(tmp_path, asked, rows).scored({})).reordered


def test_the_script_profile_shows_its_judge_3000_characters(tmp_path: Path) -> None:
    asked = questions()
    behind = ["x" * 3_000, RIGHT]
    rows = _answered(asked)
    rows[0] |= {"memories_returned": behind, "system_response": " ".join(behind)}
    plan = _plan(tmp_path, asked, rows)
    assert _score(plan, "readme").part_b.correct == 20
    assert _score(plan, "script").part_b.correct == 55
    judged = [text for question, text in plan.texts(set()) if question.id == asked[0]["id"]]
    assert sorted(map(len, judged)) == [3_000, 3_000 + 1 + len(RIGHT)]
    # Shorter memories are the same to both, and are judged once.
    assert len(list(plan.texts(set()))) == len(plan.shown_digests()) == 76 + 1


def test_sums_of_hundredths_do_not_lower_the_grade(tmp_path: Path) -> None:
    asked = questions(scored=1_200, probes=8)
    rows = _answered(asked)
    ones = [row for row in rows if ".S1Situational." in row["question_id"]]
    paying = [row for row in ones if ".DOC." not in row["question_id"]]
    for row in paying[:228]:
        row |= {"memories_returned": [], "system_response": ""}
    for row in paying[-100:]:
        row["latency_ms"] = 300
    score = _score(_plan(tmp_path, asked, rows), "readme").score
    assert score is not None
    assert (score.value, grade(score.low)) == (80, "Excellent")


def test_bounds_of_a_penalty_are_negative_at_both_ends() -> None:
    assert _minus(Range.of(1, 2.25)) == "-2.25 to -1.00"
    assert _minus(Range.of(0, 0.1)) == "-0.10 to 0.00"
    assert _minus(Range.of(0.25, 0.25)) == "-0.25"


def test_an_unmeasured_latency_is_not_0_ms() -> None:
    fields: dict[str, Any] = {"query": "q", "memories": ["m"], "latency_ms": None}
    record = QueryRecord.model_construct(**fields)
    origin = RowOrigin("r", "B", 1)
    assert "latency_ms" not in answer_row(record, origin)
    assert answer_row(record.model_copy(update={"latency_ms": 3.9}), origin)["latency_ms"] == 3


def test_the_judge_is_told_of_cut_memories_behind_them() -> None:
    question = Question(id="q", question="?", rubric="fact")
    long = WmbRubric().request(question, "x" * (MAX_MEMORIES + 1)).messages[1].content
    assert "xx\n" in long
    assert "The returned memories are cut after" in long.rpartition("x\n")[2]
    assert "cut" not in WmbRubric().request(question, "x").messages[1].content


def test_grades_begin_at_their_score() -> None:
    expected = {
        100: "Exceptional",
        90: "Exceptional",
        89.9: "Excellent",
        80: "Excellent",
        70: "Good",
        60: "Fair",
        50: "Below Average",
        49.99: "Failing",
        -70: "Failing",
    }
    assert {score: grade(score) for score in expected} == expected


@pytest.mark.parametrize(
    ("reply", "verdict"),
    [
        *(("CORRECT", "correct"), ("correct.", "correct"), ("**Correct**", "correct")),
        *(("WRONG", "incorrect"), ("INCORRECT", "incorrect"), ("Wrong: no berth", "incorrect")),
    ],
)
def test_a_verdict_is_a_whole_word(reply: str, verdict: str) -> None:
    assert parse_verdict(reply).verdict == verdict


@pytest.mark.parametrize(
    "reply",
    [
        *(
            "",
            "NOT CORRECT",
            "CORRECT or WRONG",
            "correctly",
            "It is correct",
            "CORRECT, not WRONG",
        ),
        *("uncorrect", "yes", "CORRECT\nINCORRECT"),
    ],
)
def test_prose_is_no_verdict(reply: str) -> None:
    with pytest.raises(ValueError, match="neither"):
        parse_verdict(reply)


def test_the_judge_sees_no_gold_answer_and_no_number_of_a_turn(tmp_path: Path) -> None:
    key = read_wmb_key(write_benchmark(tmp_path, questions()))
    question = key.questions["daily_life.S4Temporal.0"]
    assert question.rubric == "turn_7: boat lies harbour Brel"
    for rubric in (WmbRubric(), read_wmb_prompt(_script(tmp_path))):
        request = rubric.request(question, "One memory.\nAnother.")
        shown = "\n".join(message.content for message in request.messages)
        assert "GOLD" not in shown
        assert "boat lies harbour Brel" in shown
        assert "One memory.\nAnother." in shown
    # The script's judge sees the number, which no memory can contain.
    assert "turn_7" in shown
    own = WmbRubric().request(question, "x").messages[1].content
    assert "turn_7" not in own


_PROMPT = "Q {question} R {required_memories} M {memories}"


def _script(folder: Path, source: str = f"JUDGE_PROMPT = {_PROMPT!r}\n") -> Path:
    path = folder / "score.py"
    path.write_text(f"raise SystemExit('it was executed')\n{source}")
    return path


def test_the_prompt_of_a_copy_of_the_script_is_sent_as_it_is(tmp_path: Path) -> None:
    rubric = read_wmb_prompt(_script(tmp_path))
    question = Question(id="q", question="Where?", rubric="one\ntwo")
    [message] = rubric.request(question, "m1\nm2").messages
    assert message.content == "Q Where? R one, two M m1\nm2"
    assert rubric.digest() != WmbRubric().digest()


@pytest.mark.parametrize(
    ("source", "fault"),
    [
        ("JUDGE_PROMPT = 1", "assigns no text"),
        ("", "assigns no text"),
        ("JUDGE_PROMPT = '{question} {memories}'", "does not have the fields"),
        ("JUDGE_PROMPT = '{question.__class__} {required_memories} {memories}'", "fields"),
        (f"JUDGE_PROMPT = {_PROMPT + ' {memories}'!r}", "fields"),
        ("JUDGE_PROMPT = '{question'", "line 2"),
        ("def (", "is not Python, line 2"),
    ],
)
def test_another_script_is_refused(source: str, fault: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=fault) as error:
        read_wmb_prompt(_script(tmp_path, source))
    assert error.value.code == "bad_prompt_script"


@pytest.mark.parametrize(
    ("content", "fault"),
    [
        ("{}", "is not a JSON array"),
        ("[1]", "row 0: is not an object"),
        ('[{"memories_returned": []}]', "row 0: 'question_id' is missing"),
        ('[{"question_id": 5}]', "row 0: 'question_id' must be text"),
        ('[{"question_id": "q", "memories_returned": "text"}]', "must be a list of texts"),
        ('[{"question_id": "q", "memories_returned": [{"a": 1}]}]', "must be a list of texts"),
        ('[{"question_id": "q"}, {"question_id": "q", "latency_ms": -1}]', "row 1: 'latency_ms'"),
        ('[{"question_id": "q", "latency_ms": "12"}]', "must be a number"),
        ('[{"question_id": "q", "latency_ms": true}]', "must be a number"),
        ('[{"question_id": "q", "latency_ms": 1e999}]', "too large a number"),
        ('[{"question_id": "q", "memories_returned": ["\\ud800"]}]', "unpaired surrogate"),
        ('[{"question_id": "q", "memories_returned": ["a"', "ends too early"),
    ],
)
def test_an_invalid_row_is_named(content: str, fault: str, tmp_path: Path) -> None:
    path = tmp_path / "answers.json"
    path.write_text(content)
    with pytest.raises(UsageError, match=fault) as error:
        read_stored_answers(path, {})
    assert error.value.code == "dataset_invalid"


def test_rows_of_other_programs_may_lack_all_but_the_id(tmp_path: Path) -> None:
    path = tmp_path / "answers.json"
    path.write_text('[{"question_id": "q", "memories_returned": null, "extra": {}}]')
    with PieceReader(path) as source:
        [row] = read_answer_rows(source)
    assert row.returned_nothing
    assert row.latency_ms is None


def test_answers_to_nothing_are_refused(tmp_path: Path) -> None:
    asked = questions()
    plan = _plan(tmp_path, asked, [{"question_id": "other"}])
    with pytest.raises(NothingSelectedError, match="belongs to a question"):
        plan.answers.require_answers(plan.key)


def test_answers_that_change_meanwhile_are_noticed(tmp_path: Path) -> None:
    asked = questions()
    plan = _plan(tmp_path, asked, _answered(asked))
    changed = _answered(asked, system_response="other")
    write_answers(tmp_path / "answers.json", changed)
    with pytest.raises(UsageError, match="changed while it was being used"):
        list(plan.texts(set()))


def test_a_question_without_required_memories_cannot_be_judged(tmp_path: Path) -> None:
    asked = questions()
    asked[0]["required_memories"] = []
    key = read_wmb_key(write_benchmark(tmp_path, asked))
    with pytest.raises(UsageError, match="no required_memories"):
        WmbRubric().require_scorable(key.questions[asked[0]["id"]])


def _row(name: str, **changes: Any) -> ScoredRow:
    values: Mapping[str, Any] = {
        "question": name,
        "returned_nothing": False,
        "latency_ms": 1,
        "whole": "w",
        "cut": "w",
        **changes,
    }
    return ScoredRow(**values)


def test_without_a_question_that_counts_there_is_no_score() -> None:
    probe = Question(id="p", question="?", category="FalseMemory")
    scored = ScoredAnswers(questions={"p": probe}, rows=[_row("p")])
    assert score_answers(scored, "readme").score is None
    assert json.loads(score_answers(scored, "script").model_dump_json())["score"] is None


def test_a_run_of_wmb_is_not_compared_with_a_ranking_of_the_same_queries() -> None:
    ranking = BenchSettings(
        format="wmb",
        options={"part": "B"},
        content_sha256="c",
        chosen_sha256="q",
        disputed_sha256=None,
        pruned_sha256=None,
        index="isolated",
        ks=[10],
    )
    memories = ranking.model_copy(update={"unit": "memory"})
    assert ranking.asked() == hashlib.sha256(repr(("c", "q", None)).encode()).hexdigest()
    assert memories.asked() != ranking.asked()
