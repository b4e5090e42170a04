"""Globs of a listing."""

import re
from collections.abc import Callable
from fnmatch import translate

_NAME_LIMIT = 250
"""The maximal length of a base name, in characters."""


def compile_glob(glob: str) -> Callable[[str], object]:
    """Compile a glob that matches whole names: `*` is any number of characters, `?` is one."""
    if len(glob.replace("*", "")) > _NAME_LIMIT:
        return lambda _: False
    # Brackets stand for themselves here. What `translate` returns does not backtrack.
    return re.compile(translate(glob.replace("[", "[[]"))).match
