"""`memconform datasets fetch | verify`, and what `datasets list` says of sources."""

from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

import click
import httpx
from rich.progress import (
    BarColumn,
    DownloadColumn,
    Progress,
    TimeRemainingColumn,
    TransferSpeedColumn,
)

from memconform.cli.grouping import Command, option
from memconform.datasets.fetching import (
    PinnedFile,
    fetch,
    http_client,
    pinned,
    sha256_of,
    state,
)
from memconform.datasets.files import unreadable
from memconform.datasets.sources import (
    DATA_VARIABLE,
    SOURCES_VARIABLE,
    DownloadSource,
    data_folder,
    load_sources,
    select_source,
)
from memconform.errors import ExitCode, NothingSelectedError, UsageError, gravest, nearest
from memconform.printing.console import SafeTextColumn
from memconform.printing.output import echo
from memconform.reports.console import standard_error

_Command = TypeVar("_Command", bound=Callable[..., Any])

_SOURCES = "Sources"

_to = option(
    "--to",
    "data",
    group=_SOURCES,
    type=click.Path(path_type=Path, file_okay=False),
    metavar="DIR",
    envvar=DATA_VARIABLE,
    show_envvar=True,
    default=data_folder,
    show_default="the platform's data folder",
    help="Folder of fetched files, with a subfolder for each source.",
)

_sources = option(
    "--sources",
    "sources_file",
    group=_SOURCES,
    type=click.Path(path_type=Path),
    metavar="FILE",
    envvar=SOURCES_VARIABLE,
    show_envvar=True,
    help="Another sources.toml than the shipped one.",
)


def sources(command: _Command) -> _Command:
    """The flags that say which sources there are, and where their files are."""
    return _to(_sources(command))


def show_sources(found: dict[str, DownloadSource], data: Path) -> None:
    """What there is to fetch, and whether it is here; by the sizes, which costs no reading."""
    for name, source in found.items():
        files = pinned(source, data / source.folder)
        here = [file for file in files if file.path.is_file()]
        if not here:
            told = "not here"
        elif len(here) < len(files):
            told = f"{len(here)} of {len(files)} files are here"
        elif any(file.path.stat().st_size != file.size for file in here):
            told = "here, and of another size than it should be"
        else:
            told = str(source.place(data))
        echo(f"  {name:<22} {source.about} ({source.size:,} bytes, {source.licence}): {told}")


@click.command(
    "fetch",
    cls=Command,
    examples=(
        "memconform datasets fetch locomo",
        "memconform datasets fetch locomo --from https://example.org/mirror/",
    ),
    exit_codes={
        ExitCode.OK: "all files are present",
        ExitCode.USAGE: "usage, or a file could not be fetched",
    },
)
@click.argument("names", nargs=-1, required=True, metavar="NAME...")
@option(
    "--from",
    "address",
    group=_SOURCES,
    metavar="URL",
    help="Mirror: the folder that holds the files of NAME, with a / at its end. Takes one NAME.",
)
@sources
def fetch_command(
    names: tuple[str, ...], address: str | None, data: Path, sources_file: Path | None
) -> None:
    """Download public benchmarks and verify their digests.

    `datasets list` shows the names. Run it again to resume a partial download. An existing file
    with another digest is never replaced.
    """
    chosen = select_source(load_sources(sources_file), names)
    if address is not None:
        if len(chosen) > 1:
            raise click.UsageError("--from is the address of one source; name one")
        chosen = {name: source.at(address) for name, source in chosen.items()}
    console = standard_error()
    progress = Progress(
        SafeTextColumn(),
        BarColumn(),
        DownloadColumn(),
        TransferSpeedColumn(),
        TimeRemainingColumn(),
        console=console,
        transient=True,
        disable=not console.is_terminal,
    )
    with http_client() as http, progress:
        for name, source in chosen.items():
            told = f"{name}: {source.licence}, see {source.home}"
            if source.revision is not None:
                told += f", revision {source.revision}"
            console.print(told)
            for file in pinned(source, data / source.folder):
                _fetch_one(file, http, progress)
            echo(str(source.place(data)))


