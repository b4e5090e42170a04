"""`python -m memconform.upstream HOST PORT`: the process that the harness starts as upstream."""

import sys

from memconform.upstream.script import Script
from memconform.upstream.serve import listen, serve


def main() -> None:
    listener, address = listen(sys.argv[1], int(sys.argv[2]))

    def announce() -> None:
        sys.stdout.write(f"listening on {address}\n")
        sys.stdout.flush()

    serve(listener, Script(), announce)


if __name__ == "__main__":
    main()
