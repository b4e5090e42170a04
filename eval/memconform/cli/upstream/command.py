"""`memconform upstream`."""

import codecs
import errno
import json
from pathlib import Path

import click
from pydantic import ValidationError

from memconform.cli.commands import OUTPUT, Command, PathType, option
from memconform.daemons.ports import loopback_host
from memconform.datasets.files import read_whole
from memconform.errors import ExitCode, UsageError
from memconform.printing.escaping import Lines
from memconform.printing.output import echo
from memconform.upstream.request_bodies import MAX_BODY, read_script
from memconform.upstream.script import Script
from memconform.upstream.serve import listen, serve
from memconform.validation_faults import first_fault

_SERVER = "Server"
_NO_HOST = "write localhost:PORT, or an address of this machine"
_HINTS = {errno.EADDRINUSE: "try port 0", errno.EACCES: "try port 0, or one above 1023"}


@click.command(
    "upstream",
    cls=Command,
    examples=(
        "memconform upstream",
        "memconform upstream --addr 127.0.0.1:0 --script script.json",
    ),
)
@option(
    "--addr",
    group=_SERVER,
    default="localhost:18860",
    metavar="HOST:PORT",
    help="Address to listen on; port 0 is a free one, localhost the loopback address.",
)
@option(
    "--script",
    group=_SERVER,
    type=PathType(),
    metavar="FILE",
    help="JSON of scripted responses; by default chats are answered with a sentence of the notes.",
)
@option("--schema", group=OUTPUT, is_flag=True, help="Print the JSON Schema of a script and exit.")
def command(addr: str, script: Path | None, *, schema: bool) -> ExitCode:
    """Serve scripted chat, embedding and reranking APIs for daemons to call.

    Speaks OpenAI's chat completions, embeddings and models, Anthropic's messages, and a common
    /rerank, below /v1 and below /. GET /_control/requests returns the requests received so far; PUT
    /_control/script replaces the script. docs/UPSTREAM.md lists the prompts that it can answer; any
    other gets an error.
    """
    if schema:
        echo(Lines(json.dumps(Script.model_json_schema(), indent=2)))
        return ExitCode.OK
    rules = _read(script) if script else Script()
    host, colon, port = addr.rpartition(":")
    if not colon or not host or not port.isascii() or not port.isdigit() or int(port) > 65535:
        raise UsageError(
            f"--addr {addr} is not an address", code="bad_addr", hint="write HOST:PORT"
        )
    try:
        host = loopback_host() if host == "localhost" else host.strip("[]")
        listener, address = listen(host, int(port))
    except OSError as error:
        raise UsageError(
            f"cannot listen on {addr}: {error.strerror}",
            code="bad_addr",
            hint=_HINTS.get(error.errno or 0, _NO_HOST),
        ) from error

    def started() -> None:
        echo(f"listening on {address}")
        echo(f"  OPENAI_BASE_URL={address}/v1 OPENAI_API_KEY=scripted", err=True)
        echo(f"  ANTHROPIC_BASE_URL={address} ANTHROPIC_API_KEY=scripted", err=True)
        echo(f"  JB_RERANK_URL={address}/rerank OLLAMA_HOST={address}", err=True)

    serve(listener, rules, started)
    return ExitCode.OK


def _read(path: Path) -> Script:
    try:
        content = read_whole(path, MAX_BODY).removeprefix(codecs.BOM_UTF8)
    except UsageError as error:
        raise UsageError(error.message, code="script_missing", hint="check --script") from error
    try:
        return read_script(content)
    except ValidationError as error:
        raise UsageError(
            f"{path}: {first_fault(error)}",
            code="script_invalid",
            hint=_HINT,
        ) from error
    except ValueError as error:
        raise UsageError(f"{path}: {error}", code="script_invalid", hint=_HINT) from error


_HINT = "memconform upstream --schema prints the schema of a script"
