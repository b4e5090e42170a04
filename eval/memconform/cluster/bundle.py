"""The files that a command line names, for workers that do not share a disk."""

import hashlib
import io
import tarfile
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path

from memconform.cluster.task import Bundle

_LEFT_OUT = {"node_modules", "__pycache__", "results", "target", "dist"}
"""Folders that builds and runs make again."""


def make_bundle(inputs: Mapping[str, Path], sources: Collection[str] = ()) -> Bundle:
    """Pack files and folders under the names that the command line has for them.

    All that data have in them counts; of a folder of `sources`, by its name, what a build or a run
    makes again is left out.

    The digest is that of names and contents: it does not depend on times or owners.

    Raises:
        OSError: if one cannot be read.
    """
    digest = hashlib.sha256()
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode="w") as archive:
        for name, path in sorted(inputs.items()):
            for inner, file in _files(path, whole=name not in sources):
                content = file.read_bytes()
                info = tarfile.TarInfo(f"{name}/{inner}" if inner else name)
                info.size = len(content)
                info.mode = 0o755 if file.stat().st_mode & 0o100 else 0o644
                archive.addfile(info, io.BytesIO(content))
                sha256 = hashlib.sha256(content).hexdigest()
                digest.update(f"{info.name}\\0{info.mode}\\0{sha256}\\n".encode())
    return Bundle(digest.hexdigest(), data.getvalue())


def _files(path: Path, *, whole: bool) -> Iterator[tuple[str, Path]]:
    """Each file with its path in the folder; a file by itself has none."""
    if path.is_file():
        yield "", path
        return
    for file in sorted(path.rglob("*")):
        inner = file.relative_to(path)
        left_out = any(part.startswith(".") or part in _LEFT_OUT for part in inner.parts)
        if file.is_file() and (whole or not left_out):
            yield inner.as_posix(), file
