"""Wire types of profile `events`: a stream of the changes to a brain."""

from typing import Literal

from pydantic import ConfigDict

from memconform.contract.wire import Response, unchanged_alias


class Change(Response):
    """One committed change; `when` in RFC 3339."""

    model_config = ConfigDict(alias_generator=unchanged_alias)

    kind: Literal["created", "updated", "deleted", "renamed"]
    path: str
    old_path: str | None = None
    reason: str | None = None
    when: str


PLAIN_EVENTS = ("ready", "ping")
"""Events whose data is `ok`."""
