"""Updates the tables of the READMEs from results/published; with --check only compares them."""

import sys

import click

from memconform.cli.readme_tables import command
from memconform.errors import MemconformError
from memconform.printing.errors import render_error


def main() -> int:
    """Run the command; return its exit code."""
    try:
        return int(command(standalone_mode=False) or 0)
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except MemconformError as error:
        print(render_error(error), file=sys.stderr)
        return int(error.exit_code)


if __name__ == "__main__":
    raise SystemExit(main())
