"""What of an index is no longer as the files say."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from memoryd.paths import is_hidden
from memoryd.tree import Tree

_DOCUMENTS = 256
_BYTES = 2**20
"""So many are read, embedded and indexed at once: who waits for the index waits for one batch."""


@dataclass(frozen=True, slots=True)
class Stale:
    path: str
    stamp: str
    size: int


@dataclass(frozen=True, slots=True)
class Differences:
    stale: list[Stale]
    """Not indexed as they are now."""
    gone: list[str]
    """Indexed, and no longer there."""


def differences(tree: Tree, stamps: Mapping[str, str]) -> Differences:
    known = dict(stamps)
    stale = []
    for path, state in tree.walk():
        if is_hidden(path):
            continue
        stamp = tree.stamp(path, state)
        if known.pop(path, None) != stamp:
            stale.append(Stale(path, stamp, state.st_size))
    return Differences(stale, list(known))


def batches(stale: Sequence[Stale]) -> Iterator[Sequence[Stale]]:
    """Runs that are small enough."""
    batch: list[Stale] = []
    size = 0
    for item in stale:
        if batch and (len(batch) == _DOCUMENTS or size + item.size > _BYTES):
            yield batch
            batch, size = [], 0
        batch.append(item)
        size += item.size
    if batch:
        yield batch
