"""`python eval/runner.py …` is `memconform run …`, from a checkout that has been set up."""

import os
import sys
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path


def main() -> None:
    try:
        distribution("memconform")
    except PackageNotFoundError:
        _start_again_in_venv()
    from memconform.cli.main import main as memconform  # noqa: PLC0415 - now it can be found

    sys.argv.insert(1, "run")
    memconform()


def _start_again_in_venv() -> None:
    """Replace this process by the checkout's own interpreter, which has what we need."""
    python = Path(__file__).resolve().parent.parent / ".venv" / "bin" / "python"
    if not python.exists() or Path(sys.prefix) == python.parent.parent:
        sys.exit("memconform is not set up here; run: make setup")
    os.execv(python, [str(python), *sys.argv])  # noqa: S606 - no shell is the point


if __name__ == "__main__":
    main()
