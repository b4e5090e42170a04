"""What a daemon leaves when it is killed after any of its system calls, and who can use it.

The daemon is traced while it makes each change in a separate brain. Its calls are then repeated one
by one; after each call, the brain and the staging folder are copied under a new id into one state
folder. Another daemon is started there once, and must show each of these brains either as before
the change or as after it.
"""

import itertools
import json
import shutil
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import httpx

from tests.integration.changes import BASE, CHANGES, Contents, contents, put, send, serving
from tests.integration.file_operations import Call, Replay, calls, traced


@dataclass
class Timed:
    """When the requests of a change were sent and acknowledged, in seconds since the epoch."""

    brain: str
    sent: list[float] = field(default_factory=list)
    acknowledged: list[float] = field(default_factory=list)

    def possible(self, at: float) -> range:
        """The numbers of requests that may have taken effect by this time."""
        return range(sum(t < at for t in self.acknowledged), sum(t < at for t in self.sent) + 1)


async def record(sdk: str, folder: Path) -> tuple[list[Call], dict[str, Timed]]:
    """Make all changes; returns the daemon's calls, and when each change was made."""
    log = folder / "calls.txt"
    changes = {}
    async with serving(sdk, folder, traced(log)) as (_, client):
        for number, (name, requests) in enumerate(CHANGES.items()):
            change = changes[name] = Timed(f"of{number:02}")
            for request in BASE:
                await send(client, change.brain, request)
            for request in requests:
                change.sent.append(time.time())
                await send(client, change.brain, request)
                change.acknowledged.append(time.time())
        ended = time.time()
    with log.open(encoding="ascii", errors="replace") as lines:
        return [call for call in calls(lines) if call.at < ended], changes


@dataclass(frozen=True)
class Left:
    """A brain as a kill left it."""

    id: str
    change: str
    call: str
    """The last system call, and what it changed."""
    possible: range
    """The numbers of requests of the change that may have taken effect."""


def leave(
    recorded: tuple[list[Call], dict[str, Timed]],
    folder: Path,
    home: Path,
    scratch: Path,
    *,
    every: int = 1,
    first: int = 0,
) -> list[Left]:
    """Fill a state folder with brains, each as it was after one call of the change that it is of.

    Args:
        recorded: by `record`.
        folder: in which the calls were recorded.
        home: the state folder to fill.
        scratch: an empty folder, for the copy on which the calls are repeated.
        every: copy the brain only after every n-th call.
        first: the number of calls to skip at the beginning of each change.
    """
    made, changes = recorded
    replay = Replay(folder / "state", scratch, folder)
    starts = sorted((change.sent[0], name) for name, change in changes.items())
    ids = (f"{number:04x}" for number in itertools.count())
    counts = dict.fromkeys(changes, -first)
    left = []
    for call in made:
        changed = replay.do(call)
        name = next((name for start, name in reversed(starts) if start < call.at), None)
        if changed is None or name is None or changed.name.endswith("-shm"):
            continue
        change = changes[name]
        if changed.parts[0] != "staging" and change.brain not in str(changed):
            # It belongs to the set-up of the next brain, or to an earlier one.
            continue
        counts[name] += 1
        if counts[name] <= 0 or (counts[name] - 1) % every:
            continue
        brain = next(ids)
        _copy(scratch, home, change.brain, brain)
        left.append(Left(brain, name, f"{call.name} {changed}", change.possible(call.at)))
    return left


def _copy(source: Path, home: Path, old: str, new: str) -> None:
    """Copy a brain and all of staging under another id of the same length."""
    for file in [*_of_brain(source, old), *(source / "staging").rglob("*")]:
        relative = file.relative_to(source)
        if relative.name.startswith("lock"):
            continue
        # The name of an index file begins with the id of its brain.
        parts = [
            new + part.removeprefix(old) if part.startswith(old) else part
            for part in relative.parts
        ]
        if parts[0] == "staging":
            if len(parts) < 2:
                continue
            parts[1] += f"-{new}"
        target = home.joinpath(*parts)
        if file.is_dir():
            target.mkdir(parents=True, exist_ok=True)
            continue
        target.parent.mkdir(parents=True, exist_ok=True)
        if file.name == "journal":
            target.write_bytes(file.read_bytes().replace(f"/{old}/".encode(), f"/{new}/".encode()))
        elif parts[0] == "staging" or file.stat().st_nlink > 1:
            # Recovery compares hard links to tell which file a change put in place.
            _link_or_copy(file, target, home / ".inodes" / new)
        else:
            shutil.copy2(file, target)


def _link_or_copy(file: Path, target: Path, inodes: Path) -> None:
    known = inodes / str(file.stat().st_ino)
    if not known.exists():
        inodes.mkdir(parents=True, exist_ok=True)
        shutil.copy2(file, known)
    target.hardlink_to(known)


def _of_brain(home: Path, brain: str) -> Iterator[Path]:
    for root in ("brains", "meta"):
        if (home / root / brain).is_dir():
            yield home / root / brain
            yield from (home / root / brain).rglob("*")
    yield from (home / "descriptions").glob(f"{brain}*")
    yield from (home / "index").glob(f"*/{brain}*")


async def violations(
    client: httpx.AsyncClient, left: Sequence[Left], states: Mapping[str, Sequence[Contents]]
) -> list[str]:
    """Describe each brain that shows neither the state before a request nor the one after it."""
    wrong = []
    for brain in left:
        found = await contents(client, brain.id)
        allowed = [states[brain.change][done] for done in brain.possible]
        if found not in allowed:
            place = f"{brain.change}, killed after {brain.call}"
            wrong.append(f"{place}: {json.dumps(found)}, not one of {json.dumps(allowed)}")
        elif found is not None:
            await send(client, brain.id, put("later.md", "Written later."))
            after = await contents(client, brain.id)
            if after is None or after["documents"] != found["documents"] | {
                "later.md": "Written later."
            }:
                wrong.append(f"{brain.change}, killed after {brain.call}: a later write is lost")
    return wrong
