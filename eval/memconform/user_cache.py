"""The folder for what can be made again: embedding vectors, and replies of language models."""

import os
from pathlib import Path

from platformdirs import user_cache_path


def cache_folder() -> Path:
    """`$MEMCONFORM_CACHE`, or else the folder for memconform in the user's cache folder.

    Builds of SDKs are not kept there but follow XDG_CACHE_HOME alone, so that a command with a
    cache of its own need not build them again.
    """
    named = os.environ.get("MEMCONFORM_CACHE")
    return Path(named) if named else user_cache_path("memconform")
