"""When an answer says that it has none."""

_PHRASES = ("no information available", "not mentioned")


def abstains(answer: str, marker: str | None) -> bool:
    """Whether `answer` holds one of the known phrases, or equals the dataset's marker."""
    plain = answer.strip().lower()
    if any(phrase in plain for phrase in _PHRASES):
        return True
    return marker is not None and plain == marker.strip().lower()
