"""Stored answers scored by the program, and by judges at the scripted upstream that fail."""

import json
import os
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import jsonschema
import pytest
import pytest_asyncio

from memconform.bench.qa.plan import AnswerSelection, QaPlan, RubricRun
from memconform.bench.qa.records import QaMetrics, QaReport
from memconform.bench.qa.report_builder import QaFinished
from memconform.bench.qa.schedule import score_answers
from memconform.daemons.upstream import scripted_upstream
from memconform.datasets.answer_keys import read_answer_key
from memconform.datasets.hypotheses import read_hypotheses
from memconform.errors import UsageError
from memconform.llm.budget import Ledger
from memconform.llm.cache import ReplyCache
from memconform.llm.names import ModelName
from memconform.llm.session import CallPolicy, LlmSession
from memconform.scoring.judge.longmemeval import LongMemEvalRubric
from memconform.scoring.judge.official_prompts import OfficialRubric
from memconform.scoring.judge.rubric import Rubric
from memconform.scoring.judge.scorer import JudgeScorer
from memconform.scoring.statuses import QuestionStatus
from memconform.storage.folders import RunFolder
from tests.clients import client_of
from tests.conftest import Ended

Call = Callable[..., Ended]

_TYPES = (
    *("single-session-user", "single-session-preference", "single-session-assistant"),
    *("multi-session", "temporal-reasoning", "knowledge-update"),
)


def _row(name: str, kind: str, answer: object) -> dict[str, Any]:
    return {
        "question_id": name,
        "question_type": kind,
        "question": f"Which berth has boat {name}?",
        "answer": answer,
        "question_date": "2023/05/30 (Tue) 23:40",
        "haystack_dates": ["2023/05/20 (Sat) 02:21"],
        "haystack_session_ids": ["s"],
        "haystack_sessions": [[{"role": "user", "content": "A boat.", "has_answer": True}]],
        "answer_session_ids": ["s"],
    }


@pytest.fixture
def oracle(tmp_path: Path) -> Path:
    """Two questions of each type: one has an integer answer, one cannot be answered."""
    rows = [_row(f"q{n}", kind, 20 + n) for n, kind in enumerate(_TYPES)]
    rows += [_row(f"q{n}_abs", kind, "It is not known.") for n, kind in enumerate(_TYPES)]
    path = tmp_path / "oracle.json"
    path.write_text(json.dumps(rows))
    return path


def _write(path: Path, answers: dict[str, str]) -> Path:
    rows = ({"question_id": name, "hypothesis": text} for name, text in answers.items())
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    return path


def _answers(right: int = 6, abstained: int = 6) -> dict[str, str]:
    answers = {f"q{n}": f"In berth {20 + n}." if n < right else "In berth 77." for n in range(6)}
    declines = ("My notes do not say.", "In berth 5.")
    return answers | {f"q{n}_abs": declines[n >= abstained] for n in range(6)}


@pytest.fixture
def hypotheses(tmp_path: Path) -> Path:
    return _write(tmp_path / "hypotheses.jsonl", _answers(right=4, abstained=3))


def _judge(memconform: Call, hypotheses: Path, oracle: Path, *flags: str) -> tuple[Ended, Any]:
    ended = memconform(
        *("score", hypotheses, "--rubric", "longmemeval", "--data", oracle),
        *("--judge", "fake", "--no-cache", "--json", "report.json", *flags),
    )
    file = ended.folder / "report.json"
    return ended, json.loads(file.read_text()) if file.exists() else None


