"""`memconform datasets fetch | verify`, and the sources that `datasets list` shows."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

import click
import httpx
from rich.progress import DownloadColumn, Progress, TransferSpeedColumn

from memconform.cli.commands import FOLDER, REFERENCE, Command, PathType, option
from memconform.cli.options import quiet
from memconform.datasets.download import (
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
from memconform.printing.columns import whole
from memconform.printing.console import standard_error
from memconform.printing.output import echo
from memconform.printing.plurals import plural
from memconform.reports.progress import StepProgress, progress_bars

_Command = TypeVar("_Command", bound=Callable[..., Any])

_SOURCES = "Sources"

_to = option(
    "--to",
    "data",
    group=_SOURCES,
    type=FOLDER,
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
    type=PathType(),
    metavar="FILE",
    envvar=SOURCES_VARIABLE,
    show_envvar=True,
    help="Use this sources.toml instead of the shipped one.",
)


def sources(command: _Command) -> _Command:
    """Add the flags --to and --sources to a command."""
    return _to(_sources(command))


def show_sources(known: dict[str, DownloadSource], data: Path) -> None:
    """List the sources, and whether they are present, judged by file sizes without reading."""
    for name, source in known.items():
        files = pinned(source, data / source.folder)
        present = [file for file in files if file.path.is_file()]
        if not present:
            status = "not fetched"
        elif len(present) < len(files):
            status = f"{len(present)} of {plural(len(files), 'file')} fetched"
        elif any(file.path.stat().st_size != file.size for file in present):
            status = "fetched, but a file has the wrong size"
        else:
            status = str(source.place(data))
        size = plural(source.size, "byte", spec=",")
        echo(f"  {name:<22} {source.about} ({size}, {source.licence}): {status}")


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
    help="URL of a mirror folder that holds the files of NAME, ending in /. Takes one NAME.",
)
@sources
@quiet
def fetch_command(
    names: tuple[str, ...],
    address: str | None,
    data: Path,
    sources_file: Path | None,
    *,
    quiet: bool,
) -> None:
    """Download public benchmarks and verify their digests.

    `datasets list` shows the names. Run it again to resume a partial download. An existing file
    with another digest is never replaced.
    """
    selected = select_source(load_sources(sources_file), names)
    if address is not None:
        if len(selected) > 1:
            raise click.UsageError("--from takes exactly one NAME")
        selected = {name: source.at(address) for name, source in selected.items()}
    console = standard_error()
    progress = progress_bars(
        console,
        DownloadColumn(table_column=whole()),
        TransferSpeedColumn(table_column=whole()),
        quiet=quiet,
    )
    with http_client() as http, progress:
        for name, source in selected.items():
            heading = f"{name}: {source.licence}, see {source.home}"
            if source.revision is not None:
                heading += f", revision {source.revision}"
            if not quiet:
                console.print(heading)
            for file in pinned(source, data / source.folder):
                line = _fetch_one(file, http, progress)
                if not quiet:
                    progress.console.print(line)
            echo(str(source.place(data)))


def _fetch_one(file: PinnedFile, http: httpx.Client, progress: Progress) -> str:
    """Fetch a file; returns a line that says how."""
    task = progress.add_task(file.path.name, total=file.size)
    downloaded = fetch(file, http, lambda received: progress.update(task, completed=received))
    progress.remove_task(task)
    size = plural(file.size, "byte", spec=",")
    status = f"{size}, sha256 ok" if downloaded else "already present"
    return f"  {file.path.name}: {status}"


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
@click.argument("targets", type=REFERENCE, nargs=-1, metavar="[NAME|PATH]...")
@sources
@quiet
def verify_command(
    targets: tuple[str, ...], data: Path, sources_file: Path | None, *, quiet: bool
) -> ExitCode:
    """Verify the digests of fetched files.

    Without arguments all sources in the data folder are verified. PATH is a file of a source, or a
    folder with such files; they are recognized by their names.
    """
    known = load_sources(sources_file)
    if not targets:
        return gravest([_verify(files, quiet=quiet) for files in _fetched_sources(known, data)])
    sets: list[list[PinnedFile]] = []
    for target in targets:
        if target in known:
            sets.append(pinned(known[target], data / known[target].folder))
        elif Path(target).exists():
            sets.append(_files_at(known, Path(target)))
        else:
            raise UsageError(
                f"{target!r} is neither a source nor an existing path",
                code="unknown_source",
                hint=nearest(target, known) or "`memconform datasets list` shows the sources",
            )
    return gravest([_verify(files, quiet=quiet) for files in sets])


def _fetched_sources(known: dict[str, DownloadSource], data: Path) -> list[list[PinnedFile]]:
    """Return the files of every source that has at least one file in the data folder."""
    all_files = (pinned(source, data / source.folder) for source in known.values())
    present = [files for files in all_files if _any_exists(files)]
    if not present:
        raise NothingSelectedError(
            f"no source was fetched to {data}",
            code="no_source_here",
            hint="run `memconform datasets fetch NAME`, or name another folder with --to",
        )
    return present


def _files_at(known: dict[str, DownloadSource], path: Path) -> list[PinnedFile]:
    """Return the pinned files that match a path outside the data folder, by name."""
    folder = path if path.is_dir() else path.parent
    sets = [pinned(source, folder) for source in known.values()]
    if path.is_dir():
        matches = [file for files in sets if _any_exists(files) for file in files]
    else:
        namesakes = [
            replace(file, path=path)
            for files in sets
            for file in files
            if file.path.name == path.name
        ]
        matches = [file for file in namesakes if state(file) == "ok"] or namesakes
    if not matches:
        raise UsageError(
            f"{path}: no source has a file of that name",
            code="unknown_source",
            hint="rename the file as in sources.toml",
        )
    return matches


def _any_exists(files: Iterable[PinnedFile]) -> bool:
    return any(file.path.exists() for file in files)


def _verify(files: Sequence[PinnedFile], *, quiet: bool) -> ExitCode:
    with StepProgress("reading files", len(files), quiet=quiet) as step:
        codes = []
        for file in files:
            codes.append(_verify_file(file, quiet=quiet))
            step.advance()
    return gravest(codes)


def _verify_file(file: PinnedFile, *, quiet: bool) -> ExitCode:
    match state(file):
        case "ok":
            code, status = ExitCode.OK, "ok"
        case "missing":
            code = ExitCode.USAGE
            status = (
                "missing" if file.url is None else f"missing; download it from {file.shown_url}"
            )
        case "different":
            code = ExitCode.FAILED
            status = f"digest is {_digest(file)}, but {file.sha256} is pinned"
    if code or not quiet:
        echo(f"{file.path}: {status}")
    return code


def _digest(file: PinnedFile) -> str:
    try:
        return sha256_of(file.path)
    except OSError as error:
        raise unreadable(file.path, error) from error
