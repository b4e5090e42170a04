"""`memconform bench`, the installed program against daemons in processes of their own."""

import json
import os
import shlex
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import jsonschema
import pytest

from memconform.bench.records import BenchReport
from tests.conftest import STRUCK, WAIT_SECONDS, Ended, runnable
from tests.integration.serving import upstream_by_hand
from tests.program import PROGRAM
from tests.waiting import wait_until

Call = Callable[..., Ended]
Scripted = Callable[..., Path]


def _row(report: dict[str, Any], system: str, strategy: str = "") -> dict[str, Any]:
    rows: list[dict[str, Any]] = report["rows"]
    [row] = [r for r in rows if (r["system"], r["strategy"]) == (system, strategy)]
    return row


def _value(row: dict[str, Any], name: str, view: str = "all") -> float:
    value: float = row["views"][view]["metrics"][name]["value"]
    return value


@pytest.fixture
def one_sdk(cache: Path) -> str:
    """Any reference SDK: what is looked at is the harness's own doing."""
    del cache
    return runnable()[0]


@pytest.fixture
def boxes(workspace: Path) -> Path:
    """Two haystacks of six items each; the fourth word of an item is in no other."""
    items = [
        {"id": f"i{n}", "content": f"The secret of box{n} is word{n}x", "group": f"g{n % 2}"}
        for n in range(12)
    ]
    questions = [
        {"query": f"What is in box{n}?", "gold": [f"i{n}"], "group": f"g{n % 2}", "category": "c"}
        for n in range(12)
    ]
    path = workspace / "boxes.json"
    path.write_text(json.dumps({"name": "boxes", "items": items, "questions": questions}))
    return path


def _bench(memconform: Call, data: Path, *more: str | Path) -> tuple[Ended, dict[str, Any]]:
    file = data.with_name("report.json")
    file.unlink(missing_ok=True)
    ended = memconform("bench", "--suite", "file", "--data", data, "--json", file, *more)
    return ended, json.loads(file.read_text()) if file.exists() else {}


@pytest.mark.capability("bench")
def test_sdks_rank_the_shipped_sample_equally(
    installed: Call, cache: Path, workspace: Path
) -> None:
    del cache
    sdks = [part for sdk in runnable() for part in ("--sdk", sdk)]
    flats = ("--system", "oracle", "--system", "null", "--system", "flat-bm25")
    ended = installed(
        *("bench", *sdks, *flats, "--modes", "bm25,semantic,hybrid", "--require-agreement"),
        *("--json", "report.json", "--markdown", "report.md"),
    )
    assert ended.code == 0, ended.err
    report = json.loads((workspace / "report.json").read_text())
    jsonschema.validate(report, BenchReport.model_json_schema())
    for sdk in runnable():
        for mode in ("bm25", "semantic", "hybrid"):
            assert 50 <= _value(_row(report, sdk, mode), "recall_any@10") <= 95
    assert {a["strategy"]: (a["compared"], a["equal"]) for a in report["alike"]} == dict.fromkeys(
        ("bm25", "semantic", "hybrid"), (20, 20)
    )
    assert _value(_row(report, "oracle"), "recall_all@5") == 100
    assert _value(_row(report, "null"), "recall_any@10") == 0
    [first, *_] = report["systems"]
    assert (first["documents"], first["chunks"], first["vectors"]) == (32, 32, 32)
    assert report["overhead_ms"]["p50"] > 0
    table = (workspace / "report.md").read_text()
    assert f"| {runnable()[0]} | bm25 |" in table
    assert "### all, multi-hop: 5 queries" in table


def test_a_shared_index_is_searched_with_a_filter(memconform: Call, sdk: str, boxes: Path) -> None:
    ended, report = _bench(memconform, boxes, "--sdk", sdk, "--index", "shared", "-k", "6")
    assert ended.code == 0, ended.err
    assert _value(_row(report, sdk, "bm25"), "recall_any@6") == 100
    [path] = ended.folder.glob("results/runs/*/result.json")
    for query in json.loads(path.read_text())["questions"]:
        # Every item has the words "in" and "box", and the other haystack's stay out.
        assert {int(item[1:]) % 2 for item in query["ranking"]} == {int(query["haystack"][1:])}


@pytest.fixture
def wmb(workspace: Path) -> Path:
    """Two categories of WMB-100K with the same words; each question is about one of them."""
    folder = workspace / "wmb" / "datasets"
    folder.mkdir(parents=True)
    for category in ("pets", "travel"):
        rows = [
            {"turn_id": n, "speaker": "user", "text": f"It is word{n}x now", "embedded_facts": []}
            for n in range(4)
        ]
        (folder / f"{category}.jsonl").write_text("".join(json.dumps(r) + "\n" for r in rows))
    questions = [
        {
            "id": f"{category}.S1.{n}",
            "category": category,
            "qtype": "S1Situational",
            "text": f"Where is word{n}x hidden",
            "gold_answer": "x",
            "required_memories": [],
            "gold_turn_ids": [n],
        }
        for n in range(4)
        for category in ("travel", "pets")
    ]
    across = {"id": "across.S3.1", "category2": "pets", "qtype": "S3CrossCategory"}
    questions.append(questions[0] | across | {"gold_turn_ids": []})
    (folder / "all_questions.json").write_text(json.dumps(questions))
    return folder.parent


