"""`memconform answer` that is interrupted, killed, or called twice at once."""

import json
import signal
import subprocess
from collections import Counter
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.conftest import WAIT_SECONDS
from tests.integration.answer_bench import (
    NAMES,
    QUESTIONS,
    Call,
    answer,
    arm_of,
    correct,
    overall,
    run_bench,
    write_questions,
)
from tests.integration.scripted_llm import Service
from tests.program import PROGRAM
from tests.waiting import wait_until

_FLAGS = ("--reader", NAMES[0], "--judge", NAMES[0], "--top-k", "1", "--arms", "no-memory")
_HANGS = {"kind": "chat", "contains": "owner5x", "reply": {"fault": "hang"}}


@pytest.fixture
def bench(memconform: Call, workspace: Path) -> str:
    data = write_questions(workspace / "lme.json")
    return run_bench(memconform, data, "--system", "flat-bm25", "-k", "1")


def _start(
    bench: str, environment: dict[str, str], workspace: Path, *flags: str
) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [PROGRAM, "score", bench, *_FLAGS, *flags],
        cwd=workspace,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def _prompts(service: Service) -> list[str]:
    """What the service was asked, call by call."""
    answer = httpx.get(f"{service.url}/_control/requests", trust_env=False).json()
    return [json.dumps(call["body"]) for call in answer["requests"] if call["kind"] == "chat"]


def _stuck(service: Service) -> list[str]:
    """The prompts once the one that hangs is among them."""

    def prompts() -> list[str]:
        made = _prompts(service)
        return made if any("owner5x" in prompt for prompt in made) else []

    return wait_until(prompts)


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGKILL])
def test_no_reply_is_paid_for_twice_after_an_end_within_an_arm(
    memconform: Call,
    bench: str,
    service: Service,
    environment: dict[str, str],
    workspace: Path,
    how: signal.Signals,
) -> None:
    service.script(_HANGS)
    process = _start(bench, environment, workspace, "--llm-concurrency", "1", "--json", "cut.json")
    try:
        before = _stuck(service)
        process.send_signal(how)
        _, said = process.communicate(timeout=WAIT_SECONDS)
    finally:
        process.kill()
    if how == signal.SIGINT:
        assert process.returncode == 130, said
        _require_no_score(json.loads((workspace / "cut.json").read_text()))
        assert "not measured" in said
    else:
        assert process.returncode == -signal.SIGKILL
        # Half a result would be taken for a whole one.
        assert not (workspace / "cut.json").exists()
        assert not list((workspace / "results" / "runs").glob("*-answer-*/result.json"))
    service.script()
    ended, report = answer(memconform, bench, *_FLAGS)
    assert ended.code == 0, ended.err
    after = _prompts(service)
    asked_again = [prompt for prompt in after if prompt in before]
    assert len(before) > 1
    assert [("owner5x" in prompt) for prompt in asked_again] == [True]
    assert max(Counter(after).values()) == 1
    assert correct(report) == {"flat-bm25": QUESTIONS, "no-memory": QUESTIONS // 3}


def _require_no_score(report: dict[str, Any]) -> None:
    assert report["incident"]["code"] == "interrupted"
    for arm in report["arms"]:
        assert (arm["measured"], overall(report, arm["name"])["rate"]) == (False, None)
        assert arm_of(report, arm["name"])["kept"] is None or arm["kept"]["share"] is None


def test_a_budget_that_ends_between_reader_and_judge_is_no_wrong_answer(
    memconform: Call, bench: str, service: Service
) -> None:
    flags = ("--reader", "fake", "--judge", NAMES[0], "--arms", "oracle,no-memory")
    ended, report = answer(memconform, bench, *flags, "--max-cost-usd", "0")
    assert ended.code == 6, ended.err
    assert service.calls == 0
    for arm in report["arms"]:
        assert overall(report, arm["name"])["rate"] is None
        assert arm["incident"]["code"] == "budget_spent"
    ended, report = answer(memconform, bench, *flags)
    assert ended.code == 0, ended.err
    assert correct(report)["oracle"] == QUESTIONS


def test_two_calls_at_once_share_the_cache_and_agree(
    memconform: Call, bench: str, service: Service, environment: dict[str, str], workspace: Path
) -> None:
    """A call that neither has finished may be made by both; every later one is made once."""
    reports = [workspace / f"{name}.json" for name in ("one", "two")]
    both = [_start(bench, environment, workspace, "--json", str(file)) for file in reports]
    try:
        for process in both:
            _, said = process.communicate(timeout=WAIT_SECONDS)
            assert process.returncode == 0, said
    finally:
        for process in both:
            process.kill()
    one, two = (correct(json.loads(file.read_text())) for file in reports)
    assert one == two == {"flat-bm25": QUESTIONS, "no-memory": QUESTIONS // 3}
    calls = service.calls
    ended, again = answer(memconform, bench, *_FLAGS)
    assert (ended.code, service.calls) == (0, calls)
    assert correct(again) == one
