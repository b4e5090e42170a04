"""Names of what a reader can be asked to do, for flags and for settings."""

from typing import Literal

Method = Literal["direct", "con", "con-separate"]
Unit = Literal["turn", "round", "session"]
"""What is shown of a retrieved turn: the turn, the turn with its reply, or its whole session."""
Speakers = Literal["all", "user"]
HistoryFormat = Literal["text", "json"]