def test_integer_answers_and_unanswerable_questions_of_every_type(
    memconform: Call, oracle: Path, hypotheses: Path
) -> None:
    ended, report = _judge(memconform, hypotheses, oracle, "--log", "log.jsonl")
    assert ended.code == 0, ended.err
    jsonschema.validate(report, QaReport.model_json_schema())
    scores = report["rubrics"][0]["views"]["all"]
    assert (scores["overall"]["correct"], scores["overall"]["expected"]) == (7, 12)
    assert (scores["abstention"]["correct"], scores["abstention"]["expected"]) == (3, 6)
    correct = {name: each["correct"] for name, each in scores["by_category"].items()}
    assert correct == dict(zip(_TYPES, (2, 2, 2, 1, 0, 0), strict=True))
    assert scores["task_averaged"]["rate"]["value"] == pytest.approx(100 * 7 / 12)
    assert ended.out.startswith("longmemeval, longmemeval: 58.3 (")

    log = [json.loads(line) for line in (ended.folder / "log.jsonl").read_text().splitlines()]
    assert len(log) == 12
    assert log[0] == {
        "question_id": "q0",
        "hypothesis": "In berth 20.",
        "autoeval_label": {"model": "lexical-3", "label": True},
    }
    [kept] = (ended.folder / "results" / "runs").glob("*/eval-results.jsonl")
    assert kept.read_bytes() == (ended.folder / "log.jsonl").read_bytes()

    metrics = memconform("judge", "metrics", "log.jsonl", "--data", oracle, "--json", "m.json")
    assert metrics.code == 0, metrics.err
    assert "all, overall: 58.3 (" in metrics.out
    assert "Task-averaged Accuracy: 0.5833" in metrics.out
    assert "Abstention Accuracy: 0.5 (6)" in metrics.out
    loaded = json.loads((ended.folder / "m.json").read_text())
    jsonschema.validate(loaded, QaMetrics.model_json_schema())
    assert loaded["views"] == report["rubrics"][0]["views"]


def test_a_missing_answer_is_not_measured_and_named(
    memconform: Call, oracle: Path, tmp_path: Path
) -> None:
    answers = _answers()
    del answers["q3"], answers["q3_abs"]
    partly = _write(tmp_path / "partly.jsonl", answers)
    ended, report = _judge(memconform, partly, oracle)
    assert ended.code == 3
    assert "not measured, no answer: 2 (q3, q3_abs)" in ended.err
    overall = report["rubrics"][0]["views"]["all"]["overall"]
    assert overall["rate"] is None
    assert overall["bounds"] == [pytest.approx(100 * 10 / 12), 100]
    assert ended.out.startswith("longmemeval, longmemeval: 83.3 to 100.0 of 12")
    assert report["hypotheses"]["missing"] == ["q3", "q3_abs"]

    ended, report = _judge(memconform, partly, oracle, "--partial")
    assert ended.code == 0, ended.err
    assert report["rubrics"][0]["views"]["all"]["overall"]["rate"]["value"] == 100
    assert "2 questions without an answer left out" in ended.err

    ended, _ = _judge(memconform, partly, oracle, "--log", "log.jsonl")
    metrics = memconform("judge", "metrics", "log.jsonl", "--data", oracle)
    assert metrics.code == 3
    assert "all, overall: 83.3 to 100.0" in metrics.out
    assert "not in the log: 2 (q3, q3_abs)" in metrics.err


def test_unknown_answers_are_named_and_repeated_ones_count_once(
    memconform: Call, oracle: Path, tmp_path: Path
) -> None:
    path = _write(tmp_path / "h.jsonl", _answers() | {"other": "x"})
    path.write_text(path.read_text() + path.read_text().splitlines()[0] + "\n")
    ended, report = _judge(memconform, path, oracle)
    assert ended.code == 0, ended.err
    assert "not questions of the benchmark, skipped: 1 (other)" in ended.err
    assert "counted once: 1 (q0)" in ended.err
    assert report["rubrics"][0]["views"]["all"]["overall"]["expected"] == 12


def test_two_answers_to_a_question_are_refused(
    memconform: Call, oracle: Path, hypotheses: Path
) -> None:
    with hypotheses.open("a") as file:
        file.write('{"question_id": "q0", "hypothesis": "another"}\n')
    ended, _ = _judge(memconform, hypotheses, oracle)
    assert ended.code == 2
    assert "line 13: 'q0' has another answer than on line 1" in ended.err
    assert not (ended.folder / "results").exists()


def test_answers_to_another_benchmark_are_nothing_to_score(
    memconform: Call, oracle: Path, tmp_path: Path
) -> None:
    ended, _ = _judge(memconform, _write(tmp_path / "h.jsonl", {"conv-1#0": "x"}), oracle)
    assert ended.code == 4
    assert "nothing_selected" in ended.err


