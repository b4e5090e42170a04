"""A JSON file that is read whole."""

import json
from pathlib import Path

from memconform.contract.strict_json import RepeatedKeyError, decode, repeated_key_position
from memconform.contract.wire import JsonValue
from memconform.datasets.files import PieceReader, unfit


def read_object(path: Path) -> dict[str, JsonValue]:
    """The one object that a file is.

    Raises:
        UsageError: where it is none, cannot be read, or has a key twice: one would be lost.
    """
    with PieceReader(path) as source:
        return object_of(source)


def object_of(source: PieceReader) -> dict[str, JsonValue]:
    """The one object that the rest of a file is; raises as `read_object` does."""
    path, text = source.path, ""
    try:
        text = source.rest().decode("utf-8-sig")
        loaded = decode(text)
        json.dumps(loaded, ensure_ascii=False).encode()
    except UnicodeEncodeError as error:
        raise unfit(path, "holds half of a surrogate pair, which is not text", _HINT) from error
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


_HINT = "mend the file; datasets/README.md shows its shape"
