"""Bad input: a clear error, the right exit code, and nothing left behind."""

import json
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.conftest import CHECKOUT, Ended

Call = Callable[..., Ended]
Scripted = Callable[..., Path]

_PY = str(CHECKOUT / "sdks" / "py" / "sdk.toml")
_MINIMAL = str(CHECKOUT / "sdks" / "examples" / "minimal")
_EXACT = ("--scorer", "exact", "--scenario", "search-retrieve-only")


@pytest.mark.parametrize(
    ("args", "code", "says"),
    [
        (("--sdk", "pyy"), 2, "unknown SDK 'pyy'"),
        (("--sdk", "nowhere/sdk.toml"), 2, "nowhere/sdk.toml: No such file"),
        (("--sdk", _PY, "--dataset", "smok"), 2, "did you mean 'smoke'?"),
        (("--sdk", _PY, "--dataset", "nowhere.jsonl"), 2, "no dataset 'nowhere.jsonl'"),
        (("--sdk", _PY, "--scorer", "judge"), 2, "use --scorer exact"),
        (("--sdk", _PY, "--mode", "hybrid-rerank"), 2, "does not claim mode hybrid-rerank"),
        (("--sdk", _PY, "--mode", "magic"), 2, "Invalid value for '--mode'"),
        (("--sdk", _PY, "--candidate-k", "10001"), 2, "Invalid value for '--candidate-k'"),
        (("--sdk", _PY, "--rerank-top-n", "1001"), 2, "Invalid value for '--rerank-top-n'"),
        (("--sdk", "all", "--sdk", _PY), 2, "all_and_more"),
        (("--sdk", "all", "--resume", "x"), 2, "resume_many"),
        (("--sdk", _PY, "--upstream", "magic"), 2, "Invalid value for '--upstream'"),
        (("--sdk", _PY, "--embed-model", "fh256-1"), 2, "add --upstream scripted"),
        (
            ("--sdk", _PY, "--upstream", "scripted", "--embed-model", "bge-small-en"),
            2,
            "did you mean 'bge-small-en-v1.5'?",
        ),
        (("--sdk", _PY, "--floor", "1.5"), 2, "invalid --floor 1.5"),
        (("--sdk", _PY, "--ids", "smoke-99"), 2, "no question 'smoke-99'"),
        (("--sdk", _PY, "--tag", "geografy"), 4, "did you mean 'geography'?"),
        (("--sdk", _PY, "--corpus", "nowhere"), 2, "nowhere is not a folder"),
        (("--sdk", _PY, "--corpus", ".", "--seed-reference-brain"), 2, "exclude each other"),
        (("--sdk", _PY, "--brain", "eval"), 2, "has no brain 'eval'"),
        (("--sdk", _PY, "--brain", "mc-mine"), 2, "has no brain 'mc-mine'"),
        (
            ("--sdk", "url:http://127.0.0.1:9", "--seed-reference-brain", "--brain", "eval"),
            2,
            "use --brain mc-",
        ),
        (("--sdk", "url:http://127.0.0.1:9"), 3, "check that the daemon is running"),
        (("--timeout", "0", "--sdk", _PY), 2, "Invalid value for '--timeout'"),
        ((), 2, "give --sdk or --system"),
        (("--sdk", "url:http://127.0.0.1:99999"), 2, "is not a valid daemon address"),
        (("--sdk", "url:http://[::1"), 2, "is not a valid daemon address"),
        (("--sdk", ":"), 2, "--sdk :"),
        (("--sdk", _PY, "--timeout", "nan"), 2, "not a finite number"),
        (("--sdk", _PY, "--ids", ","), 2, "--ids names no question"),
        (("--sdk", _PY, "--brain", ".."), 2, "'..' is not a brain id"),
        (("--sdk", _PY, "--sdk", _MINIMAL, "--port", "65535"), 2, "leaves no port"),
    ],
)
def test_bad_input(memconform: Call, args: tuple[str, ...], code: int, says: str) -> None:
    ended = memconform("run", "--dataset", "smoke", *_EXACT, *args)
    assert (ended.code, ended.out if code == 2 else "") == (code, "")
    assert says in ended.err
    assert "Traceback" not in ended.err
    assert not list(ended.folder.glob("results/runs/*/result.json")) or code == 3
    assert not list(ended.folder.glob("results/runs/*")) or code == 3


def test_a_bad_line_names_file_and_line(memconform: Call, dataset: Path) -> None:
    lines = dataset.read_text().splitlines()
    lines[4] = lines[4][:-3]
    dataset.write_text("\n".join(lines))
    ended = memconform("run", "--sdk", _PY, "--dataset", dataset, *_EXACT)
    assert ended.code == 2
    assert f"{dataset}:5: bad JSON at column" in ended.err


