"""Exports of stored rows, and retrieval logs that come back as systems."""

import csv
import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
import pytest

from memconform.bench.export import exported_queries
from memconform.bench.records import BenchReport, QueryRecord
from memconform.bench.retrieval_log import log_entry, read_log
from memconform.bench.stored_rows import StoredRow, load_rows
from memconform.cli.main import cli
from memconform.cli.options import split_export
from memconform.datasets.longmemeval import official_items
from memconform.errors import ExitCode, MemconformError, UsageError
from memconform.printing.output import echo
from tests.unit.bench_results import Rankings, gold_of, write_bench


def _turn(role: str, content: str, **more: bool) -> dict[str, Any]:
    return {"role": role, "content": content, **more}


def _question(name: str, *, listed_twice: bool = False) -> dict[str, Any]:
    """A question with three sessions: evidence of a user turn, of no user turn, and none."""
    sessions = {
        f"answer_{name}_1": [
            _turn("user", f"my {name} kettle is copper", has_answer=True),
            _turn("assistant", "noted", has_answer=False),
            _turn("user", "weather today", has_answer=False),
        ],
        f"answer_{name}_2": [
            _turn("user", "a list please", has_answer=False),
            _turn("assistant", f"copper is {name}", has_answer=True),
        ],
        f"filler_{name}": [_turn("user", "which bread rises"), _turn("assistant", "rye")],
    }
    ids = [*sessions, *([f"filler_{name}"] if listed_twice else [])]
    return {
        "question_id": name,
        "question_type": "single-session-user",
        "question": f"Which kettle of {name} is copper?",
        "answer": 7,
        "question_date": "2023/05/30 (Tue) 23:40",
        "haystack_dates": [f"2023/05/2{n} (Sat) 02:21" for n in range(len(ids))],
        "haystack_session_ids": ids,
        "haystack_sessions": [sessions[each] for each in ids],
        "answer_session_ids": [f"answer_{name}_1", f"answer_{name}_2"],
    }


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """Four questions: one to abstain from, one with a session that is listed twice."""
    names = ("qa", "qb", "qc_abs", "qd")
    path = tmp_path / "lme.json"
    path.write_text(json.dumps([_question(n, listed_twice=n == "qd") for n in names]))
    return path


Bench = Callable[..., tuple[int, BenchReport, list[StoredRow]]]


def _call(*args: str | Path) -> int:
    try:
        return int(cli([str(argument) for argument in args], standalone_mode=False))
    except MemconformError as error:
        echo(error.message, err=True)
        return int(error.exit_code)
    except click.ClickException as error:
        echo(error.format_message(), err=True)
        return int(ExitCode.USAGE)


@pytest.fixture
def bench(tmp_path: Path, data: Path, monkeypatch: pytest.MonkeyPatch) -> Bench:
    monkeypatch.chdir(tmp_path)

    def call(*flags: str | Path) -> tuple[int, BenchReport, list[StoredRow]]:
        known = set(tmp_path.glob("results/runs/*/result.json"))
        suite = ("bench", "--suite", "longmemeval", "--data", data, "-k", "1,3,5", "--quiet")
        code = _call(*suite, *flags)
        [path] = set(tmp_path.glob("results/runs/*/result.json")) - known
        rows = load_rows([str(path)], tmp_path)
        return code, rows[0].report, rows

    return call


def _entries(path: Path) -> dict[str, dict[str, Any]]:
    entries = [json.loads(line) for line in path.read_text().splitlines()]
    return {entry["question_id"]: entry for entry in entries}


def _without_origin(record: QueryRecord) -> dict[str, object]:
    return record.model_dump(exclude={"system", "latency_ms"})


@pytest.mark.parametrize("level", ["session", "turn"])
@pytest.mark.parametrize("system", ["flat-bm25", "oracle", "random"])
def test_a_log_comes_back_as_the_same_row(
    bench: Bench, tmp_path: Path, level: str, system: str
) -> None:
    log = tmp_path / "log.jsonl"
    flags = ("--level", level)
    code, _, [made] = bench("--system", system, *flags, "--export", f"longmemeval={log}")
    assert code == 0
    code, _, [read] = bench("--log", f"theirs={log}", *flags)
    assert (code, read.row.system, read.row.measured) == (0, "theirs", True)
    assert read.row.views == made.row.views
    assert [*map(_without_origin, read.records.values())] == [
        *map(_without_origin, made.records.values())
    ]
    # Nobody measured how long it took.
    assert read.row.latency is None


