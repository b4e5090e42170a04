"""`memconform upstream`."""

import json
from pathlib import Path

import click
from pydantic import ValidationError

from memconform.datasets.files import read_whole
from memconform.errors import ExitCode, UsageError
from memconform.printing.escaping import Lines
from memconform.printing.output import echo
from memconform.upstream.bodies import MAX_BODY, read_script
from memconform.upstream.script import Script
from memconform.upstream.serve import listen, serve
from memconform.validation import first_fault


@click.command("upstream", context_settings={"show_default": True})
@click.option(
    "--addr", default="127.0.0.1:18860", metavar="HOST:PORT", help="Port 0: any free one."
)
@click.option(
    "--script",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="What to answer instead of a sentence of the notes; JSON, see --schema.",
)
@click.option("--schema", is_flag=True, help="Print the JSON Schema of a script and exit.")
def command(addr: str, script: Path | None, *, schema: bool) -> ExitCode:
    """Serve chat, embeddings and reranking by script, for daemons to call.

    Speaks OpenAI's chat completions, embeddings and models, Anthropic's messages, and a /rerank
    that most services have, below /v1 and below /. GET /_control/requests says what was asked,
    PUT /_control/script takes another script.
    """
    if schema:
        echo(Lines(json.dumps(Script.model_json_schema(), indent=2)))
        return ExitCode.OK
    rules = _read(script) if script else Script()
    host, colon, port = addr.rpartition(":")
    if not colon or not host or not port.isascii() or not port.isdigit() or int(port) > 65535:
        raise UsageError(f"--addr {addr} is no address", code="bad_addr", hint="write HOST:PORT")
    try:
        listener, address = listen(host.strip("[]"), int(port))
    except OSError as error:
        raise UsageError(
            f"cannot listen on {addr}: {error.strerror}", code="bad_addr", hint="try port 0"
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
        content = read_whole(path, MAX_BODY)
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


_HINT = "memconform upstream --schema shows what a script may hold"
