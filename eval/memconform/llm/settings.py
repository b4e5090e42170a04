"""The settings of model services: the one place that reads a vendor's variables.

A setting that is empty or white is not set. Whatever else cannot be used is a UsageError that names
the variable, shows its value unless that is a secret, and says what to export; it is raised before
anything is started. The clients (`clients.py`) are made from these settings alone.
"""

import hashlib
from collections import ChainMap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from urllib.parse import quote

from memconform.errors import UsageError
from memconform.llm.addresses import ollama_address, service_address
from memconform.llm.names import ModelName
from memconform.network import Certificates, HeaderError, Proxy, split_header, way_to
from memconform.redaction import hide, is_secret, masked_address
from memconform.storage.provenance import ModelService

_KEYS = {
    "openai": "OPENAI_API_KEY",
    "anthropic": "ANTHROPIC_API_KEY",
    "gemini": "GEMINI_API_KEY",
    "azure": "AZURE_OPENAI_API_KEY",
}
_ADDRESSES = {
    "openai": "OPENAI_BASE_URL",
    "anthropic": "ANTHROPIC_BASE_URL",
    "azure": "AZURE_OPENAI_ENDPOINT",
    "ollama": "OLLAMA_HOST",
}
_HEADERS = {
    "openai": "OPENAI_CUSTOM_HEADERS",
    "anthropic": "ANTHROPIC_CUSTOM_HEADERS",
}
HEADERS_VARIABLE = "MEMCONFORM_JUDGE_HEADERS"
"""Headers for every service, one a line; --judge-header adds to them."""
_API_VERSION = "OPENAI_API_VERSION"
_V1 = ("v1", "preview", "latest")
"""API versions of Azure that mean its address without versions."""
_OWN = {
    "openai": "https://api.openai.com/v1",
    "anthropic": "https://api.anthropic.com",
}
"""The vendors' own addresses, which a client is told rather than left to know."""
_GEMINI = "https://generativelanguage.googleapis.com/v1beta/openai/"
_CREDENTIALS = ("authorization", "proxy-authorization", "cookie")
"""Headers that are credentials, although their names do not look like those of secrets."""
CONNECT_S = 15.0
"""Time allowed for a connection; a call's own limit may be shorter."""


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where a model is served, how it is reached, and how a call is authorized."""

    base_url: str | None = field(repr=False)
    """None is the vendor's own address."""
    api_key: str = field(repr=False)
    temporary: bool = False
    """Whether a command serves it for itself, on another port each time."""
    provider: str = "openai"
    proxy: Proxy | None = None
    certificates: Certificates | None = None
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Sent with each call besides the client's own."""
    organization: str | None = None
    project: str | None = None
    api_version: str | None = None
    """For Azure OpenAI only; None selects its address without versions."""

    @property
    def url(self) -> str:
        """The address that calls are sent to."""
        return self.base_url or _OWN[self.provider]

    @property
    def variable(self) -> str:
        """The variable that sets the address; empty if none can."""
        return "" if self.temporary else _ADDRESSES.get(self.provider, "")

    @property
    def key_variable(self) -> str:
        """The variable that holds the key; empty if none is needed."""
        return "" if self.temporary else _KEYS.get(self.provider, "")

    def __str__(self) -> str:
        """The address without credentials, and the variable that sets it."""
        set_by = f" ({self.variable})" if self.variable and self.base_url else ""
        return f"{masked_address(self.url)}{set_by}"

    @property
    def stable_address(self) -> str | None:
        """What caches and results know the service by; None where its name is enough.

        Headers are part of it, because a gateway may choose the model by one; credentials are not.
        """
        if self.temporary:
            return None
        deciding = {
            name.lower(): value
            for name, value in self.headers.items()
            if name.lower() not in _CREDENTIALS and not is_secret(name.replace("-", "_"))
        }
        extra = [self.api_version] if self.api_version else []
        if deciding:
            text = "\n".join(f"{name}: {value}" for name, value in sorted(deciding.items()))
            extra.append(hashlib.sha256(text.encode()).hexdigest())
        if not extra and self.base_url is None:
            return None
        scheme, _, rest = self.url.partition("://")
        place, slash, path = rest.partition("/")
        return " ".join([f"{scheme}://{place.rpartition('@')[2]}{slash}{path}", *extra])


