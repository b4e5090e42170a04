"""`memconform wmb`: from the data to the table, with daemons, adapters and judges that fail."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import jsonschema
import pytest

from memconform.bench.wmb.records import WmbRun, WmbScore
from tests.adapters import write_system
from tests.conftest import Ended
from tests.unit.wmb_files import RIGHT, questions, write_answers, write_benchmark

Call = Callable[..., Ended]
Scripted = Callable[..., Path]

_QUESTIONS = questions(scored=4, probes=4, analysed=1)
_PART_B = [row for row in _QUESTIONS if ".DOC." not in row["id"]]


@pytest.fixture
def wmb(workspace: Path) -> Path:
    return write_benchmark(workspace / "wmb", _QUESTIONS)


def _run(memconform: Call, wmb: Path, *flags: str | Path) -> tuple[Ended, Any, list[Any]]:
    answers = wmb.with_name("answers.json")
    ended = memconform("wmb", "run", "--data", wmb, "--answers", answers, *flags)
    record = wmb.with_name("answers.run.json")
    if not answers.exists():
        return ended, None, []
    return ended, json.loads(record.read_text()), json.loads(answers.read_text())


def _score(memconform: Call, wmb: Path, *flags: str | Path) -> tuple[Ended, Any]:
    report = wmb.with_name("score.json")
    report.unlink(missing_ok=True)
    answers = wmb.with_name("answers.json")
    ended = memconform("score", answers, "--rubric", "wmb", "--data", wmb, "--json", report, *flags)
    return ended, json.loads(report.read_text()) if report.exists() else None


@pytest.mark.capability("wmb")
def test_from_the_data_to_the_table(memconform: Call, wmb: Path, scripted: Scripted) -> None:
    ended, run, rows = _run(memconform, wmb, "--sdk", scripted(), "-k", "3")
    assert ended.code == 0, ended.err
    jsonschema.validate(run, WmbRun.model_json_schema())
    assert [run["rows"], run["k"], run["lost"], run["not_asked"]] == [len(_QUESTIONS), 3, [], []]
    assert {row["question_id"] for row in rows} == {row["id"] for row in _QUESTIONS}
    for row in rows:
        assert len(row["memories_returned"]) <= 3
        assert row["system_response"] == (" ".join(row["memories_returned"]) or "NO_RESULT")
        assert isinstance(row["latency_ms"], int)
    asked = {row["question_id"]: row["memories_returned"] for row in rows}
    # A row of a conversation is a document; a document is stored whole.
    assert any("user: In daily_life the boat lies" in m for m in asked["daily_life.S4Temporal.0"])

    ended, report = _score(memconform, wmb, "--judge", "fake")
    assert ended.code == 0, ended.err
    jsonschema.validate(report, WmbScore.model_json_schema())
    readme, script = report["profiles"]["readme"], report["profiles"]["script"]
    assert readme["part_b"]["total"] == 4
    assert script["part_b"]["total"] == 4 + 12
    assert report["answers"]["missing"] == report["answers"]["unknown"] == []
    assert not report["answers"]["reordered"]
    assert "readme: all S1; script: rows of S1 to S7" in ended.err
    assert ended.out.startswith("wmb, readme: ")
    assert "(other judges: fake:lexical-3)" in ended.out


def test_a_search_that_failed_has_no_row_and_makes_bounds_of_the_scores(
    memconform: Call, wmb: Path, scripted: Scripted
) -> None:
    sdk = scripted("http_500", on="daily_life.S1Situational.1 ")
    ended, run, rows = _run(memconform, wmb, "--sdk", sdk, "--part", "B")
    assert ended.code == 3
    assert [each["question"] for each in run["lost"]] == ["daily_life.S1Situational.1"]
    assert len(rows) == len(_PART_B) - 1
    assert "daily_life.S1Situational.1" in ended.err

    ended, report = _score(memconform, wmb, "--judge", "fake")
    assert ended.code == 3
    for profile in report["profiles"].values():
        assert profile["score"]["value"] is None
        assert profile["score"]["low"] < profile["score"]["high"]
    assert report["answers"]["missing"] == []
    assert len(report["answers"]["not_asked"]) == len(_QUESTIONS) - len(_PART_B)
    assert report["profiles"]["readme"]["part_a"] is None

    # A copy without the record shows that a row is missing, and nobody can know which was lost.
    wmb.with_name("answers.run.json").unlink()
    ended, copy = _score(memconform, wmb, "--judge", "fake", "--quiet")
    assert ended.code == 3
    assert (
        f"record_missing: 1 (daily_life.S1Situational.1); the first: {run['run_id']}" in ended.err
    )
    assert copy["profiles"] == report["profiles"]
    assert copy["answers"]["not_asked"] == report["answers"]["not_asked"]


def test_memories_with_a_secret_are_lost_and_not_judged_with_the_mask(
    memconform: Call, wmb: Path, scripted: Scripted
) -> None:
    """A key that is a word, such as the `local` of one's own server, was masked in memories."""
    _, _, rows = _run(memconform, wmb, "--sdk", scripted(), "--part", "B")
    naming = {row["question_id"] for row in rows if "boat" in str(row["memories_returned"])}
    assert naming
    secret = ("--env", "SOME_API_KEY=boat")
    ended, run, rows = _run(memconform, wmb, "--sdk", scripted(), "--part", "B", *secret)
    assert ended.code == 3, ended.err
    assert {(each["question"], each["code"]) for each in run["lost"]} == {
        (name, "redacted") for name in naming
    }
    assert "(hidden)" not in str(rows)


