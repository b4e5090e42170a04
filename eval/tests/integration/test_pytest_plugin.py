"""`pytest --memconform-sdk`: the installed plug-in against real daemons."""

import json
import re
import signal
import subprocess
import sys
import xml.etree.ElementTree as ET
from collections.abc import Callable
from importlib.metadata import entry_points
from pathlib import Path

import pytest

from tests.conftest import CALL_SECONDS, WAIT_SECONDS, Ended, processes_of
from tests.waiting import wait_until

CASES = ("health", "version", "search-empty-brain")
SELECTED = [f"--memconform-case={case}" for case in CASES]
PASSING = ("health", "search-empty-brain[auto]", "search-empty-brain[bm25]")
SKIPPED = ("search-empty-brain[semantic]", "search-empty-brain[hybrid]")
CAUSE = "GET /version: wrong value at contract"
"""Of the fault `other_contract`."""

# Only the plug-ins that are named are loaded, and no settings of this checkout.
_PYTEST = (sys.executable, "-m", "pytest", "-p", "memconform", "-p", "no:cacheprovider")


@pytest.fixture
def environment(environment: dict[str, str], workspace: Path) -> dict[str, str]:
    (workspace / "pytest.ini").write_text("[pytest]\n")
    return environment | {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}


@pytest.fixture
def call(workspace: Path, environment: dict[str, str]) -> Callable[..., Ended]:
    """Calls pytest in the folder of an SDK, of whose cases a few are selected."""

    def call(*args: str, cases: list[str] = SELECTED) -> Ended:
        ended = subprocess.run(
            [*_PYTEST, "--memconform-sdk=sdk.toml", *cases, *args],
            cwd=workspace,
            env=environment,
            capture_output=True,
            text=True,
            timeout=CALL_SECONDS,
            check=False,
        )
        return Ended(ended.returncode, ended.stdout, ended.stderr, workspace)

    return call


def _outcomes(ended: Ended) -> dict[str, set[str]]:
    """The outcomes that `-v` shows, by case."""
    found: dict[str, set[str]] = {}
    for name, outcome in re.findall(
        r"^memconform::scripted::(.+?) ([A-Z]+)\b", ended.out, re.MULTILINE
    ):
        found.setdefault(name, set()).add(outcome)
    return found


def _each(names: tuple[str, ...], outcome: str) -> dict[str, set[str]]:
    return {name: {outcome} for name in names}


def _list_known(workspace: Path, entry: str) -> str:
    rest = "  reason: of a test\n  link: https://example.org/1\n  expires: 2999-01-31\n"
    (workspace / "known.yaml").write_text(f"- {entry}\n{rest}")
    return "--memconform-known=known.yaml"


@pytest.mark.capability("pytest plug-in")
def test_each_case_variant_is_a_test_and_a_failure_shows_its_evidence(
    call: Callable[..., Ended], scripted: Callable[..., Path], workspace: Path
) -> None:
    scripted("other_contract")
    ended = call("-v", "-rf", "--junitxml=j.xml")
    assert ended.code == 1, ended.out + ended.err
    expected = {"version": {"FAILED"}} | _each(PASSING, "PASSED")
    assert _outcomes(ended) == expected | _each(SKIPPED, "SKIPPED")
    [run] = (workspace / "results" / "runs").iterdir()
    assert f"FAILED memconform::scripted::version - Failed: {CAUSE}" in ended.out
    assert "rule      core.version" in ended.out
    assert "at        GET /version" in ended.out
    assert "expected  the body is {'name'" in ended.out
    assert "got       /contract: expected '1', got '2'" in ended.out
    assert f"conform replay results/runs/{run.name} 'scripted:version#says'" in ended.out
    assert "13 of 14 checks pass in 4 case variants, 1 fail" in ended.out
    assert json.loads((run / "conform.json").read_text())["exit_code"] == 1
    [suite] = ET.parse(workspace / "j.xml").getroot()  # noqa: S314 - ours
    tests = {(test.get("classname"), test.get("name")): test for test in suite}
    assert len(tests) == 6
    [failure] = tests["memconform.scripted", "version"]
    assert (failure.tag, CAUSE in str(failure.get("message"))) == ("failure", True)
    [skipped] = tests["memconform.scripted", "search-empty-brain[hybrid]"]
    assert skipped.get("message") == "mode hybrid is not claimed"


def test_a_known_failure_is_expected_until_it_passes(
    call: Callable[..., Ended], scripted: Callable[..., Path], workspace: Path
) -> None:
    manifest = scripted("other_contract")
    flag = _list_known(workspace, "check: version#says")
    ended = call("-v", "-rx", flag)
    assert ended.code == 0, ended.out + ended.err
    assert _outcomes(ended)["version"] == {"XFAIL"}
    assert "of a test (https://example.org/1, until 2999-01-31)" in ended.out
    with manifest.open("a") as file:
        file.write('[known]\nfile = "known.yaml"\n')
    assert _outcomes(call("-v"))["version"] == {"XFAIL"}
    scripted()
    ended = call("-v", flag)
    assert (ended.code, _outcomes(ended)["version"]) == (1, {"FAILED"})
    assert "[XPASS(strict)] passes, but is listed as known to fail: of a test" in ended.out


