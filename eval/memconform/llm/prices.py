"""What models cost and accept: the shipped table, and a user's own before it."""

import os
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

from memconform.errors import UsageError
from memconform.llm.chat import Usage
from memconform.llm.names import PROVIDERS, ModelName
from memconform.validation_faults import first_fault

NANO = 1_000_000_000
"""Money is counted in whole billionths of a dollar: sums of floats drift."""

_PER = 1_000_000
"""Tokens that a price is for."""


class _Strict(BaseModel):
    model_config = ConfigDict(
        extra="forbid", frozen=True, strict=True, allow_inf_nan=False, defer_build=True
    )


_Parameter = Literal[
    "temperature", "top_p", "top_k", "seed", "presence_penalty", "frequency_penalty",
    "reasoning_effort", "verbosity",
]  # fmt: skip
"""What a price table may have sent; others could change what is asked, or how much of it."""


class _Traits(_Strict):
    input: float | None = Field(default=None, ge=0, le=1e6)
    output: float | None = Field(default=None, ge=0, le=1e6)
    sampling: dict[_Parameter, Annotated[float, Field(ge=-1e6, le=1e6)] | int | str] = Field(
        default_factory=dict
    )
    json_schema: bool = False
    min_output_tokens: int = Field(default=0, ge=0, le=1_000_000)
    context_tokens: int | None = Field(default=None, ge=1, le=1_000_000_000)
    unverified: bool = False
    snapshot: str | None = None

    @model_validator(mode="after")
    def _both_prices(self) -> "_Traits":
        if (self.input is None) != (self.output is None):
            raise ValueError("input and output: give both prices, or neither")
        return self


class _Table(_Strict):
    as_of: str = Field(pattern=r"^\d{4}-\d{2}-\d{2}$")
    providers: dict[str, _Traits] = Field(default_factory=dict)
    models: dict[str, _Traits] = Field(default_factory=dict)

    @field_validator("models")
    @classmethod
    def _by_provider(cls, models: dict[str, _Traits]) -> dict[str, _Traits]:
        for name in models:
            if name.partition(":")[0] not in PROVIDERS:
                raise ValueError(f"{name!r}: write provider:model")
        return models


@dataclass(frozen=True, slots=True)
class Price:
    """Dollars per million tokens."""

    input: float
    output: float

    def cost(self, usage: Usage) -> int:
        """The price of a call's tokens, in billionths of a dollar, rounded up."""
        dollars = usage.input * self.input + usage.output * self.output
        return -int(-dollars * NANO // _PER)


@dataclass(frozen=True, slots=True)
class ModelTraits:
    """What is known of a model."""

    price: Price | None = None
    sampling: Mapping[str, Any] = field(default_factory=dict)
    """Parameters that each call sends; empty for models that refuse a temperature."""
    json_schema: bool = False
    min_output_tokens: int = 0
    """Reasoning models count their reasoning as output."""
    context_tokens: int | None = None
    """The context window, input and output together; None if the table does not know it."""
    snapshot: str | None = None
    """The fixed version that a floating alias stands for."""
    unverified: bool = False
    """Whether its price was not read from the vendor's page."""
    floating: bool = False
    """Whether the vendor may change what the name means."""


class Prices:
    """A table of models, and the date on which it was true."""

    def __init__(self, shipped: _Table, own: _Table | None = None) -> None:
        self._tables = [table for table in (own, shipped) if table is not None]
        self.as_of = self._tables[0].as_of

    @classmethod
    def load(cls, file: Path | None = None) -> "Prices":
        """The shipped table, overridden by `file` or the file that MEMCONFORM_PRICES names.

        Raises:
            UsageError: `bad_prices`, for a file that cannot be read or has another form.
        """
        path = file or _variable_file()
        return cls(_shipped(), _read(path) if path is not None else None)

    def traits(self, name: ModelName) -> ModelTraits:
        """What the tables say of a model; without a price where none of them has it."""
        entry = next(
            (table.models[str(name)] for table in self._tables if str(name) in table.models), None
        ) or next(
            (
                table.providers[name.provider]
                for table in self._tables
                if name.provider in table.providers
            ),
            _Traits(),
        )
        price = None
        if entry.input is not None and entry.output is not None:
            price = Price(entry.input, entry.output)
        return ModelTraits(
            price=price,
            sampling={str(name): value for name, value in entry.sampling.items()},
            json_schema=entry.json_schema,
            min_output_tokens=entry.min_output_tokens,
            context_tokens=entry.context_tokens,
            snapshot=entry.snapshot,
            unverified=entry.unverified,
            floating=entry.snapshot is not None or name.model.endswith("-latest"),
        )


def _variable_file() -> Path | None:
    value = os.environ.get("MEMCONFORM_PRICES")
    return Path(value) if value else None


@cache
def _shipped() -> _Table:
    text = resources.files("memconform.llm").joinpath("prices.toml").read_text(encoding="utf-8")
    return _Table.model_validate(tomllib.loads(text))


def _read(path: Path) -> _Table:
    try:
        return _Table.model_validate(tomllib.loads(path.read_text(encoding="utf-8-sig")))
    except (OSError, ValueError) as error:
        fault = first_fault(error) if isinstance(error, ValidationError) else str(error)
        raise UsageError(
            f"the price file {path} cannot be used: {fault}",
            code="bad_prices",
            hint='write as_of = "YYYY-MM-DD" and [models."provider:model"] with input and output'
            " in dollars per million tokens",
        ) from error


def require_priced(name: ModelName, traits: ModelTraits, *, allowed: bool) -> None:
    """Raise UsageError (`unpriced_model`) for a model whose price is unknown, unless allowed."""
    if traits.price is None and not allowed:
        raise UsageError(
            f"the price of {name} is unknown, so that no budget can hold",
            code="unpriced_model",
            hint="add it to a file and pass --prices FILE (see docs/JUDGES.md), or use"
            " --allow-unpriced",
        )
