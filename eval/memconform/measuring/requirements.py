"""What an answer of a daemon must be to count: of the requested mode and tuning, and complete."""

from memconform.client.failures import ContractViolatedError, DaemonFailedError
from memconform.contract.ask import Retrieve
from memconform.contract.core import SearchRequest, SearchResponse, Trace, Tuning
from memconform.contract.dialect import Dialect
from memconform.contract.wire import Mode
from memconform.measuring.scenario import RetrievalSettings


def require_requested_mode(settings: RetrievalSettings, trace: Trace) -> None:
    """Raise DaemonFailedError `mode_not_served` if another mode was served than requested.

    The answer would be scored under a mode that never ran. `allow_fallback` permits it, and mode
    `auto` leaves the choice to the daemon, within `auto_modes`. A mode that the dialect leaves
    unconfirmed is not refuted; results say that it is unconfirmed.
    """
    requested, served = settings.mode, trace.effective_mode
    accepted = (requested,) if requested is not Mode.AUTO else settings.auto_modes
    if settings.allow_fallback or accepted is None or served is None or served in accepted:
        return
    meaning = ""
    if requested is Mode.AUTO:
        meaning = f", which stands for {' or '.join(accepted) or 'no mode at all'} here"
    raise DaemonFailedError(
        "mode_not_served",
        f"requested mode {requested.value}{meaning}, but the daemon served {served.value}",
    )


def require_complete(
    searchable_counts: tuple[int, int],
    depth: int,
    top_k: int,
    answer: SearchResponse | Retrieve,
    *,
    ranked: int,
    dialect: Dialect | None = None,
) -> bool:
    """Check that no item is missing that the mode ranks, or that chunks of other items displaced.

    `searchable_counts` are the numbers of searchable chunks and items, `ranked` is the number of
    items in the answer.

    By the contract a search with vectors ranks all chunks. A daemon with a `dialect` may leave some
    out, such as near duplicates of better ones: its users get no more, so that is measured, unless
    it found nothing or the request cut it.

    Returns:
        Whether the ranking is complete; one of a daemon with a dialect may not be.

    Raises:
        ContractViolatedError: if the ranking is too short (`short_ranking`).
    """
    chunks, items = searchable_counts
    truncated = len(answer.chunks) == top_k < chunks
    if ranked >= min(depth, items) or not (truncated or answer.trace.embedder_used):
        return True
    if dialect is not None and answer.chunks and not truncated:
        return False
    raise ContractViolatedError(
        "short_ranking",
        f"the answer has {len(answer.chunks)} chunks of {ranked} items; {depth} of {items}"
        " items are needed",
    )


def require_strategy(
    trace: Trace,
    request: SearchRequest,
    auto_modes: tuple[Mode, ...] | None,
) -> None:
    """Raise CallError if the trace reports another mode or tuning than was requested."""
    settings = RetrievalSettings("", request.mode, request.top_k, auto_modes=auto_modes)
    require_requested_mode(settings, trace)
    served = trace.tuning or {}
    tuning = request.tuning or Tuning()
    for key, value in tuning.model_dump(by_alias=True, exclude_none=True).items():
        if served.get(key) != value:
            raise DaemonFailedError(
                "tuning_not_served",
                f"requested {key} {value!r}, but the trace reports {served.get(key)!r}",
            )
