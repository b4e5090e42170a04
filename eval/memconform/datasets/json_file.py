"""Reading a JSON file that is one object, as a whole."""

import json
from pathlib import Path

from memconform.contract.strict_json import RepeatedKeyError, decode, repeated_key_position
from memconform.contract.wire import JsonValue
from memconform.datasets.files import PieceReader, unfit


def read_object(path: Path) -> dict[str, JsonValue]:
    """Read a file that is one JSON object.

    Raises:
        UsageError: if the file cannot be read, is not a JSON object, or repeats a key, of which one
            value would be lost.
    """
    with PieceReader(path) as source:
        return object_of(source)


def object_of(source: PieceReader) -> dict[str, JsonValue]:
    """Parse the rest of a file as one JSON object; raises as `read_object` does."""
    path, text = source.path, ""
    try:
        text = source.rest().decode()
        loaded = decode(text)
        json.dumps(loaded, ensure_ascii=False).encode()
    except UnicodeEncodeError as error:
        raise unfit(
            path, "contains an unpaired surrogate, which is not valid text", _HINT
        ) from error
    except UnicodeDecodeError as error:
        raise unfit(path, f"is not UTF-8, at byte {error.start}", _HINT) from error
    except json.JSONDecodeError as error:
        raise unfit(path, f"{error.msg}, line {error.lineno}", _HINT) from error
    except RepeatedKeyError as error:
        line = text.count("\n", 0, repeated_key_position(text, error.key)) + 1
        raise unfit(path, f"{error}, line {line}", _HINT) from error
    except MemoryError as error:
        raise unfit(path, "does not fit in memory", _HINT) from error
    except ValueError as error:
        raise unfit(path, str(error), _HINT) from error
    if not isinstance(loaded, dict):
        raise unfit(path, "is not a JSON object", _HINT)
    return loaded


_HINT = "fix the file; datasets/README.md shows its format"
