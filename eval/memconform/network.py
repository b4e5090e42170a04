"""How a server is reached: proxy and certificates, as the variables of a shell set them.

Everything is read from a mapping that the caller gives, and checked before a client is made. A
server on loopback has no proxy, and a server without TLS no certificates, whatever is set.
"""

import ipaddress
import re
import socket
import ssl
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from urllib.parse import urlsplit

from memconform.errors import UsageError
from memconform.redaction import hide_credentials, hide_header, masked_address, userinfo_of

_PORTS = {"http": 80, "https": 443}
_PROXY_SCHEMES = ("http", "https", "socks5", "socks5h")
_HASHED = re.compile(r"[0-9a-fA-F]{8}\.\d+")
"""How OpenSSL looks up a certificate in a folder."""
_LOOPBACK_NAMES = (
    *("localhost", "localhost.localdomain", "localhost4", "localhost6"),
    *("localhost6.localdomain6", "ip6-localhost", "ip6-loopback"),
)
"""What Linux distributions call loopback in /etc/hosts."""
_HOST = re.compile(r"[^\s/?#@\\\"'<>^`{|}%\x00-\x20\x7f\[\]:]+")

_HEADER_NAME = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")
_OWN_HEADERS = frozenset(
    (
        *("host", "content-length", "content-encoding", "transfer-encoding", "te", "trailer"),
        *("connection", "keep-alive", "proxy-connection", "upgrade", "expect", "http2-settings"),
    )
)
"""Headers of one message or connection (RFC 9110, sections 7.6 to 10.1). With a wrong one, a
server waits for more bytes than are sent, or takes the rest for the next request."""


@dataclass(frozen=True, slots=True)
class Proxy:
    url: str = field(repr=False)
    """With its credentials."""
    variable: str

    def __str__(self) -> str:
        return f"{masked_address(self.url)} ({self.variable})"


@dataclass(frozen=True, slots=True)
class Certificates:
    """The authorities to trust in place of the system's."""

    path: Path
    variable: str

    def __str__(self) -> str:
        return f"{self.path} ({self.variable})"

    def context(self) -> ssl.SSLContext:
        """A context that trusts them alone.

        Raises:
            OSError: if they cannot be read; an ssl.SSLError, if they are none.
        """
        # Not `create_default_context`, which reads SSLKEYLOGFILE.
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        if self.variable == "SSL_CERT_FILE":
            context.load_verify_locations(cafile=self.path)
        else:
            context.load_verify_locations(capath=self.path)
        return context


def split_address(address: str) -> tuple[str, str, int]:
    """The scheme, host and port of an address.

    Raises:
        ValueError: if it has no host or no possible port, or holds what an address cannot.
    """
    if re.search(r"[\s\x00-\x20\x7f\"'<>\\]", address):
        raise ValueError("white space, quotes or other characters that no address has")
    try:
        parts = urlsplit(address)
        host = parts.hostname
        port = parts.port if parts.port is not None else _PORTS.get(parts.scheme, 1080)
    except ValueError as error:
        # Its text may show a part of the user info.
        raise ValueError("no valid host or port") from error
    if not host or port == 0:
        raise ValueError("no host" if not host else "port 0")
    if ":" in host or "[" in parts.netloc:
        ipaddress.IPv6Address(host)
    elif not _HOST.fullmatch(host):
        raise ValueError("no host name")
    elif host.rpartition(".")[2].isdigit() and not _is_number(host):
        raise ValueError("not an IPv4 address")
    else:
        # What the resolver does with it, which raises for a label that is empty or too long.
        try:
            host.removesuffix(".").encode("idna")
        except UnicodeError as error:
            raise ValueError("no host name") from error
    return parts.scheme, host, port


def unescaped(address: str) -> str:
    """What is wrong with the user info of an address that cannot be split; empty if nothing is."""
    characters = sorted(set("/?#\\ ") & set(userinfo_of(address)))
    if not characters:
        return ""
    encoded = ", ".join(f"{each!r} as %{ord(each):02X}" for each in characters)
    return f"its user name or password must be percent-encoded: {encoded}"


