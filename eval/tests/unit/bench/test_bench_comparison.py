"""Stored results of benches, compared row by row."""

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from memconform.bench.comparison import (
    Measure,
    compare_rows,
    diff_rows,
    measure_of,
    paired_rows,
)
from memconform.bench.comparison_records import BenchDiffReport, BenchParityReport
from memconform.bench.records import ErrataReport
from memconform.bench.stored_rows import StoredRow, load_rows, load_sides
from memconform.cli.main import cli
from memconform.errors import MemconformError, UsageError
from memconform.printing.output import echo
from memconform.stats.paired_comparison import ParityVerdict
from tests.unit.bench_results import Rankings, gold_of, write_bench

_QUERIES = [f"q{n}" for n in range(10)] + [f"r{n}" for n in range(30)]
_BM25, _HYBRID, _FLAT = ("go", "bm25"), ("go", "hybrid alpha=0.3"), ("flat-bm25", "")


def _hits(queries: list[str] = _QUERIES) -> dict[str, list[str]]:
    return {query: [*gold_of(query), "other"] for query in queries}


def _late(queries: list[str] = _QUERIES) -> dict[str, list[str]]:
    return {query: ["other", "another", *gold_of(query)] for query in queries}


@pytest.fixture
def result(tmp_path: Path) -> Path:
    """Three rows: one finds every gold first, one at rank 3, one as the first."""
    rows: dict[tuple[str, str], Rankings] = {_BM25: _hits(), _HYBRID: _late(), _FLAT: _hits()}
    return write_bench(tmp_path / "result.json", rows)


def _measure(rows: list[StoredRow]) -> Measure:
    return measure_of(rows, None, None)


@pytest.mark.parametrize(
    ("selector", "rows"),
    [
        ("", ["go bm25", "go hybrid alpha=0.3", "flat-bm25"]),
        ("#go", ["go bm25", "go hybrid alpha=0.3"]),
        ("#go/bm25", ["go bm25"]),
        ("#*/hybrid*", ["go hybrid alpha=0.3"]),
        ("#flat-bm25", ["flat-bm25"]),
    ],
)
def test_a_reference_selects_rows(result: Path, selector: str, rows: list[str]) -> None:
    assert [stored.name for stored in load_rows([f"{result}{selector}"], result.parent)] == rows


def test_a_file_with_the_mark_in_its_name_is_a_file(result: Path) -> None:
    marked = result.rename(result.with_name("re#sult.json"))
    assert len(load_rows([str(marked)], marked.parent)) == 3
    [row] = load_rows([f"{marked}#flat-bm25"], marked.parent)
    assert row.row.system == "flat-bm25"


@pytest.mark.parametrize(
    ("references", "code"),
    [
        (["#go/bm26"], "unknown_row"),
        (["#go/bm25", "#go"], "one_run_twice"),
        (["-missing"], "unknown_run"),
    ],
)
def test_reports_a_row_that_cannot_be_compared(
    result: Path, references: list[str], code: str
) -> None:
    with pytest.raises(UsageError) as caught:
        load_rows([f"{result}{reference}" for reference in references], result.parent)
    assert caught.value.code == code


def test_rows_of_several_results_have_a_letter(result: Path, tmp_path: Path) -> None:
    other = write_bench(tmp_path / "other.json", {_BM25: _hits()}, run_id="later")
    rows = load_rows([f"{result}#go/bm25", str(other)], tmp_path)
    assert [stored.name for stored in rows] == ["A: go bm25", "B: go bm25"]
    assert [stored.address for stored in rows] == ["run#go/bm25", "later#go/bm25"]


def test_equal_and_different_strategies_of_one_result(result: Path) -> None:
    rows = load_rows([str(result)], result.parent)
    report = compare_rows(rows, _measure(rows))
    verdicts = {(pair.first, pair.second): pair.contrast.verdict for pair in report.pairs}
    assert verdicts["go bm25", "flat-bm25"] is ParityVerdict.IDENTICAL
    assert verdicts["go bm25", "go hybrid alpha=0.3"] is ParityVerdict.DRIFT
    assert (report.verdict, report.exit_code, report.metric) == (
        ParityVerdict.DRIFT,
        1,
        "recall_any@2",
    )
    [drift] = [p for p in report.pairs if p.second.startswith("go hybrid")]
    assert (drift.rankings.equal, drift.rankings.gold_later) == (0, len(_QUERIES))


