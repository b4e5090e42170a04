"""Values of flags, apart from the modules that use them: reading a command line needs no other."""

from typing import Literal

Kind = Literal[
    "session-summ",
    "session-keyphrase",
    "turn-keyphrase",
    "session-userfact",
    "turn-userfact",
    "events",
    "ranges",
]
"""What is generated; the first five are keys, under the authors' names."""

Join = Literal["separate", "merge", "replace", "split-separate", "split-merge", "split-replace"]
"""How keys are added: as separate items, before the item's text, or instead of it; the last three,
as in LongMemEval's code, for each part of a key apart."""
