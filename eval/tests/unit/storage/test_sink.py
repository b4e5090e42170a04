"""One sink: whatever the harness writes is masked there, and nobody writes past it."""

import ast
import json
import os
import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from memconform import redaction
from memconform.errors import ResultsError
from memconform.storage.append_only import append_lines
from memconform.storage.journal import JournalFile, JournalHeader
from memconform.storage.sink import Sink, device, replacing, write_whole
from tests.conftest import CHECKOUT

_PACKAGE = CHECKOUT / "eval" / "memconform"
_SECRET = "canary-0123456789"  # noqa: S105 - one that must not leak

_OTHERS = {
    "storage/sink.py": "the sink",
    "storage/append_only.py": "writes what the sink has made",
    "storage/journal.py": "writes what the sink has made",
    "daemons/process.py": "a daemon's own output, which is masked once the daemon has ended",
    "daemons/guard.py": "cuts that output",
    "datasets/download.py": "public data, as it was published",
    "datasets/conversation_store.py": "a temporary file of a dataset's texts, removed at the end",
    "longmemeval/history.py": "a temporary file of a dataset's texts, removed at the end",
    "ingest/ingested.py": "a temporary file of the documents, removed at the end",
    "bench/returned_texts.py": "a temporary file of what searches returned, removed at the end",
    "runs/relevance.py": "a temporary file of the documents, removed at the end",
    "runs/rescore.py": "copies the wire of the earlier run, which the sink has written",
    "ingest/seeding.py": "documents that are put under a daemon's state folder",
    "conformance/disk.py": "documents that are put under a daemon's state folder",
    "replay/manifest.py": "an empty file that is locked while a replay runs",
    "conformance/mutation/mutant_runner.py": "a mutation, and a copy of sources to be patched",
    "conformance/clients/broken_clients.py": "a copy of a client, and what is broken in it",
    "conformance/fixture.py": "a document that no brain may reach",
    "cli/spread/execution.py": "an empty file that is locked while a cluster works",
    "cluster/bundle.py": "an archive in memory, of files that workers read",
    "daemons/limits.py": "nothing, into a folder that is tried",
}
"""Who writes besides, and what."""


_SINKS = ("replacing(", "json_target(", "text_target(")
"""What opens one."""


@pytest.fixture(autouse=True)
def secret() -> Iterator[None]:
    redaction.hide(_SECRET)
    yield
    redaction.forget()


def _writes(tree: ast.AST) -> Iterator[str]:
    """The calls in a module that write to a file, but for those to a sink."""
    items = (item for node in ast.walk(tree) if isinstance(node, ast.With) for item in node.items)
    sinks = {
        ast.unparse(item.optional_vars)
        for item in items
        if item.optional_vars and ast.unparse(item.context_expr).startswith(_SINKS)
    }
    sinks |= {
        node.arg
        for node in ast.walk(tree)
        if isinstance(node, ast.arg) and node.annotation and ast.unparse(node.annotation) == "Sink"
    }
    for node in ast.walk(tree):
        # It may also be handed to a thread.
        if isinstance(node, ast.Attribute) and node.attr in ("write_text", "write_bytes", "pwrite"):
            name = node.value.id if isinstance(node.value, ast.Name) else ""
            if name not in sinks:
                yield f"{node.attr} in line {node.lineno}"
        if not isinstance(node, ast.Call):
            continue
        name = node.func.attr if isinstance(node.func, ast.Attribute) else ""
        name = node.func.id if isinstance(node.func, ast.Name) else name
        if name in ("open", "fdopen", "NamedTemporaryFile", "TemporaryFile"):
            modes = [a.value for a in node.args if isinstance(a, ast.Constant)]
            modes += [k.value.value for k in node.keywords if isinstance(k.value, ast.Constant)]
            texts = [mode for mode in modes if isinstance(mode, str) and len(mode) <= 3]
            if name.endswith("TemporaryFile") or any(set(text) & set("wax+") for text in texts):
                yield f"{name} in line {node.lineno}"
        called = ast.unparse(node.func)
        if called == "json.dump" or called.startswith("shutil.copy"):
            yield f"{called} in line {node.lineno}"


@pytest.mark.parametrize(
    "source",
    [
        "path.open('w')",
        "open(name, mode='ab')",
        "self.path.write_text(text)",
        "json.dump(value, file)",
        "tempfile.TemporaryFile()",
        "file = into / 'x.yaml'; file.write_text(text)",
        "shutil.copyfile(one, other)",
    ],
)
def test_a_module_that_writes_is_noticed(source: str) -> None:
    assert list(_writes(ast.parse(source)))


