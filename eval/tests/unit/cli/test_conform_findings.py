"""`conform findings` shows a page of the checks that were asked for, and says how many more."""

import re
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path

import pytest
from click.testing import CliRunner

from memconform.cli.main import cli
from memconform.conformance.results import (
    CaseResult,
    Cause,
    Check,
    ConformReport,
    Result,
    SdkResult,
)
from memconform.reports.conformance import LONGEST_COMMAND
from memconform.storage.sink import json_bytes

_SHA = "a" * 64
Show = Callable[..., tuple[int, list[str], str]]


def _case(number: int, rule: str, curl: str) -> CaseResult:
    name = f"case-{number % 10}[v{number}]"
    check = Check(
        id=f"{name}#a", result=Result.FAIL, level="must", rules=[rule], got=["wrong"],
        step="POST /v1/brains", curl=curl, causes=[Cause(cause=f"POST /v1/brains: k{number % 3}")],
    )  # fmt: skip
    return CaseResult(case=name, title="t", checks=[check])


def _write(folder: Path, cases: Sequence[CaseResult]) -> None:
    folder.mkdir(parents=True)
    report = ConformReport(
        run=folder.name, started_at=datetime(2026, 1, 1, tzinfo=UTC),
        finished_at=datetime(2026, 1, 1, 1, tzinfo=UTC), contract="1", harness_version="0",
        command=[], sdk_references={"go": "go"}, exit_code=1,
        sdks=[SdkResult(sdk="go", profiles=[], modes=[], cases=list(cases))],
    )  # fmt: skip
    (folder / "conform.json").write_bytes(json_bytes(report))


@pytest.fixture
def show(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Show:
    """Show findings of 90 failed checks: the exit code, the ids shown, and what came last."""
    rules = ("core.health", "documents.put", "documents.rename")
    command = f"curl http://x/ --data-binary @bodies/{_SHA}"
    folder = tmp_path / "out" / "runs" / "one"
    _write(folder, [_case(n, rules[n // 30], command) for n in range(90)])
    (folder / "bodies").mkdir()
    monkeypatch.chdir(tmp_path)

    def run(*flags: str) -> tuple[int, list[str], str]:
        arguments = ["conform", "findings", "one", "--output", "out", *flags]
        ended = CliRunner().invoke(cli, arguments, standalone_mode=False)
        code = ended.return_value if ended.exception is None else 2
        ids = re.findall(r"^FAIL +go (\S+)", ended.stdout, re.MULTILINE)
        assert f"bodies/{_SHA}" not in ended.stdout.replace(f"out/runs/one/bodies/{_SHA}", "")
        return code, ids, ended.stderr.splitlines()[-1] if ended.stderr else ""

    return run


def test_the_first_page_says_how_many_more_there_are(show: Show) -> None:
    code, ids, last = show()
    assert (code, len(ids), ids[0]) == (0, 20, "case-0[v0]#a")
    assert last == ("90 checks did not pass; page 1 of 5; --page 2 shows the next, --all shows all")


def test_pages_show_every_check_once(show: Show) -> None:
    pages = [show("--limit", "40", "--page", str(page)) for page in (1, 2, 3)]
    ids = [name for _, page, _ in pages for name in page]
    assert ids == show("--all")[1]
    assert (len(ids), len(set(ids))) == (90, 90)
    assert pages[2][2] == "90 checks did not pass; page 3 of 3"
    assert show("--all")[2] == "90 checks did not pass"


def test_a_page_behind_the_last_one_says_so(show: Show) -> None:
    assert show("--page", "6") == (0, [], "90 checks did not pass; page 6 of 5")


@pytest.mark.parametrize(
    ("flags", "count"),
    [
        (("--rule", "documents.*"), 60),
        (("--rule", "documents.put", "--rule", "core.*"), 60),
        (("--cause", "*: k1"), 30),
        (("--case", "case-4"), 9),
        (("--case", "case-4[v14]"), 1),
        (("--case", "case-4[v14]#a"), 1),
        (("--rule", "documents.put", "--case", "case-4"), 3),
    ],
)
def test_filters_select_checks(show: Show, flags: tuple[str, ...], count: int) -> None:
    code, ids, _ = show(*flags, "--all")
    assert (code, len(ids)) == (0, count)


def test_a_filter_that_matches_nothing_does_not_sound_like_a_success(show: Show) -> None:
    assert show("--case", "nothing*")[2] == "no check that did not pass matches"


def test_a_filter_that_matches_nothing_is_exit_4(show: Show) -> None:
    assert show("--rule", "nothing.*")[:2] == (4, [])


def test_results_of_earlier_versions_are_shown_without_what_no_shell_takes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    long = f"curl http://x/ --data-raw '{'x' * 200_000}'"
    _write(tmp_path / "runs" / "old", [_case(0, "core.health", long), _case(1, "a.b", "curl x")])
    monkeypatch.chdir(tmp_path)
    ended = CliRunner().invoke(cli, ["conform", "findings", "runs/old"], standalone_mode=False)
    assert ended.return_value == 0
    assert max(map(len, ended.stdout.splitlines())) < LONGEST_COMMAND
    assert "too long for a shell; use replay" in ended.stdout
    assert "try       curl x" in ended.stdout
