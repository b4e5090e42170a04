"""What a result says of where it was made."""

import platform
import subprocess


def host() -> str:
    return f"{platform.system()} {platform.machine()}"


def git_revision() -> str | None:
    """The revision of the working folder's checkout, `-dirty` where it has changes; or None."""
    try:
        answer = subprocess.run(
            ["git", "describe", "--always", "--dirty", "--abbrev=40", "--exclude=*"],  # noqa: S607 - the user's git, wherever it is
            capture_output=True,
            text=True,
            timeout=5,
            check=True,
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return answer.stdout.strip()