def test_a_resumed_run_asks_only_what_was_lost(memconform: Call, wmb: Path) -> None:
    failing = _adapter(wmb, "search", "if query == FIRST: raise OSError('no route')")
    flags = ("--adapter", failing)
    ended, run, _ = _run(memconform, wmb, *flags)
    assert ended.code == 3
    assert [each["code"] for each in run["lost"]] == ["adapter_search_failed"]
    calls = wmb.with_name("searches")
    assert len(calls.read_text().splitlines()) == len(_PART_B) + 2  # S3 searches two users
    calls.unlink()
    ended, run, _ = _run(memconform, wmb, *flags, "--resume", run["run_id"])
    assert len(calls.read_text().splitlines()) == 1
    assert ended.code == 3
    assert run["rows"] == len(_PART_B) - 1


def test_a_daemon_that_dies_leaves_the_rest_unasked(
    memconform: Call, wmb: Path, scripted: Scripted
) -> None:
    ended, run, rows = _run(
        memconform, wmb, "--sdk", scripted("dies", on="work_career.S1Situational.1 "), "--part", "B"
    )
    assert ended.code == 3
    assert run["incident"]["code"] == "daemon_died"
    assert len(rows) + len(run["lost"]) == len(_PART_B)
    assert run["lost"]


_ADAPTER = """\
import os, sys, time
FIRST = {first!r}
stored = {{}}
print("the adapter is loaded")
sys.stdout.reconfigure(line_buffering=True)

def store(user_id, content):
    {store}
    print('{{"memories": ["a print is no reply"]}}')
    stored.setdefault(user_id, []).append(content)

def search(user_id, query):
    with open({searches!r}, "a") as file:
        print(query, file=file)
    os.write(1, b'{{"memories": ["nor is this"], "took_ms": 0}}\\n')
    {search}
    words = set(query.lower().split())
    return [each for each in stored.get(user_id, []) if "harbour" in each]

if __name__ == "__main__":
    raise SystemExit("run as a program")
"""


def _adapter(wmb: Path, where: str = "", line: str = "pass") -> Path:
    path = wmb.with_name("my_adapter.py")
    lines = {"store": "pass", "search": "pass"} | ({where: line} if where else {})
    first = _PART_B[0]["text"]
    searches = str(wmb.with_name("searches"))
    path.write_text(_ADAPTER.format(first=first, searches=searches, **lines))
    return path


