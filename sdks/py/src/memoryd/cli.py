"""`memory serve`: the daemon's command line."""

import argparse
import os
import sys
from pathlib import Path

from memoryd.config import Config, ConfigError
from memoryd.daemon.daemon import ListenError, run


def main(argv: list[str] | None = None) -> int:
    """Run `memory serve`; returns the exit status. Usage errors exit with status 2."""
    parser = argparse.ArgumentParser(prog="memory", allow_abbrev=False)
    parser.add_argument("command", metavar="serve", type=_command, help="answer over HTTP")
    parser.add_argument("--addr", default="127.0.0.1:18850", metavar="HOST:PORT", type=_address)
    parser.add_argument("--root", type=_folder, help="state folder; default $JB_HOME")
    parser.add_argument(
        "--auth-token",
        metavar="TOKEN",
        help="bearer token that requests must send; default $JB_AUTH_TOKEN",
    )
    options, unknown = parser.parse_known_args(argv)
    if unknown:
        # Not repeated: one may be part of a token that contains a space.
        parser.error("unknown arguments; see memory --help")
    home = options.root or os.environ.get("JB_HOME")
    if not home:
        parser.error("no state folder: set --root or JB_HOME")
    try:
        config = Config.from_env(Path(home), os.environ, options.auth_token)
    except ConfigError as error:
        parser.error(str(error))
    try:
        run(config, *options.addr)
    except ListenError as error:
        sys.stderr.write(f"memory: {error}\n")
        return 1
    return 0


def _folder(value: str) -> Path:
    # Path("") is the working folder, which nobody named.
    if not value:
        raise argparse.ArgumentTypeError("must not be empty")
    return Path(value)


def _command(value: str) -> str:
    if value != "serve":
        raise argparse.ArgumentTypeError("unknown command; the only one is serve")
    return value


def _address(value: str) -> tuple[str, int]:
    host, colon, port = value.rpartition(":")
    if not colon or not host or not port.isascii() or not port.isdigit() or int(port) > 65535:
        raise argparse.ArgumentTypeError(f"{value!r} must be HOST:PORT")
    return host.strip("[]"), int(port)
