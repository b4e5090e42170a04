"""State folders as a daemon leaves them that is killed in the middle of a change.

This writes the contract's journal format (`state.journal`) and shares no code with any daemon.
"""

import json
import os
import shutil
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

Files = dict[str, str]
"""The text of each file, by its path in the brain; sidecars begin with `meta:`."""


@dataclass(frozen=True)
class Step:
    path: str
    text: str | None
    """None if the file is removed."""


def put(path: str, text: str) -> Step:
    return Step(path, text)


def remove(path: str) -> Step:
    return Step(path, None)


BEFORE: Files = {
    "a": "zebra",
    "b": "lion",
    "f/g": "hyena",
    "f/h/i": "otter",
    "meta:a.json": '{"contentType": "text/plain", "title": "Z"}',
}

CHANGES: Mapping[str, Sequence[Step]] = {
    "new": [put("n/e/w", "heron"), put("meta:n/e/w.json", '{"contentType": "a/b"}')],
    "over": [put("a", "heron"), put("meta:a.json", '{"contentType": "a/b"}')],
    "swap": [put("a", "lion"), put("b", "zebra")],
    "rename": [
        put("c/d", "zebra"),
        put("meta:c/d.json", BEFORE["meta:a.json"]),
        remove("a"),
        remove("meta:a.json"),
    ],
    "delete": [remove("a"), remove("meta:a.json"), remove("f/h/i")],
    "file-to-folder": [remove("a"), put("a/x/y", "zebra"), remove("meta:a.json")],
    "folder-to-file": [remove("f/g"), remove("f/h/i"), put("f", "hyena")],
    "folder-away": [remove("f"), put("f", "hyena")],
}
"""Changes in the order of their steps. A folder may be removed as a whole."""

STOPS = ("recorded", "begun", "taken", "torn", "undone")
"""Where in a step the change stops: its line is written; the file that it replaces is kept, and the
folders of the new one are made; it is taken; its line is cut off; or a later start has undone it
and was killed."""


@dataclass
class Planted:
    """Brains below one state folder, and what is in them after a start."""

    home: Path
    expected: dict[str, Files] = field(default_factory=dict)
    _count: int = 0

    def brain(self, name: str, files: Files = BEFORE) -> None:
        (self.home / "brains" / name).mkdir(parents=True)
        for path, text in files.items():
            self.write(name, path, text)
        self.expected[name] = dict(files)

    def place(self, name: str, path: str) -> Path:
        return self.home / relative(name, path)

    def write(self, name: str, path: str, text: str) -> None:
        place = self.place(name, path)
        place.parent.mkdir(parents=True, exist_ok=True)
        # A new file, so that what a change has kept of it stays as it is.
        place.unlink(missing_ok=True)
        place.write_text(text)

    def change(self, name: str, steps: Sequence[Step], at: int, stop: str) -> Path:
        """Leave a change of the brain half done; returns the change's folder."""
        self._count += 1
        folder = self.home / "staging" / f"other-{self._count % 3}" / f"change-{self._count}"
        folder.mkdir(parents=True)
        lines = b""
        for number, step in enumerate(steps[: at + 1]):
            line = (json.dumps(_line(name, step, number)) + "\n").encode()
            if step.text is not None:
                (folder / f"{number}.new").write_text(step.text)
            last = number == at
            lines += line[: len(line) // 2] if last and stop == "torn" else line
            if not last or stop in ("begun", "taken", "undone"):
                self._take(name, step, number, folder, begin_only=last and stop == "begun")
        if stop == "undone":
            self._undo(name, steps[at], at, folder)
        (folder / "journal").write_bytes(lines)
        return folder

    def _take(self, name: str, step: Step, number: int, folder: Path, *, begin_only: bool) -> None:
        place = self.place(name, step.path)
        old = folder / f"{number}.old"
        if step.text is None:
            if not begin_only:
                place.rename(old)
            return
        if place.is_dir():
            # Only empty folders are left in it.
            shutil.rmtree(place)
        place.parent.mkdir(parents=True, exist_ok=True)
        if place.exists():
            os.link(place, old)
        if not begin_only:
            link = folder / f"{number}.link"
            os.link(folder / f"{number}.new", link)
            link.rename(place)

    def _undo(self, name: str, step: Step, number: int, folder: Path) -> None:
        place = self.place(name, step.path)
        old = folder / f"{number}.old"
        if old.exists():
            place.parent.mkdir(parents=True, exist_ok=True)
            old.rename(place)
        elif step.text is not None:
            place.unlink()

    def files(self, name: str) -> Files:
        """What is in a brain now."""
        return {
            prefix + str(file.relative_to(root)): file.read_text()
            for prefix, root in (
                ("", self.home / "brains" / name),
                ("meta:", self.home / "meta" / name),
            )
            for file in root.rglob("*")
            if file.is_file()
        }


def relative(name: str, path: str) -> str:
    sidecar = path.removeprefix("meta:")
    return f"brains/{name}/{path}" if sidecar == path else f"meta/{name}/{sidecar}"


def _line(name: str, step: Step, number: int) -> dict[str, str]:
    target, old = relative(name, step.path), f"{number}.old"
    if step.text is None:
        return {"remove": target, "old": old}
    return {"put": target, "new": f"{number}.new", "old": old}


def plant_all(home: Path) -> Planted:
    """Every change, stopped everywhere in every step, each in a brain of its own."""
    planted = Planted(home)
    for change, steps in CHANGES.items():
        for at in range(len(steps)):
            for stop in STOPS:
                name = f"{change}-{at}-{stop}"
                planted.brain(name)
                planted.change(name, steps, at, stop)
    return planted


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Hold the lock of a daemon's folder, as its daemon does."""
    folder.mkdir(parents=True, exist_ok=True)
    with closing(sqlite3.connect(folder / "lock", isolation_level=None)) as database:
        database.execute("BEGIN EXCLUSIVE")
        yield


def is_journal(file: Path) -> bool:
    """Whether all lines, except a last one that is cut off, are steps of the format."""
    for line in file.read_bytes().split(b"\n")[:-1]:
        step = json.loads(line)
        target = step.get("put") or step.get("remove")
        keys = {"put", "new", "old"} if "put" in step else {"remove", "old"}
        if set(step) != keys or not target.startswith(("brains/", "meta/")):
            return False
    return True
