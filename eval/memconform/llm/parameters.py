"""Parameters that some compatible services refuse, and what is sent to them instead."""

import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace
from typing import Final, Literal

from memconform.llm.chat import (
    ChatRequest,
    Completion,
    LlmError,
    ModelUnusableError,
    RequestRejectedError,
)
from memconform.llm.names import ModelName
from memconform.llm.prices import ModelTraits
from memconform.llm.refusals import Refusal
from memconform.llm.settings import Endpoint
from memconform.printing.logs import Logger

_log = Logger()

Limit = Literal["max_completion_tokens", "max_tokens"]

_OTHER: Final[dict[Limit, Limit]] = {
    "max_completion_tokens": "max_tokens",
    "max_tokens": "max_completion_tokens",
}
_SCHEMA: Final = ("response_format", "json_schema", "output_config", "output_format")
_VALUE_FAULT: Final = re.compile(
    r"\b(?:at most|at least|greater than|less than|too (?:large|small|high|low|long|many)|exceeds?"
    r"|maximum|minimum|context (?:length|window)"
    r"|must be (?:an? |at |in |less|greater|between|[<>\d]))",
    re.IGNORECASE,
)
"""A limit that is refused for its value would be refused under its other name, too; a service that
ignores that name would answer without a limit."""


_QUOTED: Final = r"""(?:["'`]|\b(?:parameter|argument supplied|argument|field):? )"""
"""What precedes a name that may also be a word of a sentence, such as temperature."""


@dataclass(frozen=True, slots=True)
class Parameters:
    """How a service takes what a request asks for."""

    limit: Limit
    """The name of the limit of output tokens."""
    schema: bool = True
    """Whether it takes a JSON schema of the reply."""

    def without(self, refusal: Refusal) -> "Parameters | None":
        """What to send instead, by a refusal; None if it names none of these."""
        other = _OTHER[self.limit]
        if refusal.names(self.limit) and (
            refusal.names(other) or not refusal.contains(_VALUE_FAULT)
        ):
            return replace(self, limit=other)
        if self.schema and any(map(refusal.names, _SCHEMA)):
            return replace(self, schema=False)
        return None


@dataclass(frozen=True, slots=True)
class AcceptedParameters:
    """What the services of one provider take, as far as their refusals showed it."""

    _known: dict[tuple[str | None, str], Parameters] = field(default_factory=dict)
    """By address and model, and for the address alone by an empty model: what the service took
    last. One address may serve models of which each refuses another name."""

    def of(self, name: ModelName, endpoint: Endpoint) -> Parameters:
        """What the service took last, or else is known to take."""
        for model in (name.model, ""):
            if (known := self._known.get((endpoint.base_url, model))) is not None:
                return known
        # Compatible servers know the older name alone.
        return Parameters("max_completion_tokens" if name.provider == "openai" else "max_tokens")

    def remember(self, name: ModelName, endpoint: Endpoint, parameters: Parameters) -> None:
        """Note what the service took, with a notice if replies are no longer constrained."""
        before = self._known.get((endpoint.base_url, name.model))
        if not parameters.schema and (before is None or before.schema):
            _log.warning(
                "the service refuses a JSON schema: replies are checked, but not constrained by it",
                model=str(name),
            )
        self._known[endpoint.base_url, name.model] = parameters
        self._known[endpoint.base_url, ""] = Parameters(parameters.limit)


async def send_accepted(
    name: ModelName,
    endpoint: Endpoint,
    traits: ModelTraits,
    accepted: AcceptedParameters,
    *,
    request: ChatRequest,
    send: Callable[[Parameters], Awaitable[Completion]],
) -> Completion:
    """Send a request, and again with what the service accepts if it refuses a parameter by name.

    What it accepts is remembered in `accepted` for later requests. Each concurrent request goes by
    the refusal of its own: none depends on what another one has learned meanwhile.

    Raises:
        ModelUnusableError: for a sampling parameter that is refused. Without it the service would
            answer, but another measurement would be made than the one that was asked for.
        RequestRejectedError: for any other refusal.
    """
    parameters = accepted.of(name, endpoint)
    refused = {parameters}
    while True:
        try:
            completion = await send(parameters)
        except RequestRejectedError as error:
            refusal = Refusal(error.details, request)
            instead = parameters.without(refusal)
            if instead is None or instead in refused:
                raise _sampling_refused(name, traits, refusal, error) or error from error
            parameters = instead
            refused.add(parameters)
        else:
            if len(refused) > 1:
                accepted.remember(name, endpoint, parameters)
            return completion


def _sampling_refused(
    name: ModelName, traits: ModelTraits, refusal: Refusal, error: RequestRejectedError
) -> LlmError | None:
    """The error that ends all calls, if a refusal names a sampling parameter.

    One that is about the prompt concerns this call alone, whichever words it quotes.
    """
    if refusal.is_moderated:
        return None
    sampling = traits.sampling
    refused = [key for key in sampling if refusal.names(key, before=_QUOTED, value=sampling[key])]
    if not refused:
        return None
    return ModelUnusableError(
        f"{error.message} ({refused[0]} is a sampling parameter of every call)",
        code="llm_unusable",
        hint=f'set sampling of [models."{name}"] in the file of --prices or MEMCONFORM_PRICES:'
        " sampling = {} sends none",
    )
