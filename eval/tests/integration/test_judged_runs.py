"""`--scorer judge`: the installed program, a daemon, and the scripted upstream as the judge."""

import json
import os
import signal
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest

from memconform.scoring.judge.prompt import prompt_digest
from tests.conftest import WAIT_SECONDS, Ended
from tests.program import PROGRAM
from tests.waiting import wait_until

Call = Callable[..., Ended]
Scripted = Callable[..., Path]

_KEY = "sk-canary-7c1e5d9b3a"
_MODEL = "openai:gpt-4o-2024-08-06"
_RIGHT = '{"reason": "it has the word", "verdict": "correct", "score": 1}'
_WRONG = '{"reason": "another word", "verdict": "incorrect", "score": 0}'
_QUESTIONS = 12


@dataclass
class Service:
    """An OpenAI- and Anthropic-compatible service that judges by a script."""

    url: str

    def script(self, *rules: dict[str, Any]) -> None:
        answer = httpx.put(f"{self.url}/_control/script", json={"rules": list(rules)})
        assert answer.status_code == 204, answer.text

    def says(self, text: str, **reply: Any) -> None:
        self.script({"kind": "chat", "reply": {"text": text, **reply}})

    @property
    def requests(self) -> list[dict[str, Any]]:
        requests: list[dict[str, Any]] = httpx.get(f"{self.url}/_control/requests").json()[
            "requests"
        ]
        return requests


@pytest.fixture
def service(service_url: str) -> Service:
    return Service(service_url)


@pytest.fixture
def run_flags(scripted: Scripted, dataset: Path, service: Service) -> list[str | Path]:
    del service
    return [
        *("run", "--sdk", scripted(), "--dataset", dataset, "--seed-reference-brain"),
        *("--scenario", "ask-basic", "--mode", "bm25"),
    ]


def _latest(folder: Path) -> dict[str, Any]:
    path = max((folder / "results" / "runs").iterdir()) / "result.json"
    loaded: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return loaded


@pytest.mark.parametrize(
    "model",
    [_MODEL, pytest.param("anthropic:claude-haiku-4-5-20251001", marks=pytest.mark.exhaustive)],
)
def test_a_vendors_model_judges_every_answer(
    model: str, memconform: Call, service: Service, run_flags: list[str | Path]
) -> None:
    service.says(_RIGHT, usage={"input": 100, "output": 10})
    ended = memconform(*run_flags, "--judge", model)
    assert ended.code == 0, ended.err
    result = ended.result
    assert (result["scorer"], result["passed"]) == ("judge", _QUESTIONS)
    assert len(service.requests) == _QUESTIONS
    question = result["questions"][0]
    assert question["reason"] == "it has the word"
    [vote] = question["judges"]
    assert (vote["model"], vote["input_tokens"], vote["cached"]) == (model, 100, False)
    [use] = result["judging"]["judges"]
    assert (use["verdicts"], use["input_tokens"]) == (_QUESTIONS, 100 * _QUESTIONS)
    assert use["cost_usd"] > 0
    assert use["calibration"] is None
    assert "never calibrated" in ended.err
    # A second run finds every judgement in the cache, and could do without the service.
    again = memconform(*run_flags, "--judge", model, "--cache-only")
    assert again.code == 0, again.err
    assert len(service.requests) == _QUESTIONS
    [use] = _latest(again.folder)["judging"]["judges"]
    assert (use["cached"], use["cost_usd"]) == (_QUESTIONS, 0)


def test_no_key_is_in_any_file_or_stream(
    memconform: Call, service: Service, run_flags: list[str | Path], workspace: Path
) -> None:
    service.says(f'{{"reason": "the key is {_KEY}", "verdict": "correct", "score": 1}}')
    ended = memconform(*run_flags, "--log-level", "debug")
    assert ended.code == 0, ended.err
    assert "the key is" in json.dumps(ended.result)
    files = [path for path in workspace.rglob("*") if path.is_file()]
    # Masked, a cached reply would be another one.
    assert [path for path in files if "cache" in path.parts] == []
    assert [path for path in files if _KEY.encode() in path.read_bytes()] == []
    assert _KEY not in ended.out + ended.err


