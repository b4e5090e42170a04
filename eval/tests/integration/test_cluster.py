"""`--executor`: shards on clusters whose workers and schedulers come, go and differ."""

import json
import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Self

import psutil
import pytest
from distributed import Client

from tests.conftest import REQUIRE_ALL, Ended
from tests.integration.lme_replay import BULK, MODEL, NO_FILTER, PRICED, write_sdk
from tests.integration.scripted_llm import Service
from tests.lme_data import write_dataset
from tests.merged_results import comparable
from tests.program import PROGRAM
from tests.waiting import wait_until

Call = Callable[..., Ended]

_SEARCH = ("--scenario", "search-retrieve-only", "--mode", "bm25")
_LOCAL = ("--executor", "dask:local?workers=2")
_CORRECT = '{"reason": "it is", "verdict": "correct", "score": 1}'
_HANGS = 'test -e go || set -- "$@" --fault hangs --on box7?'
"""Before the file `go` exists, a daemon does not answer one question."""


def _worker_pid(file: Path) -> str:
    """Shell code that notes, once, the process of the worker that a daemon runs below."""
    # Spelled so that no process is taken for a worker that has this code in its command line.
    code = "import psutil; print(next(p.pid for p in psutil.Process().parents()"
    code += " if any(chr(115) + 'pawn_main' in word for word in p.cmdline())))"
    return f'test -e {file} || {sys.executable} -c "{code}" > {file}'


def _only(folder: Path) -> Path:
    [path] = (folder / "runs").glob("*/result.json")
    return path


def _run(sdk: Path, dataset: Path, *more: str | Path) -> list[str | Path]:
    return ["run", "--sdk", sdk, "--data", dataset, *_SEARCH, *more]


def _whole(call: Call, workspace: Path, sdk: Path, dataset: Path) -> str:
    """The result of the same work on one machine."""
    ended = call(*_run(sdk, dataset, "--output", "whole"))
    assert ended.code == 0, ended.err
    return comparable(_only(workspace / "whole"))


