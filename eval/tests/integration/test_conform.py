"""`memconform conform`: the installed program against real daemons, correct and broken."""

import json
import re
import signal
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
import xmlschema
from jsonschema import Draft202012Validator

from memconform.conformance.catalog import catalog
from memconform.conformance.results import ConformReport
from tests.conftest import CHECKOUT, SDKS, WAIT_SECONDS, Ended, processes_of, runnable
from tests.program import PROGRAM
from tests.waiting import wait_until

_CREATE_RULE = (
    "core.brain.create (interchange): The daemon MUST answer 201 when it creates a brain,"
    " and 409 if the id exists."
)
QUICK = ("--case", "brain-create", "--case", "search-empty-brain", "--case", "version*")
MODES = ("auto", "bm25", "semantic", "hybrid")
CONFLICT_TAKEN = {"when": {"status": [409]}, "status": 200}
XSD = xmlschema.XMLSchema(Path(__file__).parents[1] / "contract" / "junit.xsd")


@pytest.fixture
def broken(workspace: Path) -> Callable[..., Path]:
    """Return a function that writes a manifest for the Python daemon behind a mutating proxy."""

    def write(
        mutation: dict[str, Any] | None = None, *, known: str = "", modes: tuple[str, ...] = MODES
    ) -> Path:
        file = workspace / "mutation.json"
        file.write_text(json.dumps(mutation or {}))
        memory = ["{python}", "-m", "memoryd", "serve", "--addr", "127.0.0.1:0"]
        argv = ["{python}", "-m", "memconform.conformance.mutation.proxy", "--addr", "{addr}"]
        argv += ["--root", "{state_dir}", "--mutation", str(file), "--"]
        argv += [*memory, "--root", "{state_dir}"]
        path = workspace / "sdk.toml"
        path.write_text(
            'name = "proxied"\nlanguage = "python"\n'
            f'[serve]\nargv = {json.dumps(argv)}\nport = "announced"\n'
            f'[env]\nset = {{ PYTHONPATH = "{CHECKOUT / "sdks" / "py" / "src"}", '
            'JB_EMBED_PROVIDER = "fake", JB_LLM_PROVIDER = "fake" }\n'
            + (f'[known]\nfile = "{known}"\n' if known else "")
            + '[capabilities]\nprofiles = ["core", "ask", "documents", "events", "auth"]\n'
            f"modes = {json.dumps(modes)}\n"
        )
        return path

    return write


def _report(path: Path) -> dict[str, Any]:
    loaded: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    Draft202012Validator(ConformReport.model_json_schema()).validate(loaded)
    return loaded


def _results(report: dict[str, Any]) -> dict[str, str]:
    [sdk] = report["sdks"]
    return {c["id"]: c["result"] for case in sdk["cases"] for c in case["checks"]}


def test_a_good_daemon_is_conformant(
    sdk: str, installed: Callable[..., Ended], workspace: Path
) -> None:
    files = ("--json", "c.json", "--junit", "j.xml", "--markdown", "m.md")
    ended = installed("conform", "--sdk", CHECKOUT / "sdks" / sdk, *QUICK, *files)
    assert ended.code == 0, ended.err
    assert re.search(
        rf"^{sdk}, cases brain-create, search-empty-brain, version\*: (\d+) of \1 checks pass"
        r" in \d+ case variants; other rules were not tested$",
        ended.out,
        re.MULTILINE,
    )
    assert set(_results(_report(workspace / "c.json")).values()) == {"pass"}
    XSD.validate(workspace / "j.xml")
    markdown = (workspace / "m.md").read_text(encoding="utf-8")
    assert f"| ✅ {sdk} |" in markdown
    assert "other rules were not tested" in markdown


def test_a_profile_alone_does_not_make_a_daemon_conformant(
    memconform: Callable[..., Ended],
) -> None:
    sdk = CHECKOUT / "sdks" / "examples" / "minimal"
    ended = memconform("conform", "--sdk", sdk, "--profile", "core", "--case", "version")
    assert ended.code == 0, ended.err
    assert re.fullmatch(
        r"minimal, profile core, case version: (\d+) of \1 checks pass in 1 case variant;"
        r" other rules were not tested\n",
        ended.out,
    )


