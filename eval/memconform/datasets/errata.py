"""Errata files: the ids of questions whose gold is disputed."""

from collections.abc import Collection, Mapping
from pathlib import Path

from memconform.datasets.files import unfit
from memconform.datasets.json_file import read_object
from memconform.datasets.selection import expect_known

_SHAPE = 'write {"conv-1#12": "why its gold is disputed"}'


def read_errata(path: Path) -> dict[str, str]:
    """Read the reasons for which gold is disputed, by question id.

    Raises:
        UsageError: if the file is invalid, or an id has no reason (`dataset_invalid`).
    """
    errata = read_object(path)
    for query_id, reason in errata.items():
        if not isinstance(reason, str) or not reason.strip():
            raise unfit(path, f"{query_id!r} has no reason", _SHAPE)
    return errata


def require_known_ids(errata: Mapping[str, str], ids: Collection[str]) -> None:
    """Raise UsageError if an id is not that of a question of the benchmark."""
    expect_known(
        errata,
        ids,
        "the errata name a question that the benchmark does not have:",
        "use the ids that the loader assigns, such as sample_id#index for LoCoMo",
    )
