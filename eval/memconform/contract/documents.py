"""Profile `documents`: the store, file by file. Keys are snake_case, as in the store protocol."""

from typing import Literal

from pydantic import ConfigDict, Field

from memconform.contract.wire import Request, Response, nothing_renamed

BODY_LIMIT = 2 * 2**20
"""Bytes of one PUT or append."""


class Rename(Request):
    model_config = ConfigDict(alias_generator=nothing_renamed)

    from_: str = Field(alias="from", min_length=1)
    to: str = Field(min_length=1)


class Op(Request):
    model_config = ConfigDict(alias_generator=nothing_renamed)

    type: Literal["write", "append", "delete", "rename"]
    path: str = Field(min_length=1)
    to: str | None = None
    content_base64: str | None = Field(
        default=None, json_schema_extra={"contentEncoding": "base64"}
    )


class BatchOps(Request):
    model_config = ConfigDict(alias_generator=nothing_renamed)

    ops: list[Op] = Field(min_length=1, max_length=1_024)
    reason: str | None = None
    message: str | None = None
    author: str | None = None
    email: str | None = None


class Committed(Response):
    committed: int = Field(ge=1)


class Stat(Response):
    """`size` in bytes, 0 of a folder; `mtime` by RFC 3339."""

    model_config = ConfigDict(alias_generator=nothing_renamed)

    path: str
    size: int = Field(ge=0)
    mtime: str
    is_dir: bool


class Listing(Response):
    items: list[Stat]
