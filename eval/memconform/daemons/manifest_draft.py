"""The first sdk.toml of a repository, and what lies beside it."""

import json
from collections.abc import Sequence

from memconform.daemons.repository import Daemon, Line

KNOWN_FILE = "known-failures.yaml"
ACTION = "memconform/memconform@v0.1.0"
"""The action of this repository, as a workflow names it."""

KNOWN_FAILURES = """\
# Checks of `memconform conform` that may fail, each with a reason and a last day. An entry:
#
# - check: ask-flush#*                # or cause: "POST /v1/brains: missing key documents"
#   reason: our proxy buffers
#   link: https://example.org/issues/7
#   expires: 2027-01-31
#
# `memconform conform --sdk sdk.toml --write-known FILE` writes one for every cause of a failure.
[]
"""


def draft_manifest(daemon: Daemon) -> str:
    """The text of an sdk.toml; what no file of the repository shows is to be checked."""
    project, program = daemon.project, daemon.program
    lines = [
        f"# Written by memconform init from {comment(daemon.sources)}.",
        "# docs/SDK-AUTHORS.md of memconform explains every key.",
    ]
    if daemon.others:
        lines.append(f"# Not chosen: {comment(', '.join(daemon.others))}")
    lines += [
        f"name = {toml_string(daemon.name)}",
        f"language = {toml_string(project.language)}",
    ]
    if project.requires:
        lines.append(_assignment("requires", Line(project.requires)))
    if program.build is not None:
        build = program.build
        lines += ["", "[build]", _assignment("command", Line(build.command, build.check))]
        lines.append(_assignment("inputs", Line(build.inputs, build.inputs_check)))
    lines += ["", "[serve]", _assignment("argv", daemon.argv)]
    if program.env:
        pairs = ", ".join(f"{name} = {toml_string(value)}" for name, value in program.env)
        lines += ["", "[env]", f"set = {{ {pairs} }}"]
    lines += [
        *("", "[known]", f"file = {toml_string(KNOWN_FILE)}"),
        *("", "[capabilities]"),
        'profiles = ["core"]     # add ask, documents, events, auth, shared-state, if it has them',
        'modes = ["auto", "bm25"]     # add semantic, hybrid, conversation, likewise',
    ]
    return "\n".join(lines) + "\n"


def draft_workflow(sdk: str) -> str:
    """The text of a GitHub workflow that tests an SDK.

    Args:
        sdk: the path of its sdk.toml, from the root of the repository.
    """
    return f"""\
# Written by memconform init; docs/CI.md of memconform explains every input.
name: memconform
on: [push, pull_request]
permissions:
  contents: read
jobs:
  memconform:
    runs-on: ubuntu-latest
    timeout-minutes: 30
    steps:
      - uses: actions/checkout@v4
      - uses: {ACTION}
        with:
          sdk: {json.dumps(sdk)}
"""


def toml_string(text: str) -> str:
    """A basic string of TOML."""
    # JSON's escapes are TOML's, but for DEL, which TOML forbids and JSON leaves as it is.
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def _assignment(key: str, line: Line) -> str:
    values: Sequence[str] = [toml_string(value) for value in line.value]
    check = f"     # check: {comment(line.check)}" if line.check else ""
    return f"{key} = [{', '.join(values)}]{check}"


def comment(text: str) -> str:
    """Text that ends no comment: paths of the repository are plain, and its keys are not."""
    return "".join(character if character.isprintable() else "?" for character in text)
