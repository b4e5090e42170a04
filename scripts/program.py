"""Runs the program as a user does, and measures it."""

import os
import subprocess
import sys
import time
from pathlib import Path

_PROGRAM = (
    "import resource, sys\n"
    "from memconform.cli.main import main\n"
    "try: main()\n"
    "finally: print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, file=open('rss', 'w'))"
)


def measured(folder: Path, *arguments: str | Path, replies: bool = False) -> tuple[float, float]:
    """Run memconform in `folder`; return its seconds, and the most MiB that it had itself.

    With `replies`, those of models are cached in the folder and not among the user's.

    Raises:
        SystemExit: if it fails.
    """
    environment = os.environ | ({"MEMCONFORM_CACHE": str(folder / "cache")} if replies else {})
    started = time.perf_counter()
    ended = subprocess.run(
        [sys.executable, "-c", _PROGRAM, *arguments],
        cwd=folder,
        env=environment,
        check=False,
    )
    if ended.returncode:
        raise SystemExit(f"memconform {' '.join(map(str, arguments))}: {ended.returncode}")
    took = time.perf_counter() - started
    return took, int((folder / "rss").read_text()) / 1_024