def test_an_adapter_is_asked_in_a_process_of_its_own(memconform: Call, wmb: Path) -> None:
    ended, run, rows = _run(memconform, wmb, "--adapter", _adapter(wmb))
    assert ended.code == 0, ended.err
    assert (run["system"], run["parts"], run["documents"]) == ("my_adapter", "B", 40)
    by_id = {row["question_id"]: row for row in rows}
    assert len(by_id) == len(_PART_B)
    # Each category is a user; a question across two searches both.
    assert by_id["daily_life.S1Situational.0"]["memories_returned"] == [
        "user: In daily_life the boat lies in the harbour of Brel, berth 0."
    ]
    assert len(by_id["daily_life.S3CrossCategory.0"]["memories_returned"]) == 2
    assert len(run["not_asked"]) == len(_QUESTIONS) - len(_PART_B)
    [log] = wmb.parent.glob("results/runs/*/my_adapter/adapter.log")
    assert "the adapter is loaded" in log.read_text()
    result = json.loads(log.parent.with_name("result.json").read_text())
    # It returns texts and no ids: a recall would be 0 whatever it returned.
    assert result["rows"][0]["views"] == {}

    ended, report = _score(memconform, wmb, "--judge", "fake", "--profile", "readme")
    assert ended.code == 0, ended.err
    assert report["profiles"]["readme"]["part_b"]["correct"] == 4


@pytest.mark.parametrize(
    ("where", "line", "code", "said"),
    [
        ("search", "os._exit(9)", "adapter_died", "exit status 9"),
        ("search", "os.kill(os.getpid(), 11)", "adapter_died", "SIGSEGV"),
        ("store", "os._exit(9)", "adapter_died", "exit status 9"),
        ("store", "raise ValueError('full')", "adapter_store_failed", "ValueError: full"),
        ("store", "sys.exit(3)", "adapter_store_failed", "SystemExit: 3"),
    ],
)
def test_an_adapter_that_ends_or_stores_nothing_is_a_named_error(
    where: str, line: str, code: str, said: str, memconform: Call, wmb: Path
) -> None:
    ended, run, rows = _run(memconform, wmb, "--adapter", _adapter(wmb, where, line))
    assert ended.code == 3
    assert run["incident"]["code"] == code
    assert said in run["incident"]["message"]
    assert ("nor is this" if where == "search" else "loaded") in run["incident"]["excerpt"]
    assert rows == []
    assert len(run["lost"]) == len(_PART_B)


@pytest.mark.parametrize(
    ("line", "code", "said"),
    [
        ("return None", "adapter_wrong_type", "must return a list of str, not None"),
        ("return 'text'", "adapter_wrong_type", "not 'text'"),
        ("return [{'text': 1}]", "adapter_wrong_type", "must return a list of str"),
        ("return ['\\ud800']", "adapter_wrong_type", "unpaired surrogate"),
        ("raise KeyError('x')", "adapter_search_failed", "KeyError: 'x'"),
        ("sys.exit()", "adapter_search_failed", "SystemExit"),
        ("raise ValueError('\\ud800')", "adapter_search_failed", "\\ud800"),
    ],
)
def test_a_search_without_a_list_of_texts_is_never_an_empty_answer(
    line: str, code: str, said: str, memconform: Call, wmb: Path
) -> None:
    ended, run, rows = _run(memconform, wmb, "--adapter", _adapter(wmb, "search", line))
    assert ended.code == 3
    assert {each["code"] for each in run["lost"]} == {code}
    assert len(run["lost"]) == len(_PART_B)
    assert said in run["lost"][0]["message"]
    assert rows == []
    assert code in ended.err


