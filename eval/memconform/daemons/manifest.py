"""The schema of `sdk.toml`, which describes how to build and start a daemon."""

import re
import tomllib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar, get_args

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationError,
    model_validator,
)

from memconform.contract.dialect import Dialect
from memconform.contract.names import (
    EMBEDDER_MODES,
    EMBEDDER_VARIABLE,
    READER_VARIABLE,
    Embedder,
    Reader,
)
from memconform.contract.wire import Mode, Profile
from memconform.daemons.dialects import load_dialect
from memconform.errors import UsageError
from memconform.validation_faults import require_placeholders, validation_faults

_SERVE_PLACEHOLDERS = ("host", "port", "addr", "state_dir", "build_dir", "python", "upstream")
_BUILD_PLACEHOLDERS = ("build_dir", "python")
Kind = Literal["sdk.toml", "system.toml"]
_NAMED_BY: Mapping[Kind, tuple[str, str]] = {
    "sdk.toml": ("--sdk", "docs/SDK-AUTHORS.md"),
    "system.toml": ("--system", "docs/SYSTEMS.md"),
}
"""The flag that names a manifest, and the page that describes it."""
_Tables = TypeVar("_Tables", bound=BaseModel)


def _pattern(pattern: str, rule: str) -> AfterValidator:
    """Build a validator that quotes a value that does not match, and states the rule."""

    def check(value: str) -> str:
        if re.fullmatch(pattern, value) is None:
            raise ValueError(f"{value!r} is invalid: {rule}")
        return value

    return AfterValidator(check)


def _placeholders(names: Sequence[str]) -> AfterValidator:
    """Build a validator that rejects placeholders other than these."""

    def check(arguments: list[str]) -> list[str]:
        for argument in arguments:
            require_placeholders(argument, names)
        return arguments

    return AfterValidator(check)


def _filled(value: str) -> str:
    """Reject a misspelt placeholder of a variable's value, which may have braces of its own."""
    require_placeholders(value, _SERVE_PLACEHOLDERS, only_misspelt=True)
    return value


def _brain_folder(value: str) -> str:
    require_placeholders(value, ("brain",))
    return value


Name = Annotated[
    str,
    _pattern(
        r"[a-z][a-z0-9_-]{0,31}",
        "use a lower-case letter, then up to 31 of the characters a-z 0-9 _ -",
    ),
]
Argument = Annotated[str, _pattern(r"[^\x00]+", "it must not be empty or contain NUL")]
Filled = Annotated[Argument, AfterValidator(_filled)]
"""The value of a variable, in which the placeholders of `[serve] argv` are replaced."""
Variable = Annotated[
    str,
    _pattern(r"[A-Za-z_][A-Za-z0-9_]*", "use letters, digits and _, and no digit first"),
]


class _Table(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True, defer_build=True)


class Build(_Table):
    """How the SDK is built."""

    command: Annotated[list[Argument], _placeholders(_BUILD_PLACEHOLDERS)] = Field(min_length=1)
    """Run in the manifest's folder; `{build_dir}` and `{python}` are replaced."""
    inputs: list[Argument] = Field(min_length=1)
    """Globs relative to the manifest's folder; a change of a matching file triggers a new build."""
    timeout_s: float = Field(default=900, gt=0)


class Serve(_Table):
    """How the daemon is started, or where it already runs."""

    argv: Annotated[list[Argument], _placeholders(_SERVE_PLACEHOLDERS)]
    """`{host} {port} {addr} {state_dir} {build_dir} {python} {upstream}` are replaced; empty only
    with `url`."""
    url: str | None = None
    """The address of a daemon that the user has started; in place of `argv`."""
    port: Literal["chosen", "announced"] = "chosen"
    """`announced`: the daemon is started with port 0 and prints `listening on http://host:port`."""

    @model_validator(mode="before")
    @classmethod
    def _without_argv(cls, table: object) -> object:
        """Fill in `argv` for a daemon that already runs, so that it is missing for others only."""
        if isinstance(table, dict) and "url" in table:
            return {"argv": []} | table
        return table