def test_wmb_with_an_index_per_category_searches_only_the_category_of_the_question(
    memconform: Call, one_sdk: str, wmb: Path, workspace: Path
) -> None:
    def bench(*more: str) -> tuple[Ended, dict[str, Any]]:
        ended = memconform(
            *("bench", "--suite", "wmb", "--data", wmb, "--sdk", one_sdk, "-k", "1"),
            *("--system", "flat-bm25", "--json", "r.json", *more),
        )
        assert ended.code == 0, ended.err
        return ended, json.loads((workspace / "r.json").read_text())

    _, whole = bench()
    ended, split = bench("--index", "category")
    assert "9 queries over 8 items in 2 haystacks, category index" in " ".join(ended.err.split())
    assert (whole["source"]["haystacks"], whole["settings"]["index"]) == (1, "isolated")
    assert (split["source"]["haystacks"], split["settings"]["index"]) == (2, "category")
    # In one index every question has a twin of its gold in the other category.
    for row in split["rows"]:
        assert (_value(row, "recall_any@1"), row["queries"]) == (100, 9)
    assert _value(whole["rows"][0], "recall_any@1") == 50
    [path] = [
        path.parent / "result.json"
        for path in ended.folder.glob("results/runs/*/journal.jsonl")
        if '"category"' in path.read_text().splitlines()[0]
    ]
    queries = json.loads(path.read_text())["questions"]
    assert {q["haystack"] for q in queries} == {"pets", "travel"}
    for query in queries:
        assert {item.partition("/")[0] for item in query["ranking"]} <= {query["haystack"]}
    # Neither index changes which queries a limit selects.
    [one, two] = [bench("--limit", "3", "--index", index)[1] for index in ("isolated", "category")]
    assert one["settings"]["chosen_sha256"] == two["settings"]["chosen_sha256"]
    assert one["settings"]["content_sha256"] != two["settings"]["content_sha256"]


def test_daemons_and_flat_dense_use_the_embedding_server(
    memconform: Call, one_sdk: str, boxes: Path, environment: dict[str, str]
) -> None:
    with upstream_by_hand(environment) as url:
        served = ("--embed-base-url", f"{url}/v1", "--embed-model", "fh256-1")
        systems = ("--sdk", one_sdk, "--system", "flat-dense", "--modes", "semantic")
        ended, report = _bench(memconform, boxes, *systems, *served, "--embed-dims", "256")
        assert ended.code == 0, ended.err
        daemon, flat = report["rows"]
        assert daemon["views"] == flat["views"]
        assert report["systems"][0]["variables"]["OPENAI_BASE_URL"] == f"{url}/v1"
        ended, _ = _bench(memconform, boxes, *systems, *served[:3], "nobody", "--embed-dims", "256")
        assert (ended.code, "cannot embed with nobody" in ended.err) == (3, True)


def test_documents_lost_by_a_daemon_do_not_lower_the_score(
    memconform: Call, scripted: Scripted, boxes: Path
) -> None:
    sdk = scripted("loses_document")
    ended, report = _bench(memconform, boxes, "--sdk", sdk)
    row = _row(report, "scripted", "bm25")
    assert (ended.code, row["measured"], row["views"]) == (3, False, {})
    assert "brain_changed" in row["why"][0]
    assert "scripted bm25: not measured" in ended.err


def test_queries_that_no_proof_followed_are_asked_again(
    memconform: Call, one_sdk: str, boxes: Path
) -> None:
    _, whole = _bench(memconform, boxes, "--sdk", one_sdk)
    [run] = (boxes.parent / "results" / "runs").iterdir()
    journal = run / "journal.jsonl"
    lines = journal.read_text().splitlines(keepends=True)
    proofs = [n for n, line in enumerate(lines) if json.loads(line)["stage"] == "proved"]
    assert len(proofs) == 2
    # As it is left by a harness that was killed before it looked at the second index again.
    forged = [line.replace('"ranking": ["', '"ranking": ["lost", "') for line in lines]
    journal.write_text("".join([*lines[: proofs[0] + 1], *forged[proofs[0] + 1 : proofs[1]]]))
    ended, report = _bench(memconform, boxes, "--sdk", one_sdk, "--resume", run)
    assert (ended.code, "6 measurements kept from the interrupted bench" in ended.err) == (0, True)
    assert report["rows"][0]["views"] == whole["rows"][0]["views"]
    # Its speed is of two runs, and of none.
    assert report["rows"][0]["latency"] is None


