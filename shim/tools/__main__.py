"""`python -m kafka_shim.tools`: names the tools."""

from __future__ import annotations

import sys

from kafka_shim.tools import TOOLS


def main(words: list[str]) -> int:
    """Print the tools. Words are a mistake, but for --help."""
    is_help = not words or words == ["--help"]
    out = sys.stdout if is_help else sys.stderr
    if not is_help:
        out.write(f"{words[0]} is none of the tools that are run by themselves:\n")
    for name in TOOLS:
        out.write(f"python -m kafka_shim.tools.{name.replace('-', '_')}\tas kafka-{name}.sh\n")
    return 0 if is_help else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