# All cases take 240 s of CPU on ts or py, 150 of them for the cases that restart the daemon. In CI,
# each case runs on one daemon, mostly on go, which starts fastest; by night, all run on all.
# test_kills and test_hostile_state test for each SDK what a kill or a restart leaves.
WITHOUT_RESTARTS = list(dict.fromkeys(entry.base for entry in catalog() if not entry.is_disruptive))
WITH_RESTARTS = list(dict.fromkeys(entry.base for entry in catalog() if entry.is_disruptive))


def _without_restarts(*sixths: int) -> list[str]:
    return _selected([case for at in sixths for case in WITHOUT_RESTARTS[at::6]])


def _selected(bases: Sequence[str]) -> list[str]:
    return [part for base in bases for part in ("--case", base)]


@pytest.mark.timeout(1_500)  # all on all take 200 s alone; 1,000 s were seen beside other load
@pytest.mark.parametrize(
    ("sdks", "cases"),
    [
        pytest.param(
            SDKS,
            ("--profile", "auth"),
            id="auth",
            marks=[pytest.mark.sampled, pytest.mark.capability("conform")],
        ),
        pytest.param(
            ("go",),
            [*_without_restarts(2, 3, 4, 5), *_selected(WITH_RESTARTS)],
            id="go, most and all restarts",
            marks=pytest.mark.exhaustive,
        ),
        pytest.param(("ts",), _without_restarts(0), id="ts, a sixth", marks=pytest.mark.exhaustive),
        pytest.param(("py",), _without_restarts(1), id="py, a sixth", marks=pytest.mark.exhaustive),
        pytest.param(SDKS, (), id="all", marks=pytest.mark.slow),
    ],
)
def test_the_reference_daemons_are_conformant_without_known_failures(
    sdks: Sequence[str],
    cases: Sequence[str],
    memconform: Callable[..., Ended],
    workspace: Path,
) -> None:
    here = [sdk for sdk in runnable() if sdk in sdks]
    if not here:
        pytest.skip(f"{', '.join(sdks)} cannot run here")
    chosen = [part for sdk in here for part in ("--sdk", CHECKOUT / "sdks" / sdk)]
    ended = memconform("conform", *chosen, *cases, "--json", "c.json", timeout=1_450)
    assert ended.code == 0, ended.err
    for sdk in _report(workspace / "c.json")["sdks"]:
        results = {
            check["result"]
            for case in sdk["cases"]
            # The references claim every reader and every embedder, and store below $JB_HOME.
            if not case["case"].startswith(("start-unclaimed-", "state-disk-full-stored"))
            for check in case["checks"]
        }
        assert results == {"pass"}, sdk["sdk"]


def test_a_failure_is_reported_with_its_evidence(
    memconform: Callable[..., Ended], broken: Callable[..., Path], workspace: Path
) -> None:
    manifest = broken(CONFLICT_TAKEN)
    files = ("--json", "c.json", "--junit", "j.xml", "--markdown", "m.md")
    ended = memconform("conform", "--sdk", manifest, *QUICK, *files)
    assert ended.code == 1
    output = ended.err[ended.err.index("FAIL       proxied brain-create#again") :]
    assert f"rule      {_CREATE_RULE}" in output
    assert "expected  problem conflict (409)" in output
    assert "got       expected status 409, got 200" in output
    assert re.search(r"try +curl .*/v1/brains -H .* --data-raw '\{\"brainId\":\"mc-", output)
    assert "NOT conformant" in ended.out
    [run] = (workspace / "results" / "runs").iterdir()
    command = f"memconform conform replay results/runs/{run.name} 'proxied:brain-create#again'"
    assert re.search(rf"^    replay +{re.escape(command)}$", output, re.MULTILINE)
    results = _results(_report(workspace / "c.json"))
    red = {check for check, result in results.items() if result == "fail"}
    assert red == {"brain-create#again", "brain-create#wire"}
    XSD.validate(workspace / "j.xml")
    junit = (workspace / "j.xml").read_text(encoding="utf-8")
    assert 'failures="2"' in junit
    markdown = (workspace / "m.md").read_text(encoding="utf-8")
    assert "**2 checks in 1 case**: POST /v1/brains: status 200, expected 409" in markdown
    assert "**fail** `brain-create#again`" in markdown
    assert "curl -sS" in markdown
    [wire] = (workspace / "results" / "runs").glob("*/wire/proxied/brain-create.txt")
    assert b"HTTP/1.1 200" in wire.read_bytes()