@pytest.mark.capability("judges")
def test_the_fake_judge_needs_no_key(
    memconform: Call, environment: dict[str, str], scripted: Scripted, dataset: Path
) -> None:
    del environment["OPENAI_API_KEY"]
    flags = ("run", "--sdk", scripted(), "--dataset", dataset, "--seed-reference-brain")
    bare = memconform(*flags)
    assert bare.code == 2
    for part in ("no API key is set", "--scorer exact", "--judge fake"):
        assert part in bare.err
    judged = memconform(*flags, "--judge", "fake", "--no-cache")
    assert judged.code == 0, judged.err
    assert judged.result["judging"]["judges"][0]["served_models"] == ["lexical-3"]


def test_an_alias_decides_no_floor_unless_allowed(
    memconform: Call, service: Service, run_flags: list[str | Path]
) -> None:
    service.says(_RIGHT)
    refused = memconform(*run_flags, "--judge", "gpt-4o")
    assert refused.code == 2
    assert "gpt-4o-2024-08-06" in refused.err
    assert service.requests == []
    for flags in (["--accept-floating-judge"], ["--floor", "0"]):
        assert memconform(*run_flags, "--judge", "gpt-4o", *flags).code == 0


def test_a_dry_run_asks_nothing(
    memconform: Call, service: Service, run_flags: list[str | Path], workspace: Path
) -> None:
    ended = memconform(*run_flags, "--judge", _MODEL, "--dry-run")
    assert ended.code == 0, ended.err
    assert f"judge {_MODEL}: {_QUESTIONS} calls (0 cached)" in ended.out
    assert service.requests == []
    assert not (workspace / "results").exists()


@pytest.mark.parametrize(
    "reply",
    [
        pytest.param({"text": "I would say 3 out of 5."}, id="prose"),
        pytest.param(
            {"text": '{"reason": "a", "verdict": "correct", "score": NaN}'},
            id="NaN",
            marks=pytest.mark.exhaustive,
        ),
        pytest.param(
            {"body": {"id": "x", "object": "chat.completion", "model": "m", "choices": []}},
            id="no choice",
            marks=pytest.mark.exhaustive,
        ),
        pytest.param({"status": 400}, id="rejected"),
    ],
)
def test_a_judge_failure_is_not_a_zero(
    reply: dict[str, Any], memconform: Call, service: Service, run_flags: list[str | Path]
) -> None:
    service.script(
        {"kind": "chat", "contains": "box7", "reply": reply}, {"reply": {"text": _RIGHT}}
    )
    run_flags += ["--floor", "0.95"]
    ended = memconform(*run_flags, "--judge", _MODEL)
    # The unjudged question decides whether the floor holds: nobody knows.
    assert ended.code == 3, ended.err
    assert ended.question["verdict"] == "judge_error"
    assert ended.question["score"] is None
    assert ended.question["answer"]
    assert ended.result["counts"]["correct"] == _QUESTIONS - 1
    assert ended.result["mean_score"] == 1.0
    # It is judged, and not asked, once the judge works.
    service.says(_RIGHT)
    resumed = memconform(*run_flags, "--judge", _MODEL, "--resume", ended.result["run_id"])
    assert resumed.code == 0, resumed.err
    assert len(service.requests) == 1


@pytest.mark.parametrize(
    "status",
    [401, *(pytest.param(other, marks=pytest.mark.exhaustive) for other in (403, 404))],
)
def test_a_wrong_key_or_model_is_one_clear_error(
    status: int, memconform: Call, service: Service, run_flags: list[str | Path]
) -> None:
    service.script({"kind": "chat", "reply": {"status": status, "delay_ms": 100}})
    ended = memconform(*run_flags, "--judge", _MODEL)
    assert ended.code == 2, ended.err
    assert ended.err.count("llm_unusable: ") == 1
    result = ended.result
    assert result["counts"]["not_run"] == _QUESTIONS
    assert result["pass_rate"] is None
    # None was repeated, and none was sent once the first had failed.
    assert len(service.requests) <= _QUESTIONS


def test_a_spent_budget_keeps_what_was_paid_for_and_resume_pays_the_rest_once(
    memconform: Call, service: Service, run_flags: list[str | Path]
) -> None:
    service.says(_RIGHT, usage={"input": 2_000, "output": 500}, delay_ms=20)
    flags = [*run_flags, "--judge", _MODEL, "--no-cache"]
    ended = memconform(*flags, "--max-cost-usd", "0.05")
    assert ended.code == 6, ended.err
    result = ended.result
    paid = len(service.requests)
    assert 0 < paid < _QUESTIONS
    assert result["counts"]["correct"] == paid
    assert result["counts"]["not_run"] == _QUESTIONS - paid
    assert result["pass_rate"] is None
    assert result["incident"]["code"] == "budget_spent"
    resumed = memconform(*flags, "--max-cost-usd", "1", "--resume", result["run_id"])
    assert resumed.code == 0, resumed.err
    assert len(service.requests) == _QUESTIONS
    assert _latest(resumed.folder)["passed"] == _QUESTIONS


