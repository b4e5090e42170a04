"""Runs the program as a user does, and measures it."""

import os
import subprocess
import sys
import time
from pathlib import Path

_PROGRAM = (
    "from memconform.cli.main import main\n"
    "try: main()\n"
    "finally: open('status', 'w').write(open('/proc/self/status').read())"
)
"""Of its own memory: the maximum that getrusage has begins with that of the process that forked."""


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
    lines = (folder / "status").read_text().splitlines()
    [most] = (int(line.split()[1]) for line in lines if line.startswith("VmHWM:"))
    return took, most / 1_024
