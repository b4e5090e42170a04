"""Tables in Markdown."""

from collections.abc import Collection, Sequence

from memconform.printing.escaping import escape_markdown


def markdown_table(
    header: Sequence[str], rows: Sequence[Sequence[str]], *, left: Collection[int] = (0,)
) -> list[str]:
    """Render a table, line by line. Cells are escaped; the header is ours.

    `left` are the columns of text; the others hold figures and are aligned to the right.
    """
    rule = ["---" if column in left else "---:" for column in range(len(header))]
    cells = [[escape_markdown(cell) for cell in row] for row in rows]
    return [f"| {' | '.join(line)} |" for line in (header, rule, *cells)]