class PassedVariable(_Table):
    """A variable of the user's shell that is passed to the daemon."""

    name: Variable
    secret: bool | None = None
    """Whether its value is masked in all output; None decides by its name."""


def _as_table(entry: object) -> object:
    """Expand the short form `"NAME"` to `{name = "NAME"}`."""
    return {"name": entry} if isinstance(entry, str) else entry


class Env(_Table):
    """The daemon's environment."""

    set: dict[Variable, Filled] = Field(default_factory=dict)
    pass_: list[Annotated[PassedVariable, BeforeValidator(_as_table)]] = Field(
        default_factory=list, alias="pass"
    )
    """Take precedence over `set`."""


class Ready(_Table):
    """How the harness detects that the daemon is ready."""

    path: Annotated[
        str, _pattern(r"/[A-Za-z0-9._~/-]*", "begin with /, and use letters, digits and . _ ~ / -")
    ] = "/healthz"
    timeout_s: float = Field(default=30, gt=0)


class Seed(_Table):
    """How documents are ingested."""

    via: Literal["batch", "http", "documents", "disk"] = "http"
    """`batch` sends many documents in a request, `http` one, `documents` stores each by its path,
    `disk` writes them into the daemon's state folder."""
    batch: int = Field(default=256, ge=1, le=1024)
    """For `batch`: the documents of one request, at most."""
    folder: Annotated[
        str,
        _pattern(r"[^/\x00][^\x00]*", "use a path relative to {state_dir}"),
        AfterValidator(_brain_folder),
    ] = "brains/{brain}"
    """For `disk`: the brain's folder, relative to `{state_dir}`, with `{brain}` for its id."""
    restart: bool | Literal["vectors"] = False
    """Whether the daemon is restarted after the last document, because it indexes only at its
    start; `vectors` if only its embeddings wait for that, so that mode bm25 needs no restart."""
    timeout_s: float | None = Field(default=None, gt=0)
    """How long indexing may take after the last document, whatever is pending. If None, a daemon
    with pending documents, or with unknown ones, has the timeout between two events of a stream."""


class UpstreamSettings(_Table):
    """How the daemon is configured to call its upstream services."""

    scripted: dict[Variable, Filled] = Field(default_factory=dict)
    """Set for `--upstream scripted`; `{upstream}` is the upstream's address without a path."""
    real: list[Variable] = Field(default_factory=list)
    """Variables of the user's shell that are passed to the daemon with `--upstream real`."""
    modes: list[Mode] = Field(default_factory=list)
    """Claimed in addition to [capabilities] with `--upstream scripted`; with `real`, all may be
    requested and none is claimed."""


class KnownFailures(_Table):
    """Conformance checks that are known to fail."""

    file: Argument
    """The list of checks, relative to the manifest's folder."""


class Client(_Table):
    """The driver of the SDK's client; sdks/DRIVER.md describes what it does."""

    command: Annotated[list[Argument], _placeholders(_BUILD_PLACEHOLDERS)] = Field(min_length=1)
    """Run in the manifest's folder; `{build_dir}`, that of `[client.build]`, and `{python}` are
    replaced."""
    build: Build | None = None
    requires: list[Argument] | None = None
    """Programs that must be on PATH; None: those of the SDK."""
    known: Argument | None = None
    """A list of checks of the client that are known to fail, relative to the manifest's folder."""


class Capabilities(_Table):
    """What the SDK claims to support."""

    profiles: list[Profile] = Field(min_length=1)
    modes: list[Mode] = Field(min_length=1)
    readers: list[Reader] | None = Field(default=None, min_length=1)
    """Readers of the profile `ask`; None claims all. Cases of the others are skipped."""
    embedders: list[Embedder] | None = Field(default=None, min_length=1)
    """Embedders of the modes that compare vectors; None claims all. Cases of the others are
    skipped."""


