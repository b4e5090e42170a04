"""Globs of a listing."""

import re
from collections.abc import Callable

_NAME_LIMIT = 250
"""The maximal length of a base name, in characters."""


def compile_glob(glob: str) -> Callable[[str], object]:
    """Compile a glob that matches whole names: `*` is any number of characters, `?` is one."""
    first, *others = (re.escape(part).replace(r"\?", ".") for part in glob.split("*"))
    if len(glob.replace("*", "")) > _NAME_LIMIT:
        return lambda _: False
    pattern = first
    if others:
        *middle, last = others
        # Atomic groups: the first position where a part matches is as good as any later one, so
        # there is no backtracking.
        pattern += "".join(f"(?>.*?{part})" for part in middle if part) + f".*{last}"
    return re.compile(pattern, re.DOTALL).fullmatch
