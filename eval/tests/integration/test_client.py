"""`memconform client`: the installed program against real clients, correct and broken."""

import json
import signal
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from html import unescape
from pathlib import Path
from typing import Any

import psutil
import pytest

from memconform.conformance.clients.catalog import client_catalog
from memconform.conformance.results import ConformReport
from tests.conftest import CHECKOUT, WAIT_SECONDS, Ended
from tests.program import PROGRAM
from tests.waiting import wait_until

QUICK = ("--case", "client-cut-frame", "--case", "client-done-last")
_HELLO = {"driver": "mine", "protocol": 1, "claims": ["ask", "search", "ingest"]}

_DRIVER = """
import json, sys
HELLO = {hello!r}
print(json.dumps(HELLO), flush=True)
for line in sys.stdin:
    command = json.loads(line)
    {reply}
"""


@pytest.fixture
def driver(workspace: Path) -> Callable[..., Path]:
    """Writes the manifest of a client whose driver does as a line of Python says."""

    def write(reply: str = "pass", *, hello: Any = _HELLO, known: str = "") -> Path:
        (workspace / "driver.py").write_text(_DRIVER.format(hello=hello, reply=reply))
        command = json.dumps([sys.executable, "driver.py"])
        (workspace / "sdk.toml").write_text(
            f'name = "mine"\nlanguage = "python"\n[client]\ncommand = {command}\n{known}'
        )
        return workspace / "sdk.toml"

    return write


def _report(ended: Ended) -> ConformReport:
    [path] = ended.folder.glob("results/runs/*/conform.json")
    return ConformReport.model_validate_json(path.read_bytes())


@pytest.mark.capability("client")
def test_a_reference_client_passes_the_cases_that_are_asked_for(
    memconform: Callable[..., Ended], sdk: str
) -> None:
    ended = memconform("client", "--sdk", sdk, *QUICK, "--case", "client-retry-ingest")
    assert ended.code == 0, ended.err
    report = _report(ended)
    assert report.suite == "client"
    assert {check.result for case in report.sdks[0].cases for check in case.checks} == {"pass"}
    assert "checks pass" in ended.out
    assert not list(ended.folder.glob("results/runs/*/drivers"))


def test_the_reference_clients_pass_every_case(memconform: Callable[..., Ended], sdk: str) -> None:
    ended = memconform("client", "--sdk", sdk, timeout=10 * WAIT_SECONDS)
    assert ended.code == 0, ended.err
    [result] = _report(ended).sdks
    assert len(result.cases) == len(client_catalog())
    assert {check.result for case in result.cases for check in case.checks} == {
        "pass",
        "not_applicable",
    }


@pytest.mark.capability("client")
def test_a_client_that_takes_a_cut_answer_for_a_whole_one_is_found(
    memconform: Callable[..., Ended], driver: Callable[..., Path]
) -> None:
    whole = "print(json.dumps({'id': command['id'], 'ok': None}), flush=True)"
    manifest = driver(whole)
    ended = memconform(
        "client", "--sdk", manifest, *QUICK, "--junit", "junit.xml", "--html", "--trace",
        "--write-known", "known.yaml",
    )  # fmt: skip
    assert ended.code == 1
    assert "client.end: reports success in place of an error cut" in ended.err
    assert f"memconform client replay --sdk {manifest} 'mine:client-cut-frame" in ended.err
    assert "<failure" in (ended.folder / "junit.xml").read_text()
    [html] = ended.folder.glob("results/runs/*/report.html")
    assert "mine's client fails" in _sentences(html)
    assert list(ended.folder.glob("results/runs/*/wire/mine/client-cut-frame*.txt"))
    [run] = ended.folder.glob("results/runs/*")
    found = memconform("conform", "findings", run, "--rule", "client.end")
    assert found.code == 0
    assert "expected  an error: cut" in found.out
    known = (ended.folder / "known.yaml").read_text().replace("TODO", "https://example.com/1")
    (ended.folder / "known.yaml").write_text(known)
    again = memconform("client", "--sdk", manifest, *QUICK, "--known", "known.yaml")
    assert again.code == 0, again.err
    assert " xfail" in again.out


