"""What reports show of a load: figures of measured steps only, and where each SDK stopped."""

import json
from pathlib import Path
from typing import Any

import pytest

from memconform.load.records import LoadReport
from memconform.reports.check_status import OutcomeStatus
from memconform.reports.html.document import write_html
from memconform.reports.html.load_figures import load_charts
from memconform.reports.load import busy_machine, load_banner, load_table
from memconform.reports.overview.headline import Grade, statements
from memconform.reports.overview.outcomes import outcomes
from memconform.reports.overview.overview import Overview
from memconform.storage.sink import replacing
from tests.unit.load_results import load_report, load_step

_STEPS = {
    "go": [load_step(50, 0.004), load_step(100, 0.006)],
    "py": [
        load_step(50, 0.02),
        load_step(100, 0.9, saturated=True),
        load_step(200, measured=False),
    ],
}
_MISSED = "go 100/s search: p99 6.0 ms, above 5 ms"


def _overview(folder: Path, *documents: dict[str, Any]) -> Overview:
    paths = [folder / f"{number}.json" for number in range(len(documents))]
    for path, document in zip(paths, documents, strict=True):
        path.write_text(json.dumps(document))
    return Overview.load([str(path) for path in paths], [], folder, quiet=True)


def test_sdks_stand_side_by_side_and_an_unmeasured_step_has_no_figures() -> None:
    header, rows = load_table(LoadReport.model_validate(load_report(_STEPS)))
    cells = [dict(zip(header, row, strict=True)) for row in rows]
    assert [(c["sdk"], c["load"]) for c in cells] == [
        ("go", "50/s"), ("go", "100/s"), ("py", "50/s"), ("py", "100/s"), ("py", "200/s"),
    ]  # fmt: skip
    assert [c["verdict"] for c in cells[1:]] == [
        "keeps up", "keeps up", "saturated", "not measured: harness_overloaded",
    ]  # fmt: skip
    assert (cells[0]["p50 ms"], cells[2]["p99 ms"]) == ("4.0", "20.0")
    for figure in ("answers/s", "p50 ms", "p99 ms", "p99.9 ms", "service p99"):
        assert cells[-1][figure] == "-"
    assert cells[-1]["late p99"] == "1.0"


def test_the_banner_counts_measured_steps() -> None:
    banner = load_banner(LoadReport.model_validate(load_report(_STEPS)))
    assert banner == "go, py: 4 of 5 steps measured"


def test_a_machine_that_others_keep_busy_is_named() -> None:
    """Both steps were in time; what the daemon waited for is not its own."""
    quiet = load_step(50)
    assert busy_machine(LoadReport.model_validate(load_report({"go": [quiet]}))) is None
    busy = quiet.model_copy(update={"machine_cores_busy": 1.6})
    note = busy_machine(LoadReport.model_validate(load_report({"go": [quiet, busy]})))
    assert note is not None
    assert note.startswith("other programs used up to 1.50 of 2 processors")
    unmeasured = load_step(50, measured=False).model_copy(update={"machine_cores_busy": 1.6})
    assert busy_machine(LoadReport.model_validate(load_report({"go": [unmeasured]}))) is None


def test_a_chart_has_a_line_per_sdk_and_no_point_of_an_unmeasured_step() -> None:
    p50, p99 = load_charts(LoadReport.model_validate(load_report(_STEPS)))
    assert (p50.title, p99.title) == ("search: p50 by offered rate", "search: p99 by offered rate")
    assert [(row[0], float(row[1]), row[3]) for row in p99.rows] == [
        ("go", 50, "keeps up"), ("go", 100, "keeps up"), ("py", 50, "keeps up"),
        ("py", 100, "saturated"),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("document", "grades"),
    [
        (load_report({"go": _STEPS["go"]}), {Grade.NOTED}),
        (load_report(_STEPS), {Grade.NOTED, Grade.UNKNOWN}),
        (load_report({"go": [load_step(50, measured=False)]}), {Grade.UNKNOWN}),
        (load_report({"go": _STEPS["go"]}, missed=[_MISSED]), {Grade.BAD, Grade.NOTED}),
    ],
)
def test_only_a_missed_threshold_is_bad(
    tmp_path: Path, document: dict[str, Any], grades: set[Grade]
) -> None:
    with _overview(tmp_path, document) as overview:
        assert {statement.grade for statement in statements(overview)} == grades


def test_other_programs_get_an_outcome_for_each_step(tmp_path: Path) -> None:
    with _overview(tmp_path, load_report(_STEPS, missed=[_MISSED])) as overview:
        found = outcomes(overview)
    assert [(o.sdk, o.id, o.status) for o in found] == [
        ("go", "50/s", OutcomeStatus.PASSED),
        ("go", "100/s", OutcomeStatus.FAILED),
        ("py", "50/s", OutcomeStatus.PASSED),
        ("py", "100/s", OutcomeStatus.PASSED),
        ("py", "200/s", OutcomeStatus.ERROR),
    ]
    assert found[-1].figures == ()


def test_the_page_has_the_table_and_the_charts(tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    with _overview(tmp_path, load_report(_STEPS)) as overview, replacing(page) as target:
        write_html(target, overview)
    text = page.read_text()
    assert 'data-view="loads"' in text
    assert "not measured: harness_overloaded" in text
    assert "search: p99 by offered rate" in text
    assert "keeps up with 50/s, saturated at 100/s: the queue grows" in text