class Manifest(_Table):
    """One SDK. Unknown keys are refused, because a misspelt key would be silently ignored."""

    name: Name
    language: Argument
    contract: Literal["1"] = "1"
    requires: list[Argument] = Field(default_factory=list)
    """Programs that must be on PATH."""
    build: Build | None = None
    serve: Serve
    # Without their validators, which nothing else needs: those of the manifest include them.
    env: Env = Env.model_construct()
    ready: Ready = Ready.model_construct()
    seed: Seed = Seed.model_construct()
    dialect: Annotated[Dialect, BeforeValidator(load_dialect)] | None = None
    upstream: UpstreamSettings | None = None
    known: KnownFailures | None = None
    client: Client | None = None
    capabilities: Capabilities


class ClientManifest(_Table):
    """An SDK of which there is a client alone: an `sdk.toml` without `[serve]`."""

    name: Name
    language: Argument
    contract: Literal["1"] = "1"
    requires: list[Argument] = Field(default_factory=list)
    client: Client


def load_client_manifest(path: Path) -> Manifest | ClientManifest:
    """Read an `sdk.toml`, which may describe a client alone; raises as `load_manifest`."""
    try:
        has_daemon = "serve" in tomllib.loads(path.read_text(encoding="utf-8-sig"))
    except (OSError, ValueError):
        has_daemon = True  # Whose reader says what is wrong with the file.
    if has_daemon:
        return load_manifest(path)
    return read_tables(path, "sdk.toml", ClientManifest, place=_place)


def load_manifest(path: Path) -> Manifest:
    """Read an `sdk.toml`.

    Raises:
        UsageError: `manifest_missing` if the file cannot be read; `manifest_invalid`, naming the
            file and the key or line, if its content is invalid.
    """
    manifest = read_tables(path, "sdk.toml", Manifest, place=_place, known=_keys)
    if faults := list(_contradictions(manifest)):
        find_line = _line_finder(path)
        require_no_faults(path, "sdk.toml", (_located(fault, find_line) for fault in faults))
    return manifest


def _line_finder(path: Path) -> Callable[..., str]:
    """A function from the keys that lead to a value to its place, such as `sdk.toml:7`."""
    from memconform.daemons.manifest_lines import ManifestLines  # noqa: PLC0415 - for mistakes alone

    return ManifestLines.of_file(path).place


def _located(fault: str, find_line: Callable[..., str]) -> str:
    """A fault, such as `[seed] via: …`, behind the line that it is about."""
    match = re.match(r"\[([\w.]+)\](?: (\w+))?|(\w+)", fault)
    keys = [*match[1].split("."), match[2]] if match and match[1] else [match[3] if match else ""]
    return f"{find_line(*filter(None, keys))}: {fault}"


def read_tables(
    path: Path,
    kind: Kind,
    model: type[_Tables],
    *,
    place: Callable[[Sequence[str]], str] = ".".join,
    known: Callable[[Sequence[str]], Iterable[str]] | None = None,
) -> _Tables:
    """Read a manifest.

    Args:
        path: the file, whatever it is called.
        kind: what it is.
        model: its schema.
        place: formats the path to a fault.
        known: as for `validation_faults`.

    Raises:
        UsageError: `manifest_missing`, `manifest_invalid`.
    """
    try:
        return model.model_validate(tomllib.loads(path.read_text(encoding="utf-8-sig")))
    except OSError as error:
        raise UsageError(
            f"{path}: {error.strerror}", code="manifest_missing", hint=f"check {_NAMED_BY[kind][0]}"
        ) from error
    except UnicodeDecodeError as error:
        raise _invalid(path, kind, f"not UTF-8 at byte {error.start}") from error
    except tomllib.TOMLDecodeError as error:
        raise _invalid(path, kind, str(error)) from error
    except ValidationError as error:
        find_line = _line_finder(path)
        faults = validation_faults(
            error,
            place=lambda keys: f"{find_line(*keys)}: {place(keys)}",
            known=known,
            quoted=True,
        )
        raise _invalid(path, kind, "\n".join(faults)) from error


def require_no_faults(path: Path, kind: Kind, faults: Iterable[str]) -> None:
    """Raise UsageError `manifest_invalid` with every fault that a schema cannot express."""
    if found := list(faults):
        raise _invalid(path, kind, "\n".join(found))


