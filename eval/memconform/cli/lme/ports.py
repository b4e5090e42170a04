"""The ports of a replay's daemons."""

from collections.abc import Collection

from memconform.cli.lme.options import LmeOptions
from memconform.daemons.sdk_runner import SdkRunner
from memconform.errors import UsageError, nearest


def port_of(options: LmeOptions, runner: SdkRunner, number: int) -> int:
    """The port of a daemon, given its number in the order of the command; 0 picks a free one."""
    own = _sdk_ports(options).get(runner.name)
    if own is not None:
        return own
    return options.port + number if options.port else 0


def require_ports(options: LmeOptions, sdks: Collection[str]) -> None:
    """Raise UsageError (`bad_option`) for a port of an SDK that is not replayed, or for no port."""
    for name in _sdk_ports(options):
        if name not in sdks:
            raise UsageError(
                f"--sdk-port {name}=…: {name} is not among the SDKs of the command",
                code="bad_option",
                hint=nearest(name, sdks) or f"they are {', '.join(sdks)}",
            )


def _sdk_ports(options: LmeOptions) -> dict[str, int]:
    """The ports of `--sdk-port`, by the name of the SDK.

    Raises:
        UsageError: for a value that is none (`bad_option`).
    """
    ports = {}
    for text in options.sdk_port:
        name, _, port = text.rpartition("=")
        if not name or not port.isdecimal() or not 0 < int(port) < 1 << 16:
            raise UsageError(
                f"--sdk-port {text} names no port",
                code="bad_option",
                hint="write --sdk-port go=18851",
            )
        ports[name] = int(port)
    return ports