def test_findings_are_grouped_listed_and_written_as_known(
    memconform: Callable[..., Ended], broken: Callable[..., Path], workspace: Path
) -> None:
    manifest = broken(CONFLICT_TAKEN)
    ended = memconform("conform", "--sdk", manifest, *QUICK, "--write-known", "known.yaml")
    assert "2 checks in 1 case: POST /v1/brains: status 200, expected 409" in ended.err
    assert "proxied: 2 red checks, 1 cause\n" in ended.err
    [run] = (workspace / "results" / "runs").iterdir()
    listed = memconform("conform", "findings", run.name, "--cause", "*: status 200, *")
    assert listed.code == 0
    assert "FAIL       proxied brain-create#again" in listed.out
    assert "FAIL       proxied brain-create#wire" in listed.out
    assert listed.err == "2 checks did not pass\n"
    assert memconform("conform", "findings", run.name, "--cause", "nothing").code == 4
    unfinished = memconform("conform", "--sdk", manifest, *QUICK, "--known", "known.yaml")
    assert (unfinished.code, "address of your issue" in unfinished.err) == (2, True)
    # A list with reasons that somebody wrote is never overwritten.
    assert memconform("conform", "--sdk", manifest, "--write-known", "known.yaml").code == 2
    text = (workspace / "known.yaml").read_text().replace("TODO", "https://example.org/1")
    (workspace / "known.yaml").write_text(text)
    ended = memconform("conform", "--sdk", manifest, *QUICK, "--known", "known.yaml")
    assert (ended.code, "2 xfail" in ended.out) == (0, True)


def test_replay_shows_the_exchange_again(
    memconform: Callable[..., Ended], broken: Callable[..., Path], workspace: Path
) -> None:
    manifest = broken(CONFLICT_TAKEN)
    memconform("conform", "--sdk", manifest, *QUICK)
    [run] = (workspace / "results" / "runs").iterdir()
    ended = memconform("conform", "replay", run.name, "proxied:brain-create#again")
    assert ended.code == 1
    assert "> POST /v1/brains HTTP/1.1" in ended.out
    assert "FAIL       proxied brain-create#again" in ended.err
    broken()
    assert memconform("conform", "replay", str(run), "brain-create").code == 0
    assert memconform("conform", "replay", run.name, "brain-craete").code == 2
    assert memconform("conform", "replay", "nothing", "brain-create").code == 2
    assert memconform("conform", "replay", run.name, "go:brain-create").code == 2


def test_stops_at_the_first_failing_check_if_requested(
    memconform: Callable[..., Ended], broken: Callable[..., Path], workspace: Path
) -> None:
    manifest = broken(CONFLICT_TAKEN)
    ended = memconform("conform", "--sdk", manifest, *QUICK, "-x", "--json", "c.json")
    assert ended.code == 1
    results = _results(_report(workspace / "c.json"))
    assert results["search-empty-brain[bm25]#empty"] == "not_applicable"


