"""How the address of a running daemon is written, and what is refused for such a daemon."""

from pathlib import Path

import pytest

from memconform.bench.raw_http import RawExchange, RawRequest, serving
from memconform.client.timings import Timeouts
from memconform.contract.names import Mode, Profile
from memconform.daemons.discovery import find_runner
from memconform.daemons.sdk_runner import Launch
from memconform.daemons.url_runner import UrlRunner
from memconform.datasets.registry import open_dataset
from memconform.datasets.selection import Selection, select
from memconform.errors import DaemonError, UsageError
from memconform.ingest.documents import ReferenceAnswers
from memconform.measuring.daemon_session import daemon_session
from memconform.printing.errors import render_error
from memconform.runs.plan import Plan, Settings
from memconform.runs.preflight import brain_verifier
from memconform.runs.remedies import remedies
from memconform.scoring.exact import ExactScorer
from tests.adversarial.inprocess import write_dataset
from tests.fakes.scripted import ScriptedDaemon

_URL = "http://127.0.0.1:8080"
_MANIFEST = f"""
name = "mine"
language = "cobol"
[serve]
url = "{_URL}"
[capabilities]
profiles = ["core"]
modes = ["bm25"]
"""


def _runner(reference: str, folder: Path) -> UrlRunner:
    runner = find_runner(reference, folder)
    assert isinstance(runner, UrlRunner)
    return runner


def _write(folder: Path, content: str) -> str:
    path = folder / "sdk.toml"
    path.write_text(content)
    return str(path)


def test_a_shipped_dialect_is_named_after_the_address(tmp_path: Path) -> None:
    runner = _runner(f"url:{_URL},dialect=jeffs-brain", tmp_path)
    assert runner.url == _URL
    assert runner.dialect is not None
    assert runner.dialect.name == "jeffs-brain"
    # Its ingest/file changes paths.
    assert runner.seed.via == "documents"
    assert _runner(f"url:{_URL}", tmp_path).dialect is None


@pytest.mark.parametrize(
    "content",
    [
        'keys = "snake"\nseed_via = "batch"\n',
        '[dialect]\nkeys = "snake"\nseed_via = "batch"\n',
        '[dialect]\nlike = "jeffs-brain"\nkeys = "snake"\nseed_via = "batch"\n',
    ],
)
def test_a_dialect_is_read_from_a_file_with_its_keys_or_its_table(
    tmp_path: Path, content: str
) -> None:
    file = tmp_path / "dialect.toml"
    file.write_text(content)
    runner = _runner(f"url:{_URL},dialect={file}", tmp_path)
    assert runner.dialect is not None
    assert (runner.dialect.keys, runner.seed.via) == ("snake", "batch")


def test_a_daemon_on_another_machine_is_no_error(tmp_path: Path) -> None:
    runner = _runner("url:https://memory.example.com,dialect=jeffs-brain", tmp_path)
    assert runner.name == "url-memory-example-com"
    assert not runner.managed


