"""Long requests as files beside a result, each once, for the commands that repeat them."""

import re
import shlex
from hashlib import sha256
from pathlib import Path

from memconform.redaction import redact_bytes
from memconform.storage.sink import write_whole

FOLDER = "bodies"

_FILE = re.compile(rf"(@|-K |< )({FOLDER}/[0-9a-f]{{64}})")


class BodyFiles:
    """The files `bodies/<sha256>` of a folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._kept: set[str] = set()

    def keep(self, data: bytes) -> str:
        """Write data with secrets masked, unless it is there; return its path in the folder.

        Raises:
            ResultsError: if it cannot be written (`results_unwritable`).
        """
        masked = redact_bytes(data)
        # Of the masked bytes: a digest of a secret among known bytes lets guesses be checked.
        name = f"{FOLDER}/{sha256(masked).hexdigest()}"
        if name not in self._kept:
            write_whole(self._folder / name, masked)
            self._kept.add(name)
        return name

    def keep_from_here(self, data: bytes) -> str:
        """As `keep`; returns the path for commands in the current folder."""
        return str(self._folder / self.keep(data))


def from_here(command: str, folder: Path) -> str:
    """A stored command, which reads files of its result's folder, for the current folder."""
    return _FILE.sub(lambda file: f"{file[1]}{shlex.quote(str(folder / file[2]))}", command)