_COSTS = ("ready_ms", "rss_peak_bytes", "cpu_seconds", "ingest_s", "documents_per_s", "disk_bytes")


def test_a_resumed_bench_does_not_report_the_resources_of_its_last_session(
    memconform: Call, one_sdk: str, boxes: Path
) -> None:
    _, whole = _bench(memconform, boxes, "--sdk", one_sdk)
    [run] = (boxes.parent / "results" / "runs").iterdir()
    ended, report = _bench(memconform, boxes, "--sdk", one_sdk, "--resume", run)
    assert ended.code == 0, ended.err
    # The daemon of this session was started for nothing: its memory was reported as the bench's.
    [before], [after] = whole["systems"], report["systems"]
    assert all(before[name] > 0 for name in _COSTS)
    assert {after[name] for name in _COSTS} == {None}
    assert {**after, **dict.fromkeys(_COSTS)} == {**before, **dict.fromkeys(_COSTS)}
    assert (report["overhead_ms"], report["rows"][0]["latency"]) == (None, None)
    assert (
        f"no speed, memory or disk is shown, because part of each was measured in {run.name}"
        in (" ".join(ended.err.split()))
    )
    # Where no measurement could be taken over, all was measured in this session.
    journal = run / "journal.jsonl"
    journal.write_text(journal.read_text().splitlines(keepends=True)[0])
    ended, report = _bench(memconform, boxes, "--sdk", one_sdk, "--resume", run)
    assert (ended.code, report["resumed_from"], "no speed" in ended.err) == (0, None, False)
    assert all(report["systems"][0][name] > 0 for name in _COSTS)


def test_resume_rejects_other_events(memconform: Call, one_sdk: str, boxes: Path) -> None:
    events, ranges = boxes.with_name("events.json"), boxes.with_name("ranges.json")
    flags = ("--sdk", one_sdk, "--events", events, "--ranges", ranges)
    ranges.write_text(json.dumps({"#4": {"start": "2023/05/05", "end": "2023/05/09"}}))
    events.write_text(json.dumps({"g0/i4": [{"date": "2023/05/05", "event": "packed"}]}))
    ended, _ = _bench(memconform, boxes, *flags)
    assert ended.code == 0, ended.err
    [run] = (boxes.parent / "results" / "runs").iterdir()
    events.write_text(json.dumps({"g0/i4": [{"date": "2024/05/05", "event": "packed"}]}))
    ended, _ = _bench(memconform, boxes, *flags, "--resume", run)
    assert (ended.code, "other settings: pruned" in ended.err) == (2, True)


def test_the_last_line_counts_the_measured_rows(
    memconform: Call, one_sdk: str, boxes: Path
) -> None:
    ended, _ = _bench(memconform, boxes, "--sdk", one_sdk, "--system", "null")
    assert "file: 2 of 2 rows measured -> " in ended.out
    assert "disk MiB" in ended.err


def test_different_rankings_fail_only_if_agreement_is_required(
    memconform: Call, scripted: Scripted, boxes: Path
) -> None:
    (boxes.parent / "other").mkdir()
    other = scripted("drops_first").rename(boxes.parent / "other" / "sdk.toml")
    other.write_text(other.read_text().replace('name = "scripted"', 'name = "other"'))
    sdks = ("--sdk", scripted(), "--sdk", other)
    ended, report = _bench(memconform, boxes, *sdks)
    assert (ended.code, report["alike"][0]["compared"], report["alike"][0]["equal"]) == (0, 12, 11)
    [pair] = report["parity"]
    assert pair["contrast"]["verdict"] == "inconclusive"
    assert (pair["contrast"]["compared"], pair["contrast"]["clusters"]) == (12, 2)
    assert "12 questions about these 2 haystacks alone, where pass rates may differ" in ended.err
    assert report["alike"][0]["differs"] == [f"#{STRUCK}: other differs from scripted at rank 1"]
    ended, _ = _bench(memconform, boxes, *sdks, "--require-agreement")
    assert ended.code == 1
    ended, _ = _bench(memconform, boxes, "--sdk", scripted(), "--require-agreement")
    assert (ended.code, "agreement undecided" in ended.err) == (5, True)


def test_front_matter_of_an_item_is_text(memconform: Call, one_sdk: str, workspace: Path) -> None:
    items = [
        {"id": "a", "content": "---\ntitle: ibis\n---\nbody heron"},
        {"id": "b", "content": "a stork"},
        {"id": "c", "content": ""},
    ]
    questions = [{"query": "Where is the ibis?", "gold": ["a"]}]
    data = workspace / "birds.json"
    data.write_text(json.dumps({"items": items, "questions": questions}))
    ended, report = _bench(memconform, data, "--sdk", one_sdk)
    assert ended.code == 0, ended.err
    assert _value(_row(report, one_sdk, "bm25"), "recall_any@5") == 100
    assert "1 item without text, which no system can retrieve" in ended.err


