"""Finding datasets by path or by the name of a set that ships with the project."""

from pathlib import Path

from memconform.datasets.jsonl import open_jsonl
from memconform.datasets.question import Dataset
from memconform.errors import UsageError, nearest

_PACKAGED = Path(__file__).parent / "shipped"
_CHECKOUT = Path(__file__).parents[3] / "datasets"


def shipped_folder() -> Path:
    """The folder of shipped datasets; an installed package contains copies of them."""
    return _PACKAGED if _PACKAGED.is_dir() else _CHECKOUT


def shipped() -> dict[str, Path]:
    """The question sets that come with the project, by name."""
    paths = sorted(shipped_folder().glob("*.jsonl"))
    return {path.stem: path for path in paths if path != judge_calibration()}


def sample() -> Path:
    """The benchmark that ships with the project."""
    return shipped_folder() / "sample.json"


def judge_calibration() -> Path:
    """Answers whose judgement is known, by which a judge's errors are counted; no question set."""
    return shipped_folder() / "judge-calibration.jsonl"


def open_dataset(reference: str) -> Dataset:
    """Open a question set by path or shipped name.

    Raises:
        UsageError: if there is no such dataset (`dataset_missing`), or as `open_jsonl` does.
    """
    path = Path(reference)
    # A folder may have the same name as a shipped set.
    if path.exists() and not path.is_dir():
        return open_jsonl(path, path.stem)
    known = shipped()
    if reference in known:
        return open_jsonl(known[reference], reference)
    names = ", ".join(known) or "none"
    raise UsageError(
        f"no dataset {reference!r}: neither a file nor a shipped name ({names})",
        code="dataset_missing",
        hint=nearest(reference, known) or "give --data a path to a .jsonl file",
    )


def corpus_of(dataset: Dataset) -> Path | None:
    """The folder of a dataset's documents, `NAME/corpus/` beside it; None if it is missing."""
    folder = dataset.path.with_suffix("") / "corpus"
    return folder if folder.is_dir() else None