@pytest.mark.parametrize(
    ("known", "mutation", "code", "output"),
    [
        ("check: brain-create#*", CONFLICT_TAKEN, 1, "1 xfail"),
        ("check: '*'\n  kind: flaky", CONFLICT_TAKEN, 1, "brain-create#wire"),
        (
            "check: brain-create#[aw]*",
            CONFLICT_TAKEN,
            2,
            "matches no check",
        ),
        ("check: brain-create#again", CONFLICT_TAKEN, 1, "1 xfail"),
        ("check: brain-create#again", {}, 1, "1 xpass"),
        ("check: brain-create#again\n  kind: flaky", {}, 0, "other rules were not tested"),
        ("check: brain-craete#again", {}, 2, "matches no check"),
    ],
)
def test_known_failures(
    known: str,
    mutation: dict[str, Any],
    code: int,
    output: str,
    memconform: Callable[..., Ended],
    broken: Callable[..., Path],
    workspace: Path,
) -> None:
    (workspace / "known.yaml").write_text(
        f"- {known}\n  reason: of a test\n  link: https://example.org/1\n  expires: 2999-01-31\n"
    )
    ended = memconform("conform", "--sdk", broken(mutation), *QUICK, "--known", "known.yaml")
    assert ended.code == code, ended.err
    assert output in ended.out + ended.err


def test_known_failures_of_a_manifest_change_the_verdict(
    memconform: Callable[..., Ended], broken: Callable[..., Path], workspace: Path
) -> None:
    entry = "  reason: x\n  link: https://example.org/1\n  expires: 2999-01-31\n"
    cause = "POST /v1/brains: status 200, expected 409"
    (workspace / "mine.yaml").write_text(f'- cause: "{cause}"\n{entry}')
    manifest = broken(CONFLICT_TAKEN, known="mine.yaml")
    ended = memconform("conform", "--sdk", manifest, *QUICK)
    assert ended.code == 0, ended.err
    assert "2 xfail; other rules were not tested" in ended.out
    expired = entry.replace("2999", "2020")
    (workspace / "mine.yaml").write_text(f"- check: brain-create#again\n{expired}")
    ended = memconform("conform", "--sdk", manifest, *QUICK)
    assert (ended.code, "expired on 2020-01-31" in ended.err) == (2, True)


def test_a_daemon_without_an_applicable_check_is_not_conformant(
    memconform: Callable[..., Ended],
) -> None:
    minimal = CHECKOUT / "sdks" / "examples" / "minimal"
    ended = memconform("conform", "--sdk", minimal, "--profile", "auth")
    assert ended.code == 4
    assert ended.out == (
        "minimal, profile auth: no selected check applies, because profile auth is not claimed:"
        " no verdict\n"
    )


def test_nothing_selected_is_an_error(memconform: Callable[..., Ended]) -> None:
    ended = memconform("conform", "--sdk", "py", "--case", "nothing-*")
    assert (ended.code, "no case matches" in ended.err) == (4, True)
    assert memconform("conform", "--sdk", "py", "--profile", "nothing").code == 2
    assert memconform("conform").code == 2


def test_modes_that_are_not_claimed_are_not_requested(
    memconform: Callable[..., Ended], broken: Callable[..., Path], workspace: Path
) -> None:
    manifest = broken(modes=("auto", "bm25"))
    case = ("--case", "search-empty-brain", "--json", "c.json")
    assert memconform("conform", "--sdk", manifest, *case).code == 0
    results = _results(_report(workspace / "c.json"))
    assert results["search-empty-brain[bm25]#empty"] == "pass"
    assert results["search-empty-brain[semantic]#empty"] == "not_applicable"


def test_a_daemon_that_dies_is_reported_and_the_other_cases_run(
    memconform: Callable[..., Ended], broken: Callable[..., Path], workspace: Path
) -> None:
    manifest = broken({"dies_of": "mc-search-empty-brain-auto-[0-9a-f]+/search"})
    ended = memconform("conform", "--sdk", manifest, *QUICK, "--json", "c.json")
    assert ended.code == 1
    results = _results(_report(workspace / "c.json"))
    assert results["search-empty-brain[auto]#alive"] == "fail"
    assert results["search-empty-brain[bm25]#empty"] == "pass"
    assert results["search-empty-brain[bm25]#alive"] == "pass"


