"""`sources.toml`: addresses and digests of public benchmarks."""

import os
import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    StringConstraints,
    TypeAdapter,
    ValidationError,
)

from memconform.datasets.benchmarks import formats
from memconform.datasets.files import PACKED, PieceReader, read_text
from memconform.datasets.registry import sample, shipped, shipped_folder
from memconform.errors import UsageError, nearest
from memconform.redaction import hide_credentials, masked_address
from memconform.user_cache import downloads_folder
from memconform.validation_faults import validation_faults

_Name = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9_-]{0,63}$")]
_Text = Annotated[str, StringConstraints(min_length=1)]
# No part begins with a dot, so none is `..` or the name of a partial download.
_PART = r"[A-Za-z0-9_][A-Za-z0-9._-]*"
_Path = Annotated[str, StringConstraints(pattern=rf"^{_PART}(/{_PART})*$")]


DATA_VARIABLE = "MEMCONFORM_DATA"
"""The environment variable for the folder of fetched files."""
SOURCES_VARIABLE = "MEMCONFORM_SOURCES"
"""The environment variable for another sources.toml."""

_MAX_BYTES = 4 << 20
"""Size limit of a sources.toml; the shipped one has 4 kB."""


Address = Annotated[str, StringConstraints(pattern=r"^https?://[^/\s]+/(\S*/)?$")]
"""The URL of a folder of files, with a / at its end."""


class _Table(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, defer_build=True)


class SourceFile(_Table):
    """A file of a source with its pinned size and digest, both of which are required."""

    name: _Path
    """Path below the source's folder, and below its url."""
    size: int = Field(alias="bytes", gt=0)
    sha256: Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]


class DownloadSource(_Table):
    """A public benchmark that can be downloaded."""

    about: _Text
    home: _Text
    """The page that describes it."""
    licence: _Text
    format: _Text
    """The name of a format in `datasets list`."""
    folder: _Path
    """Folder below the data folder."""
    revision: _Text | None = None
    """Revision of its files, as `home` names it."""
    url: Address | None = None
    """Address of the folder of its files."""
    files: tuple[SourceFile, ...] = Field(min_length=1, strict=False)

    @property
    def size(self) -> int:
        """Bytes of all files."""
        return sum(file.size for file in self.files)

    def at(self, address: str) -> "DownloadSource":
        """The source at another address.

        Raises:
            UsageError: if the address is not the URL of a folder (`bad_address`).
        """
        hide_credentials(address, is_address=True)
        try:
            return self.model_copy(
                update={"url": TypeAdapter[str](Address).validate_python(address)}
            )
        except ValidationError as error:
            raise UsageError(
                f"{masked_address(address)!r} is not the address of a folder",
                code="bad_address",
                hint="write http://… or https://…, with a / at its end",
            ) from error

    def place(self, data: Path) -> Path:
        """The path for `datasets info`: the folder, or the file if the format is a single file."""
        folder = data / self.folder
        is_folder = formats()[self.format].is_folder
        return folder if is_folder else folder / self.files[0].name


def data_folder() -> Path:
    """The default folder that files are fetched to and looked up in."""
    named = os.environ.get(DATA_VARIABLE)
    return Path(named) if named else downloads_folder()


def fetched(name: str) -> Path | None:
    """The local path of a fetched source; None if it is unknown or not completely fetched.

    Raises:
        UsageError: if the file that `SOURCES_VARIABLE` names is invalid.
    """
    source = known_sources().get(name)
    if source is None:
        return None
    folder = data_folder() / source.folder
    is_complete = all((folder / file.name).is_file() for file in source.files)
    return source.place(data_folder()) if is_complete else None


def find_data(named: str) -> Path:
    """The path that `--data` means: the path itself, or that of what has this name, a set that
    ships with the project or a fetched source.

    Raises:
        UsageError: if it is a source that was not fetched (`not_fetched`), or neither a path nor a
            source, but nearly a source's name (`unknown_source`).
    """
    path = Path(named)
    if path.exists():
        return path
    ships = shipped() | {"sample": sample()}
    if named in ships:
        return ships[named]
    if named not in known_sources():
        if hint := nearest(named, [*known_sources(), *ships]):
            raise UsageError(
                f"{named} does not exist, and is no source", code="unknown_source", hint=hint
            )
        return path
    place = fetched(named)
    if place is None:
        raise UsageError(
            f"{named} is missing in {data_folder()}",
            code="not_fetched",
            hint=f"memconform datasets fetch {named}",
        )
    return place


