"""One result with checks of every kind: every report has the same counts of the same things."""

import io
import json
import re
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest

from memconform.conformance.results import (
    CaseResult,
    Check,
    ConformReport,
    Result,
    SdkResult,
)
from memconform.reports.check_status import CHECK_STATUS, OutcomeStatus
from memconform.reports.conformance import conform_banner, conformance_markdown
from memconform.reports.exports.badge import badge
from memconform.reports.exports.ctrf import ctrf_report
from memconform.reports.exports.summary import summary_markdown
from memconform.reports.html import conformance_data
from memconform.reports.html.views import build_page
from memconform.reports.junit import write_conformance, write_outcomes
from memconform.reports.overview.headline import statements
from memconform.reports.overview.outcomes import outcomes
from memconform.reports.overview.overview import Overview
from memconform.storage.sink import Sink, json_bytes

_COUNTS = {
    Result.PASS: 1_007, Result.FAIL: 5, Result.WARN: 3, Result.XFAIL: 2, Result.XPASS: 4,
    Result.UNTESTABLE: 6, Result.NOT_APPLICABLE: 8, Result.ERROR: 1,
}  # fmt: skip
_APPLICABLE = 1_028
_RULE = "core.health"


def _report() -> ConformReport:
    checks = [
        Check(id=f"c-{result}[{n}]#a", result=result, level="must", rules=[_RULE], got=["x"])
        for result, count in _COUNTS.items()
        for n in range(count)
    ]
    cases = [CaseResult(case=check.id[:-2], title="t", checks=[check]) for check in checks]
    return ConformReport(
        run="one", started_at=datetime(2026, 1, 1, tzinfo=UTC),
        finished_at=datetime(2026, 1, 1, 1, tzinfo=UTC), contract="1", harness_version="0",
        command=[], sdk_references={"go": "go"}, exit_code=70,
        sdks=[SdkResult(sdk="go", profiles=["core"], modes=[], cases=cases)],
    )  # fmt: skip


@pytest.fixture
def overview(tmp_path: Path) -> Overview:
    path = tmp_path / "conform.json"
    path.write_bytes(json_bytes(_report()))
    with Overview.load([str(path)], [], tmp_path) as loaded:
        return loaded


def _by_status() -> Counter[OutcomeStatus]:
    counts: Counter[OutcomeStatus] = Counter()
    for result, count in _COUNTS.items():
        counts[CHECK_STATUS[result]] += count
    return counts


def _suite(text: bytes) -> dict[str, int]:
    suite = next(iter(ET.fromstring(text).iter("testsuite")))  # noqa: S314 - our own
    return {name: int(suite.attrib[name]) for name in ("tests", "failures", "errors", "skipped")}


def test_the_result_has_every_kind() -> None:
    [sdk] = _report().sdks
    assert set(_COUNTS) == set(Result) == set(CHECK_STATUS)
    assert (sdk.counts(), sdk.applicable()) == (_COUNTS, _APPLICABLE)


def test_the_last_line_of_conform_has_each_count() -> None:
    line = conform_banner(_report().sdks[0])
    assert line.startswith(f"go: {_COUNTS[Result.PASS]} of {_APPLICABLE} checks pass in ")
    shown = {name: int(n) for n, name in re.findall(r", (\d+) (\w+)", line)}
    assert shown == {r.value: n for r, n in _COUNTS.items() if r is not Result.PASS}


def test_sentences_and_badge_have_the_counts_of_that_line(overview: Overview) -> None:
    texts = [statement.text for statement in statements(overview)]
    assert texts == [
        "go fails 5 of 1,028 checks of the contract",
        "go passes 4 of 1,028 checks that a list says it fails",
        "go could not be tested in 6 of 1,028 checks of the contract",
        "a bug in memconform or in a case ended 1 of 1,028 checks of go",
    ]
    assert badge(statements(overview)[0], "x").message == texts[0]
    markdown = summary_markdown(overview, statements(overview), outcomes(overview))
    assert all(text in markdown for text in texts)
    assert "### Failed: 9 tests" in markdown
    assert "### Not measured: 7 tests" in markdown


def test_markdown_of_conform_has_each_count() -> None:
    lines = conformance_markdown(_report()).splitlines()
    header, row = (re.split(r" *\| *", lines[n].strip("| ")) for n in (2, 4))
    shown = dict(zip(header, row, strict=True))
    assert {result: int(shown[result.value]) for result in Result} == _COUNTS
    assert f"of {_APPLICABLE} checks pass" in "\n".join(lines)


def test_junit_and_ctrf_count_by_the_table_of_statuses(overview: Overview) -> None:
    wanted = _by_status()
    attributes = {
        "tests": sum(_COUNTS.values()),
        "failures": wanted[OutcomeStatus.FAILED],
        "errors": wanted[OutcomeStatus.ERROR],
        "skipped": wanted[OutcomeStatus.SKIPPED],
    }
    stream = io.BytesIO()
    write_conformance(Sink(stream.write), _report())
    assert _suite(stream.getvalue()) == attributes
    found = outcomes(overview)
    stream = io.BytesIO()
    write_outcomes(Sink(stream.write), found, overview.period()[0])
    assert _suite(stream.getvalue()) == attributes
    summary = ctrf_report(found, *overview.period()).results.summary
    assert (summary.tests, summary.passed) == (attributes["tests"], wanted[OutcomeStatus.PASSED])
    assert (summary.failed, summary.other) == (attributes["failures"], attributes["errors"])
    assert summary.skipped == attributes["skipped"]


def test_the_page_has_each_count_in_its_table_and_in_its_data(overview: Overview) -> None:
    page = build_page(overview)
    assert {Result(name): sum(row.counts[name] for row in page.profiles) for name in page.results}
    shown = {r: sum(row.counts[r.value] for row in page.profiles) for r in Result}
    assert shown == _COUNTS
    added: dict[str, Any] = {}

    class Blocks:
        def add(self, name: str, data: object) -> None:
            added[name] = json.loads(json.dumps(data))

    conformance_data.add_conformance(overview, Blocks())  # type: ignore[arg-type]
    [sdk] = added["conformance"]["sdks"]
    names = added["conformance"]["results"]
    assert Counter(Result(names[check["result"]]) for check in sdk["checks"]) == _COUNTS


def test_a_result_without_a_failure_names_the_checks_that_apply(tmp_path: Path) -> None:
    report = _report()
    kept = (Result.PASS, Result.WARN, Result.XFAIL, Result.NOT_APPLICABLE)
    [sdk] = report.sdks
    cases = [case for case in sdk.cases if case.result in kept]
    sdk = sdk.model_copy(update={"cases": cases})
    path = tmp_path / "conform.json"
    path.write_bytes(json_bytes(report.model_copy(update={"sdks": [sdk], "exit_code": 0})))
    with Overview.load([str(path)], [], tmp_path) as overview:
        [statement] = statements(overview)
    assert statement.text == "go honours the contract in 1,012 checks except for 2 known failures"
    assert "1007 of 1012 checks pass" in conform_banner(sdk)
