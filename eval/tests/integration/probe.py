"""Writes to seen.json what the process is that imports it: the program, for `--sdk probe:X`."""

import ctypes
import gc
import json
import locale
import os
import resource
import signal
import stat
import sys
import threading
import time
from pathlib import Path
from typing import Any, TextIO

_PR_GET_CHILD_SUBREAPER = 37


def _subreaper() -> int:
    is_subreaper = ctypes.c_int()
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_GET_CHILD_SUBREAPER, ctypes.byref(is_subreaper), 0, 0, 0)
    return is_subreaper.value


def _descriptors() -> dict[int, list[int]]:
    descriptors = {}
    for number in range(256):
        try:
            descriptors[number] = [
                stat.S_IFMT(os.fstat(number).st_mode),
                os.get_inheritable(number),
            ]
        except OSError:
            continue
    return descriptors


def _stream(stream: TextIO) -> list[object]:
    name = type(stream).__name__
    return [name, stream.encoding, stream.errors, stream.line_buffering, stream.isatty()]


def _look() -> dict[str, Any]:
    mask = os.umask(0o77)
    os.umask(mask)
    main = sys.modules["__main__"]
    limits = [name for name in dir(resource) if name.startswith("RLIMIT_")]
    return {
        "argv": sys.argv,
        "executable": sys.executable,
        "flags": list(sys.flags),
        "path": sys.path,
        "main": [main.__name__, main.__file__],
        "folder": str(Path.cwd()),
        "environment": dict(os.environ),
        "umask": mask,
        "limits": {name: resource.getrlimit(getattr(resource, name)) for name in limits},
        "nice": os.nice(0),
        "handlers": {
            number: str(signal.getsignal(number)).partition(" at 0x")[0]
            for number in sorted(signal.valid_signals())
        },
        "blocked": sorted(signal.pthread_sigmask(signal.SIG_BLOCK, [])),
        "wakeup": signal.set_wakeup_fd(-1),
        "leads": [os.getpgid(0) == os.getpid(), os.getsid(0) == os.getpid()],
        "subreaper": _subreaper(),
        "descriptors": _descriptors(),
        "streams": [_stream(sys.stdin), _stream(sys.stdout), _stream(sys.stderr)],
        "threads": [thread.name for thread in threading.enumerate()],
        "gc": [gc.isenabled(), gc.get_threshold()],
        "locale": [locale.setlocale(locale.LC_ALL), time.tzname],
        "hooks": [str(sys.gettrace()), str(sys.getprofile()), sys.excepthook.__name__],
    }


Path("seen.json").write_text(json.dumps(_look(), indent=1), encoding="utf-8")