_FORK = "if (pid := os.fork()): os.waitpid(pid, 0)"
_OTHER_REPLY = (
    "import stat; [os.write(fd, b'[]\\n') for fd in range(3, 20)"
    " if os.path.exists(f'/proc/self/fd/{fd}') and stat.S_ISSOCK(os.fstat(fd).st_mode)]"
)


def test_the_reply_of_a_fork_is_not_taken_for_the_next_one(memconform: Call, wmb: Path) -> None:
    ended, run, rows = _run(memconform, wmb, "--adapter", _adapter(wmb, "search", _FORK))
    assert ended.code == 0, ended.err
    assert run["rows"] == len(_PART_B)
    for row in rows:
        if "S1Situational" in row["question_id"]:
            category = row["question_id"].partition(".")[0]
            assert f"In {category} " in row["memories_returned"][0]


def test_a_reply_to_another_call_ends_the_run(memconform: Call, wmb: Path) -> None:
    ended, run, rows = _run(memconform, wmb, "--adapter", _adapter(wmb, "search", _OTHER_REPLY))
    assert ended.code == 3
    assert run["incident"]["code"] == "adapter_out_of_step"
    assert rows == []


def test_one_index_a_category_searches_both_for_a_question_across_two(
    memconform: Call, wmb: Path, scripted: Scripted
) -> None:
    flags = ("--index", "category", "-k", "3")
    ended, run, rows = _run(memconform, wmb, "--sdk", scripted(), *flags)
    assert ended.code == 0, ended.err
    assert (run["index"], run["rows"], run["not_asked"]) == ("category", len(_QUESTIONS), [])
    assert "an index a category: 28 of 28 questions answered" in ended.out
    memories = {row["question_id"]: " ".join(row["memories_returned"]) for row in rows}
    assert len(memories) == len(rows) == len(_QUESTIONS)
    for name, text in memories.items():
        crossing = "S3CrossCategory" in name
        for category in ("daily_life", "work_career"):
            assert (f" {category} " in text) <= (crossing or name.startswith(category))
    assert " daily_life " in memories["daily_life.S3CrossCategory.0"]
    assert " work_career " in memories["daily_life.S3CrossCategory.0"]
    ended, report = _score(memconform, wmb, "--judge", "fake")
    assert report["answers"]["index"] == "category"
    assert "an index a category" in ended.err


def test_a_question_across_two_categories_is_lost_with_either_search(
    memconform: Call, wmb: Path, scripted: Scripted
) -> None:
    sdk = scripted("http_500", on="daily_life.S3CrossCategory.0 ")
    ended, run, rows = _run(memconform, wmb, "--sdk", sdk, "--part", "B", "--index", "category")
    assert ended.code == 3
    assert [each["question"] for each in run["lost"]] == ["daily_life.S3CrossCategory.0"]
    assert run["rows"] == len(rows) == len(_PART_B) - 1


def test_scores_are_shown_with_and_without_questions_of_the_errata(
    memconform: Call, wmb: Path
) -> None:
    rows = _right(wmb)
    rows[0] |= {"memories_returned": [], "system_response": "NO_RESULT"}
    write_answers(wmb.with_name("answers.json"), rows)
    errata = wmb.with_name("errata.json")
    entry = {"reason": "says nothing", "unjudgeable": True}
    errata.write_text(json.dumps({rows[0]["question_id"]: entry, rows[1]["question_id"]: "other"}))
    ended, report = _score(memconform, wmb, "--judge", "fake", "--errata", errata)
    assert ended.code == 0, ended.err
    assert report["profiles"]["readme"]["score"]["value"] == 75
    assert report["undisputed"]["readme"]["score"]["value"] == 100
    assert report["undisputed"]["readme"]["part_b"]["total"] == 2
    assert report["omitted"] == {"says nothing": 1, "other": 1}
    assert (
        "undisputed: readme 100.0, script 100.0, without 2 questions (1 says nothing, 1 other)"
        in ended.err
    )
    # Errata that ship describe the public questions alone.
    ended, report = _score(memconform, wmb, "--judge", "fake")
    assert report["undisputed"] == {}
    ended, _ = _score(memconform, wmb, "--judge", "fake", "--errata", "wmb")
    assert (ended.code, ended.err.partition(":")[0]) == (2, "unknown_question")