def test_names_from_a_file_do_not_control_the_terminal(memconform: Call, workspace: Path) -> None:
    asked = {"query": "What?", "gold": ["a"], "category": "c\n\n# loud\x1b[31m|x"}
    data = workspace / "odd.json"
    data.write_text(json.dumps({"items": [{"id": "a", "content": "b c"}], "questions": [asked]}))
    flags = ("--system", "oracle", "--verbose", "--markdown", workspace / "report.md")
    ended, _ = _bench(memconform, data, *flags)
    assert (ended.code, "\x1b" in ended.err) == (0, False)
    shown = (workspace / "report.md").read_text()
    assert "\x1b" not in shown
    assert "\n# loud" not in shown


def test_the_command_of_a_long_query_reads_a_file_of_the_bench(
    memconform: Call, scripted: Scripted, boxes: Path
) -> None:
    """It named FILE-OF-10000-BYTES, which nobody wrote."""
    question = f"What is in box{STRUCK}?"
    long = f"{question} {'please ' * 1_500}"
    boxes.write_text(boxes.read_text().replace(question, long))
    ended, _ = _bench(memconform, boxes, "--sdk", scripted("http_500"))
    [path] = ended.folder.glob("results/runs/*/result.json")
    [query] = [q for q in json.loads(path.read_text())["questions"] if q["error"]]
    body = shlex.split(query["error"]["curl"])[-1]
    assert json.loads((ended.folder / body.removeprefix("@")).read_bytes())["query"] == long


@pytest.mark.parametrize(
    ("fault", "code"),
    [
        ("foreign_chunk", "foreign_chunk"),
        ("other_text", "foreign_text"),
        ("other_item", "other_item"),
        ("http_500", "http_500"),
        ("mode_not_served", "mode_not_served"),
        ("rising_scores", "bad_ranking"),
        ("dies", "daemon_died"),
        ("dies_when_counted", "daemon_died"),
    ],
)
def test_a_row_with_a_failed_query_has_no_numbers(
    memconform: Call, scripted: Scripted, boxes: Path, fault: str, code: str
) -> None:
    ended, report = _bench(memconform, boxes, "--sdk", scripted(fault))
    row = _row(report, "scripted", "bm25")
    assert (ended.code, row["measured"], row["views"], row["latency"]) == (3, False, {}, None)
    assert any(code in why for why in row["why"])
    assert "of 12 queries missing" in ended.err
    if not fault.startswith("dies"):
        assert row["not_measured"] == 1
        [path] = ended.folder.glob("results/runs/*/result.json")
        [query] = [q for q in json.loads(path.read_text())["questions"] if q["error"]]
        assert (query["query"], query["error"]["code"]) == (f"#{STRUCK}", code)
        assert query["error"]["curl"].startswith("curl ")


@pytest.mark.parametrize(
    ("fault", "code"),
    [
        ("miscounts", "index_incomplete"),
        ("no_chunks", "index_incomplete"),
        ("truncates", "index_incomplete"),
        ("not_searchable", "not_searchable"),
    ],
)
def test_an_incomplete_index_is_not_searched(
    memconform: Call, scripted: Scripted, boxes: Path, fault: str, code: str
) -> None:
    ended, report = _bench(memconform, boxes, "--sdk", scripted(fault), "--system", "flat-bm25")
    row = _row(report, "scripted", "bm25")
    assert (ended.code, row["measured"], row["not_measured"]) == (3, False, 12)
    assert row["why"][0].startswith(code)
    assert report["systems"][0]["incident"]["code"] == code
    # Who can be measured is.
    assert _row(report, "flat-bm25")["measured"]


def test_reports_a_filter_that_is_ignored(
    memconform: Call, scripted: Scripted, boxes: Path
) -> None:
    sdk = scripted("ignores_prefix")
    ended, report = _bench(memconform, boxes, "--sdk", sdk, "--index", "shared")
    row = _row(report, "scripted", "bm25")
    assert (ended.code, row["measured"], row["not_measured"]) == (3, False, 12)
    assert "12 of filter_ignored" in row["why"][0]
    ended, report = _bench(memconform, boxes, "--sdk", scripted(), "--index", "shared")
    assert (ended.code, _row(report, "scripted", "bm25")["measured"]) == (0, True)


