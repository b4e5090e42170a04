"""The parts of divided work: finding results of shards, and which of them belong together."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from pkgutil import resolve_name
from typing import Protocol

from memconform.datasets.sharding import ShardRecord, join_shards
from memconform.errors import NothingSelectedError, UsageError
from memconform.storage.folders import JOURNAL, find_result
from memconform.storage.journal import differences
from memconform.storage.provenance import PartOrigin
from memconform.storage.result_file import WRITERS, run_id_of, schema_name, schema_of

_READERS: Mapping[str, str] = {
    "result": "runs.merged_run:RunPart.read_result",
    "bench-report": "bench.merged_bench:BenchPart.read_result",
    "lme-result": "replay.merged_replay:ReplayPart.read_result",
    "conform-report": "conformance.merged_report:ConformPart.read_result",
}
"""By the name of a schema, what reads a part; imported on use."""


_FILES = ("result.json", "result-*.json", "conform.json")
"""Names of results that may be parts."""


class Part(Protocol):
    """The result of a shard, or of several that were joined before."""

    @property
    def name(self) -> str:
        """For messages: its file or folder."""
        ...

    @property
    def subject(self) -> str:
        """What is joined with parts of the same subject alone: its command, SDK and so on."""
        ...

    @property
    def shard(self) -> ShardRecord | None: ...

    @property
    def identity(self) -> Mapping[str, object]:
        """What parts must have in common: settings, builds, data."""
        ...

    @property
    def origins(self) -> Sequence[PartOrigin]: ...


def find_parts(references: Iterable[str], output: Path) -> dict[str, list[Part]]:
    """The parts that references name, by subject.

    A reference is a result, the folder of one, a run's id below `output`, or a folder that has
    parts at any depth, such as the artefacts of a CI. A part that another one has resumed is left
    out.

    Raises:
        UsageError: if there is no such result, or it cannot be joined or read.
        NothingSelectedError: if a folder has no part.
    """
    found: dict[Path, Part] = {}
    for reference in references:
        for path, part in _parts(reference, output):
            found.setdefault(path.resolve(), part)
    resumed = {origin.resumed_from for part in found.values() for origin in part.origins}
    parts: dict[str, list[Part]] = {}
    for part in found.values():
        if not any(origin.run_id in resumed for origin in part.origins):
            parts.setdefault(part.subject, []).append(part)
    return parts


def join_parts(parts: Sequence[Part], *, partial: bool = False) -> ShardRecord | None:
    """What the parts of one subject are together; None if they are the whole.

    Raises:
        UsageError: as `join_shards`, and if the parts differ in what decides results
            (`unlike_parts`); the message names the parts.
    """
    joined = join_shards({part.name: part.shard for part in parts}, partial=partial)
    first = parts[0]
    for part in parts[1:]:
        if differing := list(differences(first.identity, part.identity)):
            raise UsageError(
                f"{part.name} is not of the same work as {first.name}: {'; '.join(differing)}",
                code="unlike_parts",
                hint="make all parts by the same command, build and data; only --shard differs",
            )
    return joined


def _parts(reference: str, output: Path) -> Iterator[tuple[Path, Part]]:
    """The results that a reference names, each with its path."""
    path = Path(reference)
    if not path.is_dir():
        file = _original(path) if path.is_file() else find_result(output, reference)
        yield file, _read(file)
        return
    if direct := sorted(file for pattern in _FILES for file in path.glob(pattern)):
        yield from ((file, _read(file)) for file in direct)
        return
    found = False
    for file in sorted(file for pattern in _FILES for file in path.rglob(pattern)):
        if _kind(file) in _READERS and (part := _read(file)).shard is not None:
            found = True
            yield file, part
    if not found:
        raise NothingSelectedError(
            f"{path} has no result of a shard",
            code="nothing_selected",
            hint="make parts with --shard 1/N to N/N, and give their folders",
        )


def _original(path: Path) -> Path:
    """The result of a run whose copy, `<date>/<sdk>.json`, is given; the file itself otherwise."""
    if _kind(path) == "result" and not path.with_name(JOURNAL).exists():
        original = path.parents[1] / "runs" / (run_id_of(path) or "") / "result.json"
        return original if original.is_file() else path
    return path


def _kind(path: Path) -> str:
    try:
        return schema_name(schema_of(path))
    except (ValueError, OSError, RecursionError):
        return ""


def _read(path: Path) -> Part:
    kind = _kind(path)
    if (reference := _READERS.get(kind)) is None:
        command, _ = WRITERS.get(kind, ("", ""))
        raise UsageError(
            f"{path} was written by `memconform {command}`, whose results are not joined"
            if command
            else f"{path} is not a result",
            code="result_unreadable",
            hint="give results of run, bench, wmb run, lme or conform that were made with --shard",
        )
    read: Callable[[Path], Part] = resolve_name(f"memconform.{reference}")
    return read(path)
