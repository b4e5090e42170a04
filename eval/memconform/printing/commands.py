"""Commands that are printed for the user to run."""

import shlex
from collections.abc import Sequence
from pathlib import Path


def suggested_command(*words: str | Path) -> str:
    """A command of memconform as a shell takes it, in the folder in which it is printed.

    It names results by their paths and not by their ids, which are looked up below `--output`.
    """
    return shlex.join(["memconform", *map(str, words)])


def resume_folder_command(command: Sequence[str], folder: Path) -> str:
    """The command that continues what wrote to a folder: the same, program included."""
    words = list(command[1:])
    if not any(word.partition("=")[0] == "--output" for word in words):
        words += ["--output", str(folder)]
    return suggested_command(*words)


def resume_command(command: Sequence[str], run_id: str) -> str:
    """The command that continues a run, made of the one that began it, program included."""
    words = [word for word in command[1:] if not word.startswith("--resume=")]
    if "--resume" in words:
        at = words.index("--resume")
        del words[at : at + 2]
    return suggested_command(*words, "--resume", run_id)
