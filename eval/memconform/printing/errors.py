"""How errors are shown to a user."""

from memconform.errors import MemconformError
from memconform.printing.escaping import Lines, indent, printable


def render_error(error: MemconformError) -> Lines:
    """Format an error: redacted and escaped, on as many lines as it needs."""
    lines = [printable(f"{error.code}: {error.message}")]
    lines += [indent(error.excerpt.rstrip(), "  | ")] if error.excerpt.strip() else []
    lines += [printable(f"  try: {error.hint}")] if error.hint else []
    return Lines("\n".join(lines))