def has_key(provider: str, env: Mapping[str, str]) -> bool:
    """Whether the environment holds a provider's key."""
    return bool(_value(env, _KEYS.get(provider, "")))


def is_configured(provider: str, env: Mapping[str, str]) -> bool:
    """Whether the environment sets a key or an address of a provider."""
    return any(_value(env, names.get(provider, "")) for names in (_KEYS, _ADDRESSES))


def model_environment(headers: Sequence[str], env: Mapping[str, str]) -> Mapping[str, str]:
    """The environment with the headers of --judge-header, which precede those of the variable."""
    for text in headers:
        read_header(text, "--judge-header")
    if not headers:
        return env
    lines = [env.get(HEADERS_VARIABLE, ""), *headers]
    return ChainMap({HEADERS_VARIABLE: "\n".join(lines)}, dict(env))


def address(name: ModelName, env: Mapping[str, str]) -> str | None:
    """What caches know the service of a model by; None is the vendor's own, or the scripted one.

    Raises:
        UsageError: as `endpoint`, but for the key, which is not needed.
    """
    if name.provider == "fake":
        return None
    return _endpoint(name, env, "").stable_address


def endpoint(name: ModelName, env: Mapping[str, str]) -> Endpoint:
    """The settings of a model's service; the key and all credentials are hidden from output.

    Raises:
        UsageError: `no_api_key`, `bad_api_key`, `bad_service_address`, `no_service_address`,
            `bad_service_header`, `bad_proxy`, `no_socks` or `bad_certificates`.
    """
    return _endpoint(name, env, _key(name, env))


def require_daemon_service(env: Mapping[str, str]) -> None:
    """Raise UsageError (`bad_service_address`) for the service that JB_LLM_PROVIDER makes daemons
    ask, if its address is none. Keys, proxies and certificates are the daemon's own to read."""
    name = ModelName.of_daemons(env)
    if name is not None and _value(env, _ADDRESSES.get(name.provider, "")):
        _base_url(name, env)


def models_address(endpoint: Endpoint) -> tuple[str, dict[str, str]]:
    """The address of a service's list of models, and the headers to get it with."""
    # Names differ in case alone: both of two authorizations would be sent.
    given = {name.lower(): value for name, value in endpoint.headers.items()}
    if endpoint.provider == "anthropic":
        key = {"x-api-key": endpoint.api_key, "anthropic-version": "2023-06-01"}
        return f"{endpoint.url}/v1/models", key | given
    if endpoint.api_version is not None:
        resource = endpoint.url.partition("/openai/deployments/")[0]
        address = f"{resource}/openai/models?api-version={endpoint.api_version}"
        return address, {"api-key": endpoint.api_key} | given
    bearer = {"authorization": f"Bearer {endpoint.api_key}"}
    return f"{endpoint.url.rstrip('/')}/models", bearer | given


def service_settings(provider: str, endpoint: Endpoint) -> ModelService:
    """What results and `doctor` say of how a service is reached."""
    return ModelService(
        provider=provider,
        address=masked_address(endpoint.url),
        address_variable=endpoint.variable if endpoint.base_url else "",
        proxy="" if endpoint.proxy is None else str(endpoint.proxy),
        certificates="" if endpoint.certificates is None else str(endpoint.certificates),
        connect_timeout_s=CONNECT_S,
        key_variable=endpoint.key_variable,
        headers=sorted(endpoint.headers),
        api_version=endpoint.api_version or "",
    )