@pytest.mark.parametrize(
    ("flags", "code"),
    [
        (("--rubric", "harsh"), "unknown_rubric"),
        (("--rubric", ","), "unknown_rubric"),
        (("--prompts", "official"), "bad_option"),
        (("--script", "evaluate_qa.py"), "bad_option"),
        (("--rubric", "strict", "--log", "log.jsonl"), "bad_option"),
        (("--prompts", "official", "--script", "oracle.json"), "bad_prompt_script"),
        (("--resume", "nothing"), "unknown_run"),
    ],
)
def test_flags_that_cannot_be_used(
    memconform: Call, oracle: Path, hypotheses: Path, flags: Sequence[str], code: str
) -> None:
    ended, _ = _judge(memconform, hypotheses, oracle, *flags)
    assert ended.code == 2, ended.err
    assert ended.err.startswith(f"{code}: ")


@pytest.mark.capability("judge")
def test_rubrics_side_by_side_with_their_span_and_errata(
    memconform: Call, oracle: Path, tmp_path: Path
) -> None:
    # Neither takes the first for an abstention by its phrase.
    rows = json.loads(oracle.read_text())
    rows[0]["answer"] = "not in berth 20"
    oracle.write_text(json.dumps(rows))
    answers = _answers() | {
        "q0": "The owner is not mentioned; not in berth 20.",
        "q1": "Elsewhere.",
    }
    hypotheses = _write(tmp_path / "h.jsonl", answers)
    errata = tmp_path / "errata.json"
    errata.write_text('{"q1": "two boats have this name"}')
    ended, report = _judge(
        memconform, hypotheses, oracle, "--rubric", "strict,longmemeval", "--errata", str(errata)
    )
    assert ended.code == 0, ended.err
    assert [rubric["name"] for rubric in report["rubrics"]] == ["strict", "longmemeval"]
    overall = [rubric["views"]["all"]["overall"]["correct"] for rubric in report["rubrics"]]
    assert overall == [11, 11]
    assert report["span"]["points"] == 0
    assert "span: 0.0 points for the rubric alone, on 12 answers" in ended.err
    undisputed = [rubric["views"]["undisputed"]["overall"] for rubric in report["rubrics"]]
    assert [each["rate"]["value"] for each in undisputed] == [100, 100]
    errata.write_text('{"q99": "no such question"}')
    ended, _ = _judge(memconform, hypotheses, oracle, "--errata", str(errata))
    assert ended.code == 2
    assert "unknown_question" in ended.err


def test_a_dry_run_asks_nothing(memconform: Call, oracle: Path, hypotheses: Path) -> None:
    ended, _ = _judge(memconform, hypotheses, oracle, "--dry-run", "--rubric", "lenient,strict")
    assert ended.code == 0, ended.err
    assert "lenient fake:lexical-3: 12 calls" in ended.out
    assert "nothing was asked" in ended.out
    assert not (ended.folder / "results").exists()


def test_a_dry_run_of_a_resumed_scoring_counts_what_is_left(
    memconform: Call, oracle: Path, hypotheses: Path
) -> None:
    rubrics = ("--rubric", "lenient,strict")
    ended, report = _judge(memconform, hypotheses, oracle, *rubrics)
    journal = ended.folder / "results" / "runs" / report["run_id"] / "journal.jsonl"
    # The header, all judgements by one rubric, and three by the other.
    lines = journal.read_text().splitlines(keepends=True)
    journal.write_text("".join(lines[: 1 + 12 + 3]))
    again = (*rubrics, "--dry-run", "--resume", report["run_id"])
    ended, _ = _judge(memconform, hypotheses, oracle, *again)
    assert ended.code == 0, ended.err
    assert "lenient fake:lexical-3: 0 calls" in ended.out
    assert "strict fake:lexical-3: 9 calls" in ended.out
    ended, _ = _judge(memconform, hypotheses, oracle, *again, "--judge-repeat", "2")
    assert ended.code == 2
    assert "resume_mismatch" in ended.err