def _fetch_one(file: PinnedFile, http: httpx.Client, progress: Progress) -> None:
    task = progress.add_task(file.path.name, total=file.size)
    came = fetch(file, http, lambda here: progress.update(task, completed=here))
    progress.remove_task(task)
    told = f"{file.size:,} bytes, sha256 is right" if came else "was there already"
    progress.console.print(f"  {file.path.name}: {told}")


@click.command(
    "verify",
    cls=Command,
    examples=("memconform datasets verify", "memconform datasets verify locomo"),
    exit_codes={
        ExitCode.FAILED: "a digest differs",
        ExitCode.USAGE: "usage, or a file of a source is missing",
        ExitCode.NOTHING_SELECTED: "no source was named and none is present",
    },
)
@click.argument("given", nargs=-1, metavar="[NAME|PATH]...")
@sources
def verify_command(given: tuple[str, ...], data: Path, sources_file: Path | None) -> ExitCode:
    """Verify the digests of fetched files.

    Without arguments all sources in the data folder are verified. PATH is a file of a source, or a
    folder with such files; they are recognized by their names.
    """
    known = load_sources(sources_file)
    if not given:
        return gravest([_verify(files) for files in _all_here(known, data)])
    sets: list[list[PinnedFile]] = []
    for each in given:
        if each in known:
            sets.append(pinned(known[each], data / known[each].folder))
        elif Path(each).exists():
            sets.append(_at(known, Path(each)))
        else:
            raise UsageError(
                f"{each!r} is neither a source nor an existing path",
                code="unknown_source",
                hint=nearest(each, known) or "`memconform datasets list` shows the sources",
            )
    return gravest([_verify(files) for files in sets])


def _all_here(known: dict[str, DownloadSource], data: Path) -> list[list[PinnedFile]]:
    """The files of the sources of which there is any in the data folder."""
    all_files = (pinned(source, data / source.folder) for source in known.values())
    here = [files for files in all_files if _any_here(files)]
    if not here:
        raise NothingSelectedError(
            f"no source is in {data}",
            code="no_source_here",
            hint="`memconform datasets fetch NAME` gets one; --to says where else they are",
        )
    return here


def _at(known: dict[str, DownloadSource], path: Path) -> list[PinnedFile]:
    """The pins of what lies at a path outside the data folder."""
    folder = path if path.is_dir() else path.parent
    sets = [pinned(source, folder) for source in known.values()]
    if path.is_dir():
        found = [file for files in sets if _any_here(files) for file in files]
    else:
        named = [
            replace(file, path=path)
            for files in sets
            for file in files
            if file.path.name == path.name
        ]
        found = [file for file in named if state(file) == "ok"] or named
    if not found:
        raise UsageError(
            f"{path}: no source has a file of that name",
            code="unknown_source",
            hint="files are known by the names that sources.toml gives them",
        )
    return found


def _any_here(files: Iterable[PinnedFile]) -> bool:
    return any(file.path.exists() for file in files)


def _verify(files: Iterable[PinnedFile]) -> ExitCode:
    codes = []
    for file in files:
        match state(file):
            case "ok":
                codes.append(ExitCode.OK)
                told = "ok"
            case "missing":
                codes.append(ExitCode.USAGE)
                told = "missing" if file.url is None else f"missing; it is at {file.url}"
            case "different":
                codes.append(ExitCode.FAILED)
                told = f"another digest: {_digest(file)}; pinned: {file.sha256}"
        echo(f"{file.path}: {told}")
    return gravest(codes)


def _digest(file: PinnedFile) -> str:
    try:
        return sha256_of(file.path)
    except OSError as error:
        raise unreadable(file.path, error) from error