def test_an_unknown_command_gets_the_nearest_name(memconform: Call) -> None:
    ended = memconform("rum")
    assert ended.code == 2
    assert "did you mean 'run'?" in ended.err


def test_a_taken_port_is_named_with_its_owner(memconform: Call) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        ended = memconform(
            *("run", "--sdk", _PY, "--dataset", "smoke", *_EXACT),
            *("--seed-reference-brain", "--port", str(port)),
        )
    assert ended.code == 3
    assert f"port {port} is in use by " in ended.err
    assert "(pid " in ended.err
    assert ended.result["counts"]["not_run"] == 20


def test_a_port_that_another_healthy_daemon_has_is_taken(
    memconform: Call, scripted: Scripted, dataset: Path
) -> None:
    command = [sys.executable, "-m", "tests.fakes.scripted", "--addr", "127.0.0.1:0"]
    other = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        port = other.stdout.readline().rpartition(":")[2].strip() if other.stdout else ""
        ended = memconform(
            *("run", "--sdk", scripted(), "--dataset", dataset, *_EXACT, "--mode", "bm25"),
            *("--seed-reference-brain", "--port", port),
        )
    finally:
        other.terminate()
        other.communicate()
    assert (ended.code, ended.result["incident"]["code"]) == (3, "port_taken")
    assert f"(pid {other.pid})" in ended.err


def test_a_build_that_fails_shows_the_tail_of_its_log(
    memconform: Call, scripted: Scripted, dataset: Path
) -> None:
    sdk = scripted()
    build = '[build]\ncommand = ["sh", "-c", "echo no luck today; exit 9"]\ninputs = ["*.jsonl"]\n'
    sdk.write_text(sdk.read_text() + build)
    ended = memconform("run", "--sdk", sdk, "--dataset", dataset, *_EXACT, "--seed-reference-brain")
    assert ended.code == 3
    assert "building scripted failed: exit status 9" in ended.err
    assert "no luck today" in ended.err


@pytest.mark.parametrize(
    ("addition", "code", "says"),
    [
        ('requires = ["no-such-tool"]', 3, "needs 'no-such-tool', which is not on PATH"),
        ('colour = "red"', 2, "colour: unknown key"),
        ('build = { command = ["x"], inputs = ["/etc/*"] }', 2, "'/etc/*' matches no file"),
        ('env = { set = { "A B" = "1" } }', 2, "env.set"),
        ('ready = { path = "//elsewhere" }', 2, "ready"),
        ('upstream = { skripted = { A = "1" } }', 2, "did you mean 'scripted'"),
        ('upstream = { real = ["A B"] }', 2, "upstream.real"),
    ],
)
def test_reports_a_manifest_that_cannot_be_served(
    memconform: Call, scripted: Scripted, dataset: Path, addition: str, code: int, says: str
) -> None:
    sdk = scripted()
    sdk.write_text(f"{addition}\n{sdk.read_text()}")
    ended = memconform("run", "--sdk", sdk, "--dataset", dataset, *_EXACT, "--seed-reference-brain")
    assert ended.code == code
    assert says in ended.err


def test_reports_a_results_folder_that_cannot_be_written(memconform: Call) -> None:
    file = memconform("info").folder / "file"
    file.write_text("in the way")
    for output in (file, file / "results"):
        ended = memconform(
            *("run", "--sdk", _PY, "--dataset", "smoke", *_EXACT),
            *("--seed-reference-brain", "--output", output),
        )
        assert (ended.code, file.read_text()) == (2, "in the way")
        assert f"{str(output)!r} is " in ended.err


@pytest.mark.capability("info")
def test_info(installed: Call, scripted: Scripted) -> None:
    scripted()
    folder = installed("info").folder
    (folder / "memconform.toml").write_text('[sdks]\nmine = "sdk.toml"\nbad = "none.toml"\n')
    info = json.loads(installed("info", "--json", "-").out)
    sdks = {sdk["name"]: sdk for sdk in info["sdks"]}
    assert sdks["py"]["profiles"] == ["core", "ask", "documents", "events", "auth", "shared-state"]
    assert sdks["mine"]["modes"] == ["auto", "bm25"]
    assert "No such file" in sdks["bad"]["error"]
    assert info["toolchains"]["python"].startswith("Python 3")
    assert "smoke" in info["datasets"]
    assert "cannot run here" not in installed("info").out