@pytest.mark.parametrize(
    "after_requests",
    [*(pytest.param(end, marks=pytest.mark.exhaustive) for end in (1, _QUESTIONS)), 6],
)
def test_a_killed_run_is_resumed_without_paying_twice(
    after_requests: int,
    memconform: Call,
    service: Service,
    run_flags: list[str | Path],
    environment: dict[str, str],
    workspace: Path,
) -> None:
    service.says(_RIGHT, delay_ms=300)
    flags = [str(flag) for flag in (*run_flags, "--judge", _MODEL, "--llm-concurrency", "2")]
    process = subprocess.Popen(
        [PROGRAM, *flags], cwd=workspace, env=environment, stderr=subprocess.DEVNULL
    )
    wait_until(lambda: len(service.requests) >= after_requests)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    [folder] = (workspace / "results" / "runs").iterdir()
    resumed = memconform(*flags, "--resume", folder.name)
    assert resumed.code == 0, resumed.err
    # At most the two calls in flight when it was killed are made again.
    assert len(service.requests) <= _QUESTIONS + 2
    assert _latest(workspace)["passed"] == _QUESTIONS


def test_rescore_judges_stored_answers_and_compare_shows_the_differences(
    memconform: Call, service: Service, run_flags: list[str | Path]
) -> None:
    ended = memconform(*run_flags, "--scorer", "exact")
    assert ended.code == 0, ended.err
    run = ended.result["run_id"]
    service.script(
        {"kind": "chat", "contains": "box7?", "reply": {"text": _WRONG}},
        {"kind": "chat", "reply": {"text": _RIGHT}},
    )
    dry = memconform("score", run, "--judge", _MODEL, "--dry-run")
    assert f"judge {_MODEL}: {_QUESTIONS} calls (0 cached)" in dry.out
    judged = memconform("score", run, "--judge", _MODEL, "--json", "-")
    assert judged.code == 0, judged.err
    [result] = json.loads(judged.out)["runs"]
    assert (result["scorer"], result["passed"]) == ("judge", _QUESTIONS - 1)
    assert f"({_QUESTIONS} cached)" in memconform(*dry_flags(run)).out
    compared = memconform("judge", "compare", run, result["run_id"], "--json", "-")
    assert compared.code == 0, compared.err
    comparison = json.loads(compared.out)
    assert (comparison["compared"], comparison["equal"]) == (_QUESTIONS, _QUESTIONS - 1)
    assert comparison["cohen_kappa"] == 0
    [difference] = comparison["disagreements"]
    assert difference["id"] == "q7"
    assert difference["reasons"][1] == "another word"


def dry_flags(run: str) -> list[str]:
    """The command that prints what judging a run's answers would take."""
    return ["score", run, "--judge", _MODEL, "--dry-run"]


def test_a_budget_that_ends_a_rescore_leaves_the_rest_unjudged(
    memconform: Call, service: Service, run_flags: list[str | Path]
) -> None:
    run = memconform(*run_flags, "--scorer", "exact").result["run_id"]
    service.says(_RIGHT, usage={"input": 2_000, "output": 500})
    flags = ("score", run, "--judge", _MODEL, "--llm-concurrency", "1", "--json", "-")
    ended = memconform(*flags, "--max-cost-usd", "0.05")
    assert ended.code == 6, ended.err
    [result] = json.loads(ended.out)["runs"]
    paid = len(service.requests)
    assert result["counts"]["not_run"] == _QUESTIONS - paid
    assert result["pass_rate"] is None
    assert memconform(*flags, "--max-cost-usd", "1").code == 0
    assert len(service.requests) == _QUESTIONS