def test_ids_are_renamed_as_in_the_released_code(bench: Bench, tmp_path: Path) -> None:
    for level, ids in (
        ("session", {"answer_qa_1", "noans_qa_2", "filler_qa"}),
        ("turn", {"answer_qa_1_1", "noans_qa_1_3", "noans_qa_2_1", "filler_qa_1"}),
    ):
        log = tmp_path / f"{level}.jsonl"
        bench("--system", "flat-bm25", "--level", level, "--export", f"longmemeval={log}")
        results = _entries(log)["qa"]["retrieval_results"]
        ranked = {each["corpus_id"]: each for each in results["ranked_items"]}
        assert ranked.keys() == ids
        first = ranked[min(ids)]
        assert first["timestamp"] == "2023/05/20 (Sat) 02:21"
        assert first["text"].startswith("my qa kettle is copper")
        assert first["text"].endswith("weather today") == (level == "session")


def test_a_session_that_is_listed_twice_is_ranked_twice(bench: Bench, tmp_path: Path) -> None:
    log = tmp_path / "log.jsonl"
    bench("--system", "flat-bm25", "--export", f"longmemeval={log}")
    ranked = _entries(log)["qd"]["retrieval_results"]["ranked_items"]
    assert [each["corpus_id"] for each in ranked].count("filler_qd") == 2


def test_a_log_has_the_fields_that_the_released_code_reads(bench: Bench, tmp_path: Path) -> None:
    """What its generation step, and the one that prints metrics, look up."""
    for level in ("session", "turn"):
        log = tmp_path / f"{level}.jsonl"
        bench("--system", "flat-bm25", "--level", level, "--export", f"longmemeval={log}")
        for name, entry in _entries(log).items():
            sessions = dict(
                zip(entry["haystack_session_ids"], entry["haystack_sessions"], strict=True)
            )
            assert len(entry["haystack_dates"]) == len(entry["haystack_session_ids"])
            assert {"question", "answer", "question_date", "question_type"} <= entry.keys()
            for ranked in entry["retrieval_results"]["ranked_items"]:
                session = ranked["corpus_id"].replace("noans_", "answer_")
                if level == "turn":
                    session, _, number = session.rpartition("_")
                    assert sessions[session][int(number) - 1]["content"] == ranked["text"]
                assert session in sessions
            metrics = entry["retrieval_results"]["metrics"]
            wanted = {f"{m}@{k}" for m in ("recall_all", "ndcg_any") for k in (5, 10)}
            assert wanted <= metrics["session"].keys(), name
            if level == "turn":
                assert wanted | {"recall_all@50", "ndcg_any@50"} <= metrics["turn"].keys()


def test_metrics_of_a_log_are_those_of_the_row(bench: Bench, tmp_path: Path) -> None:
    log = tmp_path / "log.jsonl"
    _, report, _ = bench("--system", "random", "--level", "turn", "--export", f"longmemeval={log}")
    entries = [entry for name, entry in _entries(log).items() if not name.endswith("_abs")]
    for view, kind in (("official", "turn"), ("official, by session", "session")):
        for name in ("recall_any@1", "recall_all@3", "ndcg_any@5"):
            values = [e["retrieval_results"]["metrics"][kind][name] for e in entries]
            mean = 100 * sum(values) / len(values)
            assert report.rows[0].views[view].metrics[name].value == pytest.approx(mean)


def test_a_question_without_gold_has_the_released_values() -> None:
    question = _question("q")
    for session in question["haystack_sessions"]:
        for turn in session:
            turn["has_answer"] = False
    entry = log_entry(question, ["filler_q"], "session", 1)
    assert entry["retrieval_results"]["metrics"]["session"] == {
        "recall_any@1": 0.0,
        "recall_all@1": 1.0,
        "ndcg_any@1": 0.0,
    }


