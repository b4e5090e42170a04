"""`--keep`: daemons that stay up after the report, until a signal or their own end."""

import json
import re
import shlex
import signal
import subprocess
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests.conftest import CHECKOUT, WAIT_SECONDS, Ended, processes_of
from tests.program import PROGRAM

_CANARY = "canary-of-keep-51c"


class _Kept:
    """A command with --keep that has written its report."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        self.process = process
        self.lines: list[str] = []
        self._arrived = threading.Condition()
        self._reader = threading.Thread(target=self._read)
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stderr is not None
        for line in self.process.stderr:
            with self._arrived:
                self.lines.append(line.rstrip("\n"))
                self._arrived.notify_all()

    def wait_for(self, pattern: str) -> "re.Match[str]":
        """The first line that matches, as soon as it is written."""

        def match() -> "re.Match[str] | None":
            return next((m for line in self.lines if (m := re.search(pattern, line))), None)

        with self._arrived:
            self._arrived.wait_for(match, timeout=WAIT_SECONDS)
        found = match()
        assert found is not None, self.lines
        return found

    def end(self) -> int:
        """Wait for the end of the command and return its exit code."""
        code = self.process.wait(timeout=WAIT_SECONDS)
        self._reader.join()
        return code


@contextmanager
def _kept(
    arguments: Sequence[str | Path], workspace: Path, environment: dict[str, str]
) -> Iterator[_Kept]:
    with subprocess.Popen(
        [PROGRAM, *arguments, "--keep"],
        cwd=workspace,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        kept = _Kept(process)
        try:
            yield kept
        finally:
            if process.poll() is None:
                process.send_signal(signal.SIGTERM)
            kept.end()


def _manifest(workspace: Path, name: str, mutation: dict[str, Any]) -> Path:
    """A manifest of the Python daemon behind a proxy that alters its responses."""
    folder = workspace / name
    folder.mkdir()
    (folder / "mutation.json").write_text(json.dumps(mutation))
    argv = ["{python}", "-m", "memconform.conformance.mutation.proxy", "--addr", "{addr}"]
    argv += ["--root", "{state_dir}"]
    argv += ["--mutation", str(folder / "mutation.json"), "--", "{python}", "-m", "memoryd"]
    argv += ["serve", "--addr", "127.0.0.1:0", "--root", "{state_dir}"]
    path = folder / "sdk.toml"
    path.write_text(
        f'name = "{name}"\nlanguage = "python"\n[serve]\nargv = {json.dumps(argv)}\n'
        'port = "announced"\n[env]\n'
        f'set = {{ PYTHONPATH = "{CHECKOUT / "sdks" / "py" / "src"}" }}\n'
        '[capabilities]\nprofiles = ["core", "documents"]\nmodes = ["auto", "bm25"]\n'
    )
    return path


_WRONG_TYPE = {"when": {"target": "/documents/read"}, "headers": {"Content-Type": "text/plain"}}
_WRONG_SEARCH = {"when": {"target": "/search"}, "headers": {"Content-Type": "text/plain"}}
_TO_STOP = r"^to stop: Ctrl-C, or kill (\d+)$"


def _address(kept: _Kept, sdk: str) -> tuple[str, int | None]:
    found = kept.wait_for(rf"^kept: {sdk} at (http://\S+?)(?:, process (\d+))?$")
    return found[1], int(found[2]) if found[2] else None


def _first_curl(path: Path) -> str:
    """The command of the first failed check of a report."""
    report = json.loads(path.read_text(encoding="utf-8"))
    checks = [k for sdk in report["sdks"] for case in sdk["cases"] for k in case["checks"]]
    curl: str = next(check["curl"] for check in checks if check["result"] == "fail")
    return curl


def _run(command: str) -> str:
    words = shlex.split(command)
    assert words[0] == "curl"
    return subprocess.run(words, capture_output=True, text=True, check=True, timeout=60).stdout


def _get(url: str) -> str:
    return _run(f"curl -sS -i {shlex.quote(url)}")


def test_the_commands_of_a_report_work_on_the_daemon_that_is_kept(
    workspace: Path, environment: dict[str, str]
) -> None:
    path = _manifest(workspace, "mistyped", _WRONG_TYPE)
    flags = ("--env", "PLAIN_SETTING=x7", "--env", f"STORE_TOKEN={_CANARY}", "--json", "c.json")
    arguments = ("conform", "--sdk", path, "--case", "doc-rename-over", *flags)
    with _kept(arguments, workspace, environment) as kept:
        stop = kept.wait_for(_TO_STOP)
        address, pid = _address(kept, "mistyped")
        curl = _first_curl(workspace / "c.json")
        assert f"{address}/v1/brains/mc-doc-rename-over/documents/read?path=b.md" in curl
        answer = _run(curl)
        assert answer.startswith("HTTP/1.1 200 ")
        assert answer.endswith("The heron waits.")
        assert psutil.Process(pid).environ()["STORE_TOKEN"] == _CANARY
        kept.wait_for(
            r"replay +memconform conform replay --env PLAIN_SETTING=x7"
            r' --env STORE_TOKEN="\$STORE_TOKEN" '
        )
        psutil.Process(int(stop[1])).send_signal(signal.SIGTERM)
        # The verdict was reported before: a signal changes nothing about it.
        assert kept.end() == 1
    assert processes_of(workspace) == []
    report = json.loads((workspace / "c.json").read_text(encoding="utf-8"))
    assert report["variables"]["mistyped"]["PLAIN_SETTING"] == "x7"
    assert _CANARY not in "\n".join(kept.lines)
    written = [p for p in workspace.rglob("*") if p.is_file()]
    assert [p for p in written if _CANARY.encode() in p.read_bytes()] == []
    assert not [p for p in written if "state" in p.parts]


@pytest.mark.capability("keep")
def test_a_running_daemon_keeps_the_brain_of_a_failed_case_until_the_end(
    workspace: Path, environment: dict[str, str]
) -> None:
    """Two SDKs are kept; one of them is then tested as a daemon that was started by hand."""
    plain = _manifest(workspace, "plain", {})
    mistyped = _manifest(workspace, "mistyped", _WRONG_SEARCH)
    both = ("conform", "--sdk", plain, "--sdk", mistyped, "--case", "brain-create")
    with _kept(both, workspace, environment) as kept:
        kept.wait_for(_TO_STOP)
        address, pid = _address(kept, "mistyped")
        by_hand = ("conform", "--sdk", f"url:{address}", "--case", "search-long-query")
        brain = f"{address}/v1/brains/mc-search-long-query"
        with _kept((*by_hand, "--json", "u.json"), workspace, environment) as second:
            second.wait_for(_TO_STOP)
            assert _address(second, "url-\\S+") == (address, None)
            assert '"The heron waits."' in _run(_first_curl(workspace / "u.json"))
            second.process.send_signal(signal.SIGINT)
            assert second.end() == 1
        assert " 404 " in _get(brain).partition("\r\n")[0]
        # A daemon that ends by itself is reported; the command ends with the last one.
        _, other = _address(kept, "plain")
        for process in (pid, other):
            psutil.Process(process).send_signal(signal.SIGKILL)
        kept.wait_for(r"^ended: mistyped at \S+, killed by SIGKILL$")
        kept.wait_for(r"^ended: plain at \S+, killed by SIGKILL$")
        assert kept.end() == 0


def test_a_daemon_that_a_case_crashed_is_started_again_to_be_kept(
    workspace: Path, environment: dict[str, str]
) -> None:
    path = _manifest(workspace, "mortal", {"dies_of": "documents/rename"})
    arguments = ("conform", "--sdk", path, "--case", "doc-rename-over", "--json", "c.json")
    with _kept(arguments, workspace, environment) as kept:
        kept.wait_for(_TO_STOP)
        address, _ = _address(kept, "mortal")
        # The report has the address of now, and not that of the process that crashed.
        assert address in _first_curl(workspace / "c.json")
        brain = f"{address}/v1/brains/mc-doc-rename-over"
        assert _get(f"{brain}/documents/read?path=a.md").endswith("The heron waits.")


def _requests(process: psutil.Process) -> int:
    """How many connections a daemon has; 0 if it is gone."""
    try:
        connections = process.net_connections("tcp")
    except psutil.Error:
        return 0
    return sum(each.status == psutil.CONN_ESTABLISHED for each in connections)


def test_an_interrupt_during_the_cases_keeps_nothing(
    workspace: Path, environment: dict[str, str]
) -> None:
    path = _manifest(workspace, "plain", {"delay_ms": 200})
    with _kept(("conform", "--sdk", path, "--case", "doc-*"), workspace, environment) as kept:
        # Requests of two cases at once: no daemon is being started any more.
        while not any(_requests(process) > 1 for process in processes_of(workspace)):
            assert kept.process.poll() is None
        kept.process.send_signal(signal.SIGINT)
        assert kept.end() == 130
    assert processes_of(workspace) == []
    assert not any(line.startswith("kept") for line in kept.lines)


def test_doctor_and_fuzz_keep_daemons_too(workspace: Path, environment: dict[str, str]) -> None:
    plain, other = (_manifest(workspace, name, {}) for name in ("plain", "other"))
    with _kept(("doctor", "--sdk", plain, "--env", "A=b"), workspace, environment) as kept:
        kept.wait_for(_TO_STOP)
        address, pid = _address(kept, "plain")
        assert psutil.Process(pid).environ()["A"] == "b"
        brain = kept.wait_for(r"^brain (\S+) has the documents")[1]
        assert '"documents":3' in _get(f"{address}/v1/brains/{brain}").replace(" ", "")
        kept.process.send_signal(signal.SIGTERM)
        assert kept.end() == 0
    fuzz = ("fuzz", "--sdk", plain, "--sdk", other, "--examples", "1", "--env", "A=b")
    with _kept(fuzz, workspace, environment) as kept:
        kept.wait_for(_TO_STOP)
        for sdk in ("plain", "other"):
            assert " 200 " in _get(f"{_address(kept, sdk)[0]}/healthz").partition("\r\n")[0]
        kept.process.send_signal(signal.SIGTERM)
        assert kept.end() == 0


@pytest.mark.parametrize("command", ["conform", "doctor", "fuzz"])
def test_env_is_validated(memconform: Callable[..., Ended], workspace: Path, command: str) -> None:
    path = _manifest(workspace, "plain", {})
    two = ("--sdk", path, "--sdk", _manifest(workspace, "other", {})) if command == "fuzz" else ()
    ended = memconform(command, *(two or ("--sdk", path)), "--env", "not a variable")
    assert ended.code == 2
    assert "bad_env" in ended.err
    assert "write --env NAME=VALUE" in ended.err
    if command == "conform":
        ended = memconform(command, "--sdk", "url:http://127.0.0.1:9", "--env", "A=b")
        assert ended.code == 2
        assert "foreign_environment" in ended.err
