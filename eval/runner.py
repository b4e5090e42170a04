"""`python eval/runner.py …` is short for `memconform run …` in a checkout after `make setup`."""

import os
import sys
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path


def main() -> None:
    """Run `memconform run`, in the checkout's virtual environment if need be."""
    try:
        distribution("memconform")
    except PackageNotFoundError:
        _start_again_in_venv()
    from memconform.cli.start import main as memconform  # noqa: PLC0415 - importable only now

    sys.argv.insert(1, "run")
    memconform()


def _start_again_in_venv() -> None:
    """Replace this process with the interpreter of the checkout's virtual environment."""
    python = Path(__file__).resolve().parent.parent / ".venv" / "bin" / "python"
    if not python.exists() or Path(sys.prefix) == python.parent.parent:
        sys.exit("memconform is not set up here; run: make setup")
    os.execv(python, [str(python), *sys.argv])  # noqa: S606 - no shell on purpose


if __name__ == "__main__":
    main()