@pytest.mark.parametrize(
    ("reply", "why"),
    [
        ("sys.exit(3)", "ended: exit status 3"),
        ("print('rubbish', flush=True)", "wrote a line that is not valid"),
        ("print(json.dumps({'id': 99, 'ok': None}), flush=True)", "the id 99 of another call"),
        ("print(json.dumps({'id': command['id']}), flush=True)", "neither an event nor the end"),
        (
            "print(json.dumps({'id': command['id'], 'error': {'kind': 'odd'}}), flush=True)",
            "error",
        ),
    ],
)
def test_a_driver_that_breaks_its_protocol_is_named(
    memconform: Callable[..., Ended], driver: Callable[..., Path], reply: str, why: str
) -> None:
    ended = memconform("client", "--sdk", driver(reply), "--case", "client-least")
    assert ended.code == 3
    assert why in ended.err
    assert "sdks/DRIVER.md" in ended.err


@pytest.mark.parametrize(
    ("hello", "why"),
    [
        ({"driver": "mine", "protocol": 2, "claims": []}, "protocol"),
        ({"driver": "mine", "protocol": 1, "claims": ["fly"]}, "claims"),
        ({}, "driver"),
    ],
)
def test_a_driver_of_another_protocol_is_refused(
    memconform: Callable[..., Ended], driver: Callable[..., Path], hello: Any, why: str
) -> None:
    ended = memconform("client", "--sdk", driver(hello=hello), "--case", "client-least")
    assert ended.code == 3
    assert "begins with a line that is not valid" in ended.err
    assert why in ended.err


def test_what_a_driver_does_not_claim_is_not_applicable(
    memconform: Callable[..., Ended], driver: Callable[..., Path]
) -> None:
    hello = {"driver": "mine", "protocol": 1, "claims": []}
    ended = memconform("client", "--sdk", driver(hello=hello), "--case", "client-least")
    assert ended.code == 4
    assert "the driver does not claim 'ask'" in ended.out


def test_an_sdk_without_a_client_is_told_how_to_name_one(
    memconform: Callable[..., Ended],
) -> None:
    ended = memconform("client", "--sdk", CHECKOUT / "sdks" / "examples" / "minimal")
    assert ended.code == 2
    assert "has no [client]" in ended.err
    assert "sdks/DRIVER.md" in ended.err


def test_doctor_tries_the_driver_of_a_client(
    memconform: Callable[..., Ended], driver: Callable[..., Path]
) -> None:
    whole = "print(json.dumps({'id': command['id'], 'ok': None}), flush=True)"
    ended = memconform("doctor", "--sdk", driver(whole))
    assert ended.code == 3
    assert "mine, claims ask, search, ingest" in ended.out
    assert "client answer" in ended.out
    assert "0 of 6 events" in ended.out
    assert memconform("doctor", "--sdk", driver("sys.exit(3)")).code == 3


def test_doctor_tries_daemon_and_client_of_an_sdk(memconform: Callable[..., Ended]) -> None:
    ended = memconform("doctor", "--sdk", "py")
    assert ended.code == 0, ended.out
    assert "py: ok" in ended.out
    assert "py, client: ok" in ended.out


def test_a_case_is_repeated_by_the_line_that_a_finding_shows(
    memconform: Callable[..., Ended], cache: Path
) -> None:
    del cache
    check = "py:client-cut[after-delta,chunked]#outcome"
    ended = memconform("client", "replay", check, "--sdk", "py")
    assert ended.code == 0, ended.err
    assert "> POST /v1/brains/brain/ask" in ended.out
    assert '= end of the call: error {"kind": "cut"' in ended.out
    assert memconform("client", "explain", check).out.startswith("client-cut[")
    assert memconform("client", "replay", "client-cuts", "--sdk", "py").code == 2


