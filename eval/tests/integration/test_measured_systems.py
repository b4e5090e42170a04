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
    assert result["daemon"]["version"] == "1.0"
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


def test_failed_searches_are_no_low_figure(memconform: Call, workspace: Path) -> None:
    fails = "if 'box4' in query and '?' not in query:\n        raise OSError('no space')"
    ended = _run(memconform, workspace, search=fails)
    assert ended.code == 0, ended.err
    assert "5 of 5 documents found by their own words; 1 search failed" in ended.err
    proof = ended.result["seeded"]["proof"]
    assert (proof["documents"], proof["of"], proof["failed"]) == (5, 5, 1)
    # What an adapter says stays, and its state does not.
    [log] = ended.folder.glob("results/runs/*/adapter.log")
    assert "OSError: no space" in log.read_text()
    assert not (log.parent / "state").exists()


def test_an_adapter_that_dies_ends_the_run(memconform: Call, workspace: Path) -> None:
    """Every later question was a `daemon_error`, and with --floor 0 the run had passed."""
    dies = "if 'box2' in query and '?' in query:\n        os._exit(3)"
    ended = _run(memconform, workspace, "--floor", "0", search=dies)
    result = ended.result
    assert (ended.code, result["counts"]["incorrect"], result["pass_rate"]) == (3, 0, None)
    assert result["counts"]["not_run"] >= 3
    assert "adapter_died" in ended.err


def test_what_is_no_text_is_not_handed_over(memconform: Call, workspace: Path) -> None:
    """One file that is not UTF-8 ended the run; one without words had `forget` called in vain."""
    docs = _write_questions(workspace)
    (docs / "latin.md").write_bytes("caf\xe9".encode("latin-1"))
    (docs / "_hidden.md").write_text("the secret of box0 is nothing")
    (docs / "blank.md").write_text("\n")
    told = workspace / "told"
    store = f"open({str(told)!r}, 'a').writelines(item.id + '\\n' for item in items)"
    write_system(workspace / "mine", store=store)
    flags = ("--system", "mine", "--data", "mine.jsonl", "--corpus", docs)
    ended = memconform("run", *flags, "--scenario", "search-retrieve-only")
    assert ended.code == 0, ended.err
    assert sorted(told.read_text().split()) == [f"d{number}.md" for number in range(_QUESTIONS)]


def test_calls_of_a_system_take_turns(memconform: Call, workspace: Path) -> None:
    ended = _run(memconform, workspace, "--concurrency", "4", "--repeat", "3")
    assert (ended.code, ended.result["passed"]) == (0, 6), ended.err


def test_a_run_of_a_system_is_resumed(memconform: Call, workspace: Path) -> None:
    mark = workspace / "mark"
    once = f"if 'box2' in query and '?' in query and not os.path.exists({str(mark)!r}):"
    once += f"\n        open({str(mark)!r}, 'w').close()\n        os._exit(3)"
    ended = _run(memconform, workspace, search=once)
    assert ended.code == 3
    flags = ("--system", "mine", "--data", "mine.jsonl", "--corpus", "docs", "--top-k", "1")
    run = ended.result["run_id"]
    again = memconform("run", *flags, "--scenario", "search-retrieve-only", "--resume", run)
    assert again.code == 0, again.err
    resumed = json.loads((workspace / f"results/runs/{_latest(workspace)}/result.json").read_text())
    assert (resumed["passed"], resumed["total"]) == (6, 6)


def _latest(workspace: Path) -> str:
    return max(path.name for path in (workspace / "results" / "runs").iterdir())


def test_a_system_without_its_model_has_another_name(memconform: Call, workspace: Path) -> None:
    table = 'lacks_model = true\n[upstream.scripted]\nMODELS = "{upstream}/v1"\n'
    ended = _run(memconform, workspace, "--upstream", "scripted", more=table)
    assert ended.code == 0, ended.err
    assert ended.result["sdk"] == "mine-no-model"
    variables = ended.result["provenance"]["settings"]["variables"]
    assert variables == {"JB_EMBED_MODEL": "fh256-1"}


