"""What a memory system behind an adapter was seen to do, in figures."""

from memconform.records import Record


class SystemBehaviour(Record, frozen=False):
    """Counts over all haystacks, which grow while it is measured. All is honest, and a finding."""

    adapter_lines: int
    """Lines of the adapter that are neither empty nor comments."""
    licence: str
    """That of the system."""

    sent: int = 0
    """Items that were stored."""
    probed: int = 0
    """Items that were searched for by their own words."""
    found: int = 0
    """How many of these were among the first ten items found."""
    hits: int = 0
    """Hits of all questions."""
    of_no_item: int = 0
    """How many of these have neither an id nor the exact text of an item."""
    rewritten: int = 0
    """How many of these have the id of an item, but a text that its own does not contain."""
    searches: int = 0
    """Searches for a question."""
    short: int = 0
    """How many of these found fewer items than were asked for and exist."""
    repeated: int = 0
    """Searches that were made again."""
    changed: int = 0
    """How many of these then ranked otherwise."""
    leaks: int = 0
    """Searches, of both kinds, that returned what was stored for another user."""
    restarted: int = 0
    """Searches that were made once more after the system's process had been started anew."""
    lost: int = 0
    """How many of these failed, or found none of the items that they had found before."""
    model_calls: int | None = None
    """Requests for vectors, answers and ranks, of all that was stored and searched; null if no
    scripted upstream counted them, and in older results."""
    stand_ins: int | None = None
    """Calls among these that were meant for a language model, and that the upstream answered by
    fixed rules: it echoed messages or filled a schema."""