def test_one_other_ranking_is_not_identical(tmp_path: Path) -> None:
    other = _hits() | {"q3": [*gold_of("q3"), "something"]}
    path = write_bench(tmp_path / "r.json", {_BM25: _hits(), _HYBRID: other})
    rows = load_rows([str(path)], tmp_path)
    [pair] = compare_rows(rows, _measure(rows)).pairs
    assert pair.contrast.verdict is not ParityVerdict.IDENTICAL
    assert (pair.contrast.compared, pair.rankings.equal) == (40, 39)


def test_a_query_that_was_not_measured_is_no_miss(tmp_path: Path) -> None:
    partly: Rankings = {**_hits(), "q0": None, "q1": None}
    path = write_bench(tmp_path / "r.json", {_BM25: _hits(), _HYBRID: partly})
    rows = load_rows([str(path)], tmp_path)
    report = compare_rows(rows, _measure(rows))
    [pair] = report.pairs
    assert (pair.contrast.compared, pair.contrast.first_only) == (38, 0)
    assert (pair.not_measured_first, pair.not_measured_second) == (0, 2)
    assert pair.contrast.verdict is not ParityVerdict.IDENTICAL
    assert report.rows[1].rate is None
    assert "2 of 40 queries not measured" in report.reasons[0]


def test_a_query_without_a_record_is_not_identical(tmp_path: Path) -> None:
    fewer = _hits(_QUERIES[1:])
    path = write_bench(tmp_path / "r.json", {_BM25: _hits(), _HYBRID: fewer, _FLAT: fewer})
    rows = load_rows([f"{path}#go/hybrid*", f"{path}#flat-bm25"], tmp_path)
    [pair] = compare_rows(rows, _measure(rows)).pairs
    assert pair.rankings.equal == pair.contrast.compared == 39
    assert pair.contrast.verdict is not ParityVerdict.IDENTICAL


@pytest.mark.parametrize(
    "other",
    [{"content_sha256": "x"}, {"chosen_sha256": "x"}, {"ks": [1, 3]}, {"contract": "2"}],
)
def test_refuses_results_that_cannot_be_compared(
    result: Path, tmp_path: Path, other: dict[str, Any]
) -> None:
    path = write_bench(tmp_path / "other.json", {_BM25: _hits()}, run_id="other", **other)
    rows = load_rows([f"{result}#go/bm25", str(path)], tmp_path)
    with pytest.raises(UsageError, match=r"run#go/bm25 and other#go/bm25") as caught:
        compare_rows(rows, _measure(rows))
    assert caught.value.code == "unlike_runs"


@pytest.mark.parametrize(
    ("settings", "data", "named"),
    [
        ({"options": {"level": "turn"}}, {}, "texts of items: level none and turn$"),
        ({"format": "locomo"}, {}, "texts of items: format memini and locomo$"),
        (
            {"options": {"level": "turn"}},
            {"made": ["keys of k.json by merge"]},
            "level none and turn, keys of k.json by merge in the second only$",
        ),
        ({}, {"sha256": "b", "path": "/other.json"}, "files /data.json and /other.json$"),
        ({}, {"sha256": "b", "pinned": "locomo"}, "files /data.json and locomo$"),
    ],
)
def test_the_setting_that_makes_results_incomparable_is_named(
    result: Path, tmp_path: Path, settings: dict[str, Any], data: dict[str, Any], named: str
) -> None:
    other = write_bench(
        tmp_path / "other.json",
        {_BM25: _hits()},
        run_id="other",
        data=data,
        content_sha256="x",
        **settings,
    )
    rows = load_rows([f"{result}#go/bm25", str(other)], tmp_path)
    with pytest.raises(UsageError, match=named):
        compare_rows(rows, _measure(rows))
    with pytest.raises(UsageError, match=named):
        diff_rows([(rows[0], rows[1])], _measure(rows))


def test_the_selection_that_makes_queries_differ_is_named(result: Path, tmp_path: Path) -> None:
    data = {"made": ["limit 40"]}
    other = write_bench(
        tmp_path / "other.json", {_BM25: _hits()}, run_id="other", data=data, chosen_sha256="x"
    )
    rows = load_rows([f"{result}#go/bm25", str(other)], tmp_path)
    with pytest.raises(UsageError, match=r"asked different queries: limit 40 in the second only$"):
        compare_rows(rows, _measure(rows))