def test_an_adapter_imports_its_own_modules(memconform: Call, wmb: Path) -> None:
    for name in ("records", "plan"):
        wmb.with_name(f"{name}.py").write_text("OWN = 1\n")
    adapter = _adapter(wmb, "search", "import plan, records; plan.OWN, records.OWN")
    ended, run, _ = _run(memconform, wmb, "--adapter", adapter)
    assert ended.code == 0, ended.err
    assert run["lost"] == []


@pytest.mark.parametrize("index", ["isolated", "category"])
def test_a_system_behind_an_adapter_answers_both_parts(
    index: str, memconform: Call, wmb: Path
) -> None:
    system = write_system(wmb.with_name("mine"))
    flags = ("--part", "both", "--index", index, "-k", "2")
    ended, run, rows = _run(memconform, wmb, "--system", system, *flags)
    assert ended.code == 0, ended.err
    assert (run["system"], run["index"], run["rows"]) == ("mine", index, len(_QUESTIONS))
    assert "found by own words" in ended.err
    by_id = {row["question_id"]: row["memories_returned"] for row in rows}
    turns = by_id["daily_life.S1Situational.0"]
    assert [turn.startswith("user: ") for turn in turns] == [True, True]
    assert len(by_id["daily_life.S3CrossCategory.0"]) == (4 if index == "category" else 2)


def test_a_system_that_rewrites_what_it_stores_has_memories(memconform: Call, wmb: Path) -> None:
    """No hit was the text of an item, and the run ended: but a judge reads whatever came back."""
    rewritten = "hits = [(None, 'noted: ' + text, s) for id, text, s in hits]"
    system = write_system(wmb.with_name("mine"), search=rewritten)
    ended, run, rows = _run(memconform, wmb, "--system", system)
    assert (ended.code, run["parts"], run["rows"]) == (0, "B", len(_PART_B))
    assert all(text.startswith("noted: ") for row in rows for text in row["memories_returned"])


def test_a_hit_that_a_system_made_up_is_no_memory(memconform: Call, wmb: Path) -> None:
    """An answer of nothing is right for a probe, and one of made-up ids was nobody's."""
    system = write_system(wmb.with_name("mine"), search="hits[-1:] = [('made-up', 'text', 1.0)]")
    ended, run, rows = _run(memconform, wmb, "--system", system)
    assert (ended.code, rows) == (3, [])
    assert {lost["code"] for lost in run["lost"]} == {"foreign_id"}


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (("--system", "all"), "--system all selects several"),
        (("--system", "flat-bm25"), "returns no memories"),
        (("--system", "faiss", "--sdk", "go"), "wmb run measures one system"),
        (("--system", "fais"), "did you mean 'faiss'?"),
        (("--adapter", "mine.py", "--embed-model", "fh256-1"), "chooses its own model"),
    ],
)
def test_what_is_not_one_system_with_memories_is_refused(
    flags: tuple[str, ...], said: str, memconform: Call, wmb: Path
) -> None:
    ended = memconform("wmb", "run", "--data", wmb, *flags)
    assert (ended.code, said in ended.err) == (2, True)


def test_only_one_mode_is_accepted(memconform: Call, wmb: Path) -> None:
    ended = memconform("wmb", "run", "--data", wmb, "--sdk", "go", "--mode", "bm25,hybrid")
    assert ended.code == 2
    assert "bm25,hybrid" in ended.err
    assert not wmb.with_name("results").exists()


