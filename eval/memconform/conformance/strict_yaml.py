"""YAML without its surprises: no duplicate keys, no dates, no `yes`; errors name file and line."""

import json
import re
from pathlib import Path
from typing import Any

import yaml

from memconform.contract.wire import JsonValue
from memconform.errors import UsageError

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


def _fault(message: str, node: yaml.Node) -> yaml.MarkedYAMLError:
    return yaml.MarkedYAMLError(problem=message, problem_mark=node.start_mark)


def load(path: Path) -> JsonValue:
    """The one document of a file.

    Raises:
        UsageError: naming the file and, where it is no such YAML, the line.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{path}: {error}", code="yaml_unreadable") from error
    try:
        # A subclass of PyYAML's safe loader: it makes plain values and no objects.
        loaded = yaml.load(text, Loader=_Strict)  # noqa: S506
        json.dumps(loaded)
    except yaml.MarkedYAMLError as error:
        line = f":{error.problem_mark.line + 1}" if error.problem_mark else ""
        raise UsageError(f"{path}{line}: {error.problem}", code="yaml_invalid") from error
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{path}: a value refers to itself", code="yaml_invalid") from error
    except yaml.YAMLError as error:
        raise UsageError(f"{path}: {error}", code="yaml_invalid") from error
    return loaded
