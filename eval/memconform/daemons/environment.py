"""What daemons and builds inherit of the user's shell."""

import os
from collections.abc import Mapping
from pathlib import Path

from memconform.daemons.limits import why_unwritable

BASE = ("PATH", "HOME", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "TMPDIR", "SSL_CERT_FILE")
"""What any program needs to run; other variables of the user's shell must be declared."""

PROXIES = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy")
NO_PROXY = ("NO_PROXY", "no_proxy")
NETWORK = (*PROXIES, *NO_PROXY, "SSL_CERT_DIR")
"""What a program needs besides to reach services outside this machine."""

_LOOPBACK = ("localhost", "127.0.0.1", "::1")
BUDGET_SERVER = "MEMCONFORM_BUDGET_SERVER"
"""The variable that tells a shard how to reach the process that has its replies and budget."""

_FILES = ("SSL_CERT_FILE", "SSL_CERT_DIR")


def shell_variables(names: list[str]) -> dict[str, str]:
    """Those of the named variables of the user's shell that are set and not empty."""
    return {name: os.environ[name] for name in names if os.environ.get(name)}


def whole_shell() -> Mapping[str, str]:
    """The environment of this process."""
    return os.environ


def for_daemon(env: Mapping[str, str]) -> dict[str, str]:
    """The environment without paths that do not exist, and with loopback exempt from proxies.

    A proxy that is passed on must not come between a daemon and our upstream, which saw requests of
    daemons arrive at a company's proxy.
    """
    usable = _without_missing(env)
    if usable.keys().isdisjoint(PROXIES):
        return usable
    exempt = [part for name in NO_PROXY for part in usable.get(name, "").split(",") if part]
    hosts = ",".join(dict.fromkeys((*exempt, *_LOOPBACK)))
    # Some libraries read one name, some the other, and some stop at the first that is set.
    return usable | dict.fromkeys(NO_PROXY, hosts)


def for_build(cache: Path) -> dict[str, str]:
    """The environment of a build: the user's, with a home folder that compilers can write to.

    Args:
        cache: where a home folder is made if the user's cannot be written.
    """
    env = _without_missing(os.environ)
    # Whoever knows it can settle what was never reserved.
    env.pop(BUDGET_SERVER, None)
    if not _is_writable(env.get("HOME", "")):
        home = cache / "home"
        home.mkdir(exist_ok=True)
        env["HOME"] = str(home)
    return env


def _without_missing(env: Mapping[str, str]) -> dict[str, str]:
    """The environment without files and folders that a library would fail to open.

    Python falls back to /tmp where TMPDIR is unusable, but Go and Node do not. OpenSSL falls back
    to the system's certificates, but httpx does not.
    """
    missing = {name for name in _FILES if name in env and not Path(env[name]).exists()}
    if "TMPDIR" in env and not _is_writable(env["TMPDIR"]):
        missing.add("TMPDIR")
    return {name: value for name, value in env.items() if name not in missing}


def _is_writable(folder: str) -> bool:
    # The empty path, too, is a relative one.
    return os.path.isabs(folder) and why_unwritable(Path(folder)) is None  # noqa: PTH117