@pytest.mark.parametrize(
    ("setting", "code", "says"),
    [
        ("dialct=jeffs-brain", "bad_url", "unknown key 'dialct'; did you mean 'dialect'?"),
        ("", "bad_url", "unknown key ''"),
        ("seed=documents", "bad_url", "unknown key 'seed'"),
        ("dialect=jefs-brain", "bad_dialect", "did you mean 'jeffs-brain'?"),
        ("dialect=", "bad_dialect", "unknown dialect ''"),
        ("dialect=missing.toml", "bad_dialect", "No such file"),
        ("dialect=broken.toml", "bad_dialect", "Invalid value"),
        ("dialect=misspelt.toml", "bad_dialect", "key: unknown key; did you mean 'keys'?"),
        ("dialect=route.toml", "bad_dialect", 'write "METHOD /path"'),
    ],
)
def test_what_follows_the_address_must_name_a_dialect(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, setting: str, code: str, says: str
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("broken.toml").write_text("keys = ")
    Path("misspelt.toml").write_text('[dialect]\nkey = "snake"\n')
    Path("route.toml").write_text('[routes]\nsearch = "/find"\n')
    with pytest.raises(UsageError) as raised:
        find_runner(f"url:{_URL},{setting}", tmp_path)
    assert raised.value.code == code
    assert says in render_error(raised.value)


def test_a_manifest_may_say_where_the_daemon_already_runs(tmp_path: Path) -> None:
    more = 'dialect = "jeffs-brain"\n[serve]'
    runner = _runner(_write(tmp_path, _MANIFEST.replace("[serve]", more)), tmp_path)
    assert (runner.name, runner.language, runner.url) == ("mine", "cobol", _URL)
    assert (runner.profiles, runner.modes) == ((Profile.CORE,), (Mode.BM25,))
    assert runner.dialect is not None
    assert runner.seed.via == "documents"
    own = _MANIFEST.replace("[serve]", f'{more[:-7]}[seed]\nvia = "http"\n[serve]')
    assert _runner(_write(tmp_path, own), tmp_path).seed.via == "http"


@pytest.mark.parametrize(
    ("more", "says"),
    [
        ("[seed]\nrestart = true", "[seed] restart: memconform does not start"),
        ('[seed]\nrestart = "vectors"', "[seed] restart: memconform does not start"),
        ('[seed]\nvia = "disk"', "[seed] via: memconform does not start"),
        ("[env]\nset = {A = 'b'}", "[env]: memconform does not start"),
        ("[upstream]\nmodes = ['semantic']", "[upstream]: memconform does not start"),
        ("[build]\ncommand = ['true']\ninputs = ['*']", "[build]: memconform does not start"),
    ],
)
def test_what_needs_a_daemon_that_memconform_starts_is_refused(
    tmp_path: Path, more: str, says: str
) -> None:
    with pytest.raises(UsageError) as raised:
        find_runner(_write(tmp_path, f"{_MANIFEST}{more}\n"), tmp_path)
    assert raised.value.code == "manifest_invalid"
    assert says in raised.value.excerpt


@pytest.mark.parametrize(
    ("serve", "says"),
    [
        ("argv = ['x']\nurl = 'http://127.0.0.1:1'", "[serve] url: a daemon that already runs"),
        ("port = 'announced'\nurl = 'http://127.0.0.1:1'", "[serve] port: memconform does not"),
        ("argv = []", "[serve] argv: must not be empty"),
        ("port = 'announced'", "[serve] argv: missing"),
        ("urls = 'http://127.0.0.1:1'", "did you mean 'url'?"),
        ("url = 'memory:8080'", "is not a valid daemon address"),
    ],
)
def test_a_daemon_is_either_started_or_runs_already(tmp_path: Path, serve: str, says: str) -> None:
    with pytest.raises(UsageError) as raised:
        find_runner(_write(tmp_path, _MANIFEST.replace(f'url = "{_URL}"', serve)), tmp_path)
    assert says in render_error(raised.value)


async def _up(request: RawRequest, exchange: RawExchange) -> None:
    await exchange.json({}, 202 if request.path == "/up" else 503)


async def _serve(runner: UrlRunner, folder: Path) -> None:
    async with runner.serve(Launch(run_id="r", folder=folder)):
        pass


async def test_a_running_daemon_is_healthy_by_its_own_route(tmp_path: Path) -> None:
    file = tmp_path / "dialect.toml"
    file.write_text('routes = {health = "GET /up"}\nstatuses = {health = 202}\n')
    async with serving(_up, "127.0.0.1", 0) as port:
        await _serve(_runner(f"url:http://127.0.0.1:{port},dialect={file}", tmp_path), tmp_path)
        with pytest.raises(DaemonError) as raised:
            await _serve(_runner(f"url:http://127.0.0.1:{port}", tmp_path), tmp_path)
    assert raised.value.code == "daemon_unhealthy"
    assert "[dialect.routes] health" in raised.value.hint
    with pytest.raises(DaemonError) as raised:
        await _serve(_runner(f"url:http://127.0.0.1:{port},dialect={file}", tmp_path), tmp_path)
    assert raised.value.code == "daemon_unreachable"


class _RefusesDocuments(ScriptedDaemon):
    """Creates brains, and takes no document."""

    async def answer(self, request: RawRequest, exchange: RawExchange) -> None:
        if "/ingest/" in request.path:
            await exchange.problem(500, "internal_error", "full")
        else:
            await super().answer(request, exchange)


async def test_a_brain_whose_seeding_failed_does_not_remain(tmp_path: Path) -> None:
    selected = select(open_dataset(str(write_dataset(tmp_path))), Selection())
    settings = Settings(
        dataset=selected.dataset.name,
        dataset_sha256=selected.dataset.sha256,
        questions=selected.size,
        scenario="search-retrieve-only",
        mode=Mode.BM25,
    )
    corpus = ReferenceAnswers(selected.dataset)
    plan = Plan(
        settings, selected=selected, output=tmp_path, floors=(), scorer=ExactScorer(), corpus=corpus
    )
    async with serving(_RefusesDocuments("", "", None).answer, "127.0.0.1", 0) as port:
        runner = UrlRunner(f"http://127.0.0.1:{port}")
        launch = Launch(run_id="r", folder=tmp_path / "r")
        session = daemon_session(
            runner, launch, "own", connections=2, timeouts=Timeouts(), headers={}
        )
        async with session as opened:
            with pytest.raises(DaemonError) as raised:
                async with brain_verifier(plan, runner, opened, "mc-left"):
                    pass
            assert raised.value.code == "seed_failed"
            assert "mc-left" not in await opened.client.list_brains()


def test_no_restart_is_suggested_for_a_daemon_that_memconform_did_not_start(
    tmp_path: Path,
) -> None:
    error = DaemonError("nothing found", code="not_searchable", hint="")
    running = _runner(f"url:{_URL},dialect=jeffs-brain", tmp_path)
    started = find_runner(
        _write(tmp_path, _MANIFEST.replace(f'url = "{_URL}"', "argv = ['x']")), tmp_path
    )
    assert not any("restart" in r.line for r in remedies("ingest", error, [], running))
    assert any("restart" in r.line for r in remedies("ingest", error, [], started))
