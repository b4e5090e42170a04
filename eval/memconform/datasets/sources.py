"""`sources.toml`: where public benchmarks are, and which bytes they are."""

import os
import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

from platformdirs import user_data_path
from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    StringConstraints,
    TypeAdapter,
    ValidationError,
)

from memconform.datasets.benchmarks import formats
from memconform.datasets.files import read_whole
from memconform.datasets.registry import shipped_folder
from memconform.errors import UsageError, nearest
from memconform.validation import validation_faults

_Name = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9_-]{0,63}$")]
_Text = Annotated[str, StringConstraints(min_length=1)]
# No part begins with a dot, so none is `..`, and none is the name of a file that is on its way.
_PART = r"[A-Za-z0-9_][A-Za-z0-9._-]*"
_Path = Annotated[str, StringConstraints(pattern=rf"^{_PART}(/{_PART})*$")]


DATA_VARIABLE = "MEMCONFORM_DATA"
"""Names the folder of fetched files."""
SOURCES_VARIABLE = "MEMCONFORM_SOURCES"

_MAX_BYTES = 4 << 20
"""Of a sources.toml: the one that ships has 4 kB."""


Address = Annotated[str, StringConstraints(pattern=r"^https?://[^/\s]+/(\S*/)?$")]
"""Of a folder of files."""


class _Table(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class SourceFile(_Table):
    """A file of a source, and its bytes: a pin that is not known is no pin, so it is required."""

    name: _Path
    """Below the source's folder here, and behind its url there."""
    size: int = Field(alias="bytes", gt=0)
    sha256: Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]


class DownloadSource(_Table):
    about: _Text
    home: _Text
    """Where people read about it."""
    licence: _Text
    format: _Text
    """As `datasets list` names it."""
    folder: _Path
    """Below the data folder."""
    revision: _Text | None = None
    """Of its files, as `home` calls it."""
    url: Address | None = None
    """What their names follow."""
    files: tuple[SourceFile, ...] = Field(min_length=1, strict=False)

    @property
    def size(self) -> int:
        return sum(file.size for file in self.files)

    def at(self, address: str) -> "DownloadSource":
        """The source, at another address; raises UsageError for what is none."""
        try:
            return self.model_copy(update={"url": _ADDRESS.validate_python(address)})
        except ValidationError as error:
            raise UsageError(
                f"{address!r} is not the address of a folder",
                code="bad_address",
                hint="write http://… or https://…, with a / at its end",
            ) from error

    def place(self, data: Path) -> Path:
        """What `datasets info` takes: the folder, or the file where the format is one of a file."""
        folder = data / self.folder
        is_folder = formats()[self.format].is_folder
        return folder if is_folder else folder / self.files[0].name


def data_folder() -> Path:
    """Where files are fetched to, and looked for, unless another folder is named."""
    named = os.environ.get(DATA_VARIABLE)
    return Path(named) if named else user_data_path("memconform") / "datasets"


def fetched(name: str) -> Path | None:
    """Where the source of a name lies; None where there is no such source, or not all of it here.

    Raises:
        UsageError: where the sources that `SOURCES_VARIABLE` names are none.
    """
    source = known_sources().get(name)
    if source is None:
        return None
    folder = data_folder() / source.folder
    here = all((folder / file.name).is_file() for file in source.files)
    return source.place(data_folder()) if here else None


def pinned_as(sha256: str) -> str | None:
    """The source of one file that has this digest."""
    for name, source in known_sources().items():
        if [file.sha256 for file in source.files] == [sha256]:
            return name
    return None


def known_sources() -> dict[str, DownloadSource]:
    """Of the file that `SOURCES_VARIABLE` names, or of the one that comes with the project."""
    named = os.environ.get(SOURCES_VARIABLE)
    return load_sources(Path(named) if named else None)


_ADDRESS = TypeAdapter[str](Address)
_SOURCES = TypeAdapter(dict[_Name, DownloadSource])


def load_sources(path: Path | None) -> dict[str, DownloadSource]:
    """The sources of a file by name; of the one that comes with the project where none is given.

    Raises:
        UsageError: naming the file, and the source and key that is wrong.
    """
    path = path or shipped_folder() / "sources.toml"
    try:
        sources = _SOURCES.validate_python(tomllib.loads(_content(path).decode()))
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


def _content(path: Path) -> bytes:
    try:
        return read_whole(path, _MAX_BYTES)
    except UsageError as error:
        raise UsageError(error.message, code="sources_missing", hint="check --sources") from error


def select_source(
    sources: dict[str, DownloadSource], names: tuple[str, ...]
) -> dict[str, DownloadSource]:
    """The sources of these names, each once; raises UsageError for a name that none has."""
    for name in names:
        if name not in sources:
            raise UsageError(
                f"no source {name!r}; there are {', '.join(sources) or 'none'}",
                code="unknown_source",
                hint=nearest(name, sources) or "`memconform datasets list` shows them",
            )
    return {name: sources[name] for name in names}


def _unfit(sources: dict[str, DownloadSource]) -> list[str]:
    """What no key shows by itself."""
    faults = []
    places: dict[str, str] = {}
    for name, source in sources.items():
        known = formats()
        if source.format not in known:
            hint = nearest(source.format, known)
            faults.append(f"[{name}] format: no {source.format!r}; {hint}".rstrip("; "))
        elif len(source.files) > 1 and not known[source.format].is_folder:
            faults.append(f"[{name}] files: {source.format} is a format of one file")
        for number, file in enumerate(source.files):
            place = f"{source.folder}/{file.name}"
            if place in places:
                faults.append(f"[{name}] files.{number}.name: {place} is {places[place]}'s too")
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