def test_an_adapter_that_hangs_is_killed(memconform: Call, wmb: Path) -> None:
    adapter = _adapter(wmb, "search", "print(os.getpid(), file=open('pid', 'w')); time.sleep(3600)")
    # short limit: no other call of this adapter does anything
    ended, run, rows = _run(memconform, wmb, "--adapter", adapter, "--timeout", "10")
    assert ended.code == 3
    assert run["incident"]["code"] == "adapter_hung"
    assert rows == []
    pid = int(wmb.with_name("pid").read_text())
    assert not Path(f"/proc/{pid}").exists() or "zombie" in Path(f"/proc/{pid}/status").read_text()


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("def store(user_id, content): ...", "it has no function search"),
        ("x = 1", "it has no function store and no function search"),
        ("import nothing_of_this_name", "No module named 'nothing_of_this_name'"),
        ("def broken(:", "SyntaxError"),
        (
            "async def store(u, c): ...\ndef search(u, q): return []",
            "store is async",
        ),
        (
            "def store(u, c): ...\nasync def search(u, q): return []",
            "search is async",
        ),
    ],
)
def test_a_file_that_is_no_adapter_is_named(
    source: str, said: str, memconform: Call, wmb: Path
) -> None:
    path = wmb.with_name("other.py")
    path.write_text(source)
    ended, run, _ = _run(memconform, wmb, "--adapter", path)
    assert ended.code == 3
    assert said in ended.err
    assert run["rows"] == 0


@pytest.mark.parametrize(
    ("flags", "code"),
    [
        ((), "no_system"),
        (("--sdk", "go", "--adapter", "a.py"), "no_system"),
        (("--sdk", "all"), "bad_option"),
        (("--adapter", "missing.py"), "dataset_unreadable"),
        (("--adapter", "a.txt"), "bad_option"),
        (("--adapter", "a.py", "--part", "A"), "bad_option"),
        (("--adapter", "a.py", "--index", "isolated"), "bad_option"),
    ],
)
def test_flags_that_contradict_each_other(
    flags: tuple[str, ...], code: str, memconform: Call, wmb: Path
) -> None:
    ended = memconform("wmb", "run", "--data", wmb, *flags)
    assert ended.code == 2
    assert ended.err.startswith(code)
    assert not wmb.with_name("results").exists()


def _right(wmb: Path, memory: str = RIGHT, **changes: Any) -> list[dict[str, Any]]:
    rows = [
        {
            "question_id": row["id"],
            "memories_returned": [] if row["qtype"] == "FalseMemory" else [memory],
            "system_response": "",
            "latency_ms": 5,
        }
        | changes
        for row in _QUESTIONS
    ]
    write_answers(wmb.with_name("answers.json"), rows)
    return rows


def test_answers_of_other_programs_are_scored_alike(memconform: Call, wmb: Path) -> None:
    rows = _right(wmb)
    rows += [rows[0], {"question_id": "unknown", "memories_returned": ["x"], "latency_ms": 1}]
    write_answers(wmb.with_name("answers.json"), rows[::-1])
    ended, report = _score(memconform, wmb, "--judge", "fake")
    assert ended.code == 0, ended.err
    assert ended.out.startswith("wmb, readme: 100.0, Exceptional (other judges: fake")
    assert "repeated, counted once by the readme: 1 (daily_life.S1Situational.0)" in ended.err
    assert "not questions of the benchmark, skipped: 1 (unknown)" in ended.err
    assert "the rows are in another order" in ended.err
    assert report["profiles"]["script"]["part_b"]["total"] == 17


def test_a_stored_error_message_is_a_fault_with_its_name(memconform: Call, wmb: Path) -> None:
    rows = _right(wmb)
    message = "Traceback (most recent call last): boom"
    rows[0] |= {"memories_returned": [message], "system_response": message}
    write_answers(wmb.with_name("answers.json"), rows)
    ended, report = _score(memconform, wmb, "--judge", "fake", "--quiet")
    assert ended.code == 3
    assert report["profiles"]["readme"]["score"]["value"] is None
    assert report["profiles"]["script"]["score"]["value"] is not None
    assert f"error_text: 1 ({rows[0]['question_id']})" in ended.err


