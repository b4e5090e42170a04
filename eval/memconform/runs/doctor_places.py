"""Where to change something after a failed step of `doctor`: a line of the sdk.toml, or a rule."""

from collections.abc import Iterator, Mapping

from memconform.daemons.manifest_lines import ManifestLines
from memconform.daemons.sdk_runner import SdkRunner

Key = tuple[str, ...]
_ARGV: Key = ("serve", "argv")
_BUILD: Key = ("build", "command")

_KEYS: Mapping[str, tuple[Key, ...]] = {
    "build_failed": (_BUILD,),
    "build_unavailable": (_BUILD,),
    "toolchain_missing": (("requires",),),
    "manifest_invalid": (("build", "inputs"),),
    "spawn_failed": (_ARGV,),
    "daemon_exited": (_ARGV,),
    "daemon_left_over": (_ARGV,),
    "daemon_not_loopback": (_ARGV,),
    "daemon_not_ours": (_ARGV, ("serve", "port")),
    "daemon_not_ready": (_ARGV, ("serve", "port"), ("ready", "path"), ("ready", "timeout_s")),
    "daemon_unhealthy": (("serve", "url"), ("ready", "path")),
    "daemon_unreachable": (("serve", "url"),),
    "mode_not_served": (("capabilities", "modes"),),
    "bad_trace": (("capabilities", "modes"),),
    "reader_failed": (("upstream", "scripted"), ("env", "set")),
}
"""Keys that decide whether a step passes, by the code of its error."""

_RULES_OF_CODES: Mapping[str, str] = {
    "bad_media_type": "wire.json",
    "bad_problem": "wire.problem",
    "bad_ranking": "core.search.order",
    "bad_trace": "core.mode.trace",
    "contract_version": "core.version",
    "daemon_died": "robust.alive",
    "index_incomplete": "core.brain.counts",
    "mode_not_served": "core.mode.served",
    "not_searchable": "core.ingest.read-your-writes",
    "sigterm_ignored": "robust.stop",
}
"""The rule that an error breaks, whatever the step."""

_RULES_OF_STEPS: Mapping[str, str] = {
    "start": "start.serve",
    "health": "core.health",
    "version": "core.version",
    "ingest": "core.ingest.read-your-writes",
    "search": "core.search.shape",
    "ask": "ask.order",
    "ingest batch": "core.ingest.batch",
    "list brains": "core.brain.list",
    "error response": "wire.problem",
    "delete brain": "core.brain.delete",
    "stop": "robust.stop",
}
"""The rule that a step tests first of all."""
_KEYS_OF_STEPS: Mapping[str, Key] = {
    "build": _BUILD,
    "start": _ARGV,
    "ingest": ("seed", "via"),
    "ask": ("capabilities", "profiles"),
    "search": ("capabilities", "modes"),
}
"""The key of the claim, or of the setting, that a step is about."""


def places(step: str, error_code: str, runner: SdkRunner) -> list[str]:
    """What to change after a failure, such as `sdk.toml:7 [serve] argv` and `rule core.health`.

    A key is named if the sdk.toml has it, a rule if the daemon promises the contract.
    """
    kind = next((name for name in ("search", "ask") if f"{step} ".startswith(f"{name} ")), step)
    named = list(_keys(kind, error_code, runner))
    rule = _RULES_OF_CODES.get(error_code) or _RULES_OF_STEPS.get(kind)
    is_about_start = kind in ("build", "start") and error_code in _KEYS
    if rule is not None and runner.has_contract and not is_about_start:
        named.append(f"rule {rule} (sdks/CONTRACT.md)")
    return named


def _keys(kind: str, error_code: str, runner: SdkRunner) -> Iterator[str]:
    if runner.manifest_file is None:
        return
    lines = ManifestLines.of_file(runner.manifest_file)
    own = _KEYS_OF_STEPS.get(kind)
    keys = _KEYS.get(error_code, (own,) if own else ())
    if kind == "build" and error_code == "spawn_failed":
        keys = (_BUILD,)
    for key in keys:
        if lines.has(*key):
            *tables, name = key
            heading = f"[{'.'.join(tables)}] " if tables else ""
            yield f"{lines.place(*key)} {heading}{name}"
