"""`memconform answer`: the installed program against the scripted upstream."""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from memconform.cli.main import cli
from memconform.datasets.conversation_store import ConversationStore
from memconform.errors import UsageError
from memconform.scoring.reader.prompts import DECLINES
from tests.integration.answer_bench import NAMES as _NAMES
from tests.integration.answer_bench import QUESTIONS as _QUESTIONS
from tests.integration.answer_bench import Call, run_bench, write_questions
from tests.integration.answer_bench import answer as _answer
from tests.integration.answer_bench import arm_of as _arm
from tests.integration.answer_bench import correct as _correct
from tests.integration.answer_bench import overall as _overall
from tests.integration.scripted_llm import Service
from tests.integration.test_benchmark_data import DATA, real


@pytest.fixture
def data(workspace: Path) -> Path:
    return write_questions(workspace / "lme.json")


@pytest.fixture
def bench(memconform: Call, data: Path) -> str:
    """The run of a bench whose one system finds the evidence."""
    return run_bench(memconform, data, "--system", "flat-bm25", "-k", "1")


def test_arms_differ_only_in_what_the_reader_sees(memconform: Call, bench: str) -> None:
    ended, report = _answer(memconform, bench)
    assert ended.code == 0, ended.err
    # Six questions have an answer, and three are to be declined.
    assert _correct(report) == {
        "flat-bm25": 9,
        "oracle": 9,
        "full-context": 9,
        "no-memory": 3,
        "always-abstain": 3,
        "random-k": 3,
    }
    arm = _arm(report, "flat-bm25")
    assert arm["kept"] == {"share": None, "why": "the same outcome as oracle on every question"}
    assert arm["with_gold"]["correct"] == 6
    assert arm["without_gold"] is None
    abstention = arm["views"]["all"]["abstention"]
    assert (abstention["expected"], abstention["correct"]) == (3, 3)
    assert "the same outcome as no-memory" in _arm(report, "always-abstain")["kept"]["why"]
    assert _arm(report, "oracle")["kept"] is None
    random = _arm(report, "random-k")
    assert random["without_gold"]["correct"] == 0
    parts = [random[name]["expected"] for name in ("with_gold", "without_gold") if random[name]]
    assert sum(parts) == 6
    assert [use["role"] for use in _arm(report, "oracle")["use"]] == ["reader", "judge"]
    assert "oracle: 100.0 (70.1 to 100.0) of 9" in ended.out


@pytest.mark.parametrize("model", _NAMES)
def test_nothing_is_paid_for_twice(
    memconform: Call, bench: str, service: Service, model: str
) -> None:
    service.says("It is said: 21.", usage={"input": 100, "output": 10})
    flags = ("--reader", model, "--judge", "fake", "--method", "con-separate", "--arms", "oracle")
    ended, report = _answer(memconform, bench, *flags)
    assert ended.code == 0, ended.err
    # A note and an answer each; the baseline retrieved the evidence, so that its calls are equal.
    assert service.calls == 2 * _QUESTIONS
    use = {use["role"]: use for arm in report["arms"] for use in arm["use"] if not use["cached"]}
    assert (use["notes"]["calls"], use["notes"]["input_tokens"]) == (_QUESTIONS, 100 * _QUESTIONS)
    assert use["reader"]["cost_usd"] > 0
    ended, again = _answer(memconform, bench, *flags)
    assert (ended.code, service.calls) == (0, 2 * _QUESTIONS)
    assert _correct(again) == _correct(report)
    assert sum(use["cost_usd"] for arm in again["arms"] for use in arm["use"]) == 0


