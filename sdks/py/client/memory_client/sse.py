"""Server-sent events, as the HTML standard has them, from the bytes of a response."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

_LINE_END = re.compile(rb"\r\n|\r|\n")
_BOM = b"\xef\xbb\xbf"


@dataclass(slots=True)
class Decoder:
    """Turns reads, wherever they are cut, into events: pairs of a name and its data, in UTF-8."""

    _line: list[bytes] = field(default_factory=list)
    """The line whose end has not come, in the pieces in which it was read."""
    _is_first_line: bool = True
    _ended_with_cr: bool = False
    _name: bytes = b""
    _data: list[bytes] = field(default_factory=list)

    def feed(self, read: bytes) -> Iterator[tuple[bytes, bytes]]:
        """Yield each event that ends in this read."""
        if self._ended_with_cr and read.startswith(b"\n"):
            # The second half of a CRLF, whose first has ended the line.
            read = read[1:]
            self._ended_with_cr = False
        if not read:
            return
        self._ended_with_cr = read.endswith(b"\r")
        first, *others = _LINE_END.split(read)
        self._line.append(first)
        for next_line in others:
            line = b"".join(self._line)
            self._line = [next_line]
            if self._is_first_line:
                self._is_first_line = False
                line = line.removeprefix(_BOM)
            yield from self._take(line)

    def _take(self, line: bytes) -> Iterator[tuple[bytes, bytes]]:
        if line:
            name, _, value = line.partition(b":")
            value = value.removeprefix(b" ")
            if name == b"data":
                self._data.append(value)
            elif name == b"event":
                self._name = value
            return
        name, data = self._name or b"message", self._data
        self._name, self._data = b"", []
        if data:
            yield name, b"\n".join(data)