def test_refuses_different_gold(result: Path, tmp_path: Path) -> None:
    path = write_bench(tmp_path / "other.json", {_BM25: _hits()}, run_id="o", view_gold=["x"])
    rows = load_rows([f"{result}#go/bm25", str(path)], tmp_path)
    with pytest.raises(UsageError, match=r"different gold for query 'q0' in view 'all'$"):
        compare_rows(rows, _measure(rows))
    errata = ErrataReport(
        name="mine.json", shipped=False, disputed=1, corrected=0, noted=0, ceilings=[]
    )
    path = write_bench(
        *(tmp_path / "errata.json", {_BM25: _hits()}),
        run_id="e",
        view_gold=["x"],
        errata=errata,
        disputed_sha256="e",
    )
    rows = load_rows([f"{result}#go/bm25", str(path)], tmp_path)
    with pytest.raises(UsageError, match=r"in view 'all': errata none and mine\.json"):
        compare_rows(rows, _measure(rows))


def test_an_index_may_be_what_is_compared(result: Path, tmp_path: Path) -> None:
    path = write_bench(tmp_path / "o.json", {_BM25: _hits()}, run_id="o", index="shared")
    rows = load_rows([f"{result}#go/bm25", str(path)], tmp_path)
    report = compare_rows(rows, _measure(rows))
    assert report.reasons == ["the rows differ in index: isolated, shared"]
    assert [row.index for row in report.rows] == ["isolated", "shared"]


@pytest.mark.parametrize(
    ("metric", "view"), [("recall_any@3", None), ("mrr@2", None), (None, "official")]
)
def test_reports_an_unknown_measure(result: Path, metric: str | None, view: str | None) -> None:
    rows = load_rows([str(result)], result.parent)
    with pytest.raises(UsageError) as caught:
        measure_of(rows, metric, view)
    assert caught.value.code == "bad_option"


def test_a_smaller_k_is_another_verdict(tmp_path: Path) -> None:
    second = {query: ["other", *gold_of(query)] for query in _QUERIES}
    path = write_bench(tmp_path / "r.json", {_BM25: _hits(), _HYBRID: second})
    rows = load_rows([str(path)], tmp_path)
    at_2 = compare_rows(rows, measure_of(rows, "recall_any@2", None)).pairs[0]
    at_1 = compare_rows(rows, measure_of(rows, "recall_any@1", None)).pairs[0]
    assert at_2.contrast.first_only == 0
    assert (at_1.contrast.first_only, at_1.contrast.verdict) == (40, ParityVerdict.DRIFT)


def test_a_diff_names_the_queries_that_only_one_row_finds(tmp_path: Path) -> None:
    later = _hits() | {"q3": ["a", "b", *gold_of("q3")], "q4": ["a"]}
    first = write_bench(tmp_path / "a.json", {_BM25: _hits(), _FLAT: _hits()}, run_id="a")
    second = write_bench(
        tmp_path / "b.json", {_BM25: later | {"q0": None}, _FLAT: _hits()}, run_id="b"
    )
    pairs = paired_rows(*load_sides([str(first), str(second)], tmp_path))
    report = diff_rows(pairs, Measure("recall_any@2"))
    bm25, flat = report.pairs
    assert [
        (q.query, q.category, q.gold, q.first_rank, q.second_rank) for q in bm25.regressions
    ] == [
        ("q3", "one", ["q3-gold"], 1, 3),
        ("q4", "one", ["q4-gold"], 1, None),
    ]
    assert (bm25.fixes, bm25.not_measured) == ([], ["q0"])
    assert flat.contrast.verdict is ParityVerdict.IDENTICAL
    assert flat.latency is not None
    assert flat.latency.ratio.value == pytest.approx(1)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('"resumed_from": null', '"resumed_from": "earlier"'),
        ('"concurrency": 1', '"concurrency": 2'),
    ],
)
def test_latencies_of_other_conditions_are_not_compared(tmp_path: Path, old: str, new: str) -> None:
    """Of a resumed bench, whose parts had other numbers in flight, a ratio failed a build."""
    paths = [
        write_bench(tmp_path / f"{name}.json", {_BM25: _hits()}, run_id=name) for name in ("a", "b")
    ]
    _edited(paths[1], old, new)
    pairs = paired_rows(*load_sides(list(map(str, paths)), tmp_path))
    report = diff_rows(pairs, Measure("recall_any@2"))
    assert report.pairs[0].latency is None
    assert any("no latency is compared" in reason for reason in report.reasons)