def test_nobody_writes_to_a_file_past_the_sink() -> None:
    writers = {
        path.relative_to(_PACKAGE).as_posix(): calls
        for path in sorted(_PACKAGE.rglob("*.py"))
        if (calls := list(_writes(ast.parse(path.read_text()))))
    }
    assert {name: calls for name, calls in writers.items() if name not in _OTHERS} == {}
    assert set(_OTHERS) - set(writers) == set()


def _written(path: Path, kind: str) -> None:
    with replacing(path) as file:
        match kind:
            case "text":
                file.write_text(f"it is {_SECRET}.")
            case "bytes":
                file.write_bytes(b"\xff" + _SECRET.encode())
            case _:
                file.write_json({"told": [_SECRET, 1]})


@pytest.mark.parametrize("kind", ["text", "bytes", "json"])
def test_a_secret_is_masked_however_it_is_written(tmp_path: Path, kind: str) -> None:
    _written(tmp_path / "file", kind)
    written = (tmp_path / "file").read_bytes()
    assert _SECRET.encode() not in written
    assert redaction.MASK.encode() in written


def test_a_file_where_the_folder_belongs_is_an_error_with_advice(tmp_path: Path) -> None:
    """Removing the temporary file failed as well, and that second error ended the program."""
    (tmp_path / "folder").touch()
    target = tmp_path / "folder" / "below" / "file"
    with pytest.raises(ResultsError, match="cannot write"), replacing(target):
        pass


def test_a_secret_is_masked_in_journals_and_wire_files(tmp_path: Path) -> None:
    journal = JournalFile(tmp_path / "journal", JournalHeader(schema_version="any@1"))
    journal.append({"text": _SECRET})
    journal.close()
    write_whole(tmp_path / "wire" / "1.http", _SECRET.encode())
    for path in (tmp_path / "journal", tmp_path / "wire" / "1.http"):
        assert _SECRET.encode() not in path.read_bytes()
        assert redaction.MASK.encode() in path.read_bytes()


def test_a_short_secret_does_not_break_json() -> None:
    """Behind a colon it was masked in text, and numbers of a result would be lost."""
    redaction.hide("5", "score")
    written: list[bytes] = []
    Sink(written.append).write_json({"score": 5, "text": "score=5", "k": 0.5})
    assert json.loads(b"".join(written)) == {"score": 5, "text": "score=(hidden)", "k": 0.5}


def test_half_of_a_surrogate_pair_is_written_as_an_escape() -> None:
    """A disagreement about one ended fuzz in exit 70."""
    written: list[bytes] = []
    Sink(written.append).write_json({"text": "\ud800"})
    assert json.loads(b"".join(written)) == {"text": "\ud800"}


def test_a_pipe_gets_all_of_a_long_text(tmp_path: Path) -> None:
    """A write that a signal interrupted handed on 64 KiB, and nobody noticed."""
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    received: list[bytes] = []
    reader = threading.Thread(target=lambda: received.append(_slowly(fifo)))
    reader.start()
    previous = signal.signal(signal.SIGALRM, lambda *_: None)
    signal.setitimer(signal.ITIMER_REAL, 0.02, 0.02)
    try:
        with device(fifo) as sink:
            sink.write_text("x" * 1_000_000)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, previous)
        reader.join()
    assert len(received[0]) == 1_000_000


def _slowly(fifo: Path) -> bytes:
    data = b""
    with fifo.open("rb", buffering=0) as file:
        while piece := file.read(1 << 14):
            data += piece
            time.sleep(0.002)  # short limit: it may be as slow as it likes
    return data


def test_lines_are_appended_with_secrets_masked(tmp_path: Path) -> None:
    file = tmp_path / "lines.jsonl"
    redaction.hide(_SECRET)
    append_lines(file, {"a": 1})
    append_lines(file, {"a": _SECRET}, {"a": 3})
    assert [json.loads(line)["a"] for line in file.read_text().splitlines()] == [1, "(hidden)", 3]


@pytest.mark.parametrize(
    ("last", "kept"), [('{"a": 2', [1, 3]), ('{"a": 2}', [1, 2, 3]), ("", [1, 3])]
)
def test_a_last_line_is_removed_only_if_it_was_cut_short(
    tmp_path: Path, last: str, kept: list[int]
) -> None:
    file = tmp_path / "lines.jsonl"
    file.write_text(f'{{"a": 1}}\n{last}')
    append_lines(file, {"a": 3})
    assert [json.loads(line)["a"] for line in file.read_text().splitlines()] == kept


def test_lines_that_cannot_be_appended(tmp_path: Path) -> None:
    with pytest.raises(ResultsError) as caught:
        append_lines(tmp_path / "missing" / "lines.jsonl", {"a": 1})
    assert caught.value.code == "results_unwritable"
