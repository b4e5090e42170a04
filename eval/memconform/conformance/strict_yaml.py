"""YAML without its surprises: no duplicate keys, no dates, no `yes`; errors name file and line.

Nesting and aliases are measured before a value is built: PyYAML's C composer recurses, and ends
with a segmentation fault at 30,000 levels; nine lines of aliases make a billion values.
"""

import json
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from memconform.contract.wire import JsonValue
from memconform.datasets.files import read_whole
from memconform.errors import UsageError

_MAX_BYTES = 1 << 20
"""Of a file: the largest that ships has 39 kB."""
_MAX_DEPTH = 64
"""The deepest file that ships has 12 levels; a daemon's metadata may have 64 as JSON."""
_MAX_NODES = 200_000
"""Of a file, as it is written: 50 times the largest that ships; one takes half a kilobyte."""
_MAX_EXPANDED = 2 << 20
"""Nodes and characters once aliases stand for what they name: 50 times the largest that ships."""
_MAX_NUMBER = 400
"""Characters of a number: numbers of base 60 (`1:59:59`) take time by the square of them."""
_NUMBER = re.compile(r"[-+0-9a-fxo._:]+", re.IGNORECASE)

_SURPRISES = ("tag:yaml.org,2002:timestamp", "tag:yaml.org,2002:bool")
# The C parser is some ten times as fast; where PyYAML was built without it, its own will do.
_Base: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class _Strict(_Base):  # type: ignore[misc] # one of two classes, chosen above
    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:  # noqa: FBT001, FBT002 - PyYAML's signature
        seen = set()
        for key_node, _ in node.value:
            key = key_node.value
            if not isinstance(key, str) or key_node.tag == "tag:yaml.org,2002:merge":
                raise _fault("a key is a plain text", key_node)
            if key in seen:
                raise _fault(f"the key {key!r} stands here twice", key_node)
            seen.add(key)
        loaded: dict[Any, Any] = super().construct_mapping(node, deep=deep)
        return loaded


_Strict.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag not in _SURPRISES]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}
_Strict.add_implicit_resolver("tag:yaml.org,2002:bool", re.compile("^(?:true|false)$"), list("tf"))


def _fault(message: str, at: Any) -> yaml.MarkedYAMLError:  # noqa: ANN401 - a node or an event
    return yaml.MarkedYAMLError(problem=message, problem_mark=at.start_mark)


@dataclass(slots=True)
class _Collection:
    """A list or mapping that has not ended."""

    anchor: str | None
    before: int
    """What was expanded before it began."""
    levels: int = 1
    """Its own, and those of what it holds so far."""


@dataclass(slots=True)
class _Budget:
    """The size of a document, event by event."""

    nodes: int = 0
    expanded: int = 0
    anchors: dict[str, tuple[int, int]] = field(default_factory=dict)
    """The expanded size, and the levels, of what an anchor names."""
    _open: list[_Collection] = field(default_factory=list)

    def spend(self, event: Any) -> None:  # noqa: ANN401 - the stubs do not know what parse() yields
        """Count an event; raises MarkedYAMLError where the document becomes too large."""
        match event:
            case yaml.MappingStartEvent() | yaml.SequenceStartEvent():
                self._open.append(_Collection(event.anchor, self.expanded))
                self._add(1, 0, event)
            case yaml.MappingEndEvent() | yaml.SequenceEndEvent():
                ended = self._open.pop()
                if ended.anchor is not None:
                    self.anchors[ended.anchor] = (self.expanded - ended.before, ended.levels)
                if self._open:
                    self._open[-1].levels = max(self._open[-1].levels, ended.levels + 1)
            case yaml.ScalarEvent():
                size = 1 + len(event.value)
                is_plain = not event.style or event.tag is not None
                if size > _MAX_NUMBER and is_plain and _NUMBER.fullmatch(event.value):
                    raise _fault(f"a number has more than {_MAX_NUMBER} characters", event)
                self._add(size, 0, event)
                if event.anchor is not None:
                    self.anchors[event.anchor] = (size, 0)
            case yaml.AliasEvent():
                # One inside what it names counts as one; the value is refused once it is built.
                size, levels = self.anchors.get(str(event.anchor), (1, 0))
                self._add(size, levels, event)
                if self._open:
                    self._open[-1].levels = max(self._open[-1].levels, levels + 1)

    def _add(self, size: int, levels: int, event: Any) -> None:  # noqa: ANN401 - see above
        self.nodes += 1
        self.expanded += size
        if len(self._open) + levels > _MAX_DEPTH:
            raise _fault(f"nests more than {_MAX_DEPTH} levels deep", event)
        if self.nodes > _MAX_NODES:
            raise _fault(f"has more than {_MAX_NODES:,} values", event)
        if self.expanded > _MAX_EXPANDED:
            raise _fault(f"is larger than {_MAX_EXPANDED:,} characters with its aliases", event)


def _require_within_limits(text: str) -> None:
    """Raise MarkedYAMLError for a document that would take too much stack, memory or time."""
    budget = _Budget()
    # The parser, unlike the composer, does not recurse.
    for event in yaml.parse(text, Loader=_Strict):
        budget.spend(event)


def load_yaml(path: Path) -> JsonValue:
    """The one document of a file.

    Raises:
        UsageError: naming the file and, where it is no such YAML, the line.
    """
    try:
        text = read_whole(path, _MAX_BYTES).decode()
    except UsageError as error:
        raise UsageError(error.message, code="yaml_unreadable", hint=error.hint) from error
    except UnicodeDecodeError as error:
        raise UsageError(f"{path}: {error}", code="yaml_unreadable") from error
    try:
        _require_within_limits(text)
        # A subclass of PyYAML's safe loader: it makes plain values and no objects.
        loaded = yaml.load(text, Loader=_Strict)  # noqa: S506
    except yaml.MarkedYAMLError as error:
        line = f":{error.problem_mark.line + 1}" if error.problem_mark else ""
        raise UsageError(f"{path}{line}: {error.problem}", code="yaml_invalid") from error
    except (yaml.YAMLError, ValueError) as error:
        raise UsageError(f"{path}: {error}", code="yaml_invalid") from error
    try:
        json.dumps(loaded)
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{path}: a value refers to itself", code="yaml_invalid") from error
    except TypeError as error:
        why = "holds what JSON has no value for: a set, a date or bytes"
        raise UsageError(f"{path}: {why}", code="yaml_invalid") from error
    return loaded
