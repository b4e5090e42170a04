"""`memconform datasets expand`: the installed program against the scripted upstream."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from memconform.longmemeval.records import ExpansionReport
from tests.conftest import Ended
from tests.integration.scripted_llm import Service

Call = Callable[..., Ended]

_NAMES = ("openai:gpt-4o-2024-08-06", "anthropic:claude-haiku-4-5")
_FACT = {"facts": ["The user keeps bees."]}


def _question(number: int, sessions: list[str]) -> dict[str, Any]:
    turns = [
        [
            {"role": "user", "content": f"About {name}.", "has_answer": name.startswith("answer_")},
            {"role": "assistant", "content": f"I see, {name}."},
        ]
        for name in sessions
    ]
    return {
        "question_id": f"q{number}",
        "question_type": "single-session-user",
        "question": f"What happened last week, {number}?",
        "answer": "bees",
        "question_date": "2023/05/30 (Tue) 10:00",
        "haystack_session_ids": sessions,
        "haystack_dates": [f"2023/05/{20 + n} (Sat) 10:00" for n in range(len(sessions))],
        "haystack_sessions": turns,
        "answer_session_ids": sessions[:1],
    }


@pytest.fixture
def data(workspace: Path) -> Path:
    """Two questions; the session `share` is in both haystacks."""
    path = workspace / "lme.json"
    questions = [_question(1, ["answer_a_1", "share"]), _question(2, ["answer_b_1", "share"])]
    path.write_text(json.dumps(questions))
    return path


def _expand(
    memconform: Call, data: Path, kind: str, *more: str, model: str = _NAMES[0]
) -> tuple[Ended, Any, dict[str, Any]]:
    file = data.with_name("out.json")
    ended = memconform(
        *("datasets", "expand", data, "--kind", kind, "--model", model, "-o", file),
        *("--llm-timeout", "60", *more),
    )
    report = file.with_name("out.json.report.json")
    if not file.exists():
        return ended, None, {}
    loaded = json.loads(report.read_text())
    jsonschema.validate(loaded, ExpansionReport.model_json_schema())
    return ended, json.loads(file.read_text()), loaded


@pytest.mark.parametrize("model", _NAMES)
def test_facts_are_generated_once_a_session_and_bench_reads_them(
    memconform: Call, data: Path, service: Service, model: str
) -> None:
    service.says(_FACT, usage={"input": 100, "output": 10})
    ended, keys, report = _expand(memconform, data, "session-userfact", model=model)
    assert ended.code == 0, ended.err
    # The names of the authors' caches have no mark of evidence.
    assert keys == dict.fromkeys(("a_1", "b_1", "share"), _FACT["facts"])
    assert service.calls == 3
    assert (report["names"], report["cached"], report["failures"]) == (3, 0, [])
    assert (report["input_tokens"], report["cost_usd"] > 0) == (300, True)
    assert report["options"] == {"level": "session", "session_doc": "user-only"}
    # The same again is paid for no second time.
    ended, again, report = _expand(memconform, data, "session-userfact", model=model)
    assert (again, service.calls, report["cached"], report["cost_usd"]) == (keys, 3, 3, 0)
    flags = ("--suite", "longmemeval", "--data", data, "--system", "oracle")
    ended = memconform("bench", *flags, "--keys", data.with_name("out.json"))
    assert ended.code == 0, ended.err
    assert "has no key for it" not in ended.err


@pytest.mark.parametrize(
    ("reply", "code"),
    [
        ({"text": "The user keeps bees."}, "llm_invalid_reply"),
        ({"text": '{"facts": ["The user'}, "llm_invalid_reply"),
        ({"text": ""}, "llm_invalid_reply"),
        ({"text": "x", "status": 400}, "llm_rejected"),
    ],
)
def test_a_session_without_a_usable_reply_is_null_and_reported(
    memconform: Call, data: Path, service: Service, reply: dict[str, Any], code: str
) -> None:
    service.script(
        {"kind": "chat", "contains": "About share.", "reply": reply},
        {"kind": "chat", "reply": {"text": json.dumps(_FACT)}},
    )
    ended, keys, report = _expand(memconform, data, "session-userfact")
    assert ended.code == 3
    assert keys["share"] is None
    assert keys["a_1"] == _FACT["facts"]
    assert [(each["name"], each["code"]) for each in report["failures"]] == [("share", code)]
    assert "1 failed (null)" in ended.out
    # It was not cached: a model that works later is asked for it alone.
    service.says(_FACT)
    ended, keys, report = _expand(memconform, data, "session-userfact")
    # A new script forgets the requests before it.
    assert (ended.code, service.calls, report["failures"]) == (0, 1, [])
    assert keys["share"] == _FACT["facts"]


def test_a_spent_budget_leaves_no_file_and_is_continued_without_paying_twice(
    memconform: Call, data: Path, service: Service
) -> None:
    service.says(_FACT, usage={"input": 100, "output": 200})
    # A call may take about 0.021 dollars, and takes 0.00225 as the service reports it.
    flags = ("--llm-concurrency", "1", "--max-cost-usd", "0.0215")
    ended, keys, _ = _expand(memconform, data, "session-userfact", *flags)
    assert (ended.code, keys) == (6, None), ended.err
    asked = service.calls
    assert 0 < asked < 3
    ended, keys, report = _expand(memconform, data, "session-userfact")
    assert (ended.code, report["cached"]) == (0, asked), ended.err
    assert (service.calls, len(keys)) == (3, 3)


@pytest.mark.capability("expansion")
def test_events_and_ranges_are_generated_in_the_form_that_bench_reads(
    memconform: Call, data: Path, service: Service
) -> None:
    event = {"date": "2023/05/25", "event": "The user got bees."}
    service.says({"events": [event]})
    ended, rows, report = _expand(memconform, data, "events")
    assert ended.code == 0, ended.err
    assert rows[0] == {
        "question_id": "q1",
        "haystack_session_ids": ["answer_a_1", "share"],
        "timestamped_facts": [[event], [event]],
    }
    # The same session has another date in each haystack, or may have: it is asked for in both.
    assert report["names"] == 4
    data.with_name("out.json").rename(data.with_name("events.json"))
    service.says({"range": {"start": "2023/05/22", "end": "2023/05/28"}})
    ended, ranges, report = _expand(memconform, data, "ranges")
    assert ranges == {n: {"start": "2023/05/22", "end": "2023/05/28"} for n in ("q1", "q2")}
    flags = ("--suite", "longmemeval", "--data", data, "--system", "oracle")
    pruned = ("--events", data.with_name("events.json"), "--ranges", data.with_name("out.json"))
    ended = memconform("bench", *flags, *pruned)
    assert ended.code == 0, ended.err


def test_turns_have_keys_of_their_own(memconform: Call, data: Path, service: Service) -> None:
    service.says({"keyphrases": ["bees", "hives"]})
    ended, keys, report = _expand(memconform, data, "turn-keyphrase")
    assert ended.code == 0, ended.err
    assert keys == dict.fromkeys(("a_1_1", "b_1_1", "share_1"), "bees; hives")
    assert report["options"] == {"level": "turn"}


def test_a_forecast_asks_nothing(memconform: Call, data: Path, service: Service) -> None:
    ended, keys, _ = _expand(memconform, data, "session-summ", "--dry-run")
    assert (ended.code, keys, service.calls) == (0, None, 0), ended.err
    assert "3 calls (0 cached)" in ended.out


@pytest.mark.parametrize(
    ("flags", "says"),
    [
        (("--model", "fake"), "only quotes sentences"),
        (("--no-cache",), "would pay for every call again"),
        (("--output", "-"), "is not written to standard output"),
        (("--kind", "turn-summ"), "turn-summ"),
    ],
)
def test_invalid_options_are_reported_before_anything_is_asked(
    memconform: Call, data: Path, service: Service, flags: tuple[str, ...], says: str
) -> None:
    ended, keys, _ = _expand(memconform, data, "session-summ", *flags)
    assert (ended.code, says in ended.err, keys, service.calls) == (2, True, None, 0), ended.err


def test_ranges_need_dated_questions(memconform: Call, workspace: Path, service: Service) -> None:
    path = workspace / "mine.json"
    path.write_text(
        json.dumps(
            {
                "name": "mine",
                "items": [{"id": "i", "content": "Bo keeps bees."}],
                "questions": [{"query": "Who?", "gold": ["i"]}],
            }
        )
    )
    ended, keys, _ = _expand(memconform, path, "ranges")
    assert (ended.code, "has no date" in ended.err, keys) == (2, True, None), ended.err
    assert service.calls == 0