def test_locomo_is_scored_by_words_and_by_judges(memconform: Call, tmp_path: Path) -> None:
    rows = [
        {"question": "Where is the boat?", "answer": "Brel, Orn", "evidence": [], "category": 1},
        {"question": "How many oars?", "answer": 2, "evidence": ["D1:1"], "category": 4},
        {"question": "Who sank?", "adversarial_answer": "Tom", "evidence": [], "category": 5},
    ]
    locomo = tmp_path / "locomo.json"
    turns = [{"speaker": "A", "dia_id": "D1:1", "text": "Hello"}]
    conversation = {"session_1": turns, "session_1_date_time": "1:56 pm on 8 May, 2023"}
    sample = {"sample_id": "c", "conversation": conversation, "qa": rows}
    locomo.write_text(json.dumps([sample]))
    answers = {"c#0": "Orn", "c#1": "two, or 2", "c#2": "That is not mentioned."}
    path = _write(tmp_path / "h.jsonl", answers)
    call = ("score", path, "--rubric", "locomo", "--data", locomo, "--json", "report.json")
    ended = memconform(*call)
    assert ended.code == 0, ended.err
    report = json.loads((ended.folder / "report.json").read_text())
    f1 = {
        name: each["mean"]["value"]
        for name, each in report["text"]["all"]["f1_by_category"].items()
    }
    # Half of the parts; 2 of "two or 2"; abstained.
    assert f1 == {"adversarial": 100, "multi-hop": 50, "single-hop": pytest.approx(50)}
    assert report["text"]["all"]["bleu1"]["questions"] == 2
    assert report["rubrics"] == []
    judged = memconform(*call, "--judge", "fake", "--no-cache")
    assert judged.code == 0, judged.err
    [rubric] = json.loads((judged.folder / "report.json").read_text())["rubrics"]
    assert (rubric["name"], rubric["views"]["all"]["abstention"]["correct"]) == ("strict", 1)
    _write(path, {"c#0": "Orn", "c#2": "Tom did."})
    partly = memconform(*call)
    assert partly.code == 3
    assert "not measured, no answer: 1 (c#1)" in partly.err
    assert "F1 not measured" in partly.out


# ---- in process, against a service that fails


@dataclass
class Service:
    url: str
    http: httpx.AsyncClient

    async def script(self, *rules: dict[str, Any]) -> None:
        answer = await self.http.put("/_control/script", json={"rules": list(rules)})
        assert answer.status_code == 204, answer.text

    async def asked(self) -> int:
        requests = (await self.http.get("/_control/requests")).json()["requests"]
        return len(requests)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def service(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Service]:
    folder = tmp_path_factory.mktemp("service")
    async with (
        scripted_upstream(folder, f"qa-{os.getpid()}") as daemon,
        client_of(daemon.base_url) as http,
    ):
        yield Service(daemon.base_url, http)


@asynccontextmanager
async def _session(
    service: Service, tmp_path: Path, budget: float | None = None, **policy: Any
) -> AsyncIterator[LlmSession]:
    env = {"OPENAI_API_KEY": "k", "OPENAI_BASE_URL": f"{service.url}/v1"}
    session = LlmSession(
        Ledger(budget),
        policy=CallPolicy(deadline_s=60, cache="off", **policy),
        cache=ReplyCache(tmp_path / "cache"),
        env=env,
    )
    try:
        yield session
    finally:
        await session.aclose()


async def _scored(
    service: Service,
    tmp_path: Path,
    name: str,
    *,
    rubric: Rubric | None = None,
    budget: float | None = None,
    resumed: Path | None = None,
    **policy: Any,
) -> QaFinished:
    key = read_answer_key(tmp_path / "oracle.json", "longmemeval")
    answers = read_hypotheses(tmp_path / "hypotheses.jsonl")
    async with _session(service, tmp_path, budget, **policy) as session:
        model = session.model(ModelName("openai", "gpt-4o-2024-08-06"))
        used = rubric or LongMemEvalRubric()
        prompts: Any = "official" if isinstance(used, OfficialRubric) else "own"
        run = RubricRun(JudgeScorer([model], rubric=used), prompts, None)
        plan = QaPlan(
            selection=AnswerSelection(key, answers, partial=False, disputed=None),
            rubrics={"longmemeval": run},
            resumed=resumed,
        )
        events = [event async for event in score_answers(plan, RunFolder(tmp_path, name))]
    last = events[-1]
    assert isinstance(last, QaFinished)
    return last


def _statuses(finished: QaFinished) -> dict[QuestionStatus, int]:
    return finished.report.rubrics[0].statuses


_YES = {"text": "yes"}
_JUDGE_ERRORS = [
    ({"text": "The response seems mostly accurate."}, "llm_invalid_reply"),
    ({"text": "There is no doubt that it is right."}, "llm_invalid_reply"),
    ({"text": ""}, "llm_invalid_reply"),
    ({"status": 400}, "llm_rejected"),
]