class HeaderError(ValueError):
    """A header cannot be sent; the message follows the name of the flag or variable."""

    hint = "write 'Name: value', in printable ASCII"


def split_header(text: str) -> tuple[str, str]:
    """The name and value of a header `Name: value`; the value is hidden from output.

    Raises:
        HeaderError: if it is not one, or is not the user's to set; no value is shown.
    """
    name, colon, value = (part.strip() for part in text.partition(":"))
    hide_header(name if colon else "", value if colon else text.strip())
    if not colon:
        raise HeaderError("is not a header: there is no colon")
    if not name:
        raise HeaderError("is not a header: there is no name before the first colon")
    if not _HEADER_NAME.fullmatch(name):
        raise HeaderError("is not a header: no name has the characters before its colon")
    if not (value.isascii() and value.isprintable()):
        raise HeaderError(f"{name} is not a header: its value is not printable ASCII")
    if name.lower() in _OWN_HEADERS:
        error = HeaderError(f"{name} cannot be given: HTTP itself sets it for each request")
        error.hint = f"leave {name} out" + (
            "; the host is that of the address" if name.lower() == "host" else ""
        )
        raise error
    return name, value


def proxy_for(address: str, env: Mapping[str, str]) -> Proxy | None:
    """The proxy for a server at `address`, None if it is reached directly.

    Lower-case names win over upper-case ones, as in curl; an empty value is no value.

    Raises:
        UsageError: `bad_proxy`, or `no_socks` where the SOCKS client is not installed.
    """
    scheme, host, port = split_address(address)
    if is_loopback(host) or _is_excepted(scheme, host, port, env):
        return None
    for name in (f"{scheme}_proxy", f"{scheme}_proxy".upper(), "all_proxy", "ALL_PROXY"):
        if given := env.get(name, "").strip():
            return _proxy(given, name, host)
    return None


def speaks_tls(address: str, proxy: Proxy | None) -> bool:
    """Whether TLS is spoken with a server, or with the proxy before it."""
    return _tls_address(address, proxy) is not None


def _tls_address(address: str, proxy: Proxy | None) -> str | None:
    way = (address,) if proxy is None else (address, proxy.url.lower())
    return next((each for each in way if each.startswith("https:")), None)


def way_to(address: str, env: Mapping[str, str]) -> tuple[Proxy | None, Certificates | None]:
    """The proxy for a server, and the certificates to trust on the way to it.

    Raises:
        UsageError: as `proxy_for` and `certificates`; the latter only where TLS is spoken.
    """
    proxy = proxy_for(address, env)
    secure = _tls_address(address, proxy)
    return proxy, None if secure is None else certificates(env, secure)


def is_loopback(host: str) -> bool:
    """Whether a host is this machine, in whatever form its address is written."""
    name = host.lower().strip("[]").partition("%")[0].removesuffix(".")
    if name in _LOOPBACK_NAMES or name.endswith(".localhost"):
        return True
    address = _ip(name)
    if address is None:
        return False
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return (mapped or address).is_loopback or address.is_unspecified


def certificates(env: Mapping[str, str], address: str) -> Certificates | None:
    """The certificates that SSL_CERT_FILE or SSL_CERT_DIR name, None for the system's.

    Args:
        env: the environment.
        address: of the server that needs them, for the message.

    Raises:
        UsageError: `bad_certificates`, if they cannot be read or hold no certificate.
    """
    for name in ("SSL_CERT_FILE", "SSL_CERT_DIR"):
        given = env.get(name, "").strip()
        if given:
            found = Certificates(Path(given), name)
            if fault := _certificate_fault(found):
                raise UsageError(
                    f"{name} is {given}, which {fault}, and {masked_address(address)} needs"
                    " certificates",
                    code="bad_certificates",
                    hint=f"unset {name}, or export {name}=PATH of a"
                    + (" PEM file" if name == "SSL_CERT_FILE" else " folder made by c_rehash"),
                )
            return found
    return None


