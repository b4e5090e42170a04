"""`memconform lme`: what was paid for is kept, and an extractor or judge that errs is no score."""

from pathlib import Path
from typing import Any

import pytest

from tests.integration.lme_replay import BULK, NO_FILTER, PRICED, Call, load, verdicts, write_sdk
from tests.integration.scripted_llm import Service
from tests.lme_data import write_dataset

_REPLAY = (*BULK, *PRICED, *NO_FILTER, "--ingest-mode", "replay", "--output", "out")
_SERIAL = ("--llm-concurrency", "1", "--llm-timeout", "60")
_EXTRACTS, _READS, _JUDGES = "long-term memory of an assistant", "Question: ", "Reference answer: "


def _rule(contains: str, **reply: Any) -> dict[str, Any]:
    return {"kind": "chat", "contains": contains, "reply": reply}


@pytest.mark.parametrize(
    "text",
    ["The user likes tea.", '{"facts": [{"text": "The user', ""],
)
def test_a_session_without_a_usable_reply_is_counted_and_listed(
    memconform: Call, service: Service, workspace: Path, text: str
) -> None:
    write_dataset(workspace / "lme.json", questions=1, sessions=2)
    service.script(_rule("errand 0-1", text=text))
    command = ("lme", "run", *_REPLAY, "--extract-only")
    ended = memconform(*command)
    assert ended.code == 0, ended.err
    report = load(workspace / "out", "extract.json")
    [(path, failure)] = report["brain"]["by_heuristic"].items()
    assert (path, failure["code"]) == ("raw/lme/chat_0000_1.md", "llm_invalid_reply")
    # Once, and three times again.
    assert sum("errand 0-1" in prompt for prompt in service.prompts) == 4
    assert report["brain"]["sessions"] == 2
    assert "1 of 2 sessions have the facts of the heuristic" in ended.err


def test_the_summary_says_that_facts_are_the_heuristics(
    memconform: Call, service: Service, workspace: Path
) -> None:
    """A score of the heuristic's facts once looked like one of the extractor's."""
    write_dataset(workspace / "lme.json", questions=1, sessions=2)
    service.script(_rule(_EXTRACTS, text="prose"))
    ended = memconform("lme", "run", *_REPLAY, "--sdk", write_sdk(workspace))
    assert ended.code == 0, ended.err
    readme = (workspace / "out" / "README.md").read_text()
    assert "2 of 2 sessions have the facts of the heuristic" in readme


