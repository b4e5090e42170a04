"""`diff --json FILE --markdown FILE`, whatever is compared."""

import json
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import jsonschema
import pytest
from click.testing import CliRunner, Result

from memconform.cli.main import cli
from memconform.scoring.statuses import QuestionStatus
from tests.run_results import question, write_run
from tests.unit.bench_results import write_bench
from tests.unit.lme_results import question as lme_question
from tests.unit.lme_results import write_lme

_GOLD = {f"q{number}": [f"q{number}-gold"] for number in range(25)}
_LOST = {name: ["x"] for name in _GOLD}


def _runs(folder: Path) -> list[Path]:
    verdicts = (QuestionStatus.CORRECT, QuestionStatus.INCORRECT)
    return [
        write_run(folder / f"{sdk}.json", sdk, [question(name, verdict) for name in _GOLD])
        for sdk, verdict in zip(("go", "py"), verdicts, strict=True)
    ]


def _benches(folder: Path) -> list[Path]:
    return [
        write_bench(
            folder / f"{name}.json",
            {("go", "bm25"): rankings},
            run_id=name,
            started=datetime(2026, 1, day, tzinfo=UTC),
        )
        for day, (name, rankings) in enumerate({"old": _GOLD, "new": _LOST}.items(), 1)
    ]


def _replays(folder: Path) -> list[Path]:
    return [
        write_lme(folder / f"{name}.json", [lme_question(each, verdict) for each in _GOLD])
        for name, verdict in (("old", "correct"), ("new", "incorrect"))
    ]


def _folder(folder: Path) -> list[Path]:
    _runs(folder)
    _benches(folder)
    return [folder]


def _diff(*arguments: str | Path) -> Result:
    ended = CliRunner().invoke(cli, ["diff", *map(str, arguments)], standalone_mode=False)
    assert ended.exception is None, ended.exception
    return ended


_KINDS = pytest.mark.parametrize(
    ("write", "schema", "text"),
    [
        (_runs, "diff-report", "regressions: q0, q1, q2"),
        (_benches, "bench-diff-report", "q24 (one): gold q24"),
        (_replays, "lme-review", "### Regressions"),
        (_folder, "trend-report", "| what | started |"),
    ],
)


@_KINDS
def test_every_comparison_writes_both_files(
    write: Callable[[Path], list[Path]], schema: str, text: str, tmp_path: Path
) -> None:
    """Two runs, two benches and a trend had no Markdown, and a trend no JSON."""
    (tmp_path / "in").mkdir()
    files = (tmp_path / "report.json", tmp_path / "report.md")
    results = write(tmp_path / "in")
    _diff(*results, "--json", files[0], "--markdown", files[1])
    report = json.loads(files[0].read_text())
    assert report["schema_version"] == f"memconform/{schema}@1"
    markdown = files[1].read_text()
    assert text.replace("-", "\\-") in markdown or text in markdown
    # Whatever a terminal omits is there.
    assert schema == "trend-report" or "q24" in markdown


@_KINDS
def test_standard_output_is_json_alone(
    write: Callable[[Path], list[Path]], schema: str, text: str, tmp_path: Path
) -> None:
    del text
    ended = _diff(*write(tmp_path), "--json", "-")
    assert json.loads(ended.stdout)["schema_version"] == f"memconform/{schema}@1"


def test_a_trend_has_every_run_and_row(tmp_path: Path) -> None:
    _diff(*_folder(tmp_path), "--json", tmp_path / "t.json", "--markdown", tmp_path / "t.md")
    report = json.loads((tmp_path / "t.json").read_text())
    assert [run["sdk"] for run in report["runs"]] == ["go", "py"]
    assert {bench["run_id"] for bench in report["benches"]} == {"old", "new"}
    markdown = (tmp_path / "t.md").read_text()
    assert markdown.count("| what | started |") == 2
    assert "100.0 | 100.0 |" in markdown


def test_the_printed_schemas_accept_a_trend(tmp_path: Path) -> None:
    printed = CliRunner().invoke(cli, ["diff", "--schema"]).stdout
    _diff(*_folder(tmp_path), "--json", tmp_path / "t.json")
    jsonschema.validate(json.loads((tmp_path / "t.json").read_text()), json.loads(printed))


def test_a_trend_of_a_folder_omits_the_published_results_in_it(tmp_path: Path) -> None:
    """In a fresh clone, the history of one's own runs began with the project's."""
    (tmp_path / "published").mkdir()
    _runs(tmp_path / "published")
    _benches(tmp_path)
    _diff(tmp_path, "--json", tmp_path / "t.txt")
    assert json.loads((tmp_path / "t.txt").read_text())["runs"] == []
    _diff(tmp_path / "published", "--json", tmp_path / "t.txt")
    assert len(json.loads((tmp_path / "t.txt").read_text())["runs"]) == 2
