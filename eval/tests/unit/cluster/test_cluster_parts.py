"""Parts of the executor: addresses, bundles, folders, and what a worker refuses."""

import io
import os
import tarfile
import tempfile
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import distributed
import pytest

from memconform.cluster import task as worker
from memconform.cluster.address import ClusterAddress
from memconform.cluster.bundle import make_bundle
from memconform.cluster.executor import ShardExecutor, ShardFolders
from memconform.cluster.task import (
    Bundle,
    ShardResult,
    ShardTask,
    UnfitWorkerError,
    journals,
    measure,
    read_files,
    write_files,
)
from memconform.datasets.sharding import Shard
from memconform.errors import ResultsError

_TASK = ShardTask(("run",), "1/2", "r", continues_by_flag=True, folder=None, calls="CALLS")


class _Echo:
    """Answers each call with itself."""

    async def answer(self, caller: str, line: bytes) -> bytes:
        del caller
        return line

    def forget(self, caller: str) -> None:
        del caller


@pytest.fixture(autouse=True)
def _is_a_worker(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(distributed, "get_worker", lambda: SimpleNamespace(address="tcp://w:1"))
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setenv("MEMCONFORM_CACHE", str(tmp_path / "cache"))


@pytest.mark.parametrize(
    ("text", "scheduler", "workers"),
    [
        ("dask://10.0.0.1:8786", "10.0.0.1:8786", 1),
        ("dask:local", None, 1),
        ("dask:local?workers=12", None, 12),
    ],
)
def test_an_address(text: str, scheduler: str | None, workers: int) -> None:
    assert ClusterAddress.parse(text) == ClusterAddress(scheduler, workers)
    assert ClusterAddress.parse(text).is_local == (scheduler is None)


@pytest.mark.parametrize(
    "text", ["", "dask", "dask://", "dask://host", "dask:local?workers=0", "x"]
)
def test_what_is_no_address(text: str) -> None:
    with pytest.raises(ValueError, match="neither"):
        ClusterAddress.parse(text)


@pytest.mark.parametrize(
    "other",
    [replace(_TASK, version="9.9"), replace(_TASK, python="9.9")],
    ids=["memconform", "python"],
)
def test_a_worker_of_another_version_refuses(other: ShardTask) -> None:
    """Its figures would be another program's; another worker may have the same one."""
    with pytest.raises(UnfitWorkerError) as refused:
        measure(other, None)
    assert refused.value.worker == "tcp://w:1"
    assert "9.9" in refused.value.reason


def test_a_worker_without_room_refuses(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object, **__: object) -> str:
        raise OSError(28, "No space left on device", "/full/x")

    monkeypatch.setattr(tempfile, "mkdtemp", full)
    with pytest.raises(UnfitWorkerError, match="No space left on device"):
        measure(_TASK, None)


@pytest.mark.parametrize(
    ("code", "log", "whose"),
    [
        (70, "journal_unwritable: /x: No space left\n  try: check free space", "machine"),
        # Its log had no room either.
        (70, "", "machine"),
        (3, "  building go\ntoolchain_missing: go needs 'go'", "machine"),
        (3, "daemon_died: the daemon died", "daemon"),
        (2, "dataset_invalid: line 3", "data"),
        (0, "toolchain_missing: ts is skipped", "nobody"),
    ],
)
def test_which_failures_are_those_of_a_machine(
    monkeypatch: pytest.MonkeyPatch, code: int, log: str, whose: str
) -> None:
    async def ended(*_: object) -> ShardResult:
        return ShardResult(code, {}, log)

    monkeypatch.setattr(worker, "_measure", ended)
    if whose == "machine":
        with pytest.raises(UnfitWorkerError):
            measure(_TASK, None)
    else:
        assert measure(_TASK, None).exit_code == code


def test_folders_of_killed_workers_are_deleted(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    async def ended(*_: object) -> ShardResult:
        return ShardResult(0, {}, "")

    monkeypatch.setattr(worker, "_measure", ended)
    killed = tmp_path / "memconform-shard-4194304-x"
    lives = tmp_path / f"memconform-shard-{os.getpid()}-y"
    for folder in (killed, lives):
        (folder / "output").mkdir(parents=True)
    measure(_TASK, None)
    assert (killed.exists(), lives.exists()) == (False, True)


def test_a_bundle_has_files_under_their_names_and_no_others(tmp_path: Path) -> None:
    sdk = tmp_path / "sdk"
    for name in ("sdk.toml", "src/main.py", "node_modules/x.js", ".git/config", "run.sh"):
        path = sdk / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(name)
    (sdk / "run.sh").chmod(0o755)
    data = tmp_path / "d.jsonl"
    data.write_text("{}")
    bundle = make_bundle({"0/sdk.toml": sdk, "1/d.jsonl": data}, {"0/sdk.toml"})
    with tarfile.open(fileobj=io.BytesIO(bundle.archive)) as archive:
        names = {each.name: each.mode for each in archive}
    assert names == {
        "0/sdk.toml/run.sh": 0o755,
        "0/sdk.toml/sdk.toml": 0o644,
        "0/sdk.toml/src/main.py": 0o644,
        "1/d.jsonl": 0o644,
    }
    os.utime(data, (0, 0))
    again = make_bundle({"0/sdk.toml": sdk, "1/d.jsonl": data}, {"0/sdk.toml"})
    assert again.digest == bundle.digest
    data.write_text("{ }")
    changed = make_bundle({"0/sdk.toml": sdk, "1/d.jsonl": data}, {"0/sdk.toml"})
    assert changed.digest != bundle.digest


def test_data_are_packed_whole(tmp_path: Path) -> None:
    """A corpus with a folder `dist` lost it, and its questions scored low."""
    (tmp_path / "corpus" / "dist").mkdir(parents=True)
    (tmp_path / "corpus" / "dist" / "a.md").write_text("a")
    bundle = make_bundle({"0/corpus": tmp_path / "corpus"})
    with tarfile.open(fileobj=io.BytesIO(bundle.archive)) as archive:
        assert archive.getnames() == ["0/corpus/dist/a.md"]


@pytest.mark.parametrize("name", ["../evil.txt", "/evil.txt", "a/../../evil.txt"])
def test_no_file_is_written_outside_of_its_folder(tmp_path: Path, name: str) -> None:
    """Names come from a cluster, to which others may have access."""
    output = tmp_path / "output"
    output.mkdir()
    with pytest.raises(ValueError, match="outside"):
        write_files(output, {name: b"x"})
    assert not (tmp_path / "evil.txt").exists()


def test_a_folder_of_results_that_cannot_be_made_is_no_lost_scheduler(tmp_path: Path) -> None:
    (tmp_path / "runs").write_bytes(b"a file")
    with pytest.raises(ResultsError, match="runs"):
        write_files(tmp_path, {"runs/1/result.json": b"{}"})


def test_a_bundle_is_unpacked_once_for_all_workers_of_a_machine(tmp_path: Path) -> None:
    data = tmp_path / "d.jsonl"
    data.write_text("{}")
    bundle = make_bundle({"0/d.jsonl": data})
    folder = worker._unpacked(bundle)
    assert (folder / "0" / "d.jsonl").read_text() == "{}"
    (folder / "mark").touch()
    assert (worker._unpacked(bundle) / "mark").exists()
    with pytest.raises(tarfile.TarError):
        worker._unpacked(_escaping())


def _escaping() -> Bundle:
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode="w") as archive:
        archive.addfile(tarfile.TarInfo("../outside"), io.BytesIO())
    return Bundle("e" * 64, data.getvalue())


def test_what_a_shard_needs_to_continue(tmp_path: Path) -> None:
    run = tmp_path / "runs" / "id"
    for name in ("journal.jsonl", "manifest.json", "daemon.log", "state/brain.db"):
        path = run / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(name)
    assert set(journals(tmp_path)) == {"runs/id/journal.jsonl", "runs/id/manifest.json"}
    assert "runs/id/state/brain.db" not in read_files(tmp_path)
    folders = ShardFolders(tmp_path / "out", 12)
    shard, kept = Shard(3, 12), journals(tmp_path)
    folders.keep(shard, kept)
    assert folders.path(shard).name == "03-of-12"
    assert folders.exit_code(shard) is None
    assert folders.journals(shard) == kept
    folders.end(shard, ShardResult(0, read_files(tmp_path), "the end"))
    assert (folders.exit_code(shard), folders.log(shard)) == (0, "the end")
    folders.reopen(shard)
    assert folders.exit_code(shard) == 0
    folders.end(shard, ShardResult(3, read_files(tmp_path / "runs"), "it died"))
    folders.reopen(shard)
    # What a daemon's death ended is done again, from its journal.
    assert folders.exit_code(shard) is None
    assert "runs/id/journal.jsonl" in folders.journals(shard)
    assert not (folders.path(shard) / "runs" / "id" / "daemon.log").exists()


def test_results_name_the_files_of_this_machine(tmp_path: Path) -> None:
    executor = ShardExecutor(
        ClusterAddress("h:1"),
        ShardFolders(tmp_path, 1),
        lambda *_: _TASK,
        None,
        server=_Echo(),
        originals={"0/d.jsonl": '/data/"my" d.jsonl'},
        report=lambda _: None,
    )
    content = b'{"dataset_path": "/inputs/0/d.jsonl", "brain": "/inputs/1/x"}'
    changed = executor._with_originals(content, "/inputs")
    assert changed == b'{"dataset_path": "/data/\\"my\\" d.jsonl", "brain": "/inputs/1/x"}'
    assert executor._with_originals(content, "") == content