def _contradictions(manifest: Manifest) -> Iterator[str]:
    """Yield what tables exclude of each other: a claim, for one, must not hide a provider."""
    yield from _unservable(manifest)
    claims, scripted = manifest.capabilities, manifest.upstream
    modes = (*claims.modes, *(scripted.modes if scripted is not None else ()))
    if claims.readers is not None:
        if Profile.ASK not in claims.profiles:
            yield "[capabilities] readers: needs 'ask' in profiles"
        yield from _used(manifest, READER_VARIABLE, "readers", set(Reader) - set(claims.readers))
    if claims.embedders is not None:
        if EMBEDDER_MODES.isdisjoint(modes):
            yield "[capabilities] embedders: needs a mode that compares vectors, such as 'semantic'"
        unclaimed = set(Embedder) - set(claims.embedders)
        yield from _used(manifest, EMBEDDER_VARIABLE, "embedders", unclaimed)


_STARTED_BY_OTHERS = "memconform does not start a daemon with [serve] url, so that it cannot"


def _unservable(manifest: Manifest) -> Iterator[str]:
    """Yield what is missing to start a daemon, or needs one that memconform starts."""
    serve, seed = manifest.serve, manifest.seed
    if serve.url is None:
        if not serve.argv:
            yield "[serve] argv: must not be empty; or give the url of a daemon that already runs"
        return
    if serve.argv:
        yield "[serve] url: a daemon that already runs has no argv; remove one of them"
    if serve.port != "chosen":
        yield f"[serve] port: {_STARTED_BY_OTHERS} read its port; the url has it"
    if manifest.build is not None or manifest.requires:
        table = "[build]" if manifest.build is not None else "requires"
        yield f"{table}: {_STARTED_BY_OTHERS} need a build or a program; remove it"
    if manifest.env.set or manifest.env.pass_:
        yield f"[env]: {_STARTED_BY_OTHERS} set its variables; set them where you start it"
    if manifest.upstream is not None:
        yield f"[upstream]: {_STARTED_BY_OTHERS} choose its models; set them where you start it"
    if seed.restart:
        yield (
            f"[seed] restart: {_STARTED_BY_OTHERS} restart it; remove the line, and wait for a"
            " late index with timeout_s"
        )
    if seed.via == "disk":
        yield f"[seed] via: {_STARTED_BY_OTHERS} write files for it; use documents, batch or http"


def _used(
    manifest: Manifest, variable: str, claim: str, unclaimed: Collection[str]
) -> Iterator[str]:
    """Yield the tables that set a variable to a provider that a claim excludes."""
    tables = {"env.set": manifest.env.set}
    if manifest.upstream is not None:
        tables["upstream.scripted"] = manifest.upstream.scripted
    for table, variables in tables.items():
        used = variables.get(variable)
        if used in unclaimed:
            yield f"[{table}] {variable}: {used!r} is not among [capabilities] {claim}"


def _invalid(path: Path, kind: Kind, faults: str) -> UsageError:
    return UsageError(
        f"{path} is not a valid {kind}",
        code="manifest_invalid",
        hint=f"{_NAMED_BY[kind][1]} lists every key",
        excerpt=faults,
    )


def _place(path: Sequence[str]) -> str:
    *tables, key = path
    return f"[{'.'.join(tables)}] {key}" if tables else key


def _keys(path: Sequence[str]) -> list[str]:
    """The valid keys of the manifest table that contains a key."""
    model: type[BaseModel] = Manifest
    for table in path[:-1]:
        if table.isdecimal():  # an index into a list, whose model was found with the list
            continue
        fields = model.model_fields.items()
        annotation = next(f.annotation for name, f in fields if table in (name, f.alias))
        model = next(_models(annotation))
    return [field.alias or name for name, field in model.model_fields.items()]


def _models(annotation: Any) -> Iterator[type[BaseModel]]:  # noqa: ANN401 - any annotation
    """Yield the models within an annotation."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for part in get_args(annotation):
        yield from _models(part)