def test_rows_without_a_counterpart_are_not_paired(result: Path, tmp_path: Path) -> None:
    path = write_bench(tmp_path / "o.json", {("ts", "bm25"): _hits()}, run_id="o")
    [only] = paired_rows(*load_sides([f"{result}#go/bm25", str(path)], tmp_path))
    assert (only[0].name, only[1].name) == ("A: go bm25", "B: ts bm25")
    with pytest.raises(UsageError, match="no system and strategy in common"):
        paired_rows(*load_sides([str(result), str(path)], tmp_path))


def _edited(path: Path, old: str, new: str) -> None:
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('"not_measured": 0', '"not_measured": 1'),
        ('"ranking":["q0-gold","other"]', '"ranking":["other"]'),
        ('"query":"q1"', '"query":"q0"'),
        ('"system":"go"', '"system":"ts"'),
        ('"category":"one"', '"category":"other"'),
        # Means that decide over no verdict, but are shown.
        ('"mrr@2": {\n       "value": 100.0', '"mrr@2": {\n       "value": 99.0'),
        (
            '"recall_all@1": {\n         "value": 100.0',
            '"recall_all@1": {\n         "value": 99.0',
        ),
    ],
)
def test_an_edited_result_is_refused(result: Path, old: str, new: str) -> None:
    _edited(result, old, new)
    with pytest.raises(UsageError, match="contradicts itself") as caught:
        load_rows([str(result)], result.parent)
    assert caught.value.code == "result_unreadable"


def test_a_report_without_queries_is_refused(result: Path) -> None:
    loaded = json.loads(result.read_text())
    del loaded["questions"]
    result.write_text(json.dumps(loaded, indent=1))
    with pytest.raises(UsageError, match="not the result of a bench with its queries"):
        load_rows([str(result)], result.parent)


def test_a_truncated_result_is_refused(result: Path) -> None:
    result.write_text("".join(result.read_text().splitlines(keepends=True)[:-3]))
    with pytest.raises(UsageError) as caught:
        load_rows([str(result)], result.parent)
    assert caught.value.code == "result_unreadable"