def test_a_panel_that_is_not_the_official_one_is_not_called_official(
    memconform: Call, wmb: Path
) -> None:
    _right(wmb)
    ended, _ = _score(memconform, wmb, "--official", "--judge", "fake")
    assert ended.code == 2
    assert ended.err.startswith("bad_option")
    ended, report = _score(memconform, wmb, "--judge", "fake")
    assert report["label"] == "other judges: fake:lexical-3"


def test_a_judge_without_a_key_is_an_error_and_no_vote(memconform: Call, wmb: Path) -> None:
    _right(wmb)
    ended, report = _score(memconform, wmb, "--official", "--max-cost-usd", "1")
    assert ended.code == 2
    assert ended.err.startswith("no_api_key")
    assert report is None


def test_a_forecast_asks_nothing(memconform: Call, wmb: Path) -> None:
    _right(wmb)
    ended, report = _score(memconform, wmb, "--official", "--dry-run")
    assert ended.code == 0, ended.err
    assert report is None
    assert ended.out.count(f"{len(_QUESTIONS) - 8} calls") == 3
    # Of one price nobody knows whether it is still the vendor's.
    [unverified] = [line for line in ended.out.splitlines() if "(price unverified)" in line]
    assert unverified.startswith("wmb gemini:gemini-2.0-flash: ")


def test_no_verdict_is_asked_for_again(memconform: Call, wmb: Path) -> None:
    # Other tests share the cache.
    memory = f"{RIGHT} {wmb}"
    _right(wmb, memory)
    # Nothing is cached, so that no call can be made: the scores are bounds.
    ended, report = _score(memconform, wmb, "--judge", "fake", "--cache-only")
    assert ended.code == 2
    assert report["incident"]["code"] == "not_cached"
    assert report["profiles"]["readme"]["score"] == {"value": None, "low": 0, "high": 100}
    ended, first = _score(memconform, wmb, "--judge", "fake", "--no-cache")
    assert ended.code == 0, ended.err
    flags = ("--judge", "fake", "--cache-only", "--resume", first["run_id"])
    ended, second = _score(memconform, wmb, *flags)
    assert ended.code == 0, ended.err
    assert f"{len(_QUESTIONS) - 8} verdicts kept of {first['run_id']}" in ended.err
    assert second["profiles"] == first["profiles"]
    # The other profile's verdicts are kept too.
    ended, third = _score(memconform, wmb, *flags, "--profile", "script")
    assert ended.code == 0, ended.err
    assert third["profiles"]["script"] == first["profiles"]["script"]

    _right(wmb, memory, latency_ms=9)
    ended, _ = _score(memconform, wmb, *flags)
    assert ended.code == 2
    assert ended.err.startswith("resume_mismatch")


def test_the_record_of_other_answers_is_refused(
    memconform: Call, wmb: Path, scripted: Scripted
) -> None:
    _run(memconform, wmb, "--sdk", scripted(), "--limit", "3")
    _right(wmb)
    ended, _ = _score(memconform, wmb, "--judge", "fake")
    assert ended.code == 2
    assert ended.err.startswith("wmb_answers_changed")
    wmb.with_name("answers.run.json").write_text("{}")
    ended, _ = _score(memconform, wmb, "--judge", "fake")
    assert ended.code == 2
    assert ended.err.startswith("wmb_answers_changed")


def test_answers_of_100_mb_are_read_a_row_at_a_time(memconform: Call, wmb: Path) -> None:
    answers = wmb.with_name("answers.json")
    memories = json.dumps([RIGHT, *(f"{n} " + "noise " * 1_000 for n in range(160))])
    with answers.open("w") as file:
        file.write("[")
        for number in range(100):
            name = _QUESTIONS[number % len(_QUESTIONS)]["id"]
            row = f'{{"question_id": "{name}", "latency_ms": 1, "memories_returned": {memories}}}'
            file.write(f"{',' if number else ''}\n{row}")
        file.write("]")
    assert answers.stat().st_size > 90e6
    ended, report = _score(memconform, wmb, "--judge", "fake", "--profile", "script")
    assert ended.code == 0, ended.err
    assert report["answers"]["rows"] == 100


