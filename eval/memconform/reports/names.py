"""Names that come from files and daemons, as what shows them takes them."""

import re


def printable(text: str) -> str:
    """The text without what would steer a terminal."""
    return "".join(c if c.isprintable() or c in "\n\t" else "\ufffd" for c in text)


def escaped(text: str) -> str:
    """One line that Markdown shows as it is."""
    line = re.sub(r"[\s\x00-\x1f\x7f]+", " ", text)
    return re.sub(r"([\\`*_{}\[\]<>|#])", r"\\\1", line)
