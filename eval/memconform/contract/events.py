"""Profile `events`: what changed in a brain, as a stream."""

from typing import Literal

from pydantic import ConfigDict

from memconform.contract.wire import Response, nothing_renamed


class Change(Response):
    """One committed mutation; `when` by RFC 3339."""

    model_config = ConfigDict(alias_generator=nothing_renamed)

    kind: Literal["created", "updated", "deleted", "renamed"]
    path: str
    old_path: str | None = None
    reason: str | None = None
    when: str


PLAIN_EVENTS = ("ready", "ping")
"""Events whose data is `ok`."""