def _diary(workspace: Path, date: str, newest: str = "2023/05/29 (Mon) 10:00") -> Path:
    """LongMemEval's form: two sessions of one text, two weeks apart, of which the older is gold."""
    turns = [{"role": "user", "content": "The heron stood by the lake.", "has_answer": True}]
    row = {
        "question_id": "q1",
        "question_type": "knowledge-update",
        "question": "Where was the heron two weeks ago?",
        "answer": "by the lake",
        "question_date": date,
        "haystack_dates": ["2023/05/15 (Mon) 10:00", newest],
        "haystack_session_ids": ["old", "new"],
        "haystack_sessions": [turns, turns],
        "answer_session_ids": ["old"],
    }
    path = workspace / "diary.json"
    path.write_text(json.dumps([row]))
    return path


_DATES = (
    *("--suite", "longmemeval", "--modes", "hybrid"),
    *("--recency", "none,0.85", "--temporal", "none,1", "-k", "1"),
)


def test_recency_and_temporal_rank_by_the_dates_of_sessions_and_questions(
    memconform: Call, one_sdk: str, workspace: Path
) -> None:
    report = workspace / "dates.json"
    data = _diary(workspace, "2023/05/29 (Mon) 10:00")
    ended = memconform(
        *("bench", "--data", data, "--sdk", one_sdk, *_DATES, "--json", report),
    )
    assert ended.code == 0, ended.err
    rows = json.loads(report.read_text())["rows"]
    # Equal texts are ranked by path; then by age alone; then towards the target.
    assert {row["strategy"]: row["views"]["all"]["metrics"]["mrr@1"]["value"] for row in rows} == {
        "hybrid": 100.0,
        "hybrid temporal=1.0": 100.0,
        "hybrid recency=0.85": 0.0,
        "hybrid recency=0.85 temporal=1.0": 0.0,
    }


def test_a_benchmark_without_sessions_has_no_conversations(
    memconform: Call, one_sdk: str, workspace: Path
) -> None:
    """It would be a row of hybrid or of bm25 under another name."""
    items = [{"id": "a", "content": "The heron waits."}]
    asked = [{"query": "heron", "gold": ["a"]}]
    data = workspace / "plain.json"
    data.write_text(json.dumps({"name": "plain", "items": items, "questions": asked}))
    modes = ("--mode", "bm25,conversation")
    ended = memconform("bench", "--suite", "file", "--data", data, "--sdk", one_sdk, *modes)
    assert (ended.code, "no_sessions" in ended.err) == (2, True), ended.err
    assert "building" not in ended.err


def test_a_question_without_a_date_is_refused_before_a_daemon_starts(
    memconform: Call, one_sdk: str, workspace: Path
) -> None:
    report = workspace / "dates.json"
    data = _diary(workspace, "some day")
    ended = memconform(
        *("bench", "--data", data, "--sdk", one_sdk, *_DATES, "--json", report),
    )
    assert (ended.code, report.exists()) == (2, False)
    assert "1 question without a valid date" in ended.err
    assert "q1: 'some day'" in ended.err
    assert "no_question_date" in ended.err
    # Neither a build, nor a daemon, nor a run's folder.
    assert "building" not in ended.err
    assert not list(workspace.glob("**/daemon.log"))
    plain = ("--suite", "longmemeval", "--modes", "hybrid", "-k", "1")
    assert memconform("bench", "--data", data, "--sdk", one_sdk, *plain).code == 0


def test_items_without_dates_cannot_be_ranked_by_dates(
    memconform: Call, one_sdk: str, workspace: Path
) -> None:
    data = _diary(workspace, "2023/05/29 (Mon) 10:00", newest="some day")
    ended = memconform("bench", "--data", data, "--sdk", one_sdk, *_DATES)
    assert ended.code == 2
    assert "item new has no date that can be read: 'some day'" in ended.err


def test_tuning_that_a_trace_does_not_echo_is_not_measured(
    memconform: Call, one_sdk: str, boxes: Path
) -> None:
    sweep = ("--modes", "bm25,hybrid", "--fusion", "minmax,rrf", "--rrf-k", "5,60")
    ended, report = _bench(memconform, boxes, "--sdk", one_sdk, *sweep)
    assert ended.code == 0, ended.err
    assert [row["strategy"] for row in report["rows"]] == [
        "bm25",
        "hybrid fusion=minmax",
        "hybrid fusion=rrf rrfK=5",
        "hybrid fusion=rrf rrfK=60",
    ]


