"""The texts that searches returned, kept on disk until the report is written."""

import json
import tempfile
import weakref
from collections.abc import Hashable

from memconform.bench.records import QueryRecord


class ReturnedTexts:
    """An unnamed file of texts: those of Part A of WMB-100K are 87 MB, in memory more than twice.

    Raises:
        OSError: from any method, if the temporary folder has no room.
    """

    def __init__(self) -> None:
        self._file = tempfile.TemporaryFile(prefix="memconform-")  # noqa: SIM115 - closed below
        self._extents: dict[Hashable, tuple[int, int]] = {}
        weakref.finalize(self, self._file.close)

    def put(self, key: Hashable, record: QueryRecord) -> QueryRecord:
        """Store the texts of a record, and return the record without them."""
        self._extents.pop(key, None)
        if not record.memories:
            return record
        start = self._file.seek(0, 2)
        self._extents[key] = start, self._file.write(json.dumps(record.memories).encode())
        return record.model_copy(update={"memories": []})

    def restored(self, key: Hashable, record: QueryRecord) -> QueryRecord:
        """The record with the texts that it had."""
        if key not in self._extents:
            return record
        start, size = self._extents[key]
        self._file.seek(start)
        return record.model_copy(update={"memories": json.loads(self._file.read(size))})