def test_several_hits_of_a_document_count_once(memconform: Call, workspace: Path) -> None:
    """Three hits of each document, cut to k, pushed the others out of `run` and not of `bench`."""
    thrice = "hits = [hit for hit in hits[::-1] for _ in range(3)][:k]"
    ended = _run(memconform, workspace, "--top-k", "6", search=thrice)
    assert (ended.code, ended.result["passed"]) == (0, 6), ended.err
    assert {len(question["ranking"]) for question in ended.result["questions"]} == {6}


@pytest.mark.parametrize(
    ("system", "code", "message"),
    [
        ({"search": "hits = []"}, 3, "no search for the own words of 6 documents returned"),
        ({"store": "raise OSError('disk full')"}, 3, "OSError: disk full"),
        ({"search": "os._exit(3)"}, 3, "adapter_died"),
        ({"more": 'python = "3.99"\nrequires = "none.txt"\n'}, 2, "none.txt is not a file"),
    ],
)
def test_a_broken_system_has_no_score(
    memconform: Call, workspace: Path, system: dict[str, str], code: int, message: str
) -> None:
    ended = _run(memconform, workspace, **system)
    assert (ended.code, message in ended.err) == (code, True), ended.err
    if code == 3:
        assert (ended.result["counts"]["not_run"], ended.result["pass_rate"]) == (6, None)


def test_a_system_differs_from_an_sdk_without_drift(memconform: Call, workspace: Path) -> None:
    """A comparison of two of a kind would fail: nothing of one is found."""
    other = write_system(workspace / "other", search="hits = hits if '?' not in query else []")
    manifest = other / "system.toml"
    manifest.write_text(manifest.read_text().replace('"mine"', '"other"'))
    ended = _run(memconform, workspace, "--system", "other", "--floor", "0", "--repeat", "3")
    assert ended.code == 0, ended.err
    assert "other alone 0" in ended.err


def test_a_system_is_asked_beside_all_sdks(memconform: Call, workspace: Path) -> None:
    """`--sdk all` refused to be combined with any."""
    (workspace / "memconform.toml").write_text('[sdks]\nabsent = "none.toml"\n')
    ended = _run(memconform, workspace, "--sdk", "all")
    assert "cannot be combined" not in ended.err
    assert "none.toml" in ended.err


def test_doctor_tries_a_system(memconform: Call, workspace: Path) -> None:
    write_system(workspace / "mine")
    ended = memconform("doctor", "--system", "mine")
    assert (ended.code, "mine: ok" in ended.out) == (0, True), ended.out
    write_system(workspace / "mine", search="raise OSError('no space')")
    broken = memconform("doctor", "--system", "mine")
    assert broken.code == 3
    assert "adapter_search_failed: OSError: no space" in broken.out


def test_doctor_fails_a_system_that_returns_nothing(memconform: Call, workspace: Path) -> None:
    write_system(workspace / "mine")
    other = write_system(workspace / "other", search="hits = []")
    ended = memconform("doctor", "--system", "mine", "--system", other)
    assert (ended.code, "mine: ok" in ended.out) == (3, True), ended.out
    assert "FAIL ingest" in ended.out


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
    # Of the daemon the command line names the manifest, of the adapter the home is its state.
    left = [
        process.info
        for process in psutil.process_iter(["cmdline", "environ"])
        if process.pid not in before
        and str(workspace) in f"{process.info['cmdline']} {process.info['environ']}"
    ]
    assert left == []


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (("--system", "nothing"), "no system 'nothing'"),
        (("--system", "all"), "--system all selects several"),
        ((), "give --sdk or --system"),
        (("--system", "mine", "--mode", "bm25"), "mine does not claim mode bm25"),
        (
            ("--system", "mine", "--env", "FOO=bar"),
            "adapter of mine does not receive it",
        ),
        (("--system", "mine", "--upstream", "real"), "mine is a memory system"),
        (("--system", "mine", "--candidate-k", "7"), "are for daemons, and mine is a system"),
        (("--system", "mine", "--system", "mine"), "was given twice"),
    ],
)
def test_flags_that_name_no_system_are_refused(
    memconform: Call, workspace: Path, flags: tuple[str, ...], message: str
) -> None:
    write_system(workspace / "mine")
    ended = memconform("run", *flags, "--scenario", "search-retrieve-only", "--data", "smoke")
    assert (ended.code, message in ended.err) == (2, True), ended.err
