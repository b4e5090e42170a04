"""Detects answers that abstain."""

_PHRASES = ("no information available", "not mentioned")


def abstains(answer: str, marker: str | None) -> bool:
    """Whether `answer` contains one of the known phrases or equals the dataset's marker.

    Case and surrounding whitespace are ignored.
    """
    plain = answer.strip().lower()
    if any(phrase in plain for phrase in _PHRASES):
        return True
    return marker is not None and plain == marker.strip().lower()