def _certificate_fault(found: Certificates) -> str:
    fault = ""
    try:
        if found.variable == "SSL_CERT_DIR":
            names = [entry.name for entry in found.path.iterdir()]
            if not any(map(_HASHED.fullmatch, names)):
                fault = "has no certificate under a name by which OpenSSL looks for it"
        found.context()
    except FileNotFoundError:
        fault = "does not exist"
    except ssl.SSLError:
        fault = "has no certificate"
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        fault = f"cannot be read ({reason})"
    return fault


def _proxy(given: str, variable: str, host: str) -> Proxy:
    url = given if "://" in given else f"http://{given}"
    hide_credentials(url, is_address=True)
    remedy = f"unset it, or export NO_PROXY={host}"
    scheme, fault = "", unescaped(url)
    try:
        scheme = split_address(url)[0]
        if scheme not in _PROXY_SCHEMES:
            fault = fault or f"the scheme {scheme!r} is unknown"
    except ValueError as error:
        fault = fault or str(error)
    if fault:
        raise UsageError(
            f"{variable} is {masked_address(given)!r}, which is not the address of a proxy:"
            f" {fault}",
            code="bad_proxy",
            hint=f"export {variable}=http://HOST:PORT, {remedy}",
        )
    if scheme.startswith("socks") and find_spec("socksio") is None:
        raise UsageError(
            f"{variable} is {masked_address(given)!r}, and SOCKS needs the package socksio",
            code="no_socks",
            hint=f"pip install socksio, or export {variable}=http://HOST:PORT of an HTTP proxy,"
            f" {remedy}",
        )
    return Proxy(url, variable)


def _is_excepted(scheme: str, host: str, port: int, env: Mapping[str, str]) -> bool:
    """Whether NO_PROXY covers a server: host, .suffix, host:port, CIDR, `*`."""
    given = env.get("no_proxy", "").strip() or env.get("NO_PROXY", "")
    name = host.lower().removesuffix(".")
    return any(_covers(entry, scheme, name, port) for entry in _entries(given))


def _entries(given: str) -> Iterator[str]:
    for entry in re.split(r"[\s,;]+", given.lower()):
        if entry.strip("\"'"):
            yield entry.strip("\"'")


def _covers(entry: str, scheme: str, host: str, port: int) -> bool:
    of_scheme, separator, rest = entry.rpartition("://")
    if separator and of_scheme not in (scheme, "all"):
        return False
    rest = rest.rstrip("/")
    if "/" in rest:
        return _in_network(host, rest)
    if (whole := _ip(rest.strip("[]"))) is not None:
        return whole == _ip(host)
    name, colon, of_port = rest.rpartition(":")
    if colon and of_port != str(port):
        return False
    return _is_within(host, (name if colon else rest).strip("[]"))


def _in_network(host: str, network: str) -> bool:
    address = _ip(host)
    try:
        return address is not None and address in ipaddress.ip_network(network, strict=False)
    except ValueError:
        return False


def _is_within(host: str, domain: str) -> bool:
    """Whether a host is a domain or in it; `*` is every domain."""
    if domain == "*" or ((whole := _ip(domain)) is not None and whole == _ip(host)):
        return True
    suffix = domain.removeprefix("*").lstrip(".").removesuffix(".")
    return bool(suffix) and (host == suffix or host.endswith(f".{suffix}"))


def _ip(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        pass
    # Resolvers also take 127.1, 0x7f.1 and 2130706433.
    return ipaddress.IPv4Address(socket.inet_aton(host)) if _is_number(host) else None


def _is_number(host: str) -> bool:
    if not re.fullmatch(r"[0-9][0-9a-fx.]*", host, re.IGNORECASE):
        return False
    try:
        socket.inet_aton(host)
    except OSError:
        return False
    return True