def test_metrics_stop_where_a_ranking_was_cut() -> None:
    question = _question("q")
    names = log_entry(question, ["filler_q"], "session", 1)["retrieval_results"]["metrics"]
    assert {name.partition("@")[2] for name in names["session"]} == {"1"}
    everything = [item.id for item in official_items(question, "session")]
    names = log_entry(question, everything, "session", 1)["retrieval_results"]["metrics"]
    assert {name.partition("@")[2] for name in names["session"]} == {
        "1",
        "3",
        "5",
        "10",
        "30",
        "50",
    }


def _changed(log: Path, change: Callable[[list[dict[str, Any]]], object]) -> Path:
    entries = [json.loads(line) for line in log.read_text().splitlines()]
    change(entries)
    changed = log.with_name("changed.jsonl")
    changed.write_text("".join(f"{json.dumps(entry)}\n" for entry in entries))
    return changed


def _items(entries: list[dict[str, Any]]) -> list[dict[str, Any]]:
    items: list[dict[str, Any]] = entries[0]["retrieval_results"]["ranked_items"]
    return items


def _ids_sha256(items: list[dict[str, Any]]) -> str:
    return hashlib.sha256("\n".join(item["corpus_id"] for item in items).encode()).hexdigest()


def _rename_first(entry: dict[str, Any]) -> None:
    items = _items([entry])
    items[0]["corpus_id"] = "answer_qa_9"
    entry["retrieval_results"]["ids_sha256"] = _ids_sha256(items)


@pytest.mark.parametrize(
    ("change", "code"),
    [
        (lambda entries: entries.pop(0), "not_in_log"),
        (lambda entries: _rename_first(entries[0]), "unknown_item"),
        (
            lambda entries: (
                _items(entries).pop(),
                entries[0]["retrieval_results"].update(
                    requested=2, ids_sha256=_ids_sha256(_items(entries))
                ),
            ),
            "ranking_cut",
        ),
        (
            lambda entries: (
                _items(entries).pop(),
                entries[0]["retrieval_results"].pop("requested"),
            ),
            "ranking_cut",
        ),
        (
            lambda entries: entries[0]["retrieval_results"].update(query="Another one?"),
            "other_question",
        ),
    ],
)
def test_an_incomplete_log_is_not_measured(
    bench: Bench, tmp_path: Path, change: Callable[[list[dict[str, Any]]], object], code: str
) -> None:
    log = tmp_path / "log.jsonl"
    bench("--system", "oracle", "--export", f"longmemeval={log}")
    exit_code, _, [read] = bench("--log", f"theirs={_changed(log, change)}")
    assert (exit_code, read.row.measured, read.row.not_measured) == (ExitCode.DAEMON, False, 1)
    assert read.row.why[0].startswith(f"1 of {code}, the first qa")
    assert read.row.views == {}


@pytest.mark.parametrize(
    "change", [list.pop, list.clear, list.reverse, lambda items: items.append(items[0])]
)
def test_a_ranking_that_was_changed_after_its_export_is_refused(
    bench: Bench, tmp_path: Path, change: Callable[[list[Any]], object]
) -> None:
    """A log that was cut to three items a question was measured, and scored lower."""
    log = tmp_path / "log.jsonl"
    bench("--system", "random", "--export", f"longmemeval={log}")
    changed = _changed(log, lambda entries: change(_items(entries)))
    with pytest.raises(UsageError, match="its ranking has changed since it was exported") as caught:
        read_log(changed)
    assert caught.value.code == "dataset_invalid"


def test_another_programs_log_may_say_that_nothing_more_was_found(
    bench: Bench, tmp_path: Path
) -> None:
    """It was refused without the digest that only our own export writes."""
    log = tmp_path / "log.jsonl"
    bench("--system", "oracle", "--export", f"longmemeval={log}")

    def foreign(entries: list[dict[str, Any]]) -> None:
        for entry in entries:
            entry["retrieval_results"] = {"requested": 10, "ranked_items": []}

    code, _, [read] = bench("--log", f"theirs={_changed(log, foreign)}")
    assert (code, read.row.measured, read.row.empty_rankings) == (0, True, read.row.queries)