def test_rows_name_their_kernel_and_how_ties_are_broken(
    memconform: Call, sdk: str, boxes: Path
) -> None:
    modes = ("--modes", "bm25,semantic,hybrid", "--kernel", "cosine,inverse-l2")
    ended, report = _bench(memconform, boxes, "--sdk", sdk, *modes, "--system", "flat-bm25")
    assert ended.code == 0, ended.err
    BenchReport.model_validate(report)
    tuned = [f"{mode} kernel={name}" for mode in _VECTOR_MODES for name in _KERNELS]
    assert [(row["strategy"], row["kernel"]) for row in report["rows"]] == [
        ("bm25", None),
        *zip(tuned, _KERNELS * 2, strict=True),
        ("", None),
    ]
    assert [row["ties"] for row in report["rows"]] == [
        *["by the order of the items"] * 5,
        "by the reversed argsort",
    ]
    # A kernel that rises with the cosine changes no ranking by vectors alone.
    semantic = [row["views"] for row in report["rows"] if row["strategy"].startswith("semantic")]
    assert semantic[0] == semantic[1]
    shown = " ".join(ended.err.split())
    assert f"equal scores by the order of the items: {sdk}" in shown
    assert "equal scores by the reversed argsort: flat-bm25" in shown
    names = ", ".join(f"{sdk} {label}" for label in tuned if label.endswith("inverse-l2"))
    assert f"similarity inverse-l2: {names}" in shown


_VECTOR_MODES = ("semantic", "hybrid")
_KERNELS = ("cosine", "inverse-l2")


def test_reports_the_latency_that_a_reranker_adds(
    memconform: Call, one_sdk: str, boxes: Path
) -> None:
    modes = ("--modes", "hybrid,hybrid-rerank", "--upstream", "scripted")
    ended, report = _bench(memconform, boxes, "--sdk", one_sdk, *modes)
    assert ended.code == 0, ended.err
    assert _row(report, one_sdk, "hybrid")["rerank_adds_ms"] is None
    assert _row(report, one_sdk, "hybrid-rerank")["rerank_adds_ms"]


def test_calls_a_reranker_given_by_url_and_not_with_none(
    memconform: Call, one_sdk: str, boxes: Path, environment: dict[str, str]
) -> None:
    with upstream_by_hand(environment) as url:
        flags = ("--sdk", one_sdk, "--modes", "hybrid", "--rerank", f"{url}/rerank")
        ended, report = _bench(memconform, boxes, *flags)
        assert ended.code == 0, ended.err
        assert [row["strategy"] for row in report["rows"]] == ["hybrid", "hybrid-rerank"]
        assert httpx.get(f"{url}/_control/requests", trust_env=False).json()["requests"]
    modes = ("--modes", "hybrid-rerank", "--upstream", "scripted", "--rerank", "none")
    ended, report = _bench(memconform, boxes, "--sdk", one_sdk, *modes)
    assert (ended.code, "mode_not_served" in report["rows"][0]["why"][0]) == (3, True)