@pytest.mark.capability("answer")
def test_a_budget_that_ends_within_an_arm_leaves_the_others_their_numbers(
    memconform: Call, bench: str, service: Service
) -> None:
    # An answer costs $0.00125, so that the first arm's nine take more than a cent.
    service.says("It is said: 21.", usage={"input": 100, "output": 100})
    flags = ("--reader", _NAMES[0], "--llm-concurrency", "1", "--arms", "always-abstain,oracle")
    ended, report = _answer(memconform, bench, *flags, "--max-cost-usd", "0.012")
    assert ended.code == 6, ended.err
    assert _overall(report, "always-abstain")["rate"]["value"] == pytest.approx(100 / 3)
    arm = _arm(report, "flat-bm25")
    assert (arm["measured"], arm["incident"]["code"]) == (False, "budget_spent")
    assert _overall(report, "flat-bm25")["rate"] is None
    assert 0 < _overall(report, "flat-bm25")["measured"] < _QUESTIONS
    assert "not measured" in ended.err
    paid = service.calls
    ended, _ = _answer(memconform, bench, *flags, "--dry-run")
    # Only what is left is forecast; the oracle's calls are those of the baseline.
    assert (ended.code, service.calls) == (0, paid)
    assert f"flat-bm25 {_NAMES[0]}: {_QUESTIONS} calls ({paid} cached)" in ended.out
    assert f"oracle {_NAMES[0]}: {_QUESTIONS} calls ({_QUESTIONS} cached)" in ended.out
    unknown, total = 2 * (_QUESTIONS - paid), 3 * _QUESTIONS
    assert f"{unknown} of {total} answers are not known yet" in ended.out
    ended, report = _answer(memconform, bench, *flags)
    assert (ended.code, service.calls) == (0, _QUESTIONS)
    assert 0 < paid < _QUESTIONS
    assert _overall(report, "flat-bm25")["rate"] is not None


_TOLD = (
    "You answer a question of a user from earlier conversations. Reply with",
    "You answer a question of a user about earlier conversations, none of which",
)
_ECHO = {"text": f"I was told: {' '.join(_TOLD)}"}
_CUT = {
    "body": {
        "id": "c",
        "object": "chat.completion",
        "created": 0,
        "model": "m",
        "choices": [
            {
                "index": 0,
                "finish_reason": "length",
                "message": {"role": "assistant", "content": "It is"},
            }
        ],
        "usage": {"prompt_tokens": 100, "completion_tokens": 500, "total_tokens": 600},
    }
}


@pytest.mark.parametrize(
    ("reply", "reason", "timeout"),
    [
        (_ECHO, "repeats the prompt", "60"),
        (_CUT, "length", "60"),
        ({"text": " "}, "empty", "60"),
        ({"text": "Error: 429 Too Many Requests"}, "an error message", "60"),
        ({"fault": "hang"}, "llm_timeout", "2"),
        ({"status": 400}, "llm_rejected", "60"),
    ],
)
def test_a_reader_that_fails_is_no_wrong_answer(
    memconform: Call, bench: str, service: Service, reply: dict[str, Any], reason: str, timeout: str
) -> None:
    service.script({"kind": "chat", "contains": "owner1x", "reply": reply})
    flags = ("--reader", _NAMES[0], "--arms", "no-memory", "--llm-timeout", timeout)
    ended, report = _answer(memconform, bench, *flags)
    assert ended.code == 3, ended.err
    for name in ("flat-bm25", "no-memory"):
        overall = _overall(report, name)
        assert (overall["measured"], overall["rate"]) == (_QUESTIONS - 1, None)
        [failure] = _arm(report, name)["failures"]
        assert reason in failure
        assert "q1" in failure
    assert _arm(report, "flat-bm25")["kept"]["share"] is None
    assert "not measured" in ended.err


def test_a_query_that_the_bench_did_not_measure_is_not_answered(
    memconform: Call, data: Path
) -> None:
    """A log without a question: the question is not measured, and never answered from nothing."""
    log = data.with_name("log.jsonl")
    flags = ("--suite", "longmemeval", "--data", data, "-k", "1")
    ended = memconform("bench", *flags, "--system", "flat-bm25", "--export", f"longmemeval={log}")
    assert ended.code == 0, ended.err
    lines = log.read_text().splitlines(keepends=True)
    log.write_text("".join(line for line in lines if '"q1"' not in line))
    ended = memconform("bench", *flags, "--log", f"theirs={log}", "--json", "bench.json")
    run = json.loads((ended.folder / "bench.json").read_text())["run_id"]
    ended, report = _answer(memconform, run, "--arms", "oracle")
    assert ended.code == 3, ended.err
    # The gold of a query that failed is that of the file: the oracle is not scored without it.
    assert _correct(report)["oracle"] == _QUESTIONS
    arm = _arm(report, "theirs")
    assert arm["failures"] == [
        "1 of not_retrieved, the first q1: the bench has no measured retrieval for it"
    ]
    assert arm["views"]["all"]["overall"]["bounds"] == [pytest.approx(800 / 9), 100]


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (("--arms", "oracel"), "unknown_arm"),
        (("--arms", "oracle,oracle"), "was given twice"),
        (("--arms", "oracle", "--arms", "no-memory,oracle"), "was given twice"),
        (("--arms", ""), "--arms names no arm"),
        (("--top-k", "2"), "has the first 1 items of each ranking, not 2"),
        (("--reader", "ollama:llama3.1:8b"), "context_unknown"),
        (("--prompts", "official"), "requires --"),
        (("--no-cache",), "cache_flags"),
    ],
)
def test_flags_that_cannot_be_used(
    memconform: Call, bench: str, flags: tuple[str, ...], said: str
) -> None:
    ended, _ = _answer(memconform, bench, *flags)
    assert ended.code == 2
    assert said in ended.err