class TestCommands:
    @pytest.fixture(autouse=True)
    def _in_folder(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.chdir(tmp_path)

    def _call(self, *args: str | Path) -> int:
        try:
            return int(cli([str(argument) for argument in args], standalone_mode=False))
        except MemconformError as error:
            echo(error.message, err=True)
            return int(error.exit_code)

    def test_parity_of_rows(self, result: Path, capsys: pytest.CaptureFixture[str]) -> None:
        files = ("--json", "report.json", "--markdown", "report.md")
        assert self._call("parity", result, *files) == 1
        loaded = json.loads(Path("report.json").read_text())
        jsonschema.validate(loaded, BenchParityReport.model_json_schema())
        assert loaded["exit_code"] == 1
        printed = capsys.readouterr()
        assert "go bm25, flat-bm25: identical" in printed.err
        assert printed.out.startswith("go bm25, go hybrid alpha=0.3, flat-bm25: drift by")
        assert "| go bm25, flat-bm25 | identical |" in Path("report.md").read_text()
        assert self._call("parity", f"{result}#go/bm25", f"{result}#flat-bm25") == 0

    def test_parity_is_strict_on_request(self, tmp_path: Path) -> None:
        partly: Rankings = {**_hits(), "q0": None}
        path = write_bench(tmp_path / "p.json", {_BM25: _hits(), _FLAT: partly})
        assert self._call("parity", path, "--quiet") == 0
        assert self._call("parity", path, "--quiet", "--strict") == 5

    def test_diff_fails_on_a_regression(
        self, result: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        rows = (f"{result}#go/bm25", f"{result}#go/hybrid*")
        assert self._call("diff", *rows, "--json", "d.json") == 0
        loaded = json.loads(Path("d.json").read_text())
        jsonschema.validate(loaded, BenchDiffReport.model_json_schema())
        assert "q0 (one): gold q0-gold, rank 1 -> 3" in capsys.readouterr().err
        assert self._call("diff", *rows, "--quiet", "--fail-on", "regression") == 1
        assert self._call("diff", *reversed(rows), "--quiet", "--fail-on", "regression") == 0

    def test_a_query_that_was_not_measured_leaves_a_limit_undecided(self, tmp_path: Path) -> None:
        partly: Rankings = {**_hits(), "q0": None}
        path = write_bench(tmp_path / "p.json", {_BM25: _hits(), _FLAT: partly})
        rows = (f"{path}#go/bm25", f"{path}#flat-bm25")
        assert self._call("diff", *rows, "--quiet", "--fail-on", "regression") == 5

    def test_a_row_that_one_result_lacks_leaves_a_limit_undecided(
        self, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        """An SDK that was skipped on one day vanished from the comparison, which exited with 0."""
        both = {_BM25: _hits(), _FLAT: _hits()}
        sides = (
            write_bench(tmp_path / "monday.json", both, run_id="monday"),
            write_bench(tmp_path / "tuesday.json", {_BM25: _hits()}, run_id="tuesday"),
        )
        for first, second in (sides, sides[::-1]):
            assert self._call("diff", first, second, "--json", "d.json") == 0
            loaded = json.loads(Path("d.json").read_text())
            assert (len(loaded["pairs"]), loaded["unpaired"]) == (1, ["monday#flat-bm25"])
            assert "monday#flat-bm25 has no counterpart" in capsys.readouterr().err
            assert self._call("diff", first, second, "--quiet", "--fail-on", "regression") == 5

    def test_rows_that_state_the_same_queries_have_them(
        self, result: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        """Edited ids dropped out of every comparison without a word."""
        _edited(
            result,
            '"system":"go","strategy":"bm25","haystack":"h-q1","query":"q1"',
            '"system":"go","strategy":"bm25","haystack":"h-q1","query":"Q1"',
        )
        assert self._call("parity", result) == 2
        assert "have different queries, such as 'Q1'" in capsys.readouterr().err

    def test_results_of_other_commands_are_not_mixed_in(
        self, result: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        other = result.with_name("run.json")
        other.write_text(json.dumps({"schema_version": "memconform/result@1"}))
        for command in ("parity", "diff"):
            assert self._call(command, result, other) == 2
            assert "is the result of a bench, and" in capsys.readouterr().err
        assert self._call("parity", f"{other}#go", other) == 2
        assert "is not the result of a run" in capsys.readouterr().err
        assert self._call("parity", other, other, "--metric", "recall_any@2") == 2
        assert "are for results of `bench`" in capsys.readouterr().err

    @pytest.mark.usefixtures("result")
    def test_a_trend_shows_rows_by_day(
        self, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        partly: Rankings = {**_hits(), "q0": None}
        later = datetime(2026, 2, 1, tzinfo=UTC)
        write_bench(tmp_path / "later.json", {_BM25: partly}, run_id="later", started=later)
        assert self._call("diff", tmp_path) == 0
        lines = [line for line in capsys.readouterr().out.splitlines() if "2026-" in line]
        flat, before, after, hybrid = (line.partition("2026-")[2].split() for line in lines)
        assert flat[1:5] == before[1:5] == ["100.0"] * 4
        assert (hybrid[1], hybrid[3]) == ("0.0", "0.0")
        assert after[:6] == ["02-01T00:00", "-", "-", "-", "-", "1"]
        assert self._call("diff", tmp_path, "--sdk", "flat-bm25") == 0
        assert "go bm25" not in capsys.readouterr().out
        assert self._call("diff", tmp_path, "--sdk", "nobody") == 4

    @pytest.mark.usefixtures("result")
    def test_a_trend_keeps_selections_of_queries_apart(
        self, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        """Two selections of as many ids were one series, which looked like a collapse."""
        write_bench(tmp_path / "other.json", {_BM25: _hits()}, run_id="other", chosen_sha256="p")
        assert self._call("diff", tmp_path) == 0
        lines = [line for line in capsys.readouterr().out.splitlines() if "go bm25" in line]
        names = [line.partition("go bm25")[0].strip() for line in lines]
        assert len(names) == len(set(names)) == 2
        assert all("#" in name for name in names)