def test_order_concurrency_and_resume_change_no_score(
    memconform: Call, one_sdk: str, workspace: Path
) -> None:
    def scores(*more: str) -> Any:
        ended = memconform(
            *("bench", "--sdk", one_sdk, "--modes", "bm25,hybrid", "--json", "r.json", *more)
        )
        assert ended.code == 0, ended.err
        return [row["views"] for row in json.loads((workspace / "r.json").read_text())["rows"]]

    plain = scores()
    assert scores("--shuffle", "7") == plain
    assert scores("--concurrency", "4") == plain
    run = max((workspace / "results" / "runs").iterdir())
    journal = run / "journal.jsonl"
    lines = journal.read_bytes().splitlines(keepends=True)
    # As it is left by a harness that was killed over a line.
    journal.write_bytes(b"".join(lines[: len(lines) // 2]) + lines[-2][:30])
    assert scores("--resume", run.name) == plain
    again = json.loads((workspace / "r.json").read_text())
    assert again["resumed_from"] == run.name
    other = memconform(
        "bench", "--sdk", one_sdk, "--modes", "bm25", "-k", "3", "--resume", run.name
    )
    assert other.code == 2
    assert "was made with other settings: ks" in other.err


def test_an_interrupted_bench_keeps_its_measurements(
    scripted: Scripted, boxes: Path, environment: dict[str, str]
) -> None:
    sdk = scripted("hangs")
    argv = ("bench", "--suite", "file", "--data", boxes, "--sdk", sdk, "--json", "report.json")
    with subprocess.Popen(
        [PROGRAM, *argv], cwd=boxes.parent, env=environment, stderr=subprocess.PIPE, text=True
    ) as bench:
        journals = boxes.parent.glob
        wait_until(
            lambda: any(
                b'"#5"' in path.read_bytes() for path in journals("results/runs/*/journal.jsonl")
            )
        )
        os.kill(bench.pid, signal.SIGINT)
        bench.communicate(timeout=WAIT_SECONDS)
    assert bench.returncode == 130
    report = json.loads((boxes.parent / "report.json").read_text())
    row = _row(report, "scripted", "bm25")
    # The even ones are a haystack of their own, and were asked before the one that hangs; of the
    # others' index nobody knows any more whether it was whole.
    assert (row["measured"], row["not_measured"]) == (False, 6)
    assert any("3 of index_not_proven" in why for why in row["why"])
    assert "interrupted" in row["why"][0]


def test_rejects_a_dataset_of_another_benchmark(memconform: Call, boxes: Path) -> None:
    ended = memconform("bench", "--suite", "locomo", "--data", boxes, "--system", "null")
    assert ended.code == 2
    assert "looks like memini, not locomo" in ended.err


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        ((), "no system to measure"),
        (("--system", "null", "--index", "category"), "memini has no categories"),
        (("--system", "null", "-k", "0"), "a cutoff must be 1 to 1000"),
        (("--system", "null", "-k", "five"), "not a list of numbers"),
        (("--system", "null", "--kernel", "inverse-l2"), "no strategy uses kernel"),
        (("--system", "null", "--modes", "semantic", "--kernel", "dot"), "tuning: kernel"),
        (("--system", "null", "--modes", "bm52"), "did you mean 'bm25'"),
        (("--system", "null", "--modes", ""), "--mode is empty"),
        (("--system", "null", "--suite", "locomo"), "needs --data"),
        (("--system", "null", "--data", "x.json"), "takes no --data"),
        (("--system", "null", "--modes", "hybrid", "--alpha", "2"), "alpha: "),
        (("--system", "null", "--modes", "hybrid", "--rrf-k", "x"), "not a list of numbers"),
        (("--system", "null", "--modes", "hybrid", "--rrf-k", "5"), "no strategy uses rrfK 5"),
        (("--system", "null", "--recency", "{"), "--recency { is not none or a number"),
        (("--system", "null", "--recency", "0.9"), "a number from 0 to 0.85"),
        (("--system", "null", "--temporal", "0.4"), "no strategy uses temporal 0.4"),
        (("--sdk", "py", "--embed-model", "all-MiniLM-L6-v2"), "needs a server for that model"),
        (
            ("--sdk", "py", "--upstream", "scripted", "--embed-model", "nomic"),
            "unknown embedding model",
        ),
        (("--sdk", "py", "--embed-base-url", "http://127.0.0.1:1/v1"), "needs --embed-model"),
        (("--sdk", "py", "--rerank", "sometimes"), "is not none, llm or a URL"),
        (("--sdk", "py", "--modes", "hybrid-rerank"), "does not claim mode hybrid-rerank"),
        (("--system", "null", "--events", "e.json"), "requires --"),
        (("--system", "flat-dense", "--embed-model", "nomic"), "unknown embedding model"),
        (
            ("--system", "null", "--embed-model", "fh256-1", "--embed-dims", "384"),
            "has 256 dimensions, not 384",
        ),
        (("--system", "null", "--embed-dims", "384"), "--embed-dims needs --embed-model"),
        (("--system", "null", "--join", "merge"), "--join needs --keys"),
        (("--system", "null", "--alpha", "0.5"), "no strategy uses alpha 0.5"),
        (("--system", "null", "--category", "singlehop"), "did you mean 'single-hop'"),
        (("--system", "null", "--resume", "nowhere"), "no run 'nowhere'"),
        (("--system", "null", "--ids", ""), "--ids names no question"),
        (("--system", "null", "--ids", ","), "--ids names no question"),
    ],
)
def test_invalid_options_are_reported_before_anything_runs(
    memconform: Call, workspace: Path, cache: Path, flags: tuple[str, ...], message: str
) -> None:
    del cache
    ended = memconform("bench", *flags)
    assert (ended.code, message in ended.err) == (2, True), ended.err
    assert not list(workspace.glob("results/runs/*"))


def test_a_fetched_source_is_given_by_name(
    memconform: Call, workspace: Path, environment: dict[str, str]
) -> None:
    data = workspace / "data"
    environment["MEMCONFORM_DATA"] = str(data)
    flags = ("bench", "--suite", "locomo", "--data", "locomo", "--system", "null")
    ended = memconform(*flags)
    assert (ended.code, "memconform datasets fetch locomo" in ended.err) == (2, True)
    (data / "locomo").mkdir(parents=True)
    turns = [{"dia_id": "D1:1", "speaker": "Ada", "text": "The kiln is hot."}]
    asked = {"question": "Is it hot?", "answer": "yes", "evidence": ["D1:1"], "category": 4}
    talk = {"session_1": turns, "session_1_date_time": "1:56 pm on 8 May, 2023"}
    conversation = {"sample_id": "c", "conversation": talk, "qa": [asked]}
    (data / "locomo" / "locomo10.json").write_text(json.dumps([conversation]))
    ended = memconform(*flags, "--level", "turn")
    assert ended.code == 0, ended.err
    # It is not the public file.
    assert "not one of the pinned versions" in ended.err


def test_an_empty_selection_exits_4(memconform: Call) -> None:
    ended = memconform("bench", "--system", "null", "--ids", "#1", "--holdout", "held")
    assert ended.code == 4


def test_scores_are_reported_with_and_without_disputed_gold(
    memconform: Call, workspace: Path, boxes: Path
) -> None:
    (workspace / "errata.json").write_text('{"#3": "its gold says another box"}')
    flags = ("--system", "oracle", "--errata", workspace / "errata.json")
    ended, report = _bench(memconform, boxes, *flags)
    assert ended.code == 0, ended.err
    views = _row(report, "oracle")["views"]
    assert (views["all"]["queries"], views["undisputed"]["queries"]) == (12, 11)
    (workspace / "errata.json").write_text('{"#99": "nobody asks this"}')
    ended, _ = _bench(memconform, boxes, *flags)
    assert (ended.code, "#99" in ended.err) == (2, True)


def test_keys_of_an_item_count_as_the_item(memconform: Call, one_sdk: str, boxes: Path) -> None:
    keys = boxes.with_name("keys.json")
    keys.write_text(json.dumps({f"i{n}": [f"zyx{n}", "about crates"] for n in range(12)}))
    for join, recall in (("separate", 100), ("merge", 100), ("replace", 0)):
        ended, report = _bench(memconform, boxes, "--sdk", one_sdk, "--keys", keys, "--join", join)
        assert ended.code == 0, ended.err
        assert _value(_row(report, one_sdk, "bm25"), "recall_any@5") == recall
        [path] = [max(ended.folder.glob("results/runs/*/result.json"))]
        ranked = {item for q in json.loads(path.read_text())["questions"] for item in q["ranking"]}
        assert ranked <= {f"i{n}" for n in range(12)}


def test_a_query_with_a_time_range_searches_only_its_items(
    memconform: Call, one_sdk: str, boxes: Path
) -> None:
    events, ranges = boxes.with_name("events.json"), boxes.with_name("ranges.json")
    dated = {
        f"g{n % 2}/i{n}": [{"date": f"2023/05/{2 * n + 1:02}", "event": "packed"}]
        for n in range(12)
    }
    events.write_text(json.dumps(dated))
    ranges.write_text(json.dumps({"#4": {"start": "2023/05/05", "end": "2023/05/09"}}))
    ended, _ = _bench(memconform, boxes, "--sdk", one_sdk, "--events", events, "--ranges", ranges)
    assert ended.code == 0, ended.err
    [path] = ended.folder.glob("results/runs/*/result.json")
    rankings = {q["query"]: q["ranking"] for q in json.loads(path.read_text())["questions"]}
    # Two days more at both ends: from the third to the eleventh.
    assert set(rankings["#4"]) == {"i2", "i4"}
    assert len(rankings["#6"]) == 6
    # A failed call says nothing of an item.
    events.write_text(json.dumps(dated | {"g0/i10": None}))
    flags = ("--events", events, "--ranges", ranges)
    ended, report = _bench(memconform, boxes, "--system", "flat-bm25", *flags)
    assert (ended.code, report["source"]["dropped"]) == (0, 1), ended.err
    assert "1 dropped or unresolved" in ended.err


def test_reports_the_death_of_a_daemon_during_ingest(
    memconform: Call, scripted: Scripted, boxes: Path
) -> None:
    ended, report = _bench(memconform, boxes, "--sdk", scripted("dies_on_ingest"))
    assert ended.code == 3
    assert report["systems"][0]["incident"]["code"] == "daemon_died"
    assert "the daemon died" in _row(report, "scripted", "bm25")["why"][0]


def test_a_benchmark_of_evidence_alone_says_that_any_ranking_is_perfect(
    memconform: Call, workspace: Path
) -> None:
    items = [{"id": f"i{n}", "content": f"note {n}", "group": f"g{n // 2}"} for n in range(4)]
    questions = [{"query": "What?", "group": f"g{n}", "gold": [f"i{2 * n}"]} for n in range(2)]
    data = workspace / "notes.json"

    def run() -> tuple[Ended, dict[str, Any]]:
        data.write_text(json.dumps({"name": "notes", "items": items, "questions": questions}))
        flags = ("-k", "1,2", "--system", "random", "--json", workspace / "report.json")
        ended = memconform("bench", "--suite", "file", "--data", data, *flags)
        assert ended.code == 0, ended.err
        return ended, json.loads((workspace / "report.json").read_text())

    ended, report = run()
    assert "all: a random ranking scores recall_any@1 50.0, recall_any@2 100.0" in ended.err
    assert report["chance"]["all"]["metrics"]["recall_all@1"] == 50
    for number, question in enumerate(questions):
        question["gold"] = [f"i{2 * number}", f"i{2 * number + 1}"]
    ended, report = run()
    assert "all: every item is relevant; any ranking of them scores 100" in ended.err
    assert report["chance"]["all"]["every_item_relevant"]
    items += [{"id": f"x{n}", "content": f"other {n}", "group": f"g{n % 2}"} for n in range(40)]
    ended, _ = run()
    assert "random ranking" not in ended.err
    assert "any ranking" not in ended.err