def test_the_log_of_a_retriever_that_finds_less_is_complete(bench: Bench, tmp_path: Path) -> None:
    log = tmp_path / "log.jsonl"
    bench("--system", "null", "--export", f"longmemeval={log}")
    code, _, [read] = bench("--log", f"theirs={log}")
    assert (code, read.row.measured) == (0, True)
    assert read.row.views["all"].metrics["recall_any@5"].value == 0


def test_a_log_of_the_other_level_is_not_measured(bench: Bench, tmp_path: Path) -> None:
    log = tmp_path / "log.jsonl"
    bench("--system", "oracle", "--level", "turn", "--export", f"longmemeval={log}")
    code, _, [read] = bench("--log", f"theirs={log}")
    assert (code, read.row.not_measured) == (ExitCode.DAEMON, 4)


@pytest.mark.parametrize(
    ("lines", "why"),
    [
        ("", "contains no question"),
        ("{}\n", "line 1 is not an entry of a retrieval log: 'question_id' is missing"),
        ("[1]\n", "line 1"),
        ('{"question_id": 1, "retrieval_results": {"ranked_items": []}}', "is not a string"),
        ('{"question_id": "q", "retrieval_results": {"ranked_items": [{}]}}', "'corpus_id'"),
        (
            '{"question_id": "q", "retrieval_results": {"ranked_items": [], "requested": "x"}}',
            "'requested' is not a number",
        ),
        ('{"question_id": "q", "retrieval_results": {"ranked_items": []}}\n' * 2, "occurs twice"),
        ("\xff", "line 1"),
    ],
)
def test_an_invalid_log_is_reported(tmp_path: Path, lines: str, why: str) -> None:
    path = tmp_path / "log.jsonl"
    path.write_bytes(lines.encode("latin-1"))
    with pytest.raises(UsageError) as caught:
        read_log(path)
    assert caught.value.code == "dataset_invalid"
    assert why in caught.value.message


@pytest.mark.usefixtures("bench")
@pytest.mark.parametrize(
    ("flags", "why"),
    [
        (("--log", "theirs"), "is not NAME=FILE"),
        (("--log", "a b=f"), "is not NAME=FILE"),
        (("--log", "oracle=log.jsonl", "--system", "oracle"), "two systems are called oracle"),
        (("--log", "go=log.jsonl"), "the name is that of an SDK"),
        (("--log", "random=log.jsonl"), "the name is that of a baseline"),
        (("--log", "x=log.jsonl"), "1 of 1 questions are not in the benchmark, the first 'other'"),
        (("--system", "oracle", "--export", "queries.xls"), "the format is unknown"),
        (("--system", "oracle", "--export", "longmemval=a.jsonl"), "the format is unknown"),
        (("--system", "oracle", "--export", "longmemeval="), "cannot be written"),
        (("--system", "oracle", "--export", "a=b.csv"), "the format is unknown"),
        (
            ("--system", "oracle", "--export", "a.csv", "--export", "./a.csv"),
            "names ./a.csv twice",
        ),
        (
            ("--system", "oracle", "--export", "a.csv", "--export", "csv=a.csv"),
            "names a.csv twice",
        ),
        (("--system", "oracle", "--export", "csv=-", "--export", "jsonl=-"), "output already"),
        (
            ("--system", "oracle", "--system", "null", "--export", "longmemeval=log"),
            "there are 2 rows",
        ),
    ],
)
def test_invalid_flags_are_reported(
    tmp_path: Path,
    data: Path,
    capsys: pytest.CaptureFixture[str],
    flags: tuple[str, ...],
    why: str,
) -> None:
    (tmp_path / "log.jsonl").write_text(
        '{"question_id": "other", "retrieval_results": {"ranked_items": []}}\n'
    )
    code = _call("bench", "--suite", "longmemeval", "--data", data, *flags)
    assert (code, why in capsys.readouterr().err) == (2, True)
    assert not [*tmp_path.glob("results/runs/*/result.json")]