@pytest.fixture
def service(service_url: str) -> str:
    """An OpenAI- and Anthropic-compatible service that judges by a script."""
    return service_url


def _says(service: str, *replies: tuple[str, str]) -> None:
    """Answer requests that contain a text; the first match counts."""
    rules = [
        {"kind": "chat", "contains": contains, "reply": {"text": text}}
        for contains, text in replies
    ]
    assert httpx.put(f"{service}/_control/script", json={"rules": rules}).status_code == 204


_PANEL = (
    *("--judge", "openai:gpt-4o-mini", "--judge", "openai:gpt-4o-2024-11-20"),
    *("--judge", "anthropic:claude-haiku-4-5-20251001", "--profile", "readme"),
)


def test_two_of_three_judges_decide_and_their_agreement_is_reported(
    memconform: Call, wmb: Path, service: str
) -> None:
    _right(wmb)
    _says(service, ("claude-haiku", "WRONG"), ("", "CORRECT"))
    ended, report = _score(memconform, wmb, *_PANEL)
    assert ended.code == 0, ended.err
    assert report["profiles"]["readme"]["score"]["value"] == 100
    assert report["label"].endswith("2 of 3")
    assert report["judging"]["agreement"]["equal_pairs"] == pytest.approx(1 / 3)
    assert "judges agree" in ended.err

    _says(service, ("gpt-4o-mini", "CORRECT"), ("", "INCORRECT"))
    ended, report = _score(memconform, wmb, *_PANEL, "--no-cache")
    assert report["profiles"]["readme"]["score"]["value"] == 0


def test_a_judge_that_gives_no_verdict_is_not_outvoted_and_is_asked_again(
    memconform: Call, wmb: Path, service: str
) -> None:
    _right(wmb)
    first = "daily_life.S1Situational.0 lie"
    _says(service, (first, "This is not INCORRECT, I think."), ("", "CORRECT"))
    ended, report = _score(memconform, wmb, "--judge", "openai:gpt-4o-mini")
    assert ended.code == 3
    assert report["statuses"]["judge_error"] == 1
    assert report["profiles"]["readme"]["score"] == {"value": None, "low": 75, "high": 100}
    assert "scores are bounds" in ended.err

    _says(service, ("", "CORRECT"))
    flags = ("--judge", "openai:gpt-4o-mini", "--no-cache", "--resume", report["run_id"])
    ended, report = _score(memconform, wmb, *flags)
    assert ended.code == 0, ended.err
    assert report["profiles"]["readme"]["score"]["value"] == 100
    requests = httpx.get(f"{service}/_control/requests").json()["requests"]
    # A script begins with no requests: only the failed one was repeated.
    assert len(requests) == 1


def test_a_budget_that_ends_leaves_bounds_and_resumes(
    memconform: Call, wmb: Path, service: str
) -> None:
    _right(wmb)
    _says(service, ("", "CORRECT"))
    flags = ("--judge", "openai:gpt-4o-mini", "--llm-concurrency", "1", "--no-cache")
    ended, report = _score(memconform, wmb, *flags, "--max-cost-usd", "0.00025")
    assert ended.code == 6, ended.err
    assert report["incident"]["code"] == "budget_spent"
    assert report["profiles"]["readme"]["score"]["value"] is None
    assert 0 < report["statuses"]["correct"] < len(_QUESTIONS) - 8
    ended, report = _score(memconform, wmb, *flags, "--resume", report["run_id"])
    assert ended.code == 0, ended.err
    assert report["profiles"]["readme"]["score"]["value"] == 100
