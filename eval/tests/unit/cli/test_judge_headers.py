"""Headers of model services are masked from the moment that a command line is read."""

from collections.abc import Iterator

import click
import pytest

from memconform import redaction
from memconform.cli.commands import walk
from memconform.cli.main import cli

_HEADER_VALUE = "hunter3hunter3"


def _options() -> Iterator[tuple[str, click.Option]]:
    root = click.Context(cli, info_name="memconform", **cli.context_settings)
    for context, command in walk(root):
        for parameter in command.params:
            if isinstance(parameter, click.Option) and "--judge-header" in parameter.opts:
                yield context.command_path, parameter


_OPTIONS = dict(_options())


def test_several_commands_have_the_option() -> None:
    assert len(_OPTIONS) > 5


@pytest.mark.parametrize("path", _OPTIONS)
def test_a_header_is_masked_although_no_model_is_asked(path: str) -> None:
    """The value stood in results of `run --scorer exact`, as a part of their command line."""
    option = _OPTIONS[path]
    context = click.Context(click.Command("any", params=[option]))
    assert redaction.redact(_HEADER_VALUE) == _HEADER_VALUE
    option.handle_parse_result(
        context, {str(option.name): (f"X-Gateway-Credential: {_HEADER_VALUE}",)}, []
    )
    assert _HEADER_VALUE not in redaction.redact(f"memconform run --judge-header {_HEADER_VALUE}")
