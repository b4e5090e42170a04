"""`sdk.toml`: what the harness must know to build and start a daemon."""

import tomllib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal, get_args

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    StringConstraints,
    ValidationError,
)

from memconform.contract.wire import Mode, Profile
from memconform.errors import UsageError
from memconform.validation import validation_faults

Name = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9_-]{0,31}$")]
Argument = Annotated[str, StringConstraints(pattern=r"^[^\x00]+$")]
Variable = Annotated[str, StringConstraints(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")]


class _Table(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True)


class Build(_Table):
    command: list[Argument] = Field(min_length=1)
    """Run in the manifest's folder; `{build_dir}` and `{python}` are filled in."""
    inputs: list[Argument] = Field(min_length=1)
    """Globs below the manifest's folder; the build is made anew when one of the files changes."""
    timeout_s: float = Field(default=900, gt=0)


class Serve(_Table):
    argv: list[Argument] = Field(min_length=1)
    """`{host} {port} {addr} {state_dir} {build_dir} {python}` are filled in."""
    port: Literal["chosen", "announced"] = "chosen"
    """`announced`: started with port 0, the daemon prints `listening on http://host:port`."""


class PassedVariable(_Table):
    """A variable of the user's shell that reaches the daemon."""

    name: Variable
    secret: bool | None = None
    """Whether its value is masked in all that is written; None decides by its name."""


def _as_table(given: object) -> object:
    """`"NAME"` is short for `{name = "NAME"}`."""
    return {"name": given} if isinstance(given, str) else given


class Env(_Table):
    set: dict[Variable, Argument] = Field(default_factory=dict)
    pass_: list[Annotated[PassedVariable, BeforeValidator(_as_table)]] = Field(
        default_factory=list, alias="pass"
    )
    """They win over `set`."""


class Ready(_Table):
    path: str = Field(default="/healthz", pattern=r"^/[A-Za-z0-9._~/-]*$")
    timeout_s: float = Field(default=30, gt=0)


class Seed(_Table):
    via: Literal["batch", "http"] = "http"
    """How documents get in: many a request, or one."""


class UpstreamSettings(_Table):
    """How a daemon is pointed at the services that it calls."""

    scripted: dict[Variable, Argument] = Field(default_factory=dict)
    """Set for `--upstream scripted`; `{upstream}` is its address, without a path."""
    real: list[Variable] = Field(default_factory=list)
    """Variables of the user's shell that reach the daemon with `--upstream real`."""
    modes: list[Mode] = Field(default_factory=list)
    """Claimed, beside those of [capabilities], with `--upstream scripted`; with `real` all of them
    may be asked for, and none is claimed."""


class KnownFailures(_Table):
    file: Argument
    """Below the manifest's folder: conformance checks that are known to fail."""


class Capabilities(_Table):
    profiles: list[Profile] = Field(min_length=1)
    modes: list[Mode] = Field(min_length=1)


class Manifest(_Table):
    """One SDK. A key that is not known is refused: misspelt, it would be ignored in silence."""

    name: Name
    language: Argument
    contract: Literal["1"] = "1"
    requires: list[Argument] = Field(default_factory=list)
    """Programs that must be on PATH."""
    build: Build | None = None
    serve: Serve
    env: Env = Env()
    ready: Ready = Ready()
    seed: Seed = Seed()
    upstream: UpstreamSettings | None = None
    known: KnownFailures | None = None
    capabilities: Capabilities


def load_manifest(path: Path) -> Manifest:
    """Read an `sdk.toml`.

    Raises:
        UsageError: naming the file, and the key or line that is wrong.
    """
    try:
        content = path.read_text(encoding="utf-8")
        return Manifest.model_validate(tomllib.loads(content))
    except OSError as error:
        raise UsageError(
            f"{path}: {error.strerror}", code="manifest_missing", hint="check --sdk"
        ) from error
    except UnicodeDecodeError as error:
        raise _invalid(path, f"not UTF-8 at byte {error.start}") from error
    except tomllib.TOMLDecodeError as error:
        raise _invalid(path, str(error)) from error
    except ValidationError as error:
        faults = validation_faults(error, place=_place, known=_keys)
        raise _invalid(path, "\n".join(faults)) from error


def _invalid(path: Path, faults: str) -> UsageError:
    return UsageError(
        f"{path} is not a valid sdk.toml",
        code="manifest_invalid",
        hint="docs/SDK-AUTHORS.md lists every key",
        excerpt=faults,
    )


def _place(path: Sequence[str]) -> str:
    *tables, key = path
    return f"[{'.'.join(tables)}] {key}" if tables else key


def _keys(path: Sequence[str]) -> list[str]:
    """The keys known in the table of the manifest that a key stands in."""
    model: type[BaseModel] = Manifest
    for table in path[:-1]:
        if table.isdecimal():  # a place in a list, whose model was found with the list
            continue
        fields = model.model_fields.items()
        annotation = next(f.annotation for name, f in fields if table in (name, f.alias))
        model = next(_models(annotation))
    return [field.alias or name for name, field in model.model_fields.items()]


def _models(annotation: Any) -> Iterator[type[BaseModel]]:  # noqa: ANN401 - any annotation
    """The models within an annotation."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for part in get_args(annotation):
        yield from _models(part)
