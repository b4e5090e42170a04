"""Comparing an index with the files."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from memoryd.files.path import is_hidden
from memoryd.files.tree import Tree

_BATCH_DOCUMENTS = 256

_BATCH_BYTES = 2**20
"""Limits of a batch that is read, embedded and indexed at once; searches wait for one batch."""


@dataclass(frozen=True, slots=True)
class StaleDocument:
    path: str
    stamp: str
    size: int


def differences(tree: Tree, stamps: Mapping[str, str]) -> tuple[list[StaleDocument], list[str]]:
    """Compare the files with `stamps`, the stamp of each indexed document by path.

    Returns:
        The documents that are new or changed since then; the indexed paths without a document.
    """
    removed = dict(stamps)
    stale = []
    for path, state in tree.walk():
        if is_hidden(path):
            continue
        stamp = tree.stamp(path, state)
        if removed.pop(path, None) != stamp:
            stale.append(StaleDocument(path, stamp, state.st_size))
    return stale, list(removed)


def batches(stale: Sequence[StaleDocument]) -> Iterator[Sequence[StaleDocument]]:
    """Split into batches of limited size."""
    batch: list[StaleDocument] = []
    size = 0
    for item in stale:
        if batch and (len(batch) == _BATCH_DOCUMENTS or size + item.size > _BATCH_BYTES):
            yield batch
            batch, size = [], 0
        batch.append(item)
        size += item.size
    if batch:
        yield batch
