"""The system calls with which a daemon changes its files: read from strace, and repeated.

A SIGKILL leaves the files as they are between two system calls, so each prefix of the calls is a
state that a killed daemon can leave. SQLite's shared memory (`-shm`) is mapped and thus not traced;
the first process that opens a database rebuilds it.
"""

import os
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

_CHANGING = (
    "open", "openat", "creat", "lseek", "write", "pwrite64", "ftruncate", "truncate", "fallocate",
    "rename", "renameat", "renameat2", "link", "linkat", "unlink", "unlinkat", "rmdir",
    "mkdir", "mkdirat",
)  # fmt: skip
_UNSUPPORTED = (
    "writev", "pwritev", "pwritev2", "copy_file_range", "sendfile", "symlink", "symlinkat", "dup2",
)  # fmt: skip
"""Other calls that change files. No reference daemon uses them on its state folder."""

_LINE = re.compile(r"(\d+) +(\d+\.\d+) (.*)", re.DOTALL)
_CALL = re.compile(r"(\w+)\((.*)\) += (-?\d+)")
_ARGUMENT = re.compile(r'"((?:[^"\\]|\\.)*)"|([^,"\s][^,"]*)')
_HEX = re.compile(r"\\x([0-9a-f]{2})")


class UnsupportedCallError(Exception):
    """A call changed the state folder, and cannot be repeated."""


@dataclass(frozen=True)
class Call:
    """A successful system call."""

    at: float
    """Seconds since the epoch."""
    name: str
    arguments: tuple[str, ...]
    """As strace -xx prints them, without quotes; a descriptor is `5</path>`."""
    result: int


def traced(log: Path) -> list[str]:
    """The command to put before another one, so that its calls are traced to `log`."""
    calls = ",".join((*_CHANGING, *_UNSUPPORTED))
    options = ["-D", "-f", "--seccomp-bpf", "-qq", "-y", "-xx", "-ttt", "-s", str(2**24)]
    return ["strace", *options, "-e", f"trace={calls}", "-o", str(log)]


def calls(lines: Iterable[str]) -> Iterator[Call]:
    """Read the successful calls, in the order in which they ended."""
    begun: dict[str, str] = {}
    for line in lines:
        match = _LINE.fullmatch(line.rstrip("\n"))
        if match is None:
            continue
        thread, at, text = match.groups()
        if text.endswith(" <unfinished ...>"):
            begun[thread] = text.removesuffix(" <unfinished ...>")
            continue
        if text.startswith("<... "):
            text = begun.pop(thread) + text.partition(" resumed>")[2]
        call = _CALL.match(text)
        if call is not None and int(call[3]) >= 0:
            arguments = (
                match[2].strip() if match[1] is None else match[1]
                for match in _ARGUMENT.finditer(call[2])
            )
            yield Call(float(at), call[1], tuple(arguments), int(call[3]))


def _bytes(text: str) -> bytes:
    return bytes.fromhex("".join(_HEX.findall(text)))


def _path(text: str) -> Path:
    return Path(os.fsdecode(_bytes(text)) if text.startswith("\\x") else text)


class Replay:
    """Repeats calls on a copy of the state folder."""

    def __init__(self, home: Path, copy: Path, working_folder: Path) -> None:
        """Begin.

        Args:
            home: the daemon's state folder; calls outside it are left out.
            copy: the folder to make, where the calls are repeated.
            working_folder: of the daemon, for relative paths.
        """
        self._home, self._copy, self._working_folder = home, copy, working_folder
        copy.mkdir(parents=True)
        self._offsets: dict[str, int | None] = {}
        """Offset of each descriptor; None if it appends."""

    def do(self, call: Call) -> Path | None:
        """Repeat a call.

        Returns:
            What it changed, relative to the state folder; None if it changed nothing there.

        Raises:
            UnsupportedCallError: if the call cannot be repeated.
        """
        if call.name in _UNSUPPORTED:
            if any(self._within(a) for a in call.arguments):
                raise UnsupportedCallError(f"{call.name}{call.arguments}"[:300])
            return None
        place = self._do(call)
        return place and place.relative_to(self._copy)

    def _within(self, argument: str, folder: str = "") -> Path | None:
        """The place in the copy of a path, or of a descriptor with its path."""
        base = self._described(folder) or self._working_folder
        path = self._described(argument) or base / _path(argument)
        path = Path(os.path.normpath(path))
        if not path.is_relative_to(self._home):
            return None
        return self._copy / path.relative_to(self._home)

    @staticmethod
    def _described(argument: str) -> Path | None:
        match = re.fullmatch(r"(?:\d+|AT_FDCWD)<(.*)>(?:\(deleted\))?", argument)
        return _path(match[1]) if match else None

    def _do(self, call: Call) -> Path | None:
        name, arguments = call.name, call.arguments
        if name in ("open", "openat", "creat"):
            return self._open(call)
        if name in ("lseek", "write", "pwrite64", "ftruncate", "truncate", "fallocate"):
            return self._write(call)
        at = name.endswith(("at", "at2"))
        place = self._within(arguments[1], arguments[0]) if at else self._within(arguments[0])
        if place is None:
            return None
        if name.startswith("mkdir"):
            place.mkdir(exist_ok=place == self._copy)
        elif name.startswith(("rename", "link")):
            target = self._within(*((arguments[3], arguments[2]) if at else (arguments[1],)))
            if target is None:
                raise UnsupportedCallError(f"{name} out of the state folder")
            if name.startswith("rename"):
                place.rename(target)
            else:
                target.hardlink_to(place)
        elif name == "rmdir" or "AT_REMOVEDIR" in arguments[-1]:
            place.rmdir()
        else:
            place.unlink()
        return place

    def _open(self, call: Call) -> Path | None:
        at = call.name == "openat"
        flags = "O_CREAT|O_TRUNC" if call.name == "creat" else call.arguments[1 + at]
        place = self._within(*reversed(call.arguments[:2]) if at else call.arguments[:1])
        if place is None:
            return None
        self._offsets[str(call.result)] = None if "O_APPEND" in flags else 0
        is_new = "O_CREAT" in flags and not place.exists()
        if is_new or "O_TRUNC" in flags:
            place.write_bytes(b"")
            return place
        return None

    def _write(self, call: Call) -> Path | None:
        descriptor = call.arguments[0].partition("<")[0]
        place = self._within(call.arguments[0])
        if place is None or not place.is_file():
            # The file was opened elsewhere, or has been deleted.
            return None
        if call.name == "lseek":
            self._offsets[descriptor] = call.result
            return None
        with place.open("r+b") as file:
            if call.name in ("write", "pwrite64"):
                data = _bytes(call.arguments[1])[: call.result]
                offset = self._offsets.get(descriptor, 0)
                if call.name == "pwrite64":
                    offset = int(call.arguments[3])
                elif offset is not None:
                    self._offsets[descriptor] = offset + len(data)
                file.seek(0, os.SEEK_END) if offset is None else file.seek(offset)
                file.write(data)
            elif call.name == "fallocate":
                end = int(call.arguments[2]) + int(call.arguments[3])
                file.truncate(max(end, place.stat().st_size))
            else:
                file.truncate(int(call.arguments[1]))
        return place