def test_a_daemon_that_does_not_start_is_untestable(
    memconform: Callable[..., Ended], scripted: Callable[..., Path], workspace: Path
) -> None:
    ended = memconform("conform", "--sdk", scripted("exits"), *QUICK, "--json", "c.json")
    assert ended.code == 3
    assert "scripted: exiting at once" in ended.err
    results = _results(_report(workspace / "c.json"))
    assert set(results.values()) <= {"untestable", "not_applicable"}


def test_only_observable_behaviour_of_a_running_daemon_is_tested(
    memconform: Callable[..., Ended],
    environment: dict[str, str],
    workspace: Path,
) -> None:
    src = str(CHECKOUT / "sdks" / "py" / "src")
    command = [str(PROGRAM.with_name("python")), "-m", "memoryd", "serve", "--addr", "127.0.0.1:0"]
    state = workspace / "state"
    state.mkdir()
    with subprocess.Popen(
        [*command, "--root", str(state)],
        env=environment | {"PYTHONPATH": src},
        stdout=subprocess.PIPE,
        text=True,
    ) as daemon:
        try:
            assert daemon.stdout is not None
            url = daemon.stdout.readline().removeprefix("listening on ").strip()
            good = memconform("conform", "--sdk", f"url:{url}", "--case", "brain-create")
            assert good.code == 0, good.err
            disk = memconform(
                "conform", "--sdk", f"url:{url}", "--case", "state-files", "--case", "stop"
            )
            assert disk.code == 3
            assert "was not started by memconform" in disk.err
            assert daemon.poll() is None
        finally:
            daemon.terminate()


@pytest.mark.exhaustive
def test_two_runs_report_the_same_in_the_same_order(
    memconform: Callable[..., Ended], broken: Callable[..., Path], workspace: Path
) -> None:
    manifest = broken({"when": {"target": "/search"}, "edits": [{"at": "/chunks", "set": None}]})
    orders = []
    for name in ("a.json", "b.json"):
        memconform(
            "conform", "--sdk", manifest, "--case", "search-e*", "--case", "health*", "--json", name
        )
        report = _report(workspace / name)
        orders.append(
            [
                (c["id"], c["result"], c["got"])
                for s in report["sdks"]
                for k in s["cases"]
                for c in k["checks"]
            ]
        )
    assert orders[0] == orders[1]


@pytest.mark.parametrize("signal_number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_leaves_no_daemon(
    broken: Callable[..., Path],
    environment: dict[str, str],
    workspace: Path,
    signal_number: signal.Signals,
) -> None:
    with subprocess.Popen(
        [PROGRAM, "conform", "--sdk", str(broken()), "--case", "ingest*"],
        cwd=workspace,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as run:
        wait_until(lambda: processes_of(workspace))
        run.send_signal(signal_number)
        run.communicate(timeout=WAIT_SECONDS)
    assert run.returncode == 130
    assert processes_of(workspace) == []


def test_list_explain_and_lint(memconform: Callable[..., Ended], workspace: Path) -> None:
    listed = json.loads(memconform("conform", "list", "--json", "-").out)["cases"]
    assert [case["id"] for case in listed] == [entry.id for entry in catalog()]
    explained = memconform("conform", "explain", "brain-create#again").out
    assert f"rule {_CREATE_RULE.replace(' (interchange)', '')}" in explained
    assert "#again: problem conflict (409)" in explained
    location = re.search(r"defined in (.+):(\d+)$", explained, re.MULTILINE)
    assert location is not None
    defined = Path(location[1]).read_text(encoding="utf-8").splitlines()[int(location[2]) - 1]
    assert defined == "- id: brain-create"
    assert "then: http: POST /v1/brains json: {" in explained
    assert memconform("conform", "explain", "brain-craete").code == 2
    ended = memconform("conform", "lint")
    assert (ended.code, "0 rules without a case" in ended.out) == (0, True)
    (workspace / "mine").mkdir()
    (workspace / "mine" / "bad.yaml").write_text("- id: x\n  id: y\n")
    ended = memconform("conform", "lint", "--cases", "mine")
    assert (ended.code, "bad.yaml:2" in ended.err) == (2, True)
    schema = json.loads(memconform("conform", "lint", "--schema").out)
    Draft202012Validator.check_schema(schema)
