"""Installs the daemon and what it needs into a virtual environment: build.py FOLDER."""

import subprocess
import sys
import venv
from pathlib import Path


def main() -> None:
    here = Path(__file__).parent
    target = Path(sys.argv[1])
    venv.create(target, with_pip=True)
    install = [target / "bin" / "python", "-m", "pip", "install", "--disable-pip-version-check"]
    subprocess.run([*install, "--require-hashes", "-r", here / "requirements.lock"], check=True)
    subprocess.run([*install, "--no-deps", "--no-build-isolation", here], check=True)


if __name__ == "__main__":
    main()
