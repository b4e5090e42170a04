"""A mutation: which exchanges a proxy alters, and how. The model of the tables' entries."""

import json
import re
from collections.abc import Callable
from typing import Annotated, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from memconform.contract.wire import JsonValue


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)


class When(_Strict):
    """Selects exchanges; all conditions that are set must hold."""

    method: str = ""
    """A regular expression that must match the whole method."""
    target: str = ""
    """A regular expression that must match somewhere in the target."""
    body: str = ""
    """Text that must occur in the request's body."""
    header: str = ""
    """A regular expression searched in the headers: lines of `name: value`, names in lower case."""
    status: list[int] = Field(default_factory=list)
    """Status codes of the daemon's response."""
    skip: int = 0
    """How many matching exchanges pass unchanged first."""
    times: int | None = None
    """How many are altered after that; None means all."""


EditOp = Literal[
    "set", "remove", "rename", "retype", "reverse", "drop_first", "drop_last", "double_first", "add"
]


class Edit(_Strict):
    """A change at a JSON pointer; `*` is every item of an array."""

    at: str
    set: JsonValue = None
    op: EditOp = "set"
    """`add` adds `set` to a number or a text; `rename` renames the key to `set`; `retype` changes
    the value's type."""


class EventEdit(_Strict):
    """A change to the events of one name in a stream."""

    event: str
    op: Literal["drop", "double", "rename", "data", "edit", "insert_before", "insert_after", "id"]
    value: JsonValue = None
    """The new name, data or id; for an insertion `[name, data]`."""
    edits: list[Edit] = Field(default_factory=list)
    nth: int | None = None
    """Index of the only event to change, from 0; None means all."""


class SourceEdit(_Strict):
    """A text replacement in the source of a daemon."""

    file: str
    """For a daemon written in Python, relative to an entry of the module search path:
    `package/module.py`; for others, relative to the folder of the sdk.toml."""
    find: str
    """The text to replace; must occur exactly once."""
    put: str
    """The replacement."""


def _by_sdk(source: object) -> object:
    return {"py": source} if isinstance(source, list) else source


class CannedAnswer(_Strict):
    """A response sent without forwarding the request to the daemon."""

    status: int
    headers: dict[str, str] = Field(default_factory=dict)
    json_: JsonValue = Field(default=None, alias="json")
    text: str = ""

    def body(self) -> bytes:
        return self.text.encode() if self.json_ is None else json.dumps(self.json_).encode()


class Mutation(_Strict):
    """Everything that a mutation may alter; an empty one leaves the proxy transparent."""

    when: When = Field(default_factory=When)
    # The request to the daemon.
    swallow: CannedAnswer | None = None
    target: tuple[str, str] | None = None
    """A pattern in the target, and its replacement."""
    method: str | None = None
    send_headers: dict[str, str | None] = Field(default_factory=dict)
    send_edits: list[Edit] = Field(default_factory=list)
    send_replace: tuple[str, str] | None = None
    send_twice: bool = False
    # The response to the client.
    status: int | None = None
    headers: dict[str, str | None] = Field(default_factory=dict)
    edits: list[Edit] = Field(default_factory=list)
    replace: tuple[str, str] | None = None
    """A regular expression in the body, and its replacement."""
    body: str | None = None
    events: list[EventEdit] = Field(default_factory=list)
    buffer_events: bool = False
    """Buffer a stream until it ends."""
    keep_open: bool = False
    """Never end a stream."""
    outlive_client: bool = False
    """Keep the request to the daemon running after the client has disconnected."""
    delay_ms: float = 0
    close: Literal["before", "after", "half"] | None = None
    """Close the connection before the response, after it, or in the middle of it."""
    hang: bool = False
    # The process.
    ignore_term: bool = False
    everywhere: bool = False
    """Listen on all interfaces."""
    child_env: dict[str, str] = Field(default_factory=dict)
    """Environment variables of the daemon; an empty value removes one."""
    child_arguments: tuple[str, str] | None = None
    """A pattern in the daemon's arguments, and its replacement."""
    dies_of: str = ""
    """A pattern; a request whose target matches it kills the daemon and the proxy."""
    tell: str = ""
    """Written to standard error for each affected exchange."""
    before_start: Annotated[str, Field(description="A glob")] = ""
    """Files of the state folder to remove before the daemon starts."""
    announcement: str = "listening on http://{host}:{port}"
    # The daemon's source.
    source: Annotated[dict[str, list[SourceEdit]], BeforeValidator(_by_sdk)] = Field(
        default_factory=dict
    )
    """By name of the SDK; a list alone is for py."""

    @property
    def wants_proxy(self) -> bool:
        """Whether the proxy is needed: for any mutation that is not of the source alone."""
        return self.model_fields_set != {"source"}

    @property
    def is_of_exchanges(self) -> bool:
        """Whether it alters exchanges only, so that it works with an already running daemon."""
        return not self.source and not self.model_fields_set.intersection(_PROCESS_FIELDS)


_PROCESS_FIELDS = (
    "ignore_term", "everywhere", "child_env", "child_arguments", "dies_of", "tell", "before_start",
    "announcement",
)  # fmt: skip


def apply_edits(value: JsonValue, edits: list[Edit]) -> JsonValue:
    """Apply all edits to a copy of a JSON value."""
    copy = json.loads(json.dumps(value))
    for edit in edits:
        copy = _edit(copy, edit.at.split("/")[1:] if edit.at else [], edit)
    return copy


def _edit(value: JsonValue, parts: list[str], edit: Edit) -> JsonValue:
    if not parts:
        return _apply(value, edit)
    part, rest = parts[0], parts[1:]
    if part == "*" and isinstance(value, list):
        return [_edit(item, rest, edit) for item in value]
    if isinstance(value, list) and part.isdigit() and int(part) < len(value):
        value[int(part)] = _edit(value[int(part)], rest, edit)
    elif isinstance(value, dict):
        if not rest and edit.op in ("remove", "rename"):
            item = value.pop(part, None)
            if edit.op == "rename" and item is not None:
                value[edit.set] = item
        elif part in value or (not rest and edit.op in ("set", "add")):
            value[part] = _edit(value.get(part), rest, edit)
    return value


_LIST_OPS: dict[str, Callable[[list[JsonValue]], list[JsonValue]]] = {
    "reverse": lambda items: items[::-1],
    "drop_first": lambda items: items[1:],
    "drop_last": lambda items: items[:-1],
    "double_first": lambda items: items[:1] + items,
}


def _apply(value: JsonValue, edit: Edit) -> JsonValue:
    if edit.op in _LIST_OPS:
        return _LIST_OPS[edit.op](value if isinstance(value, list) else [])
    if edit.op == "add" and value is not None:
        return value + edit.set
    if edit.op == "retype":
        return _retype(value)
    return edit.set


def _retype(value: JsonValue) -> JsonValue:
    """Convert a value to another type, preserving its content."""
    if isinstance(value, str | list):
        return {"value": value}
    if isinstance(value, dict):
        return [value]
    return json.dumps(value)


def fits(when: When, method: str, target: str, head: str, body: bytes) -> bool:
    """Whether a request meets all conditions except those about the response."""
    return (
        (not when.method or re.fullmatch(when.method, method) is not None)
        and re.search(when.target, target) is not None
        and when.body.encode() in body
        and (not when.header or re.search(when.header, head) is not None)
    )