def test_judges_that_split_evenly_are_an_error_unless_a_tie_is_decided(
    memconform: Call, service: Service, run_flags: list[str | Path]
) -> None:
    service.script(
        {"kind": "chat", "contains": "claude", "reply": {"text": _WRONG}},
        {"kind": "chat", "reply": {"text": _RIGHT}},
    )
    panel = ("--judge", _MODEL, "--judge", "anthropic:claude-haiku-4-5-20251001")
    split = memconform(*run_flags, *panel)
    assert split.code == 3, split.err
    assert split.result["counts"]["judge_error"] == _QUESTIONS
    assert split.question["error"]["message"].startswith("split")
    decided = memconform(*run_flags, *panel, "--tie", "incorrect")
    assert decided.code == 1, decided.err
    three = memconform(*run_flags, *panel, "--judge", "fake")
    assert three.code == 0, three.err
    agreement = _latest(three.folder)["judging"]["agreement"]
    assert agreement["answers"] == _QUESTIONS
    assert agreement["equal_pairs"] == pytest.approx(1 / 3)
    assert agreement["krippendorff_alpha"] < 0


def test_repeats_pass_the_cache_and_show_a_judge_that_contradicts_itself(
    memconform: Call, service: Service, run_flags: list[str | Path]
) -> None:
    service.script(
        *(
            rule
            for number in range(_QUESTIONS)
            for rule in (
                {"contains": f"box{number}?", "times": 1, "reply": {"text": _RIGHT}},
                {"contains": f"box{number}?", "times": 1, "reply": {"text": _WRONG}},
            )
        ),
        {"reply": {"text": _RIGHT}},
    )
    ended = memconform(*run_flags, "--judge", _MODEL, "--judge-repeat", "3")
    assert ended.code == 0, ended.err
    assert len(service.requests) == 3 * _QUESTIONS
    [use] = ended.result["judging"]["judges"]
    assert use["contradicted"] == _QUESTIONS
    assert ended.question["judges"][0]["verdicts"] == ["correct", "incorrect", "correct"]


def test_a_gullible_judge_is_found_and_refused_as_a_gate(
    memconform: Call, service: Service, run_flags: list[str | Path]
) -> None:
    service.says(_RIGHT)
    calibrated = memconform("judge", "calibrate", "--judge", _MODEL, "--json", "-")
    assert calibrated.code == 1, calibrated.err
    calibration = json.loads(calibrated.out)
    assert calibration["prompt"] == prompt_digest()
    for group in ("specific-wrong", "vague-wrong", "injected"):
        assert calibration["groups"][group]["rate"] == 1.0
    assert calibration["groups"]["right"]["rate"] == 0.0
    refused = memconform(*run_flags, "--judge", _MODEL)
    assert refused.code == 2
    assert "weak_judge" in refused.err
    assert "--accept-weak-judge" in refused.err
    accepted = memconform(*run_flags, "--judge", _MODEL, "--accept-weak-judge")
    assert accepted.code == 0, accepted.err
    [use] = accepted.result["judging"]["judges"]
    everything = ["specific-wrong", "vague-wrong", "injected", "right"]
    assert use["calibration"]["weak"] == everything
    # A judge that accepts everything says nothing: there is no corrected rate.
    assert accepted.result["judging"]["corrected"] == []


def test_a_careful_judge_is_a_gate_and_its_runs_show_the_corrected_rate(
    memconform: Call, run_flags: list[str | Path]
) -> None:
    calibrated = memconform("judge", "calibrate", "--judge", "fake")
    assert calibrated.code == 0, calibrated.err
    assert "no group above 5 %" in calibrated.out
    ended = memconform(*run_flags, "--judge", "fake")
    assert ended.code == 0, ended.err
    assert [rate["wrong_answers"] for rate in ended.result["judging"]["corrected"]] == [
        "specific-wrong",
        "vague-wrong",
    ]
    assert "without the judge's errors" in ended.err


@pytest.mark.exhaustive
def test_a_calibration_is_cut_short_by_the_budget_and_goes_on_from_the_cache(
    memconform: Call, service: Service
) -> None:
    service.says(_RIGHT, usage={"input": 2_000, "output": 500})
    flags = ("judge", "calibrate", "--judge", _MODEL)
    ended = memconform(*flags, "--max-cost-usd", "0.5")
    assert ended.code == 6, ended.err
    paid = len(service.requests)
    dry = memconform(*flags, "--dry-run")
    assert f"({paid} cached)" in dry.out
    service.says(_RIGHT)
    assert memconform(*flags).code == 1
    assert memconform(*flags, "--cache-only").code == 1
    dry = memconform(*flags, "--dry-run")
    assert "total: at most $0.0000" in dry.out