def pinned_as(sha256: str) -> str | None:
    """The name of the single-file source with this digest, if any."""
    for name, source in known_sources().items():
        if [file.sha256 for file in source.files] == [sha256]:
            return name
    return None


def pinned_part(sha256: str) -> str | None:
    """The name of the source of which one file has this digest, if any."""
    for name, source in known_sources().items():
        if sha256 in (file.sha256 for file in source.files):
            return name
    return None


def pinned_folder(folder: Path) -> str | None:
    """The name of the source of several files that a folder contains, each with its digest.

    Other files may be beside them, and they may be compressed. A file that cannot be read is none
    of a source's; whoever needs it reports it.
    """
    for name, source in known_sources().items():
        if len(source.files) > 1 and all(_is_pinned(folder, file) for file in source.files):
            return name
    return None


def _is_pinned(folder: Path, file: SourceFile) -> bool:
    paths = (folder / f"{file.name}{ending}" for ending in ("", *PACKED))
    path = next((each for each in paths if each.is_file()), None)
    if path is None:
        return False
    try:
        with PieceReader(path) as source:
            while source.read():
                pass
            return (source.size, source.sha256) == (file.size, file.sha256)
    except UsageError:
        return False


def known_sources() -> dict[str, DownloadSource]:
    """The sources of the file that `SOURCES_VARIABLE` names, or of the shipped one."""
    named = os.environ.get(SOURCES_VARIABLE)
    return load_sources(Path(named) if named else None)


def load_sources(path: Path | None) -> dict[str, DownloadSource]:
    """Load the sources of a file, by name; without a path, of the shipped file.

    Raises:
        UsageError: if the file cannot be read (`sources_missing`), or is invalid
            (`sources_invalid`); the excerpt names the source and key.
    """
    path = path or shipped_folder() / "sources.toml"
    try:
        adapter = TypeAdapter(dict[_Name, DownloadSource])
        sources = adapter.validate_python(tomllib.loads(_content(path)))
    except UnicodeDecodeError as error:
        raise _invalid(path, [f"not UTF-8 at byte {error.start}"]) from error
    except tomllib.TOMLDecodeError as error:
        raise _invalid(path, [str(error)]) from error
    except RecursionError as error:
        raise _invalid(path, ["nests too deeply"]) from error
    except ValidationError as error:
        raise _invalid(path, _faults(error)) from error
    if faults := _unfit(sources):
        raise _invalid(path, faults)
    return sources


def _content(path: Path) -> str:
    try:
        return read_text(path, _MAX_BYTES)
    except UsageError as error:
        raise UsageError(error.message, code="sources_missing", hint="check --sources") from error


def select_source(
    sources: dict[str, DownloadSource], names: tuple[str, ...]
) -> dict[str, DownloadSource]:
    """The sources with these names, without duplicates.

    Raises:
        UsageError: if there is no source of a name (`unknown_source`).
    """
    for name in names:
        if name not in sources:
            raise UsageError(
                f"no source {name!r}; available: {', '.join(sources) or 'none'}",
                code="unknown_source",
                hint=nearest(name, sources) or "`memconform datasets list` shows them",
            )
    return {name: sources[name] for name in names}


def _unfit(sources: dict[str, DownloadSource]) -> list[str]:
    """Faults that involve several keys."""
    faults = []
    places: dict[str, str] = {}
    for name, source in sources.items():
        known = formats()
        if source.format not in known:
            hint = nearest(source.format, known)
            faults.append(f"[{name}] format: no {source.format!r}; {hint}".rstrip("; "))
        elif len(source.files) > 1 and not known[source.format].is_folder:
            faults.append(f"[{name}] files: {source.format} takes a single file")
        for number, file in enumerate(source.files):
            place = f"{source.folder}/{file.name}"
            if place in places:
                faults.append(
                    f"[{name}] files.{number}.name: {place} also belongs to {places[place]}"
                )
            places[place] = name
    return faults


def _faults(error: ValidationError) -> list[str]:
    def place(path: Sequence[str]) -> str:
        table, *keys = path
        return f"[{table}] {'.'.join(keys)}".rstrip()

    def known(path: Sequence[str]) -> list[str]:
        model = SourceFile if len(path) > 2 else DownloadSource
        return [each.alias or name for name, each in model.model_fields.items()]

    return validation_faults(error, place=place, known=known)


def _invalid(path: Path, faults: list[str]) -> UsageError:
    return UsageError(
        f"{path} is not a valid sources.toml",
        code="sources_invalid",
        hint="datasets/README.md, Fetching, lists every key",
        excerpt="\n".join(faults),
    )