def test_the_shards_of_a_client_are_joined(memconform: Callable[..., Ended]) -> None:
    for number in (1, 2):
        part = memconform(
            "client", "--sdk", "py", "--case", "client-b*", "--case", "client-l*",
            "--shard", f"{number}/2", "--output", f"part-{number}",
        )  # fmt: skip
        assert part.code == 0, part.err
    ended = memconform("merge", "part-1", "part-2", "--output", "whole", "--json", "whole.json")
    assert ended.code == 0, ended.err
    report = ConformReport.model_validate_json((ended.folder / "whole.json").read_bytes())
    expected = [e.id for e in client_catalog() if e.base.startswith(("client-b", "client-l"))]
    assert [case.case for case in report.sdks[0].cases] == expected
    plan = memconform("plan", "--shards", "2", "client", "--sdk", "py")
    assert plan.code == 0
    assert "variants" in plan.out


def _sentences(page: Path) -> str:
    """What a report says without a script."""
    text = page.read_text(encoding="utf-8").partition('id="without-script"')[2]
    return unescape(text.partition("<script")[0])


def _has_driver(process: "subprocess.Popen[bytes]") -> bool:
    """Whether the driver of a run is running; other children come and go."""
    with suppress(psutil.Error):
        children = psutil.Process(process.pid).children(recursive=True)
        return any("driver.py" in part for child in children for part in child.cmdline())
    return False


@pytest.mark.parametrize(
    ("args", "why"),
    [
        (("client", "--sdk", "url:http://127.0.0.1:1"), "has no sdk.toml"),
        (("client", "--sdk", "py", "--sdk", "py", "--case", "client-least"), "was given twice"),
        (("client", "--sdk", "py", "--case", "client-leest"), "no case matches"),
        (("client", "replay", "client-least", "--sdk", "all"), "replayed to one client"),
        (("mutate", "--clients", "--sdk", "go"), "omit --sdk"),
    ],
)
def test_what_names_no_client_is_refused(
    memconform: Callable[..., Ended], args: tuple[str, ...], why: str
) -> None:
    """Of two clients with one name, the second hid that the first had failed."""
    ended = memconform(*args)
    assert ended.code in (2, 4)
    assert why in ended.err


def test_an_interrupt_ends_a_run_of_clients(
    workspace: Path, environment: dict[str, str], driver: Callable[..., Path]
) -> None:
    """The reader of a driver whose pipe had been closed took all of a core, for ever."""
    command = [str(PROGRAM), "client", "--sdk", str(driver()), "--case", "client-least"]
    process = subprocess.Popen(command, cwd=workspace, env=environment, stderr=subprocess.PIPE)
    # Its driver never answers, so that the run waits until the signal.
    wait_until(lambda: _has_driver(process))
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=WAIT_SECONDS)
    assert process.returncode == 130


@pytest.mark.parametrize(
    ("client", "found"),
    [
        pytest.param("anthropic-python", "client-bom-text", marks=pytest.mark.slow),
        pytest.param("httpx-sse", "client-bom", marks=pytest.mark.slow),
        ("openai-python", "client-bom-text"),
    ],
)
def test_a_public_client_does_what_is_published_of_it(
    client: str, found: str, memconform: Callable[..., Ended]
) -> None:
    """It reads an answer, and misses the event behind a byte order mark (docs/CLIENTS.md)."""
    chosen = ("--case", "client-answer", "--case", found)
    ended = memconform("client", "--sdk", CHECKOUT / "sdks" / "clients" / client, *chosen)
    assert ended.code == 1, ended.err
    [result] = _report(ended).sdks
    results = {(case.case.partition("[")[0], case.result) for case in result.cases}
    assert results == {("client-answer", "pass"), (found, "fail")}


def test_broken_clients_are_found(memconform: Callable[..., Ended]) -> None:
    sample = ("--sample", "6", "--json", "report.json")
    ended = memconform("mutate", "--clients", *sample, timeout=10 * WAIT_SECONDS)
    assert ended.code == 0, ended.err
    report = json.loads((ended.folder / "report.json").read_bytes())
    assert report["killed"] == report["total"] == 6
