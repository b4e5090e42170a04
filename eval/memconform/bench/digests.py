"""Digests of what was asked, by which results are compared."""

import hashlib
import json
from collections.abc import Iterable


def digest_of_names(names: Iterable[str]) -> str:
    """The SHA-256 of a set of ids, whatever their order."""
    return hashlib.sha256(json.dumps(sorted(names)).encode()).hexdigest()
