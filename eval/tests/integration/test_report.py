"""`memconform report` and `--html`, called as a user does."""

import json
from collections.abc import Callable
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from memconform.scoring.statuses import QuestionStatus
from tests.conftest import Ended
from tests.run_results import question, write_run

_ROWS = [question("q1"), question("q2", QuestionStatus.INCORRECT)]
_FORMATS = ("html", "junit", "ctrf", "csv", "markdown", "annotations", "badge")


@pytest.fixture
def results(workspace: Path) -> Path:
    folder = workspace / "results"
    for sdk in ("go", "py"):
        write_run(folder / "runs" / f"run-{sdk}" / "result.json", sdk, _ROWS)
    return folder


@pytest.mark.parametrize("form", _FORMATS)
def test_each_format_is_written_to_a_file_and_to_standard_output(
    memconform: Callable[..., Ended], workspace: Path, results: Path, form: str
) -> None:
    ended = memconform("report", "--format", form, "results", "-o", "out")
    assert ended.code == 0, ended.err
    lines = ended.out.splitlines()
    assert lines == ["go and py are identical on 2 questions of birds, ask-basic, bm25", "-> out"]
    written = (workspace / "out").read_text()
    assert written
    piped = memconform("report", "--format", form, results / "runs" / "run-go", "run-py", "-o", "-")
    assert piped.code == 0, piped.err
    assert "-> " not in piped.out
    if form in ("csv", "annotations"):
        assert piped.out == written


def test_annotations_on_standard_output_are_commands(
    memconform: Callable[..., Ended], results: Path
) -> None:
    del results
    out = memconform("report", "--format", "annotations", "results", "-o", "-").out
    assert out.startswith("::notice title=memconform::go and py are identical")


def test_the_json_formats_follow_their_schemas(
    memconform: Callable[..., Ended], results: Path
) -> None:
    import jsonschema  # noqa: PLC0415 - takes long to import

    for form in ("ctrf", "badge"):
        schema = json.loads(memconform("report", "--format", form, "--schema").out)
        jsonschema.validate(
            json.loads(memconform("report", "--format", form, results, "-o", "-").out), schema
        )


def test_an_unknown_result_is_named(memconform: Callable[..., Ended], workspace: Path) -> None:
    ended = memconform("report", "--format", "html", "nothing", "-o", "out.html")
    assert ended.code == 2
    assert "no result 'nothing'" in ended.err
    assert not (workspace / "out.html").exists()


def test_a_file_that_cannot_be_written_is_refused_at_once(
    memconform: Callable[..., Ended], results: Path
) -> None:
    ended = memconform("report", "--format", "html", results, "-o", "no/such/folder.html")
    assert ended.code == 2
    assert "cannot be written" in ended.err


def test_no_result_is_replaced_by_its_report(
    memconform: Callable[..., Ended], workspace: Path
) -> None:
    path = write_run(workspace / "go.json", "go", _ROWS)
    before = path.read_bytes()
    for flags in (("go.json", "-o", "./go.json"), ("go.json", "-o", str(path))):
        ended = memconform("report", "--format", "markdown", *flags)
        assert ended.code == 2
        assert "would replace" in ended.err
    assert path.read_bytes() == before


def test_a_full_disk_is_no_bug_of_ours(memconform: Callable[..., Ended], results: Path) -> None:
    ended = memconform("report", "--format", "csv", results, "-o", "/dev/full")
    assert ended.code == 70
    assert "Traceback" not in ended.err
    assert "/dev/full" in ended.err


def test_a_report_without_an_unreadable_file_of_a_folder_is_no_success(
    memconform: Callable[..., Ended], results: Path
) -> None:
    (results / "bad.json").write_text('{"schema_version": "memconform/fuzz-report@1"}')
    ended = memconform("report", "--format", "junit", results, "-o", "-")
    assert ended.code == 2
    assert "not shown: " in ended.err
    assert "bad.json" in ended.err
    assert len(list(ET.fromstring(ended.out.encode()).iter("testcase"))) == 4  # noqa: S314


def test_a_baseline_makes_regressions(memconform: Callable[..., Ended], workspace: Path) -> None:
    before = [question("q1"), question("q2")]
    write_run(workspace / "old.json", "go", before, run_id="old")
    later = "2026-02-01T00:00:00+00:00"
    write_run(workspace / "new.json", "go", _ROWS, run_id="new", started_at=later)
    ended = memconform(
        "report", "--format", "badge", "new.json", "--baseline", "old.json", "-o", "-"
    )
    badge = json.loads(ended.out)
    assert badge["isError"]
    assert badge["message"].startswith("go fails 1 question of birds")


def test_run_and_conform_write_a_report_beside_their_results(
    memconform: Callable[..., Ended], workspace: Path, sdk: str, dataset: Path
) -> None:
    ask = ("--scenario", "search-retrieve-only", "--scorer", "exact", "--dataset", dataset)
    ended = memconform("run", "--sdk", sdk, *ask, "--seed-reference-brain", "--html")
    assert ended.code == 0, ended.err
    [page] = (workspace / "results").glob("*/report.html")
    assert f"report: {page.relative_to(workspace)}" in ended.err
    assert f"{sdk} passes 12 of 12 questions" in page.read_text()
    if sdk != "py":
        return
    ended = memconform("conform", "--sdk", sdk, "--case", "health*", "--html")
    assert ended.code == 0, ended.err
    [page] = (workspace / "results" / "runs").glob("*conform*/report.html")
    assert "honours the contract in" in page.read_text()


@pytest.mark.capability("report")
def test_bench_writes_a_report_beside_its_result(
    memconform: Callable[..., Ended], workspace: Path
) -> None:
    data = {
        "name": "birds",
        "items": [{"id": "a", "content": "A heron by the pond"}, {"id": "b", "content": "A wren"}],
        "questions": [{"query": "Where is the heron?", "gold": ["a"]}],
    }
    (workspace / "birds.json").write_text(json.dumps(data))
    flags = ("--suite", "file", "--data", "birds.json", "--system", "flat-bm25", "-k", "1,2")
    ended = memconform("bench", *flags, "--html")
    assert ended.code == 0, ended.err
    [page] = (workspace / "results" / "runs").glob("*/report.html")
    text = page.read_text()
    assert "recall_any@1" in text
    assert "Recall (any) at k" in text