@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.usefixtures("oracle", "hypotheses")
@pytest.mark.parametrize(("reply", "code"), _JUDGE_ERRORS)
async def test_a_judge_without_a_verdict_is_an_error_and_no_score(
    service: Service, tmp_path: Path, reply: dict[str, Any], code: str
) -> None:
    await service.script({"contains": "boat q2?", "reply": reply}, {"reply": _YES})
    finished = await _scored(service, tmp_path, "run")
    assert _statuses(finished) == {QuestionStatus.CORRECT: 11, QuestionStatus.JUDGE_ERROR: 1}
    [failed] = [j for j in finished.judgements["longmemeval"] if not j.status.measured]
    assert failed.question == "q2"
    assert failed.score is None
    assert code in failed.reason
    assert finished.report.rubrics[0].failures == [
        f"1 of {code}, the first q2:{failed.reason.removeprefix(code).removeprefix(':')}"
    ]
    overall = finished.report.rubrics[0].views["all"].overall
    assert overall.rate is None
    assert overall.bounds == pytest.approx((100 * 11 / 12, 100))
    assert finished.report.exit_code == 3
    # The released script would divide by the eleven rows of the log.
    assert finished.report.rubrics[0].official is not None
    assert finished.report.rubrics[0].official.overall == 1.0

    # Resuming asks the judge that failed again, and nobody else.
    await service.script({"reply": {"text": "no"}})
    before = await service.asked()
    resumed = await _scored(
        service, tmp_path, "again", resumed=tmp_path / "runs" / "run" / "journal.jsonl"
    )
    assert await service.asked() - before == 1
    assert _statuses(resumed) == {QuestionStatus.CORRECT: 11, QuestionStatus.INCORRECT: 1}
    assert resumed.report.exit_code == 0


@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.usefixtures("oracle", "hypotheses")
async def test_a_budget_that_ends_midway_is_resumed_and_nothing_is_paid_twice(
    service: Service, tmp_path: Path
) -> None:
    await service.script({"reply": _YES | {"usage": {"input": 2_000, "output": 1}}})
    before = await service.asked()
    finished = await _scored(service, tmp_path, "run", budget=0.03, concurrency=1)
    paid = await service.asked() - before
    assert 0 < paid < 12
    assert finished.report.exit_code == 6
    assert finished.report.incident is not None
    assert finished.report.incident.code == "budget_spent"
    assert _statuses(finished)[QuestionStatus.NOT_RUN] == 12 - paid
    assert finished.report.rubrics[0].views["all"].overall.rate is None
    journal = tmp_path / "runs" / "run" / "journal.jsonl"
    resumed = await _scored(service, tmp_path, "again", resumed=journal)
    assert await service.asked() - before == 12
    assert _statuses(resumed) == {QuestionStatus.CORRECT: 12}
    assert resumed.report.resumed_from == "run"


@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.usefixtures("oracle")
async def test_another_scorings_journal_is_refused(
    service: Service, tmp_path: Path, hypotheses: Path
) -> None:
    await service.script({"reply": _YES})
    await _scored(service, tmp_path, "run")
    journal = tmp_path / "runs" / "run" / "journal.jsonl"
    _write(hypotheses, _answers(right=1))
    with pytest.raises(UsageError, match="other settings: hypotheses"):
        await _scored(service, tmp_path, "changed", resumed=journal)
    journal.write_text("{}\n")
    with pytest.raises(UsageError, match="is not a journal of `memconform score`"):
        await _scored(service, tmp_path, "damaged", resumed=journal)


@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.usefixtures("oracle", "hypotheses")
async def test_labels_by_the_letters_yes_are_reported_for_official_prompts(
    service: Service, tmp_path: Path
) -> None:
    templates = dict.fromkeys((*_TYPES, ""), "{} {} {} right?")
    await service.script(
        {"contains": "boat q1?", "reply": {"text": "No. It was yesterday."}},
        {"contains": "boat q2?", "reply": {"text": "It says yes and no."}},
        {"reply": _YES},
    )
    finished = await _scored(service, tmp_path, "run", rubric=OfficialRubric(templates))
    labels = finished.report.rubrics[0].substring_labels
    assert labels is not None
    assert (labels.correct, labels.contains_yes, labels.differing) == (10, 12, ["q1", "q2"])


# ---- texts that are no system's answers