def test_another_file_than_the_bench_read_is_refused(
    memconform: Call, bench: str, data: Path
) -> None:
    rows = json.loads(data.read_text())
    rows[0]["answer"] = "many"
    other = data.with_name("other.json")
    other.write_text(json.dumps(rows))
    ended, _ = _answer(memconform, bench, "--data", other)
    assert ended.code == 2
    assert "unlike_runs" in ended.err


def test_what_does_not_fit_is_left_out_and_said(memconform: Call, data: Path) -> None:
    rows = json.loads(data.read_text())
    for row in rows:
        row["haystack_sessions"][0][1]["content"] = "Many words. " * 2_000
    data.write_text(json.dumps(rows))
    flags = ("--suite", "longmemeval", "--data", data, "--system", "flat-bm25", "-k", "1")
    ended = memconform("bench", *flags, "--json", "bench.json")
    run = json.loads((ended.folder / "bench.json").read_text())["run_id"]
    ended, report = _answer(memconform, run, "--context-tokens", "5000")
    assert ended.code == 0, ended.err
    assert _arm(report, "full-context")["cut"] == _QUESTIONS
    assert "full-context: in 9 questions some passages had no room in 5,000 tokens" in ended.err
    assert _arm(report, "full-context")["without_gold"]["expected"] == 6


def test_answers_with_a_secret_are_left_out_of_hypotheses(
    memconform: Call, bench: str, service: Service, environment: dict[str, str]
) -> None:
    """Masked, they would be judged as other answers."""
    environment["OPENAI_API_KEY"] = "beeswax"
    service.script(
        {"kind": "chat", "contains": "of owner1x", "reply": {"text": "It is beeswax."}},
        {"kind": "chat", "reply": {"text": "It is said: 21."}},
    )
    flags = ("--reader", _NAMES[0], "--judge", "fake", "--arms", "oracle")
    ended, _ = _answer(memconform, bench, *flags, "--hypotheses", "answers")
    assert ended.code == 0, ended.err
    rows = (ended.folder / "answers" / "oracle.jsonl").read_text().splitlines()
    names = {json.loads(row)["question_id"] for row in rows}
    assert (len(rows), "q1" in names) == (_QUESTIONS - 1, False)
    assert "oracle.jsonl lacks 1 answer with a secret of the environment" in ended.err
    assert "(hidden)" not in str(rows)