@pytest.mark.exhaustive
def test_a_dry_calibration_says_how_many_calls_it_takes(memconform: Call, service: Service) -> None:
    service.says(_WRONG)
    flags = ("judge", "calibrate", "--judge", _MODEL)
    lines = memconform(*flags, "--dry-run").out.splitlines()
    calls = sum(int(line.split(": ")[1].split()[0]) for line in lines if line.startswith("judge"))
    assert service.requests == []
    memconform(*flags)
    assert len(service.requests) == calls


@pytest.mark.exhaustive
def test_two_commands_share_a_budget_by_their_ledger(
    memconform: Call,
    service: Service,
    run_flags: list[str | Path],
    environment: dict[str, str],
    workspace: Path,
) -> None:
    environment["MEMCONFORM_LEDGER"] = str(workspace / "ledger.sqlite3")
    service.says(_RIGHT, usage={"input": 2_000, "output": 100})
    flags = [*run_flags, "--judge", _MODEL, "--no-cache", "--max-cost-usd", "0.1"]
    assert memconform(*flags).code == 0
    second = memconform(*flags)
    assert second.code == 6, second.err
    assert _QUESTIONS < len(service.requests) < 2 * _QUESTIONS


@pytest.mark.exhaustive
def test_only_the_judge_of_a_panel_that_failed_is_asked_again(
    memconform: Call, service: Service, run_flags: list[str | Path]
) -> None:
    # Five equal faults in a row would end the run.
    few = ("--limit", "4")
    panel = (*few, "--judge", _MODEL, "--judge", "anthropic:claude-haiku-4-5-20251001")
    service.script(
        {"kind": "chat", "contains": "claude", "reply": {"text": "no verdict"}},
        {"kind": "chat", "reply": {"text": _RIGHT}},
    )
    ended = memconform(*run_flags, *panel)
    assert ended.result["counts"]["judge_error"] == 4
    service.says(_RIGHT)
    resumed = memconform(*run_flags, *panel, "--resume", ended.result["run_id"])
    assert resumed.code == 0, resumed.err
    assert {request["body"]["model"] for request in service.requests} == {
        "claude-haiku-4-5-20251001"
    }


@pytest.mark.capability("cache")
def test_the_cache_is_shown_pruned_and_cleared(
    memconform: Call, service: Service, run_flags: list[str | Path]
) -> None:
    service.says(_RIGHT)
    memconform(*run_flags, "--judge", _MODEL)
    assert f"replies: {_QUESTIONS}," in memconform("cache", "info").out
    assert memconform("cache", "prune", "--older-than", "1d").out == "removed 0 replies\n"
    assert memconform("cache", "prune", "--older-than", "soon").code == 2
    assert memconform("cache", "clear").out == f"removed {_QUESTIONS} replies\n"


def test_exact_runs_and_help_import_no_vendors_client(environment: dict[str, str]) -> None:
    code = (
        "import sys; from memconform.cli import main\n"
        "from memconform.cli.run import command, execution\n"
        "from memconform.cli.judge import command\n"
        "import memconform.scoring.judge.session\n"
        "sys.exit(any(name.split('.')[0] in ('openai', 'anthropic') for name in sys.modules))"
    )
    python = PROGRAM.with_name("python")
    assert subprocess.run([python, "-c", code], env=environment, check=False).returncode == 0


@pytest.mark.exhaustive
def test_commands_at_once_share_a_cache_and_leave_each_others_upstreams_alone(
    memconform: Call,
    service: Service,
    run_flags: list[str | Path],
    environment: dict[str, str],
    workspace: Path,
) -> None:
    """Upstreams of fake judges had one id: each command took another's for its own and ended it."""
    run = memconform(*run_flags, "--scorer", "exact").result["run_id"]
    service.says(_RIGHT, delay_ms=50)
    command = [PROGRAM, "score", run, "--judge", _MODEL, "--judge", "fake", "--quiet"]
    processes = [
        subprocess.Popen(command, cwd=workspace, env=environment, stderr=subprocess.PIPE)
        for _ in range(3)
    ]
    errors = [process.communicate(timeout=WAIT_SECONDS)[1] for process in processes]
    assert [process.returncode for process in processes] == [0, 0, 0], errors
    assert _QUESTIONS <= len(service.requests) <= 3 * _QUESTIONS
    assert len(list((workspace / "cache" / "llm").glob("??/*"))) == 2 * _QUESTIONS
    assert memconform(*command[1:], "--cache-only").code == 0