def test_a_damaged_brain_is_made_again_without_paying(
    memconform: Call, service: Service, workspace: Path
) -> None:
    write_dataset(workspace / "lme.json", questions=1, sessions=3)
    command = ("lme", "run", *_REPLAY, "--brain-cache", "brains", "--extract-only")
    assert memconform(*command).code == 0
    [brain] = (workspace / "brains").iterdir()
    whole, calls = brain.read_bytes(), service.calls
    cost = load(workspace / "out", "extract.json")["cost_accounting"]
    assert cost["total_usd"] > 0
    brain.write_bytes(whole[: len(whole) // 2])
    refused = memconform(*command, "--skip-extract")
    assert (refused.code, refused.err[:13]) == (2, "brain_damaged")
    again = memconform(*command)
    assert again.code == 0, again.err
    assert "it is made again" in again.err
    assert (brain.read_bytes(), service.calls) == (whole, calls)
    # The folder still says what the extraction took.
    assert memconform(*command).code == 0
    assert load(workspace / "out", "extract.json")["brain_sha256"]


def test_a_continued_replay_still_says_what_its_brain_cost(
    memconform: Call, service: Service, workspace: Path
) -> None:
    write_dataset(workspace / "lme.json", questions=1, sessions=3)
    command = ("lme", "run", *_REPLAY, "--sdk", write_sdk(workspace))
    assert memconform(*command).code == 0
    paid = load(workspace / "out", "extract.json")
    calls = service.calls
    assert memconform(*command).code == 0
    assert (load(workspace / "out", "extract.json"), service.calls) == (paid, calls)
    assert paid["cost_accounting"]["by_role"]["extractor"]["calls"] == 3


def test_another_replay_is_refused_before_its_brain_is_paid_for(
    memconform: Call, service: Service, workspace: Path
) -> None:
    """The brain of the other replay was once extracted, and its report replaced this one's."""
    write_dataset(workspace / "lme.json", questions=1, sessions=2)
    command = ("lme", "run", *_REPLAY, "--sdk", write_sdk(workspace))
    assert memconform(*command).code == 0
    report, calls = load(workspace / "out", "extract.json"), service.calls
    write_dataset(workspace / "lme.json", questions=2, sessions=2)
    refused = memconform(*command)
    assert refused.code == 2
    assert refused.err.startswith("resume_mismatch: ")
    assert (load(workspace / "out", "extract.json"), service.calls) == (report, calls)


def test_a_spent_budget_keeps_what_was_paid_and_a_larger_one_continues(
    memconform: Call, service: Service, workspace: Path
) -> None:
    """In extraction, in reading and in judging; the folder's ledger holds for all commands."""
    write_dataset(workspace / "lme.json", questions=2, sessions=1)
    command = ("lme", "run", *_REPLAY, *_SERIAL, "--sdk", write_sdk(workspace))
    stages: list[str] = []
    # Five cents a call; extraction, which reserves most, reserves 4.2 cents.
    service.script({"kind": "chat", "reply": {"usage": {"input": 20_000, "output": 10}}})
    asked: list[str] = []
    for calls in range(6):
        ended = memconform(*command, "--max-cost-usd", str(0.05 * calls + 0.045))
        prompts = service.prompts
        # Whatever was answered is never asked again.
        assert len(set(prompts)) == len(prompts)
        assert prompts[: len(asked)] == asked
        asked = prompts
        if ended.code == 0:
            break
        assert ended.code == 6, ended.err
        if not (workspace / "out" / "result-scripted.json").exists():
            stages.append("extraction")
            assert "budget_spent" in ended.err
            continue
        result = load(workspace / "out")
        assert result["overall_score"] is None
        assert result["incident"]["code"] == "budget_spent"
        left = [each for each in result["questions"] if each["code"]]
        assert {each["code"] for each in left} == {"budget_spent"}
        stages.append("judging" if left[0]["answer"] else "reading")
    assert ended.code == 0
    assert set(stages) == {"extraction", "reading", "judging"}
    assert load(workspace / "out")["measured"] == 2


def test_a_judge_that_errs_is_no_incorrect_answer(
    memconform: Call, service: Service, workspace: Path
) -> None:
    write_dataset(workspace / "lme.json", sessions=1)
    judge = ("--judge", "anthropic:claude-haiku-4-5")
    service.script(_rule("Reference answer: orange", text="It is right."))
    command = ("lme", "run", *BULK, *PRICED, *NO_FILTER, *judge, "--output", "out")
    ended = memconform(*command, "--sdk", write_sdk(workspace))
    assert ended.code == 3, ended.err
    question = load(workspace / "out")["questions"][1]
    assert (question["judge_verdict"], question["code"]) == ("judge_error", "judge_error")
    assert load(workspace / "out")["overall_score"] is None
    assert load(workspace / "out")["measured"] == 2
    service.script()
    again = memconform(*command, "--sdk", write_sdk(workspace))
    assert again.code == 0, again.err


def test_an_error_message_in_place_of_an_answer_is_not_judged(
    memconform: Call, service: Service, workspace: Path
) -> None:
    write_dataset(workspace / "lme.json", sessions=1)
    error = "Error: 429 Too Many Requests. Rate limit reached for gpt-4o."
    service.script(_rule("kayak's hull?", text=error))
    command = ("lme", "run", *BULK, *PRICED, *NO_FILTER, "--output", "out")
    ended = memconform(*command, "--sdk", write_sdk(workspace))
    assert ended.code == 3, ended.err
    question = load(workspace / "out")["questions"][1]
    assert question["judge_verdict"] == "not_run"
    assert question["code"] in ("error_text", "llm_invalid_reply")
    assert not any("Rate limit" in p and _JUDGES in p for p in service.prompts)
    assert load(workspace / "out")["overall_score"] is None


@pytest.mark.usefixtures("service")
def test_a_search_that_fails_for_the_agent_is_no_answer(memconform: Call, workspace: Path) -> None:
    write_dataset(workspace / "lme.json", sessions=1)
    sdk = write_sdk(workspace, fault="ignores_prefix")
    flags = ("--ingest-mode", "agentic", "--output", "out")
    ended = memconform("lme", "run", *BULK, *PRICED, *NO_FILTER, *flags, "--sdk", sdk)
    assert ended.code == 3, ended.err
    assert "filter_ignored" in verdicts(workspace / "out")
    assert load(workspace / "out")["overall_score"] is None
