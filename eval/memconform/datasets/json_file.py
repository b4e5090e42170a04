"""A JSON file that is read whole."""

import json
from pathlib import Path

from memconform.contract.wire import JsonValue
from memconform.datasets.files import PieceReader, unfit


def read_object(path: Path) -> dict[str, JsonValue]:
    """The one object that a file is.

    Raises:
        UsageError: where it is none, cannot be read, or has a key twice: one would be lost.
    """
    with PieceReader(path) as source:
        content = source.rest()
    try:
        loaded = json.loads(content.decode("utf-8-sig"), object_pairs_hook=_without_repeats)
        json.dumps(loaded, ensure_ascii=False).encode()
    except UnicodeEncodeError as error:
        raise unfit(path, "holds half of a surrogate pair, which is no text", _HINT) from error
    except UnicodeDecodeError as error:
        raise unfit(path, f"is not UTF-8, at byte {error.start}", _HINT) from error
    except json.JSONDecodeError as error:
        raise unfit(path, f"{error.msg}, line {error.lineno}", _HINT) from error
    except RecursionError as error:
        raise unfit(path, "nests too deeply", _HINT) from error
    except ValueError as error:
        raise unfit(path, str(error), _HINT) from error
    if not isinstance(loaded, dict):
        raise unfit(path, "is no JSON object", _HINT)
    return loaded


_HINT = "mend the file; datasets/README.md shows its shape"


def _without_repeats(pairs: list[tuple[str, JsonValue]]) -> dict[str, JsonValue]:
    made = dict(pairs)
    if len(made) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in made if names.count(name) > 1)
        raise ValueError(f"the key {twice!r} stands there twice")
    return made
