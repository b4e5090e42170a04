"""Which files of this machine a command runs, so that a change of one is seen."""

import hashlib
import importlib.machinery
import os
import shutil
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path


def tool_identity(program: str) -> str:
    """Tells one version of a tool from the next: what one has compiled the other may not load."""
    found = shutil.which(program)
    if found is None:
        return f"{program}: missing"
    path = Path(found).resolve()
    status = path.stat()
    return f"{path} {status.st_size} {status.st_mtime_ns}"


def program_identity(argv: Sequence[str], folder: Path) -> Iterator[str]:
    """One line for each file of the program that `argv` runs.

    That is the interpreter with its options, and the script, or all modules of a package in
    `folder`, or the module of an installed one. A file has its content, a program on PATH its
    place, size and time.

    Arguments of the program itself are not looked at, for it may write what they name; nor is what
    it loads in turn, nor a program in `{build_dir}`, of which the build knows the sources.
    """
    for index, element in enumerate(argv):
        before = argv[index - 1] if index else ""
        is_option = element.startswith("-")
        name = element.partition("=")[2] if is_option else element
        if "{build_dir}" in name:
            return
        if not name or "{" in name:
            continue
        if before == "-m" and (modules := _module_files(name, folder)):
            yield from (f"{element} {_content(path)}" for path in modules)
            return
        if _is_file(name, folder):
            if _is_on_path(Path(name)):
                yield tool_identity(Path(name).name)
                continue
            yield f"{element} {_content(folder / name)}"
            is_interpreter = index == 0 and shutil.which(Path(name).name) is not None
            # `node --import hook.mjs main.mjs`, but not `python -u main.py --db file`.
            is_value = before.startswith("-") and any(
                _is_file(following, folder) for following in argv[index + 1 : index + 2]
            )
            if not (is_interpreter or is_option or is_value):
                return
        elif os.sep not in name and shutil.which(name):
            yield tool_identity(name)


def _is_file(name: str, folder: Path) -> bool:
    return os.path.isfile(folder / name)  # noqa: PTH113 - Path.is_file raises for a script's text


def _is_on_path(program: Path) -> bool:
    """Whether it is the absolute path of what its name stands for."""
    found = shutil.which(program.name)
    return found is not None and Path(found) == program


def _content(path: Path) -> str:
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        return str(error.strerror)


def _module_files(name: str, folder: Path) -> list[Path]:
    """The files behind `python -m name`; none where it cannot be found without importing it."""
    top, *inner = name.split(".")
    # As the interpreter does, which is started in the folder.
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
