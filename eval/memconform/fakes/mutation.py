"""One thing that a proxy breaks in what passes through it: where, and what becomes of it."""

import json
import re
from collections.abc import Callable
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from memconform.contract.wire import JsonValue


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class When(_Strict):
    """Which exchanges are meant: all that are given must fit."""

    method: str = ""
    """A regular expression that the whole method fits."""
    target: str = ""
    """A regular expression that is found in the target."""
    body: str = ""
    """Stands in the request's body."""
    header: str = ""
    """A regular expression that is found in the head, `name: value` a line, names in lower case."""
    status: list[int] = Field(default_factory=list)
    """Of the daemon's answer."""
    skip: int = 0
    """So many that fit are let pass first."""
    times: int | None = None
    """How many are broken then; None: all."""


EditOp = Literal[
    "set", "remove", "rename", "retype", "reverse", "drop_first", "drop_last", "double_first", "add"
]


class Edit(_Strict):
    """A change at a JSON pointer; `*` is every item of an array."""

    at: str
    set: JsonValue = None
    op: EditOp = "set"
    """`add` adds `set` to a number or a text; `rename` gives the key the name `set`; `retype` makes
    another type of what is there."""


class EventEdit(_Strict):
    """A change of a stream's events of one name."""

    event: str
    op: Literal["drop", "double", "rename", "data", "edit", "insert_before", "insert_after", "id"]
    value: JsonValue = None
    """The new name, data or id; of an insertion `[name, data]`."""
    edits: list[Edit] = Field(default_factory=list)
    nth: int | None = None
    """Only this one, from 0; None: all."""


class SourceEdit(_Strict):
    """Another text in the source of a daemon that is written in Python."""

    file: str
    """Below the folder that modules are found in: `package/module.py`."""
    find: str
    """Stands there once."""
    put: str


class CannedAnswer(_Strict):
    """What is answered without asking the daemon."""

    status: int
    headers: dict[str, str] = Field(default_factory=dict)
    json_: JsonValue = Field(default=None, alias="json")
    text: str = ""

    def body(self) -> bytes:
        return self.text.encode() if self.json_ is None else json.dumps(self.json_).encode()


class Mutation(_Strict):
    """Nothing given: the proxy is a plain one."""

    when: When = When()
    # What the daemon is sent.
    swallow: CannedAnswer | None = None
    target: tuple[str, str] | None = None
    """A pattern in the target, and what replaces it."""
    method: str | None = None
    send_headers: dict[str, str | None] = Field(default_factory=dict)
    send_edits: list[Edit] = Field(default_factory=list)
    send_replace: tuple[str, str] | None = None
    send_twice: bool = False
    # What the client gets.
    status: int | None = None
    headers: dict[str, str | None] = Field(default_factory=dict)
    edits: list[Edit] = Field(default_factory=list)
    replace: tuple[str, str] | None = None
    """A regular expression in the body, and what replaces it."""
    body: str | None = None
    events: list[EventEdit] = Field(default_factory=list)
    buffer_events: bool = False
    """Hold a stream back until it ends."""
    keep_open: bool = False
    """Never end a stream."""
    outlive_client: bool = False
    """Go on with the daemon's answer when the client has gone."""
    delay_ms: float = 0
    close: Literal["before", "after", "half"] | None = None
    """The connection breaks before the answer, behind it, or in the middle of it."""
    hang: bool = False
    # What the process does.
    ignore_term: bool = False
    everywhere: bool = False
    """Listen on all interfaces."""
    child_env: dict[str, str] = Field(default_factory=dict)
    """Variables of the daemon itself; an empty text takes one away."""
    child_arguments: tuple[str, str] | None = None
    """A pattern in the daemon's arguments, and what replaces it."""
    dies_of: str = ""
    """A target that kills the daemon behind the proxy, and the proxy."""
    tell: str = ""
    """Written to standard error at each exchange that fits."""
    before_start: Annotated[str, Field(description="A glob")] = ""
    """Files of the state folder that are removed before the daemon starts."""
    announcement: str = "listening on http://127.0.0.1:{port}"
    # What the daemon is made of.
    source: list[SourceEdit] = Field(default_factory=list)

    @property
    def wants_proxy(self) -> bool:
        """Whether anything is broken outside the daemon's source; a plain proxy breaks nothing."""
        return self.model_fields_set != {"source"}

    @property
    def is_of_exchanges(self) -> bool:
        """Whether it can be made of a daemon that somebody else has started."""
        return not self.source and not self.model_fields_set.intersection(_OF_THE_PROCESS)


_OF_THE_PROCESS = (
    "ignore_term", "everywhere", "child_env", "child_arguments", "dies_of", "tell", "before_start",
    "announcement",
)  # fmt: skip


def edited(value: JsonValue, edits: list[Edit]) -> JsonValue:
    """A JSON value with all edits made, on a copy of its own."""
    copy = json.loads(json.dumps(value))
    for edit in edits:
        copy = _edit(copy, edit.at.split("/")[1:] if edit.at else [], edit)
    return copy


def _edit(value: JsonValue, parts: list[str], edit: Edit) -> JsonValue:
    if not parts:
        return _changed(value, edit)
    part, rest = parts[0], parts[1:]
    if part == "*" and isinstance(value, list):
        return [_edit(item, rest, edit) for item in value]
    if isinstance(value, list) and part.isdigit() and int(part) < len(value):
        value[int(part)] = _edit(value[int(part)], rest, edit)
    elif isinstance(value, dict):
        if not rest and edit.op in ("remove", "rename"):
            taken = value.pop(part, None)
            if edit.op == "rename" and taken is not None:
                value[edit.set] = taken
        elif part in value or (not rest and edit.op in ("set", "add")):
            value[part] = _edit(value.get(part), rest, edit)
    return value


_OF_LISTS: dict[str, Callable[[list[JsonValue]], list[JsonValue]]] = {
    "reverse": lambda items: items[::-1],
    "drop_first": lambda items: items[1:],
    "drop_last": lambda items: items[:-1],
    "double_first": lambda items: items[:1] + items,
}


def _changed(value: JsonValue, edit: Edit) -> JsonValue:
    if edit.op in _OF_LISTS:
        return _OF_LISTS[edit.op](value if isinstance(value, list) else [])
    if edit.op == "add" and value is not None:
        return value + edit.set
    if edit.op == "retype":
        return _retyped(value)
    return edit.set


def _retyped(value: JsonValue) -> JsonValue:
    """Of another type, and as near to what it was as that type allows."""
    if isinstance(value, str | list):
        return {"value": value}
    if isinstance(value, dict):
        return [value]
    return json.dumps(value)


def fits(when: When, method: str, target: str, head: str, body: bytes) -> bool:
    """Whether a request is meant, as far as a request can tell."""
    return (
        (not when.method or re.fullmatch(when.method, method) is not None)
        and re.search(when.target, target) is not None
        and when.body.encode() in body
        and (not when.header or re.search(when.header, head) is not None)
    )