def test_error_messages_in_the_place_of_answers_are_not_measured(
    memconform: Call, oracle: Path, tmp_path: Path
) -> None:
    failed = {"q1": "Error: 429 Too Many Requests", "q2": '{"error": "quota"}'}
    path = _write(tmp_path / "h.jsonl", _answers() | failed)
    for flags in ((), ("--partial",)):
        ended, report = _judge(memconform, path, oracle, "--log", "log.jsonl", *flags)
        assert ended.code == 3
        assert "not measured, 2 error messages instead of an answer:" in ended.err
        assert "1 of 'Error: 429 Too Many Requests', the first q1" in ended.err
        overall = report["rubrics"][0]["views"]["all"]["overall"]
        assert (overall["expected"], overall["measured"], overall["rate"]) == (12, 10, None)
        assert report["hypotheses"]["errors"] == failed
        # A label of theirs would count as wrong in the released script.
        log = (ended.folder / "log.jsonl").read_text()
        assert [json.loads(line)["question_id"] for line in log.splitlines()] == [
            name for name in _answers() if name not in failed
        ]
    ended, _ = _judge(memconform, path, oracle, "--dry-run", "--quiet")
    assert "12 calls" not in ended.out
    assert "longmemeval fake:lexical-3: 10 calls" in ended.out
    assert "2 error messages" in ended.err


def test_a_file_of_error_messages_is_no_score_of_zero(
    memconform: Call, oracle: Path, tmp_path: Path
) -> None:
    path = _write(tmp_path / "h.jsonl", dict.fromkeys(_answers(), "Error: 503 overloaded"))
    ended, report = _judge(memconform, path, oracle, "--quiet")
    assert ended.code == 3
    assert ended.out.startswith("longmemeval, longmemeval: not measured of 12")
    assert "12 of 'Error: 503 overloaded', the first q0" in ended.err
    assert "12 of 12 answers are the same text" in ended.err
    assert report["rubrics"][0]["views"]["all"]["overall"]["of_measured"] is None


@pytest.mark.parametrize(
    ("text", "notices"),
    [
        ("I do not know.", ["12 of 12 answers are the same text: 'I do not know.'"]),
        ("", ["12 of 12 answers are the same text: empty", "empty, which is wrong: 12 answers"]),
        (
            "Error: it took too long",
            ["12 of 12 answers", "as an error message does: 12 (q0, q1, q2"],
        ),
    ],
)
def test_answers_that_are_all_the_same_are_scored_with_a_notice(
    memconform: Call, oracle: Path, tmp_path: Path, text: str, notices: Sequence[str]
) -> None:
    path = _write(tmp_path / "h.jsonl", dict.fromkeys(_answers(), text))
    ended, report = _judge(memconform, path, oracle, "--quiet")
    assert ended.code == 0, ended.err
    for notice in notices:
        assert notice in ended.err
    assert report["rubrics"][0]["views"]["all"]["overall"]["measured"] == 12


def test_answers_of_which_half_are_the_same_have_no_notice(
    memconform: Call, oracle: Path, tmp_path: Path
) -> None:
    same = {
        name: "In berth 5." if name.endswith("_abs") else text for name, text in _answers().items()
    }
    ended, report = _judge(memconform, _write(tmp_path / "h.jsonl", same), oracle)
    assert ended.code == 0, ended.err
    assert "same text" not in ended.err
    assert report["hypotheses"]["same_text"] is None


def test_locomos_scores_by_words_leave_error_messages_unmeasured(
    memconform: Call, tmp_path: Path
) -> None:
    rows = [
        {"question": "Where is the boat?", "answer": "Orn", "evidence": [], "category": 4},
        {"question": "How many oars?", "answer": 2, "evidence": ["D1:1"], "category": 4},
    ]
    turns = [{"speaker": "A", "dia_id": "D1:1", "text": "Hello"}]
    conversation = {"session_1": turns, "session_1_date_time": "1:56 pm on 8 May, 2023"}
    locomo = tmp_path / "locomo.json"
    sample = {"sample_id": "c", "conversation": conversation, "qa": rows}
    locomo.write_text(json.dumps([sample]))
    path = _write(tmp_path / "h.jsonl", {"c#0": "Orn", "c#1": "502 Bad Gateway"})
    ended = memconform("score", path, "--rubric", "locomo", "--data", locomo)
    assert ended.code == 3
    assert "F1 not measured" in ended.out
    assert "1 of '502 Bad Gateway', the first c#1" in ended.err
