"""Memory systems behind adapters, measured by the verbs that measure daemons."""

import json
import sys
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

from tests.adapters import write_mcp, write_system
from tests.conftest import Ended

Call = Callable[..., Ended]

_QUESTIONS = 6


def _write_questions(folder: Path) -> Path:
    """Questions whose third word is in one document of `docs`."""
    docs = folder / "docs"
    docs.mkdir()
    rows = []
    for number in range(_QUESTIONS):
        (docs / f"d{number}.md").write_text(f"the secret of box{number} is word{number}x")
        question = {"question": f"What is box{number} ?", "expected_substrings": [f"word{number}x"]}
        rows.append(json.dumps({"id": f"q{number}", **question}))
    (folder / "mine.jsonl").write_text("\n".join(rows))
    return docs


def _run(memconform: Call, workspace: Path, *more: str, **system: str) -> Ended:
    docs = _write_questions(workspace)
    mine = write_system(workspace / "mine", **system)
    flags = ("--system", mine, "--data", "mine.jsonl", "--corpus", docs, "--top-k", "1")
    return memconform("run", *flags, "--scenario", "search-retrieve-only", *more)


@pytest.mark.capability("adapters")
def test_a_system_is_asked_like_a_daemon(memconform: Call, workspace: Path) -> None:
    ended = _run(memconform, workspace)
    assert ended.code == 0, ended.err
    result = ended.result
    assert (result["sdk"], result["passed"], result["served_modes"]) == ("mine", 6, {"own": 6})
    proof = result["seeded"]["proof"]
    assert (proof["documents"], proof["of"], proof["promised"]) == (6, 6, False)
    assert "6 of 6 documents found by their own words" in ended.err


def test_what_a_system_forgets_is_a_finding(memconform: Call, workspace: Path) -> None:
    drops = "items = [item for item in items if '3' not in item.text]"
    ended = _run(memconform, workspace, "--floor", "0.8", store=drops)
    assert ended.code == 0, ended.err
    assert (ended.result["passed"], ended.result["total"]) == (5, 6)
    assert ended.result["seeded"]["proof"]["documents"] == 5


def test_a_memory_that_is_no_document_is_scored_by_its_text(
    memconform: Call, workspace: Path
) -> None:
    rewrites = "hits = [(None, text.upper(), score) for id, text, score in hits]"
    ended = _run(memconform, workspace, search=rewrites)
    assert ended.code == 0, ended.err
    assert ended.result["passed"] == 6
    # Whose text it is is never guessed.
    assert ended.result["seeded"]["proof"]["documents"] == 0


@pytest.mark.parametrize(
    ("search", "code"),
    [
        ("raise OSError('no space')", "adapter_search_failed: OSError: no space"),
        ("hits = [('other', 'text', 1.0)]", "a hit has the id 'other', which was never stored"),
        ("hits = 5", "adapter_wrong_type"),
    ],
)
def test_a_search_that_failed_is_not_measured(
    memconform: Call, workspace: Path, search: str, code: str
) -> None:
    fails = f"if 'box4' in query and '?' in query:\n        {search}"
    ended = _run(memconform, workspace, "--floor", "0", search=fails)
    result = ended.result
    assert (result["passed"], result["counts"]["daemon_error"]) == (5, 1)
    assert result["pass_rate_answered"] == 1
    [failed] = [each for each in result["questions"] if each["verdict"] == "daemon_error"]
    assert code in failed["error"]["message"]


@pytest.mark.parametrize(
    ("system", "message"),
    [
        ({"store": "raise OSError('disk full')"}, "OSError: disk full"),
        ({"search": "os._exit(3)"}, "adapter_died"),
        ({"more": 'python = "3.99"\nrequires = "none.txt"\n'}, "none.txt is not a file"),
    ],
)
def test_a_broken_system_has_no_score(
    memconform: Call, workspace: Path, system: dict[str, str], message: str
) -> None:
    ended = _run(memconform, workspace, **system)
    assert ended.code in (2, 3)
    assert message in ended.err
    assert "pass_rate=0" not in ended.out


def test_a_system_differs_from_an_sdk_without_drift(memconform: Call, workspace: Path) -> None:
    """A comparison of two of a kind would fail: nothing of one is found."""
    other = write_system(workspace / "other", search="hits = []")
    manifest = other / "system.toml"
    manifest.write_text(manifest.read_text().replace('"mine"', '"other"'))
    ended = _run(memconform, workspace, "--system", "other", "--floor", "0", "--repeat", "3")
    assert ended.code == 0, ended.err
    assert "other alone 0" in ended.err


def test_doctor_tries_a_system(memconform: Call, workspace: Path) -> None:
    write_system(workspace / "mine")
    ended = memconform("doctor", "--system", "mine")
    assert (ended.code, "mine: ok" in ended.out) == (0, True), ended.out
    write_system(workspace / "mine", search="raise OSError('no space')")
    broken = memconform("doctor", "--system", "mine")
    assert broken.code == 3
    assert "adapter_search_failed: OSError: no space" in broken.out


def test_doctor_only_warns_of_what_a_system_does_not_find(
    memconform: Call, workspace: Path
) -> None:
    write_system(workspace / "mine", search="hits = hits if 'Who' not in query else []")
    ended = memconform("doctor", "--system", "mine")
    assert (ended.code, "warn search auto" in ended.out) == (0, True), ended.out
    assert "mine: ok, 1 warning\n" in ended.out


@pytest.mark.exhaustive
def test_the_packages_of_an_mcp_server_come_from_npm(memconform: Call, workspace: Path) -> None:
    mine = write_mcp(workspace / "mine")
    (mine / "package.json").write_text('{"name": "mine", "version": "1.0.0"}')
    lock = {"name": "mine", "lockfileVersion": 3, "packages": {"": {"name": "mine"}}}
    (mine / "package-lock.json").write_text(json.dumps(lock))
    manifest = mine / "system.toml"
    started = json.dumps(
        ["sh", "-c", f"test -f {{packages}}/package.json && exec {sys.executable} {mine}/server.py"]
    )
    lines = [
        f"command = {started}" if line.startswith("command") else line
        for line in manifest.read_text().splitlines()
    ]
    manifest.write_text("\n".join(['requires = "package-lock.json"', *lines]))
    ended = memconform("doctor", "--system", "mine")
    assert ended.code == 0, ended.out + ended.err
    assert "mine: ok" in ended.out


def test_a_system_leaves_no_process_behind(memconform: Call, workspace: Path) -> None:
    before = set(psutil.pids())
    assert _run(memconform, workspace).code == 0
    left = [
        process
        for process in psutil.process_iter(["cmdline"])
        if process.pid not in before
        and str(workspace / "mine") in " ".join(process.info["cmdline"] or ())
    ]
    assert left == []


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (("--system", "nothing"), "no system 'nothing'"),
        (("--system", "all"), "--system all selects several"),
        ((), "give --sdk or --system"),
        (("--system", "mine", "--mode", "bm25"), "mine does not claim mode bm25"),
        (("--system", "mine", "--system", "mine"), "was given twice"),
    ],
)
def test_flags_that_name_no_system_are_refused(
    memconform: Call, workspace: Path, flags: tuple[str, ...], message: str
) -> None:
    write_system(workspace / "mine")
    ended = memconform("run", *flags, "--scenario", "search-retrieve-only", "--data", "smoke")
    assert (ended.code, message in ended.err) == (2, True), ended.err
