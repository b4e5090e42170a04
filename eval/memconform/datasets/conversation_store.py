"""Keeps the conversations of a benchmark on disk, so that each can be read again at once."""

import json
import tempfile
from collections.abc import Callable, Collection, Iterator, Mapping
from pathlib import Path
from typing import Self

from memconform.datasets.answer_keys import Suite
from memconform.datasets.conversations import Conversation, Session, Turn
from memconform.datasets.files import PieceReader
from memconform.datasets.locomo import read_locomo_conversations
from memconform.datasets.longmemeval import read_longmemeval_conversations

_READERS: Mapping[Suite, Callable[[PieceReader], Iterator[Conversation]]] = {
    "longmemeval": read_longmemeval_conversations,
    "locomo": read_locomo_conversations,
}


class ConversationStore:
    """Conversations of one file, in a temporary file without a name.

    LongMemEval S takes 278 MB and seconds to read, and every system's answers need it once.
    """

    def __init__(self) -> None:
        self._file = tempfile.TemporaryFile()  # noqa: SIM115 - closed by __exit__
        self._places: dict[str, tuple[int, int]] = {}
        self.sha256 = ""
        """Digest of the decompressed file that was read."""

    def load(self, path: Path, suite: Suite, ids: Collection[str]) -> None:
        """Read the file, and keep the conversations with these ids.

        Raises:
            UsageError: `dataset_missing`, `dataset_invalid`, `dataset_unreadable`.
        """
        with PieceReader(path) as source:
            for conversation in _READERS[suite](source):
                if conversation.id in ids:
                    self._keep(conversation)
            self.sha256 = source.sha256

    def _keep(self, conversation: Conversation) -> None:
        row = [
            [
                session.id,
                session.date,
                [[turn.id, turn.speaker, turn.text, turn.by_user] for turn in session.turns],
            ]
            for session in conversation.sessions
        ]
        content = json.dumps(row).encode()
        self._places[conversation.id] = (self._file.tell(), len(content))
        self._file.write(content)

    def __getitem__(self, name: str) -> Conversation:
        """The conversation with an id; raises KeyError if none was kept."""
        start, size = self._places[name]
        self._file.seek(start)
        sessions = tuple(
            Session(session, date, tuple(Turn(*turn) for turn in turns))
            for session, date, turns in json.loads(self._file.read(size))
        )
        return Conversation(name, sessions)

    def __contains__(self, name: object) -> bool:
        return name in self._places

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()
