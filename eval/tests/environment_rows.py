"""`environment.toml`: the variables that memconform or a library of it reads, and shells to try."""

import tomllib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field

_FILE = Path(__file__).with_name("environment.toml")


class _Table(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, validate_by_name=True)


class End(_Table):
    """How a command ends under a row, otherwise than in a plain shell."""

    command: str
    code: int
    says: str


class Row(_Table):
    """A shell to try."""

    values: dict[str, str] = Field(default={}, alias="set")
    unset: tuple[str, ...] = ()
    starts: bool = False
    """Whether an interpreter reads it as it starts."""
    ends: tuple[End, ...] = ()

    def __str__(self) -> str:
        parts = [f"{name}={value}" for name, value in self.values.items()]
        return " ".join([*parts, *(f"-u {name}" for name in self.unset)])

    @property
    def names(self) -> set[str]:
        """Names of the variables that it changes, in upper case: libraries read both."""
        return {name.upper() for name in (*self.values, *self.unset)}

    def applied_to(self, shell: Mapping[str, str], tmp: Path) -> dict[str, str]:
        """The environment of a shell with this row."""
        given = {name: value.replace("{tmp}", str(tmp)) for name, value in self.values.items()}
        return {k: v for k, v in shell.items() if k not in self.unset} | given


class Variable(_Table):
    """Variables that mean one thing."""

    names: tuple[str, ...]
    read_by: str
    does: str
    bad: str
    row: tuple[Row, ...] = ()


class Group(_Table):
    """A section of the page."""

    title: str
    intro: str = ""
    variable: tuple[Variable, ...]


class Page(_Table):
    """The page, whose sections stand between `head` and `tail`."""

    head: str
    group: tuple[Group, ...]
    tail: str


def environment_page() -> Page:
    """Read the table."""
    return Page.model_validate(tomllib.loads(_FILE.read_text(encoding="utf-8")))


def rows() -> Iterator[Row]:
    for group in environment_page().group:
        for variable in group.variable:
            yield from variable.row


def blankets(parts: Sequence[Row]) -> list[Row]:
    """Rows together, so that few shells try all: no two of a blanket change the same variable."""
    merged: list[list[Row]] = []
    for row in parts:
        for blanket in merged:
            if all(row.names.isdisjoint(other.names) for other in blanket) and all(
                row.starts == other.starts for other in blanket
            ):
                blanket.append(row)
                break
        else:
            merged.append([row])
    return [
        Row(
            values={name: value for row in blanket for name, value in row.values.items()},
            unset=tuple(name for row in blanket for name in row.unset),
            starts=blanket[0].starts,
            ends=tuple(end for row in blanket for end in row.ends),
        )
        for blanket in merged
    ]
