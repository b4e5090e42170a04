"""Search settings of `bench`: cutoffs, modes, sweeps and models."""

import json
import math
from collections.abc import Callable, Mapping
from functools import cache

from pydantic import ValidationError

from memconform.bench.strategy import MOST_RECENCY, Strategy, strategies
from memconform.cli.bench.options import BenchOptions
from memconform.cli.values import comma_separated
from memconform.contract.core import DEEPEST, Tuning
from memconform.contract.wire import JsonValue, Mode
from memconform.errors import UsageError, nearest
from memconform.printing.plurals import plural
from memconform.upstream.embedders import FEATURE_HASH, Embedder, chosen_embedder
from memconform.validation_faults import first_fault


def cuts(text: str) -> list[int]:
    """Parse the cutoffs of `-k`: ascending, without duplicates.

    Raises:
        UsageError: if one is not a number within range (code `bad_k`).
    """
    parts = comma_separated([text])
    if not parts or not all(part.isascii() and part.isdigit() for part in parts):
        raise UsageError(f"-k {text} is not a list of numbers", code="bad_k", hint="write -k 5,10")
    ks = sorted({int(part) for part in parts})
    if not 1 <= ks[0] <= ks[-1] <= DEEPEST:
        raise UsageError(
            f"-k {text}: a cutoff must be 1 to {DEEPEST}", code="bad_k", hint="write -k 5,10"
        )
    return ks


def searched_strategies(options: BenchOptions) -> tuple[Strategy, ...]:
    """Return every combination of the requested modes and sweeps.

    Raises:
        UsageError: if a mode is unknown, or a sweep is invalid or applies to no mode.
    """
    modes = []
    for name in comma_separated([options.modes]):
        if name not in list(Mode):
            raise UsageError(
                f"--mode {name} is not a mode",
                code="bad_mode",
                hint=nearest(name, [m.value for m in Mode]) or f"modes are {', '.join(Mode)}",
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
        "kernel": list(comma_separated([options.kernel or ""])),
        "recency": _weights("--recency", options.recency, most=MOST_RECENCY),
        "temporal": _weights("--temporal", options.temporal, most=1),
    }
    combinations = strategies(modes, sweeps)
    try:
        for key, values in sweeps.items():
            for value in values if key not in ("recency", "temporal") else ():
                Tuning.model_validate({key: value})
    except ValidationError as error:
        raise UsageError(
            f"tuning: {first_fault(error)}", code="bad_tuning", hint="see core.tuning"
        ) from error
    for key, values in sweeps.items():
        for value in values:
            used = (strategy.tuning.get(key) == value for strategy in combinations)
            if value is not None and not any(used):
                raise UsageError(
                    f"no strategy uses {key} {json.dumps(value)}",
                    code="bad_tuning",
                    hint="rrfK needs --fusion rrf, alpha minmax; both, pools, recency and temporal"
                    " need a hybrid mode, kernel one that compares vectors",
                )
    if not combinations:
        raise UsageError("--mode is empty", code="bad_mode", hint="write --mode bm25,hybrid")
    return combinations


def _numbers(flag: str, text: str | None) -> list[JsonValue]:
    try:
        return [json.loads(part) for part in comma_separated([text or ""])]
    except ValueError as error:
        raise UsageError(
            f"{flag} {text} is not a list of numbers",
            code="bad_tuning",
            hint=f"write numbers separated by commas, such as {flag} 0.5,1",
        ) from error


def _weights(flag: str, text: str | None, *, most: float) -> list[JsonValue]:
    """Parse numbers from 0 to `most`; `none` is None, a row without the key."""
    weights: list[JsonValue] = []
    for part in comma_separated([text or ""]):
        if part == "none":
            weights.append(None)
            continue
        try:
            weight = float(part)
        except ValueError:
            weight = math.nan
        if not 0 <= weight <= most:
            raise UsageError(
                f"{flag} {part} is not none or a number from 0 to {most:g}",
                code="bad_tuning",
                hint=f"write {flag} none,{min(0.4, most):g}",
            )
        weights.append(weight)
    return weights


def service_variables(options: BenchOptions) -> list[str]:
    """Return `NAME=VALUE` for the flags that choose model services, then `--env`, which wins.

    Raises:
        UsageError: if the flags contradict each other; or as `chosen_embedder`.
    """
    has_server = options.embed_base_url is not None or options.upstream != "own" or not options.sdk
    if options.embed_model is not None and not has_server:
        raise UsageError(
            "--embed-model needs a server for that model",
            code="no_embedder",
            hint="add --upstream scripted, or --embed-base-url",
        )
    for flag, value in (
        ("--embed-base-url", options.embed_base_url),
        ("--embed-dims", options.embed_dims),
    ):
        if value is not None and options.embed_model is None:
            raise UsageError(
                f"{flag} needs --embed-model", code="no_embedder", hint="add --embed-model NAME"
            )
    model = options.embed_model
    if model is not None and options.upstream == "scripted" and options.embed_base_url is None:
        # Before a daemon starts, which would only say that its upstream answers 404.
        model = chosen_embedder(model).name
    variables = {
        "JB_EMBED_PROVIDER": "openai" if options.embed_base_url else None,
        "OPENAI_BASE_URL": options.embed_base_url,
        # Clients need some key, and local servers accept any; --env sets a real one.
        "OPENAI_API_KEY": "unused" if options.embed_base_url else None,
        "JB_EMBED_MODEL": model,
        "JB_EMBED_QUERY_PREFIX": options.query_prefix,
    }
    if options.embed_model is not None or options.rerank is not None:
        # A trained model on a slow machine needs longer for a batch than daemons wait by default.
        variables["JB_UPSTREAM_TIMEOUT"] = f"{options.timeout:g}"
    if options.rerank is not None:
        url = options.rerank if options.rerank not in ("none", "llm") else None
        if url is not None and not url.startswith(("http://", "https://")):
            raise UsageError(
                f"--rerank {url} is not none, llm or a URL",
                code="bad_rerank",
                hint="write --rerank http://127.0.0.1:8080/rerank",
            )
        variables |= {
            "JB_RERANK_PROVIDER": "http" if url else options.rerank,
            "JB_RERANK_URL": url,
        }
    return [*(f"{name}={value}" for name, value in variables.items() if value), *options.env]


def embedder_for(options: BenchOptions, variables: Mapping[str, str]) -> Callable[[], Embedder]:
    """Return a factory of the embedder that `flat-dense` uses, the same as the daemons' embedder.

    Raises:
        UsageError: if its vectors do not have `--embed-dims` dimensions.
    """
    model, url = options.embed_model or FEATURE_HASH, options.embed_base_url

    @cache
    def embedder() -> Embedder:
        if url is None:
            return chosen_embedder(model)
        from memconform.bench.remote import RemoteEmbedder  # noqa: PLC0415 - numpy, 18 MiB

        return RemoteEmbedder(url, model, variables.get("OPENAI_API_KEY"))

    if options.embed_dims is not None and (dims := embedder().dimensions) != options.embed_dims:
        raise UsageError(
            f"{model} has {plural(dims, 'dimension')}, not {options.embed_dims}",
            code="other_dimensions",
            hint="check --embed-model and --embed-dims",
        )
    return embedder