def _endpoint(name: ModelName, env: Mapping[str, str], key: str) -> Endpoint:
    base_url, api_version = _base_url(name, env)
    url = base_url or _OWN[name.provider]
    proxy, trusted = way_to(url, env)
    is_openai = name.provider == "openai"
    return Endpoint(
        base_url,
        key,
        provider=name.provider,
        proxy=proxy,
        certificates=trusted,
        headers=_custom_headers(name.provider, env),
        organization=(_header_value(env, "OPENAI_ORG_ID") or None) if is_openai else None,
        project=(_header_value(env, "OPENAI_PROJECT_ID") or None) if is_openai else None,
        api_version=api_version,
    )


def _value(env: Mapping[str, str], name: str) -> str:
    return env.get(name, "").strip()


def _key(name: ModelName, env: Mapping[str, str]) -> str:
    if name.provider == "ollama":
        return "ollama"
    variable = _KEYS[name.provider]
    key = _value(env, variable)
    if not key:
        raise UsageError(
            f"{name} needs {variable}, which is not set",
            code="no_api_key",
            hint=f"export {variable}=…, or give `fake` in place of this model, as in --judge fake",
        )
    hide(key)
    if not (key.isascii() and key.isprintable()) or set(key) & set(" \"'"):
        raise UsageError(
            f"{variable} holds white space, quotes or other characters that no API key has",
            code="bad_api_key",
            hint=f"export {variable} again, in one line, without quotes inside the value",
        )
    return key


def _base_url(name: ModelName, env: Mapping[str, str]) -> tuple[str | None, str | None]:
    """The address of a service, None for the vendor's own, and its version of the API."""
    match name.provider:
        case "gemini":
            return _GEMINI, None
        case "ollama":
            return ollama_address(_value(env, _ADDRESSES["ollama"])), None
        case "azure":
            return _azure(name, env)
    variable = _ADDRESSES[name.provider]
    given = _value(env, variable)
    return (service_address(given, variable) if given else None), None


def _azure(name: ModelName, env: Mapping[str, str]) -> tuple[str, str | None]:
    """The address of a deployment in Azure OpenAI."""
    variable = _ADDRESSES["azure"]
    given = _value(env, variable)
    if not given:
        raise UsageError(
            f"{name} needs {variable}, which is not set",
            code="no_service_address",
            hint=f"export {variable}=https://RESOURCE.openai.azure.com",
        )
    resource = service_address(given, variable).removesuffix("/v1").removesuffix("/openai")
    version = _header_value(env, _API_VERSION)
    if not version or version in _V1:
        return f"{resource}/openai/v1", None
    return f"{resource}/openai/deployments/{quote(name.model, safe='')}", version


def _custom_headers(provider: str, env: Mapping[str, str]) -> dict[str, str]:
    """Headers of a vendor's own variable and of ours, which comes last: `Name: value`, one a line.

    Names are compared without the case of their letters: one that is given again is replaced.
    """
    headers: dict[str, tuple[str, str]] = {}
    for variable in (_HEADERS.get(provider, ""), HEADERS_VARIABLE):
        for line in env.get(variable, "").splitlines():
            if line.strip():
                name, value = read_header(line.strip(), variable)
                headers[name.lower()] = name, value
    return dict(headers.values())


def read_header(text: str, source: str) -> tuple[str, str]:
    """The name and value of a header `Name: value`; the value is hidden from output.

    Raises:
        UsageError: `bad_service_header`, naming `source`: the flag or variable that it is from.
    """
    try:
        return split_header(text)
    except HeaderError as error:
        raise UsageError(f"{source} {error}", code="bad_service_header", hint=error.hint) from error


def _header_value(env: Mapping[str, str], variable: str) -> str:
    """A value that is sent in a header or a query."""
    value = _value(env, variable)
    if not (value.isascii() and value.isprintable()) or set(value) & set(" \"'?&#/"):
        raise UsageError(
            f"{variable} is {value!r}, which cannot be sent",
            code="bad_service_header",
            hint=f"export {variable} again, without white space and quotes, or unset it",
        )
    return value
