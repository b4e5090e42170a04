"""Questions whose gold is disputed, told apart by a file of their ids."""

from collections.abc import Collection, Mapping
from pathlib import Path

from memconform.datasets.files import unfit
from memconform.datasets.json_file import read_object
from memconform.datasets.selection import expect_known

_SHAPE = 'write {"conv-1#12": "why its gold is disputed"}'


def read_errata(path: Path) -> dict[str, str]:
    """Why a question's gold is disputed, by the question's id.

    Raises:
        UsageError: naming the id that has no reason, or what else is wrong.
    """
    errata = read_object(path)
    for query_id, why in errata.items():
        if not isinstance(why, str) or not why.strip():
            raise unfit(path, f"{query_id!r} has no text that says why", _SHAPE)
    return errata


def require_known_ids(errata: Mapping[str, str], ids: Collection[str]) -> None:
    """Raise UsageError for an id that no question of the benchmark has."""
    expect_known(
        errata,
        ids,
        "the errata name a question that the benchmark does not have:",
        "ids are as its loader gives them: sample_id#index of LoCoMo",
    )
