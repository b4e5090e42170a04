"""How `bench` is to search: cuts, modes, sweeps, and the models behind them."""

import json
from collections.abc import Callable, Mapping
from functools import cache

from pydantic import ValidationError

from memconform.bench.remote import RemoteEmbedder
from memconform.bench.strategy import Strategy, strategies
from memconform.cli.bench_options import BenchOptions
from memconform.cli.values import comma_separated
from memconform.contract.core import DEEPEST, Tuning
from memconform.contract.wire import JsonValue, Mode
from memconform.errors import UsageError, nearest
from memconform.upstream.embedders import FEATURE_HASH, Embedder, get_embedder
from memconform.validation import first_fault


def cuts(text: str) -> list[int]:
    """The ks of `-k`, ascending, each once."""
    parts = comma_separated([text])
    if not parts or not all(part.isascii() and part.isdigit() for part in parts):
        raise UsageError(f"-k {text} is not a list of numbers", code="bad_k", hint="write -k 5,10")
    ks = sorted({int(part) for part in parts})
    if not 1 <= ks[0] <= ks[-1] <= DEEPEST:
        raise UsageError(
            f"-k {text}: a cut is at 1 to {DEEPEST}", code="bad_k", hint="write -k 5,10"
        )
    return ks


def searched_strategies(options: BenchOptions) -> tuple[Strategy, ...]:
    modes = []
    for name in comma_separated([options.modes]):
        if name not in list(Mode):
            raise UsageError(
                f"--modes {name} is not a mode",
                code="bad_mode",
                hint=nearest(name, [m.value for m in Mode]) or f"there are {', '.join(Mode)}",
            )
        modes.append(Mode(name))
    if options.rerank not in (None, "none"):
        modes.append(Mode.HYBRID_RERANK)
    sweeps: dict[str, list[JsonValue]] = {
        "fusion": list(comma_separated([options.fusion or ""])),
        "alpha": _numbers("--alpha", options.alpha),
        "rrfK": _numbers("--rrf-k", options.rrf_k),
        "poolFactor": _numbers("--pool-factor", options.pool_factor),
        "poolFloor": _numbers("--pool-floor", options.pool_floor),
        "recency": _json("--recency", options.recency),
        "temporal": _json("--temporal", options.temporal),
    }
    found = strategies(modes, sweeps)
    try:
        for key, values in sweeps.items():
            for value in values:
                Tuning.model_validate({key: value})
    except ValidationError as error:
        raise UsageError(
            f"tuning: {first_fault(error)}", code="bad_tuning", hint="see core.tuning"
        ) from error
    for key, values in sweeps.items():
        for value in values:
            if not any(strategy.tuning.get(key) == value for strategy in found):
                raise UsageError(
                    f"no strategy goes by {key} {json.dumps(value)}",
                    code="bad_tuning",
                    hint="rrfK is of --fusion rrf, alpha of minmax, both and pools of hybrid modes",
                )
    if not found:
        raise UsageError("--modes names none", code="bad_mode", hint="write --modes bm25,hybrid")
    return found


def _numbers(flag: str, text: str | None) -> list[JsonValue]:
    try:
        return [json.loads(part) for part in comma_separated([text or ""])]
    except ValueError as error:
        raise UsageError(
            f"{flag} {text} is not a list of numbers", code="bad_tuning", hint=f"write {flag} 1,2"
        ) from error


def _json(flag: str, text: str | None) -> list[JsonValue]:
    try:
        return [] if text is None else [json.loads(text)]
    except ValueError as error:
        raise UsageError(
            f"{flag} {text} is not JSON", code="bad_tuning", hint=f"write {flag} true"
        ) from error


def service_variables(options: BenchOptions) -> list[str]:
    """`NAME=VALUE` for the flags that choose the daemon's services; `--env` goes before them."""
    served = options.embed_base_url is not None or options.upstream != "own" or not options.sdk
    if options.embed_model is not None and not served:
        raise UsageError(
            "--embed-model needs a server that has it",
            code="no_embedder",
            hint="add --upstream scripted, or --embed-base-url",
        )
    for flag, value in (
        ("--embed-base-url", options.embed_base_url),
        ("--embed-dims", options.embed_dims),
    ):
        if value is not None and options.embed_model is None:
            raise UsageError(
                f"{flag} needs --embed-model", code="no_embedder", hint="name the model"
            )
    given = {
        "JB_EMBED_PROVIDER": "openai" if options.embed_base_url else None,
        "OPENAI_BASE_URL": options.embed_base_url,
        # Clients want some key, and a server of one's own takes any; --env brings a real one.
        "OPENAI_API_KEY": "unused" if options.embed_base_url else None,
        "JB_EMBED_MODEL": options.embed_model,
        "JB_EMBED_QUERY_PREFIX": options.query_prefix,
    }
    if options.embed_model is not None or options.rerank is not None:
        # A trained model on a slow machine takes longer over a batch than daemons wait by default.
        given["JB_UPSTREAM_TIMEOUT"] = f"{options.timeout:g}"
    if options.rerank is not None:
        url = options.rerank if options.rerank not in ("none", "llm") else None
        if url is not None and not url.startswith(("http://", "https://")):
            raise UsageError(
                f"--rerank {url} is not none, llm or an address",
                code="bad_rerank",
                hint="write --rerank http://127.0.0.1:8080/rerank",
            )
        given |= {
            "JB_RERANK_PROVIDER": "http" if url else options.rerank,
            "JB_RERANK_URL": url,
        }
    return [*(f"{name}={value}" for name, value in given.items() if value), *options.env]


def embedder_for(options: BenchOptions, variables: Mapping[str, str]) -> Callable[[], Embedder]:
    """What embeds for `flat-dense`, and for the daemons.

    Raises:
        UsageError: where its vectors have not `--embed-dims` dimensions.
    """
    model, url = options.embed_model or FEATURE_HASH, options.embed_base_url

    @cache
    def embedder() -> Embedder:
        if url is None:
            return get_embedder(model)
        return RemoteEmbedder(url, model, variables.get("OPENAI_API_KEY"))

    if options.embed_dims is not None and (dims := embedder().dimensions) != options.embed_dims:
        raise UsageError(
            f"{model} makes vectors of {dims} dimensions, not {options.embed_dims}",
            code="other_dimensions",
            hint="check --embed-model and --embed-dims",
        )
    return embedder
