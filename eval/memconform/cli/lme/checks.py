"""Flags of the replay that exclude each other, or would have no effect."""

from collections.abc import Iterator

from memconform.cli.lme.options import LmeOptions
from memconform.cli.lme.plan import retrieval_settings
from memconform.errors import UsageError


def require_consistent(options: LmeOptions) -> None:
    """Check flags against each other, before anything is read or paid for.

    Raises:
        UsageError: for flags that exclude each other, or of which one would have no effect
            (`bad_option`), and for filters by which nothing is found (`filters_exclude_all`).
    """
    for message, hint in _contradictions(options):
        raise UsageError(message, code="bad_option", hint=hint)
    retrieval_settings(options)


def _contradictions(options: LmeOptions) -> Iterator[tuple[str, str]]:
    """What is wrong, and what to do."""
    is_agent, is_full = options.ingest_mode == "agentic", options.actor_endpoint_style == "full"
    if is_agent and (options.actor_scope or options.actor_path_prefix):
        why = (
            "--ingest-mode agentic: the agent has a tool for sessions and one for facts, of which"
            " --actor-scope and --actor-path-prefix would leave one"
        )
        yield why, "omit them, or use --ingest-mode replay"
    if is_agent and is_full:
        why = (
            "--ingest-mode agentic and --actor-endpoint-style full exclude each other: one lets"
            " memconform's reader search, the other the daemon's own reader answer"
        )
        yield why, "omit one of them"
    if options.no_reader and (is_agent or is_full):
        other = "--ingest-mode agentic" if is_agent else "--actor-endpoint-style full"
        yield f"--no-reader and {other} exclude each other: a reader answers there", "omit one"
    limits = {
        "--max-iterations": options.max_iterations,
        "--question-timeout": options.question_timeout,
    }
    for flag in (flag for flag, limit in limits.items() if limit and not is_agent):
        why = f"{flag} limits the agent; without it a question is one search and one call"
        yield why, "add --ingest-mode agentic; or use --timeout, --llm-timeout, --judge-timeout"
    if options.max_iterations == 1:
        yield "--max-iterations 1 leaves no search: the only reply is the answer", "give 2 or more"
    if options.extract_only and (options.json_file is not None or options.html):
        flag = "--html" if options.json_file is None else "--json"
        why = f"--extract-only replays nothing, so {flag} has no report to write"
        yield why, "omit it; extract.json in the folder of --output says what was extracted"
    if options.contextualise and options.ingest_mode == "bulk":
        why = "--contextualise situates extracted facts, and --ingest-mode bulk extracts none"
        yield why, "omit it, or use --ingest-mode replay"