def test_a_bench_without_measurements_ends_as_one(
    bench: Bench, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log = tmp_path / "log.jsonl"
    bench("--system", "oracle", "--export", f"longmemeval={log}")
    cut = _changed(log, lambda entries: list(map(_rename_first, entries)))
    capsys.readouterr()
    exports = ("--export", "longmemeval=empty.jsonl", "--export", "queries.jsonl")
    code, _, _ = bench("--log", f"theirs={cut}", *exports)
    assert (code, "no retrieval log is written" in capsys.readouterr().err) == (3, True)
    assert not (tmp_path / "empty.jsonl").exists()
    lines = [json.loads(line) for line in (tmp_path / "queries.jsonl").read_text().splitlines()]
    assert [line["error"].partition(":")[0] for line in lines] == ["unknown_item"] * 4


_ROWS: dict[tuple[str, str], Rankings] = {
    ("go", "bm25"): {"q1": ["x", *gold_of("q1")], "q2": ["x"], "q3": None},
    ("null", ""): {"q1": [], "q2": [], "q3": []},
}


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("a.csv", (None, "a.csv")),
        ("csv=a", ("csv", "a")),
        ("csv=a=b", ("csv", "a=b")),
        ("./k=v/a.csv", (None, "./k=v/a.csv")),
        ("run.k=5.csv", (None, "run.k=5.csv")),
        ("csv=k=v/a", ("csv", "k=v/a")),
    ],
)
def test_an_equals_sign_of_a_path_belongs_to_the_path(
    text: str, parts: tuple[str | None, str]
) -> None:
    assert split_export(text) == parts


def test_a_path_with_an_equals_sign_is_exported_to(tmp_path: Path) -> None:
    (tmp_path / "k=v").mkdir()
    result = write_bench(tmp_path / "result.json", {("go", "bm25"): {"q1": ["q1-gold"]}})
    file = f"{tmp_path}/k=v/a=b.csv"
    export = ("report", result, "--format", "queries", "-o")
    assert _call(*export, file) == 0
    assert Path(file).read_text().startswith("run_id,")
    assert _call(*export, f"{tmp_path}/missing/k=v.csv") == 2


def test_csv_and_jsonl_have_every_query(tmp_path: Path) -> None:
    path = write_bench(tmp_path / "result.json", _ROWS)
    files = tmp_path / "q.csv", tmp_path / "q.jsonl"
    for file in files:
        assert _call("report", path, "--format", "queries", "-o", file) == 0
    lines = [json.loads(line) for line in files[1].read_text().splitlines()]
    table = list(csv.DictReader(files[0].read_text().splitlines()))
    assert len(lines) == len(table) == 6
    first, cells = lines[0], table[0]
    assert (first["system"], first["strategy"], first["view"]) == ("go", "bm25", "all")
    assert (first["first_gold_rank"], first["gold"], first["ranking"]) == (
        2,
        gold_of("q1"),
        ["x", *gold_of("q1")],
    )
    assert first["metrics"]["recall_any@1"] == 0
    assert first["metrics"]["mrr@2"] == 0.5
    assert json.loads(cells["ranking"]) == first["ranking"]
    assert (cells["first_gold_rank"], cells["recall_any@2"]) == ("2", "1.0")
    missing, missing_cells = lines[2], table[2]
    assert (missing["error"], missing["metrics"]) == ("timeout: no answer in 1 s", {})
    assert (missing_cells["recall_any@1"], missing_cells["first_gold_rank"]) == ("", "")
    assert lines[4]["first_gold_rank"] is None
    assert [q.query for q in exported_queries(load_rows([f"{path}#null"], tmp_path))] == [
        "q1",
        "q2",
        "q3",
    ]


def test_another_file_is_not_exported(
    bench: Bench, data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    _, report, _ = bench("--system", "oracle")
    result = f"results/runs/{report.run_id}"
    export = ("report", result, "--format", "retrieval-log", "-o", "log.jsonl")
    assert _call(*export) == 0
    (tmp_path / "log.jsonl").unlink()
    data.write_text(data.read_text().replace("bread", "dough"))
    assert _call(*export) == 2
    assert "is not the file that was measured" in capsys.readouterr().err
    assert not (tmp_path / "log.jsonl").exists()


def test_only_longmemeval_has_a_retrieval_log(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = write_bench(tmp_path / "result.json", _ROWS)
    log = ("--format", "retrieval-log", "-o", tmp_path / "log")
    assert _call("report", f"{path}#null", *log) == 2
    assert "needs a longmemeval file, not memini" in capsys.readouterr().err
