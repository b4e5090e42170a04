"""Put on PYTHONPATH, lets a Python program talk to this machine alone.

With CLOCK_SET_BACK in the environment its wall clock also goes back an hour at each look.
"""

import datetime as dt
import ipaddress
import os
import sys
from typing import Any


def _is_local(host: object) -> bool:
    if not isinstance(host, str) or host in ("", "localhost"):
        return True
    try:
        return ipaddress.ip_address(host.partition("%")[0]).is_loopback
    except ValueError:
        return False


def _refuse_strangers(event: str, args: tuple[Any, ...]) -> None:
    if event in ("socket.connect", "socket.sendto", "socket.sendmsg", "socket.bind"):
        address = args[1]
        host = address[0] if isinstance(address, tuple) else ""
    elif event == "socket.getaddrinfo":
        host = args[0]
    else:
        return
    if not _is_local(host):
        raise PermissionError(f"{event} to {host!r}: tests stay on this machine")


sys.addaudithook(_refuse_strangers)

if "CLOCK_SET_BACK" in os.environ:
    _real = dt.datetime
    _looks = 0

    class _GoingBack(_real):
        @classmethod
        def now(cls, tz: dt.tzinfo | None = None) -> "_GoingBack":
            global _looks
            _looks += 1
            moment = _real.now(tz) - dt.timedelta(hours=_looks)
            return cls.fromtimestamp(moment.timestamp(), tz)

    dt.datetime = _GoingBack  # type: ignore[misc]