def test_a_cause_that_no_longer_occurs_fails_the_session(
    call: Callable[..., Ended], scripted: Callable[..., Path], workspace: Path
) -> None:
    scripted()
    flag = _list_known(workspace, f'cause: "{CAUSE}"\n  check: version#*')
    ended = call("-v", flag)
    assert ended.code == 1
    assert _outcomes(ended)["version"] == {"PASSED"}
    assert f"listed as known to fail, but no longer occurs: version#* {CAUSE}" in ended.out


def test_a_daemon_that_does_not_start_is_an_error_of_each_case(
    call: Callable[..., Ended], scripted: Callable[..., Path], environment: dict[str, str]
) -> None:
    environment["CI"] = "true"  # pytest's summary then has the whole message of each error
    scripted("exits")
    ended = call("-v")
    assert ended.code == 1
    expected = _each(("version", *PASSING), "ERROR")
    assert _outcomes(ended) == expected | _each(SKIPPED, "SKIPPED")
    # Its log is shown once, the others refer to it.
    assert ended.out.count("scripted: exiting at once") == 1
    assert "see memconform::scripted::" in ended.out


def test_a_build_that_fails_is_an_error_of_each_case(
    call: Callable[..., Ended], scripted: Callable[..., Path]
) -> None:
    manifest = scripted()
    with manifest.open("a") as file:
        file.write('[build]\ncommand = ["false"]\ninputs = ["sdk.toml"]\n')
    ended = call("-v")
    assert (ended.code, set(map(frozenset, _outcomes(ended).values()))) == (
        1,
        {frozenset({"ERROR"})},
    )
    assert "build_failed" in ended.out


def test_collecting_starts_no_daemon(
    call: Callable[..., Ended], scripted: Callable[..., Path], workspace: Path
) -> None:
    scripted(first="touch started")
    ended = call("--collect-only", "-q")
    assert ended.code == 0
    names = [line for line in ended.out.splitlines() if line.startswith("memconform::")]
    expected = ["health", "version", *(f"search-empty-brain[{m}]" for m in ("auto", "bm25"))]
    assert names[:4] == [f"memconform::scripted::{name}" for name in expected]
    assert len(names) == 6
    assert not (workspace / "started").exists()
    assert not (workspace / "results").exists()


def test_tests_are_selected_by_keyword_id_and_profile(
    call: Callable[..., Ended], scripted: Callable[..., Path], workspace: Path
) -> None:
    scripted()
    (workspace / "test_own.py").write_text("def test_version(): pass\n")
    ended = call("-v", "-k", "memconform and version")
    assert (ended.code, _outcomes(ended)) == (0, {"version": {"PASSED"}}), ended.out
    assert "selected cases: 4 of 4 checks pass in 1 case variant; other rules" in ended.out
    ended = call("-v", "memconform::scripted::search-empty-brain", "memconform::scripted::health")
    assert set(_outcomes(ended)) == {*PASSING, *SKIPPED}
    assert "test_own" not in ended.out
    ended = call("--collect-only", "-q", "--memconform-profile=auth", cases=[])
    assert "memconform::scripted::auth-" in ended.out
    assert "memconform::scripted::health" not in ended.out


def test_workers_of_xdist_are_refused(
    call: Callable[..., Ended], scripted: Callable[..., Path], workspace: Path
) -> None:
    scripted(first="touch started")
    ended = call("-p", "xdist", "-n2")
    assert (ended.code, "cannot be combined with pytest-xdist" in ended.err) == (4, True)
    assert "add -n0" in ended.err
    assert not (workspace / "started").exists()


def test_without_workers_xdist_may_be_installed(
    call: Callable[..., Ended], scripted: Callable[..., Path]
) -> None:
    scripted()
    ended = call("-p", "xdist", "-n0", "-q", "memconform::scripted::health")
    assert (ended.code, "1 passed" in ended.out) == (0, True), ended.out + ended.err


def test_stops_at_the_first_failure_if_requested(
    call: Callable[..., Ended], scripted: Callable[..., Path]
) -> None:
    scripted("other_contract")
    ended = call("-v", "-x")
    assert (ended.code, "1 failed" in ended.out) == (1, True)
    assert "not run" not in ended.out
    assert "error" not in ended.out


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_leaves_no_daemon(
    number: signal.Signals,
    scripted: Callable[..., Path],
    environment: dict[str, str],
    workspace: Path,
) -> None:
    scripted("never_healthy")
    with subprocess.Popen(
        [*_PYTEST, "--memconform-sdk=sdk.toml", *SELECTED],
        cwd=workspace,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    ) as run:
        wait_until(lambda: processes_of(workspace))
        run.send_signal(number)
        output, _ = run.communicate(timeout=WAIT_SECONDS)
    assert run.returncode == pytest.ExitCode.INTERRUPTED, output
    assert processes_of(workspace) == []


def test_without_a_flag_nothing_is_imported() -> None:
    [point] = entry_points(group="pytest11", name="memconform")
    code = (
        "import sys, pytest\nbefore = set(sys.modules)\n"
        f"import {point.value}\nprint(*sorted(set(sys.modules) - before))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["memconform", "memconform.cli", "memconform.cli.pytest_plugin"]