@contextmanager
def _started(
    *argv: str | Path, folder: Path, environment: Mapping[str, str]
) -> Iterator[subprocess.Popen[bytes]]:
    """A process that is killed at the end, with the group that it leads."""
    with (folder / "output.txt").open("ab") as output:
        process = subprocess.Popen(
            argv,
            cwd=folder,
            env=environment,
            start_new_session=True,
            stdout=output,
            stderr=output,
        )
    try:
        yield process
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def free_port() -> int:
    """A port that nothing has now: a scheduler that restarts must have the same one."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        port: int = server.getsockname()[1]
    return port


class Cluster:
    """A scheduler and workers, each started as a lab would."""

    def __init__(self, folder: Path, environment: Mapping[str, str]) -> None:
        self._folder = folder
        self._environment = environment
        self._stack = ExitStack()
        self.port = free_port()

    def __enter__(self) -> Self:
        self.scheduler = self.start_scheduler()
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    @property
    def flags(self) -> tuple[str, ...]:
        return ("--executor", f"dask://127.0.0.1:{self.port}")

    def start_scheduler(self) -> subprocess.Popen[bytes]:
        """Start a scheduler; workers and commands wait for it by themselves."""
        return self._start(
            "scheduler",
            "--host",
            "127.0.0.1",
            "--port",
            str(self.port),
            "--dashboard-address",
            "127.0.0.1:0",
        )

    def start_worker(
        self,
        name: str,
        *,
        prefix: Sequence[str] = (),
        flags: Sequence[str] = (),
        **variables: str,
    ) -> subprocess.Popen[bytes]:
        """Start a worker in a folder of its own."""
        folder = self._folder / name
        folder.mkdir()
        own = (
            *("--nthreads", "1", "--name", name, "--no-nanny", "--host", "127.0.0.1"),
            *("--dashboard-address", "127.0.0.1:0", "--local-directory", str(folder)),
            *("--memory-limit", "0", "--death-timeout", "600"),
        )
        scheduler = f"tcp://127.0.0.1:{self.port}"
        return self._start(
            "worker", scheduler, *own, *flags, prefix=prefix, folder=folder, **variables
        )

    def _start(
        self,
        kind: str,
        *flags: str,
        prefix: Sequence[str] = (),
        folder: Path | None = None,
        **variables: str,
    ) -> subprocess.Popen[bytes]:
        program = Path(sys.executable).with_name("dask")
        return self._stack.enter_context(
            _started(
                *prefix,
                program,
                kind,
                *flags,
                folder=folder or self._folder,
                environment={**self._environment, **variables},
            )
        )


@pytest.fixture
def cluster(workspace: Path, environment: dict[str, str]) -> Iterator[Cluster]:
    with Cluster(workspace, environment) as made:
        yield made


@pytest.mark.capability("executor")
def test_a_worker_that_is_killed_in_the_middle(
    installed: Call, workspace: Path, dataset: Path
) -> None:
    """It leaves no daemon behind, and the result is that of one machine."""
    note = workspace / "asked.txt"
    pid = note.with_suffix(".pid")
    sdk = write_sdk(workspace, fault="kills_other", on="box7?", note=note, first=_worker_pid(pid))
    spread = installed(*_run(sdk, dataset, "--shards", "3", *_LOCAL, "--output", "out"))
    assert spread.code == 0, spread.err
    assert not psutil.pid_exists(int(pid.read_text()))
    assert _processes(str(note)) == []
    assert not (workspace / "out" / "shards").exists()
    assert comparable(_only(workspace / "out")) == _whole(installed, workspace, sdk, dataset)


def _processes(word: str) -> list[int]:
    """Processes that have a word in their command line."""
    found = psutil.process_iter(["cmdline"])
    return [each.pid for each in found if word in " ".join(each.info["cmdline"] or ())]


def test_an_interrupted_command_continues_on_other_workers(
    workspace: Path, dataset: Path, environment: dict[str, str], installed: Call
) -> None:
    note = workspace / "asked.txt"
    sdk = write_sdk(workspace, note=note, first=_HANGS)
    command = _run(sdk, dataset, "--shards", "2", "--output", "out")
    with _started(
        PROGRAM,
        *command,
        "--executor",
        "dask:local?workers=2",
        folder=workspace,
        environment=environment,
    ) as process:
        # What was measured before the question that hangs is on this machine, as is another shard.
        wait_until(lambda: [*(workspace / "out").glob("shards/*/shard.json")])
        wait_until(lambda: _answered(workspace / "out") >= 1)
        taken = installed(*command, *_LOCAL)
        assert (taken.code, "output_in_use" in taken.err) == (2, True)
        # As a terminal sends it: to all processes.
        os.killpg(process.pid, signal.SIGINT)
        assert process.wait() == 130
    assert "Traceback" not in (workspace / "output.txt").read_text()
    assert _processes(str(note)) == []
    (workspace / "go").touch()
    done = [
        question["question"]
        for path in (workspace / "out").glob("shards/*/runs/*/result.json")
        for question in json.loads(path.read_text())["questions"]
    ]
    assert done
    note.unlink()
    again = installed(*command, "--executor", "dask:local?workers=1")
    assert again.code == 0, again.err
    # The shard that had ended is not done again.
    assert set(done).isdisjoint(note.read_text().splitlines())
    assert comparable(_only(workspace / "out")) == _whole(installed, workspace, sdk, dataset)


def _answered(output: Path) -> int:
    """Answers in the journals of shards that have not ended."""
    journals = [
        path
        for path in output.glob("shards/*/runs/*/journal.jsonl")
        if not (path.parents[2] / "shard.json").exists()
    ]
    return sum(path.read_text().count('"judgement"') for path in journals)


def test_a_scheduler_that_restarts(
    workspace: Path, dataset: Path, environment: dict[str, str], cluster: Cluster, installed: Call
) -> None:
    """The command waits for it, and continues from what had come back."""
    sdk = write_sdk(workspace, first=f"cd {workspace}; {_HANGS}")
    first_worker = cluster.start_worker("one")
    command = _run(sdk, dataset, "--shards", "2", *cluster.flags, "--output", "out")
    with _started(PROGRAM, *command, folder=workspace, environment=environment) as process:
        wait_until(lambda: _answered(workspace / "out") >= 1)
        for each in (cluster.scheduler, first_worker):
            os.killpg(each.pid, signal.SIGKILL)
            each.wait()
        (workspace / "go").touch()
        cluster.start_scheduler()
        # A worker that is added later.
        cluster.start_worker("two")
        assert process.wait() == 0
    assert comparable(_only(workspace / "out")) == _whole(installed, workspace, sdk, dataset)


_ON_A_FULL_DISK = (
    *("unshare", "--user", "--map-root-user", "--mount", "--", "sh", "-c"),
    'mount -t tmpfs -o size=16k memory "$0" && exec "$@"',
)


@pytest.mark.parametrize("kind", ["tool", "disk", "version"])
def test_a_worker_that_cannot_leaves_its_shards_to_others(
    workspace: Path,
    dataset: Path,
    environment: dict[str, str],
    cluster: Cluster,
    installed: Call,
    kind: str,
) -> None:
    sdk, here = write_sdk(workspace), workspace / "here"
    here.mkdir()
    fit: dict[str, str] = {}
    if kind == "tool":
        (here / "mytool").symlink_to("/bin/true")
        sdk.write_text('requires = ["mytool"]\n' + sdk.read_text())
        fit["PATH"] = f"{here}{os.pathsep}{environment['PATH']}"
        cluster.start_worker("poor")
    elif kind == "disk":
        mounts = subprocess.run([*_ON_A_FULL_DISK, str(here), "true"], check=False).returncode == 0
        if not (mounts or REQUIRE_ALL):
            pytest.skip("unshare cannot mount a file system here: no disk is filled")
        cluster.start_worker("poor", prefix=(*_ON_A_FULL_DISK, str(here)), TMPDIR=str(here))
    else:
        (here / "older.py").write_text("import memconform\nmemconform.__version__ = '0.0.1'\n")
        cluster.start_worker("poor", flags=("--preload", str(here / "older.py")))
    command = _run(sdk, dataset, "--shards", "2", *cluster.flags, "--output", "out")
    # With no other worker, the command ends and says why; what it has is kept.
    lacking = installed(*command)
    assert lacking.code == 3, lacking.err
    assert "no_fit_worker" in lacking.err
    why = {
        "tool": "toolchain_missing: scripted needs 'mytool'",
        # Whichever file was the first one that had no room.
        "disk": "No space left on device|could not say why|disk_full|_unwritable",
        "version": "it has memconform 0.0.1",
    }
    assert re.search(why[kind], lacking.err)
    cluster.start_worker("rich", **fit)
    wait_until(lambda: "name: rich" in (workspace / "output.txt").read_text())
    again = installed(*command)
    assert again.code == 0, again.err
    environment |= fit
    assert comparable(_only(workspace / "out")) == _whole(installed, workspace, sdk, dataset)


def test_a_shard_whose_fit_workers_have_left_goes_to_a_new_one(
    workspace: Path, dataset: Path, environment: dict[str, str], cluster: Cluster, installed: Call
) -> None:
    """It waited for ever for the workers that were there when another one could not do it."""
    tools = workspace / "tools"
    tools.mkdir()
    (tools / "mytool").symlink_to("/bin/true")
    fit = {"PATH": f"{tools}{os.pathsep}{environment['PATH']}"}
    sdk = write_sdk(workspace, first=f"cd {workspace}; {_HANGS}")
    sdk.write_text('requires = ["mytool"]\n' + sdk.read_text())
    cluster.start_worker("poor")
    rich = cluster.start_worker("rich", **fit)
    wait_until(lambda: (workspace / "output.txt").read_text().count("Register worker") == 2)
    command = _run(sdk, dataset, "--shards", "2", *cluster.flags, "--output", "out")
    with _started(PROGRAM, *command, folder=workspace, environment=environment) as process:
        wait_until(lambda: _answered(workspace / "out") >= 1)
        cluster.start_worker("other", **fit)
        wait_until(lambda: "name: other" in (workspace / "output.txt").read_text())
        os.killpg(rich.pid, signal.SIGKILL)
        rich.wait()
        (workspace / "go").touch()
        assert process.wait() == 0
    environment |= fit
    assert comparable(_only(workspace / "out")) == _whole(installed, workspace, sdk, dataset)


def test_a_worker_that_is_drained_in_the_middle(
    workspace: Path, dataset: Path, environment: dict[str, str], cluster: Cluster, installed: Call
) -> None:
    """A shard of a worker that is to leave goes on at another one."""
    note = workspace / "asked.txt"
    sdk = write_sdk(workspace, note=note, first=f"cd {workspace}; {_HANGS}")
    cluster.start_worker("one")
    command = _run(sdk, dataset, "--shards", "2", *cluster.flags, "--output", "out")
    with _started(PROGRAM, *command, folder=workspace, environment=environment) as process:
        wait_until(lambda: _answered(workspace / "out") >= 1)
        (workspace / "go").touch()
        cluster.start_worker("two")
        wait_until(lambda: "name: two" in (workspace / "output.txt").read_text())
        with Client(f"tcp://127.0.0.1:{cluster.port}") as client:
            client.retire_workers(names=["one"])
        assert process.wait() == 0
    assert _processes(str(note)) == []
    assert comparable(_only(workspace / "out")) == _whole(installed, workspace, sdk, dataset)


def test_inputs_reach_workers_that_do_not_see_them(
    workspace: Path, dataset: Path, cluster: Cluster, installed: Call
) -> None:
    """The paths are hidden after the command has packed them."""
    sdk = write_sdk(workspace)
    expected = _whole(installed, workspace, sdk, dataset)
    worker = cluster.start_worker("one")
    spread = installed(*_run(sdk, dataset, "--shards", "2", *cluster.flags, "--output", "out"))
    assert spread.code == 0, spread.err
    assert worker.poll() is None
    result = json.loads(_only(workspace / "out").read_text())
    # Later commands find the data where the result says.
    assert result["provenance"]["dataset_path"] == str(dataset)
    for part in result["provenance"]["parts"]:
        given = [word for word in part["command"] if word.endswith((".toml", ".jsonl"))]
        assert given == [str(sdk), str(dataset)]
    assert comparable(_only(workspace / "out")) == expected


def test_a_corpus_that_lies_beside_its_questions_reaches_the_workers(
    workspace: Path, dataset: Path, cluster: Cluster, installed: Call
) -> None:
    """Without it, the brain would be filled with the reference answers."""
    corpus = dataset.with_suffix("") / "corpus" / "dist"
    corpus.mkdir(parents=True)
    for number in range(12):
        (corpus / f"{number}.md").write_text(f"The secret of box{number} is word{number}x")
    sdk = write_sdk(workspace)
    expected = _whole(installed, workspace, sdk, dataset)
    cluster.start_worker("one")
    spread = installed(*_run(sdk, dataset, "--shards", "2", *cluster.flags, "--output", "out"))
    assert spread.code == 0, spread.err
    assert comparable(_only(workspace / "out")) == expected


def test_a_shard_whose_daemon_died_is_done_again_by_the_same_command(
    workspace: Path, dataset: Path, installed: Call
) -> None:
    note = workspace / "asked.txt"
    sdk = write_sdk(workspace, fault="dies_once", on="box7?", note=note)
    command = _run(sdk, dataset, "--shards", "2", *_LOCAL, "--output", "out")
    died = installed(*command)
    assert died.code == 3, died.err
    assert "the same command" in died.err
    [void] = (workspace / "out" / "runs").iterdir()
    again = installed(*command)
    assert again.code == 0, again.err
    [merged] = set((workspace / "out" / "runs").iterdir()) - {void}
    expected = _whole(installed, workspace, sdk, dataset)
    assert comparable(merged / "result.json") == expected
    assert not (workspace / "out" / "shards").exists()


def test_gates_are_those_of_the_whole(workspace: Path, dataset: Path, installed: Call) -> None:
    sdks = [
        write_sdk(workspace, "one"),
        write_sdk(workspace, "two", fault="drops_first", on="box7?"),
    ]
    command = ["run", *(word for sdk in sdks for word in ("--sdk", sdk)), "--data", dataset]
    command += [*_SEARCH, "--require-agreement", "--floor", "0"]
    whole = installed(*command, "--output", "whole")
    spread = installed(*command, *_LOCAL, "--shards", "2", "--output", "out")
    assert (spread.code, whole.code) == (1, 1), spread.err


def test_shards_share_one_budget_and_ask_a_judge_once(
    workspace: Path,
    dataset: Path,
    cluster: Cluster,
    installed: Call,
    service: Service,
    environment: dict[str, str],
) -> None:
    """Workers elsewhere have caches of their own, and had budgets of their own."""
    service.says(_CORRECT, usage={"input": 2_000, "output": 100})
    for name in ("one", "two"):
        cluster.start_worker(name, MEMCONFORM_CACHE=str(workspace / name / "cache"))
    command = _run(write_sdk(workspace), dataset, "--scenario", "ask-basic", "--judge", MODEL)
    command += ["--shards", "4", *cluster.flags, "--output", "out"]
    # One that has no key leaves its shards to them.
    cluster.start_worker("keyless", OPENAI_API_KEY="")
    wait_until(lambda: (workspace / "output.txt").read_text().count("Register worker") == 3)
    # Of this shell alone.
    environment["JB_EVAL_BUDGET_USD"] = "0.05"
    spent = installed(*command)
    assert "no_api_key" in spent.err
    assert spent.code == 6, spent.err
    assert 0 < service.calls < 12
    # With more money, the rest is asked, and nothing twice.
    again = installed(*command, "--max-cost-usd", "0.2")
    assert again.code == 0, again.err
    assert service.calls == 12
    assert [*(workspace / "cache" / "llm").glob("*/*.json")]
    assert not (workspace / "one" / "cache" / "llm").exists()


def test_shards_that_failed_are_done_again_by_the_same_command(
    workspace: Path,
    dataset: Path,
    installed: Call,
    service: Service,
    environment: dict[str, str],
) -> None:
    """Their folders had to be deleted by hand, one after the other."""
    service.says(_CORRECT)
    command = _run(write_sdk(workspace), dataset, "--scenario", "ask-basic", "--judge", MODEL)
    command += ["--shards", "2", *_LOCAL, "--output", "out"]
    key = environment.pop("OPENAI_API_KEY")
    failed = installed(*command)
    assert failed.code == 3, failed.err
    assert "shard 1/2 ended with exit code 2, and has no result, as 1 other shard" in failed.err
    assert "no_api_key" in failed.err
    environment["OPENAI_API_KEY"] = key
    again = installed(*command)
    assert again.code == 0, again.err


def test_conformance_in_shards(workspace: Path, installed: Call) -> None:
    """It has no --header, which was asked for all the same."""
    command = ["conform", "--sdk", write_sdk(workspace), "--case", "brain-create*", "--quiet"]
    spread = installed(*command, "--shards", "2", *_LOCAL, "--output", "out")
    alone = installed(*command, "--output", "alone")
    assert spread.code == alone.code, spread.err + alone.err
    assert _results(workspace / "out") == _results(workspace / "alone") != {}


def _results(output: Path) -> dict[str, list[str]]:
    """What became of the checks of each case."""
    [path] = output.glob("runs/*/conform.json")
    [sdk] = json.loads(path.read_text())["sdks"]
    return {case["case"]: [check["result"] for check in case["checks"]] for case in sdk["cases"]}


def test_a_worker_that_is_killed_while_a_judge_is_asked(
    workspace: Path,
    dataset: Path,
    cluster: Cluster,
    service: Service,
    environment: dict[str, str],
) -> None:
    """Its shard waited half an hour for the call that it had made itself."""
    answer = {"reply": {"text": _CORRECT, "usage": {"input": 2_000, "output": 100}}}
    hangs = {"kind": "chat", "contains": "box7", "reply": {"fault": "hang"}}
    service.script(hangs, {"kind": "chat", **answer})
    one = cluster.start_worker("one")
    command = _run(write_sdk(workspace), dataset, "--scenario", "ask-basic", "--judge", MODEL)
    command += ["--shards", "2", *cluster.flags, "--output", "out", "--max-cost-usd", "1"]
    with _started(PROGRAM, *command, folder=workspace, environment=environment) as process:
        wait_until(lambda: any("box7" in prompt for prompt in service.prompts))
        os.killpg(one.pid, signal.SIGKILL)
        one.wait()
        service.script({"kind": "chat", **answer})
        cluster.start_worker("two")
        assert process.wait() == 0
    # `script` forgets what was asked before.
    assert sum("box7" in prompt for prompt in service.prompts) == 1


def test_shards_that_extract_from_the_same_sessions_pay_once(
    workspace: Path,
    cluster: Cluster,
    installed: Call,
    service: Service,
    environment: dict[str, str],
) -> None:
    write_dataset(workspace / "lme.json", questions=4, sessions=3)
    for name in ("one", "two"):
        cluster.start_worker(name, MEMCONFORM_CACHE=str(workspace / name / "cache"))
    command = [*("lme", "run"), *BULK, *PRICED, *NO_FILTER, "--ingest-mode", "replay"]
    command += ["--no-reader", "--sdk", str(write_sdk(workspace))]
    spread = installed(*command, "--shards", "2", *cluster.flags, "--output", "out")
    assert spread.code == 0, spread.err
    calls = service.calls
    # One machine, with a cache of its own, makes as many.
    environment["MEMCONFORM_CACHE"] = str(workspace / "other")
    alone = installed(*command, "--output", "alone")
    assert alone.code == 0, alone.err
    assert 0 < calls == service.calls - calls


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (("--executor", "slurm"), "neither dask://HOST:PORT"),
        (("--executor", "dask:local?workers=0"), "neither dask://HOST:PORT"),
        (("--executor", "dask:local", "--shard", "1/2"), "--shard does not go together"),
        (("--executor", "dask:local", "--port", "8080"), "--port does not go together"),
        (("--executor", "dask:local", "--shards", "13"), "too_many_shards"),
        (("--executor", "dask:local", "--html"), "--html does not go together"),
    ],
)
def test_what_cannot_be_spread(
    installed: Call, workspace: Path, dataset: Path, more: tuple[str, ...], message: str
) -> None:
    ended = installed(
        "run", "--sdk", write_sdk(workspace), "--data", dataset, *more, "--output", "out"
    )
    assert ended.code == 2, ended.err
    assert message in ended.err
    assert not (workspace / "out").exists()


def test_a_folder_of_other_work_is_refused(installed: Call, workspace: Path, dataset: Path) -> None:
    sdk = write_sdk(workspace)
    plan = workspace / "out" / "shards" / "plan.json"
    plan.parent.mkdir(parents=True)
    plan.write_text('{"command_sha256": "0", "shards": 2}')
    ended = installed(*_run(sdk, dataset, "--shards", "2", *_LOCAL, "--output", "out"))
    assert ended.code == 2, ended.err
    assert "resume_mismatch" in ended.err
