"""``python -m kafka_shim.compat.tests.compat.planted BUG serve ...``."""

from __future__ import annotations

import sys

from kafka_shim.compat.tests.compat.planted import load


def main() -> None:
    bug, *arguments = sys.argv[1:]
    load()[bug].plant()
    from kafka_shim.cli import main as serve

    sys.exit(serve(arguments))


if __name__ == "__main__":
    main()
