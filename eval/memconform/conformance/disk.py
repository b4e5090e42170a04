"""Files of a daemon's state folder, as a `disk` step wants them."""

from pathlib import Path

from memconform.conformance.step_result import StepResult


class NoSuchFileError(Exception):
    pass


def read(state: Path, path: str) -> StepResult:
    """The bytes of a file; nothing at all where there is none."""
    outcome = StepResult(f"disk: read {path}")
    try:
        outcome.body = (state / path).read_bytes()
    except (FileNotFoundError, NotADirectoryError, IsADirectoryError) as error:
        outcome.failure = f"{path}: {error.strerror}"
    return outcome


def listed(state: Path, pattern: str) -> StepResult:
    """All files that a glob finds, as paths below the state folder, sorted."""
    found = sorted(str(p.relative_to(state)) for p in state.glob(pattern) if p.is_file())
    return StepResult(f"disk: list {pattern}", value=found)


def write_file(state: Path, path: str, content: bytes) -> StepResult:
    target = state / path
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_bytes(content)
    return StepResult(f"disk: write {path}")


def remove(state: Path, pattern: str) -> StepResult:
    """Remove the files that a glob finds; raises NoSuchFileError where there is none."""
    for path in _found(state, pattern):
        path.unlink()
    return StepResult(f"disk: remove {pattern}")


def damage(state: Path, pattern: str) -> StepResult:
    """Overwrite the beginning of each file that a glob finds."""
    for path in _found(state, pattern):
        with path.open("r+b") as file:
            file.write(b"\xde\xad\xbe\xef" * 1024)
    return StepResult(f"disk: damage {pattern}")


def link(state: Path, path: str, target: str) -> StepResult:
    place = state / path
    place.parent.mkdir(parents=True, exist_ok=True)
    place.symlink_to(target)
    return StepResult(f"disk: link {path} -> {target}")


def _found(state: Path, pattern: str) -> list[Path]:
    found = [path for path in state.glob(pattern) if path.is_file()]
    if not found:
        raise NoSuchFileError(f"nothing at {pattern} in the state folder")
    return found
