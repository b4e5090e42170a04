"""The limit of open files that connections to a daemon need."""

import resource

from memconform.errors import UsageError

OTHER_FILES = 32
"""Of the harness or of a daemon besides connections: streams, pipes, journals, a database."""


def allow_files(connections: int) -> None:
    """Raise the soft limit of open files to what so many connections need, if it is lower.

    Daemons inherit it, and each has the other ends of the connections.

    Raises:
        UsageError: `too_few_files` if the hard limit is lower.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    needed = connections + OTHER_FILES
    if soft == resource.RLIM_INFINITY or needed <= soft:
        return
    if hard != resource.RLIM_INFINITY and needed > hard:
        fewer = hard - OTHER_FILES
        hint = f"raise the limit with `ulimit -n {needed}`"
        raise UsageError(
            f"{connections} questions at a time need {needed} open files, and {hard} are allowed",
            code="too_few_files",
            hint=f"{hint}, or use --concurrency {fewer}" if fewer > 0 else hint,
        )
    resource.setrlimit(resource.RLIMIT_NOFILE, (needed, hard))
