"""Identifies the files that a command runs, so that a change to one is detected."""

import hashlib
import importlib.machinery
import os
import shutil
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path


def tool_identity(program: str) -> str:
    """Identify a version of a tool by path, size and time; versions may be incompatible."""
    location = shutil.which(program)
    if location is None:
        return f"{program}: missing"
    path = Path(location).resolve()
    status = path.stat()
    return f"{path} {status.st_size} {status.st_mtime_ns}"


def program_identity(argv: Sequence[str], folder: Path) -> Iterator[str]:
    """Yield one line for each file of the program that `argv` runs.

    These are the interpreter with its options, and the script, all modules of a package in
    `folder`, or the module of an installed package. A file is identified by its content, a program
    on PATH by its path, size and time.

    Arguments of the program itself are ignored, because it may write the files that they name. So
    are files that it loads in turn, and programs in `{build_dir}`, whose sources the build hashes.
    """
    for index, element in enumerate(argv):
        previous = argv[index - 1] if index else ""
        is_option = element.startswith("-")
        name = element.partition("=")[2] if is_option else element
        if "{build_dir}" in name:
            return
        if not name or "{" in name:
            continue
        if previous == "-m" and (modules := _module_files(name, folder)):
            yield from (f"{element} {_content(path)}" for path in modules)
            return
        if _is_file(name, folder):
            if _is_on_path(Path(name)):
                yield tool_identity(Path(name).name)
                continue
            yield f"{element} {_content(folder / name)}"
            is_interpreter = index == 0 and shutil.which(Path(name).name) is not None
            # `node --import hook.mjs main.mjs`, but not `python -u main.py --db file`.
            is_value = previous.startswith("-") and any(
                _is_file(following, folder) for following in argv[index + 1 : index + 2]
            )
            if not (is_interpreter or is_option or is_value):
                return
        elif os.sep not in name and shutil.which(name):
            yield tool_identity(name)


def _is_file(name: str, folder: Path) -> bool:
    return os.path.isfile(folder / name)  # noqa: PTH113 - Path.is_file raises for a script's text


def _is_on_path(program: Path) -> bool:
    """Whether `program` is the absolute path to which its name resolves."""
    location = shutil.which(program.name)
    return location is not None and Path(location) == program


def _content(path: Path) -> str:
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        return str(error.strerror)


def _module_files(name: str, folder: Path) -> list[Path]:
    """The files behind `python -m name`; empty if they cannot be found without importing it."""
    top, *inner = name.split(".")
    # Search like the interpreter, which is started in the folder.
    spec = importlib.machinery.PathFinder.find_spec(top, [str(folder), *sys.path])
    if spec is None:
        return []
    if spec.submodule_search_locations is None:
        return [Path(spec.origin)] if spec.origin else []
    package = Path(next(iter(spec.submodule_search_locations)))
    if package.parent == folder:
        return sorted(package.rglob("*.py"))
    module = package.joinpath(*inner)
    candidates = (module.with_suffix(".py"), module / "__main__.py")
    return [path for path in candidates if path.is_file()]
