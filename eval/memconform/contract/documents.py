"""Wire types of profile `documents`. Keys are snake_case, as in the store protocol."""

from typing import Literal

from pydantic import ConfigDict, Field

from memconform.contract.wire import Request, Response, unchanged_alias

BODY_LIMIT = 2 * 2**20
"""Largest body of a PUT or append, in bytes."""


class Rename(Request):
    """The body of a request to move a document."""

    model_config = ConfigDict(alias_generator=unchanged_alias)

    from_: str = Field(alias="from", min_length=1)
    to: str = Field(min_length=1)


class Op(Request):
    """One operation of a batch."""

    model_config = ConfigDict(alias_generator=unchanged_alias)

    type: Literal["write", "append", "delete", "rename"]
    path: str = Field(min_length=1)
    to: str | None = None
    content_base64: str | None = Field(
        default=None, json_schema_extra={"contentEncoding": "base64"}
    )


class BatchOps(Request):
    """Operations to apply together, and the commit's metadata."""

    model_config = ConfigDict(alias_generator=unchanged_alias)

    ops: list[Op] = Field(min_length=1, max_length=1_024)
    reason: str | None = None
    message: str | None = None
    author: str | None = None
    email: str | None = None


class Committed(Response):
    """The number of operations that were committed."""

    committed: int = Field(ge=1)


class Stat(Response):
    """A document or folder; `size` in bytes (0 for a folder), `mtime` in RFC 3339."""

    model_config = ConfigDict(alias_generator=unchanged_alias)

    path: str
    size: int = Field(ge=0)
    mtime: str
    is_dir: bool


class Listing(Response):
    """The contents of a folder."""

    items: list[Stat]
