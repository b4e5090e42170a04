"""`python -m memconform.upstream HOST PORT`: how the harness starts its upstream."""

import sys

from memconform.upstream.script import Script
from memconform.upstream.serve import listen, serve


def main() -> None:
    listener, address = listen(sys.argv[1], int(sys.argv[2]))

    def started() -> None:
        sys.stdout.write(f"listening on {address}\n")
        sys.stdout.flush()

    serve(listener, Script(), started)


if __name__ == "__main__":
    main()