def test_a_data_file_that_changes_while_it_is_read_is_refused(
    bench: str, data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    load = ConversationStore.load

    def late(store: ConversationStore, path: Path, *args: Any) -> None:
        data.write_text(data.read_text().replace("hives", "chives"))
        load(store, path, *args)

    monkeypatch.setattr(ConversationStore, "load", late)
    monkeypatch.chdir(data.parent)
    flags = ("--top-k", "1", "--reader", "fake", "--judge", "fake")
    with pytest.raises(UsageError, match="changed while it was read"):
        cli(["score", bench, *flags], standalone_mode=False)


def test_answers_are_judged_again_by_another_rubric(
    memconform: Call, bench: str, data: Path
) -> None:
    ended, report = _answer(memconform, bench, "--hypotheses", "answers")
    assert ended.code == 0, ended.err
    file = ended.folder / "answers" / "oracle.jsonl"
    assert len(file.read_text().splitlines()) == _QUESTIONS
    flags = ("--data", data, "--judge", "fake", "--rubric", "strict")
    ended = memconform("score", file, *flags)
    assert ended.code == 0, ended.err
    assert "strict: 100.0" in ended.out
    never = (ended.folder / "answers" / "always-abstain.jsonl").read_text()
    assert {json.loads(line)["hypothesis"] for line in never.splitlines()} == {DECLINES}
    assert report["questions"] == _QUESTIONS


def test_a_dry_run_asks_nothing(memconform: Call, bench: str, service: Service) -> None:
    ended, _ = _answer(memconform, bench, "--reader", _NAMES[0], "--dry-run")
    assert (ended.code, service.calls) == (0, 0)
    # Both retrieve the same, so that their calls are made once.
    assert f"flat-bm25 {_NAMES[0]}: 9 calls (0 cached)" in ended.out
    assert f"oracle {_NAMES[0]}: 9 calls (9 cached)" in ended.out
    assert "always-abstain" not in ended.out


@pytest.mark.parametrize("method", ["direct", "con-separate"])
def test_nothing_is_left_to_pay_after_a_finished_command(
    memconform: Call, bench: str, service: Service, method: str
) -> None:
    service.says("It is said: 21.", usage={"input": 100, "output": 10})
    flags = ("--reader", _NAMES[0], "--method", method, "--arms", "no-memory,always-abstain")
    ended, _ = _answer(memconform, bench, *flags)
    assert ended.code == 0, ended.err
    ended, _ = _answer(memconform, bench, *flags, "--dry-run")
    assert ended.code == 0, ended.err
    rows = [re.search(r": (\d+) calls \((\d+) cached\)", line) for line in ended.out.splitlines()]
    counts = [match.groups() for match in rows if match is not None]
    assert len(counts) == 3
    assert all(calls == cached != "0" for calls, cached in counts)
    assert "total: at most $0.0000" in ended.out
    assert "not known yet" not in ended.out


def test_a_judge_that_was_paid_for_counts_if_its_panel_cannot_decide(
    memconform: Call, bench: str, service: Service
) -> None:
    """Its cost was missing from the report, because another judge's key was refused."""
    service.script(
        {"kind": "chat", "contains": "claude", "reply": {"status": 401}},
        {"kind": "chat", "reply": {"text": "yes", "usage": {"input": 200, "output": 1}}},
    )
    panel = ("--judge", _NAMES[0], "--judge", _NAMES[1])
    ended, report = _answer(memconform, bench, *panel, "--arms", "none")
    assert ended.code == 2, ended.err
    [arm] = report["arms"]
    assert (arm["incident"]["code"], arm["measured"]) == ("llm_unusable", False)
    [use] = [use for use in arm["use"] if use["role"] == "judge"]
    assert use["calls"] >= 1
    assert use["input_tokens"] == 200 * use["calls"]
    assert use["cost_usd"] > 0


@real
@pytest.mark.slow
@pytest.mark.timeout(600)
def test_three_sdks_and_five_arms_on_the_public_files(memconform: Call, workspace: Path) -> None:
    """Offline and deterministic: two calls of the program give the same answers."""
    whole = json.loads((DATA / "locomo" / "locomo10.json").read_text())
    conversation = workspace / "one.json"
    conversation.write_text(json.dumps(whole[:1]))
    for suite, flags, expected in (
        (
            "longmemeval",
            ("--data", DATA / "longmemeval" / "longmemeval_oracle.json", "--limit", "50"),
            50,
        ),
        ("locomo", ("--data", conversation, "--level", "session"), None),
    ):
        report = workspace / f"{suite}.json"
        ended = memconform(
            *("bench", "--suite", suite, *flags, "--sdk", "all", "--no-skip", "--json", report),
            timeout=400,
        )
        assert ended.code == 0, ended.err
        run = json.loads(report.read_text())["run_id"]
        given = ("--reader", "fake", "--judge", "fake", "--top-k", "3", "--json", report)
        ended = memconform("score", run, *given, timeout=400)
        assert ended.code == 0, ended.err
        first = json.loads(report.read_text())
        assert [arm["name"].split()[0] for arm in first["arms"][:3]] == ["go", "py", "ts"]
        assert len(first["arms"]) == 8
        assert expected in (None, first["questions"])
        assert len({_correct(first)[arm["name"]] for arm in first["arms"][:3]}) == 1
        assert _arm(first, "oracle")["without_gold"] is None
        assert _arm(first, "random-k")["without_gold"]["expected"] > 0
        ended = memconform("score", run, *given, timeout=400)
        again = json.loads(report.read_text())
        assert _correct(again) == _correct(first)


def test_the_oracle_sees_gold_that_no_item_has(memconform: Call, data: Path) -> None:
    """The answer is in the assistant's turn, which is no item: it was scored without evidence."""
    rows = json.loads(data.read_text())
    for row in rows:
        said, heard = row["haystack_sessions"][0]
        said["content"], heard["content"] = heard["content"], said["content"]
        said["has_answer"], heard["has_answer"] = False, True
    data.write_text(json.dumps(rows))
    flags = ("--suite", "longmemeval", "--data", data, "--system", "flat-bm25", "--level", "turn")
    ended = memconform("bench", *flags, "-k", "1", "--json", "bench.json")
    run = json.loads((ended.folder / "bench.json").read_text())["run_id"]
    ended, report = _answer(memconform, run, "--arms", "oracle")
    assert ended.code == 0, ended.err
    assert (_correct(report)["oracle"], report["questions"]) == (_QUESTIONS, _QUESTIONS)


@pytest.mark.parametrize(
    ("reply", "code", "exit_code"),
    [
        # Every reply has the same fault: the judge does not keep to one word.
        ({"text": "It is right, I think."}, "llm_invalid_replies", 2),
        ({"status": 401}, "llm_unusable", 2),
    ],
)
def test_a_judge_that_fails_is_no_wrong_answer(
    memconform: Call, bench: str, service: Service, reply: dict[str, Any], code: str, exit_code: int
) -> None:
    service.script({"kind": "chat", "reply": reply})
    ended, report = _answer(memconform, bench, "--judge", _NAMES[0], "--arms", "none")
    assert ended.code == exit_code, ended.err
    [arm] = report["arms"]
    assert arm["views"]["all"]["overall"]["rate"] is None
    assert code in {failure.split()[2].rstrip(",") for failure in arm["failures"]}
    assert (arm["incident"] is not None) == (exit_code == 2)


def test_another_model_than_was_asked_for_is_said(
    memconform: Call, bench: str, service: Service
) -> None:
    body = json.loads(json.dumps(_CUT["body"]))
    body["choices"][0] |= {"finish_reason": "stop"}
    service.script({"kind": "chat", "reply": {"body": body}})
    ended, report = _answer(memconform, bench, "--reader", _NAMES[0], "--arms", "none")
    assert (ended.code, report["served_models"]) == (0, ["m"])
    assert "the reader is not gpt-4o-2024-08-06: the service says that it used m" in ended.err


@pytest.mark.parametrize(
    ("fault", "code"), [("", ""), ("cuts_stream", "connection_broken"), ("error", "reader_failed")]
)
def test_a_daemons_own_reader_is_an_arm_and_its_failure_no_wrong_answer(
    memconform: Call, scripted: Callable[..., Path], data: Path, fault: str, code: str
) -> None:
    sdk = scripted(fault, on="owner1x")
    flags = ("--suite", "longmemeval", "--data", data, "--sdk", sdk, "-k", "1", "--answers")
    ended = memconform("bench", *flags, "--json", "bench.json")
    assert ended.code == (3 if fault else 0), ended.err
    assert ("its own reader did not answer 1 of 9 queries" in ended.err) == bool(fault)
    bench = json.loads((ended.folder / "bench.json").read_text())
    ended, report = _answer(memconform, bench["run_id"], "--arms", "no-memory")
    assert [arm["kind"] for arm in report["arms"]] == ["retrieval", "daemon", "control"]
    # Its search is measured, whatever its reader does.
    assert _arm(report, "scripted bm25")["measured"]
    own = _arm(report, "scripted bm25 /ask")
    assert (own["with_gold"], own["measured"]) == (None, not fault)
    dry, _ = _answer(memconform, bench["run_id"], "--arms", "no-memory", "--dry-run")
    assert dry.code == 0, dry.err
    # The daemon's own answers need no call of the reader, and are known to the judge.
    assert "/ask" not in dry.out
    assert "not known yet" not in dry.out
    judged = next(line for line in dry.out.splitlines() if line.startswith("judge fake:"))
    calls = 3 * _QUESTIONS - bool(fault)
    assert f": {calls} calls ({calls} cached)" in judged
    if not fault:
        assert ended.code == 0, ended.err
        assert [use["role"] for use in own["use"]] == ["judge"]
        return
    assert ended.code == 3
    [failure] = own["failures"]
    assert failure.startswith(f"1 of {code}, the first q1:")
    assert _overall(report, "scripted bm25 /ask")["rate"] is None
