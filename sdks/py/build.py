"""Installs the daemon and what it needs into a virtual environment: build.py FOLDER."""

import subprocess
import sys
import venv
from pathlib import Path


def main() -> None:
    here = Path(__file__).resolve().parent
    target = Path(sys.argv[1])
    venv.create(target, with_pip=True)
    pip = [str(target / "bin" / "python"), "-m", "pip", "--disable-pip-version-check", "install"]
    subprocess.run([*pip, "--require-hashes", "-r", str(here / "requirements.lock")], check=True)
    subprocess.run([*pip, "--no-deps", "--no-build-isolation", str(here)], check=True)


if __name__ == "__main__":
    main()
