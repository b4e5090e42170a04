"""The documents of a corpus folder."""

from pathlib import Path

from memconform.errors import UsageError


def corpus_files(folder: Path) -> list[Path]:
    """Every file below `folder`, except links and names with a leading dot or underscore.

    The contract keeps `_…` documents out of every index.

    Raises:
        UsageError: if the folder is missing or has no document (`corpus_empty`).
    """
    files = [path for path in sorted(folder.rglob("*")) if _belongs(path, folder)]
    if not files:
        raise UsageError(
            f"{folder} contains no document (links are not followed)"
            if folder.is_dir()
            else f"{folder} is not a folder",
            code="corpus_empty",
            hint="check --corpus",
        )
    return files


def _belongs(path: Path, folder: Path) -> bool:
    hidden = any(part.startswith(".") for part in path.relative_to(folder).parts)
    indexed = not (hidden or path.name.startswith("_"))
    return indexed and path.is_file() and not path.is_symlink()
