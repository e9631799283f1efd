"""Print what pip is to install while the image is built: `build` for what builds the extensions, or `run [EXTRA ...]`
for what the broker imports, with those extras of pyproject.toml (by commas or spaces) beside the image's own."""

from __future__ import annotations

import sys
import tomllib
from pathlib import Path

# Metrics are an option of the broker, which anyone may set.
OWN_EXTRAS = ("metrics",)


def requirements(project_file: Path, step: str, extras: list[str]) -> list[str]:
    """Raises SystemExit, with a line, for an extra that does not exist."""
    data = tomllib.loads(project_file.read_text(encoding="utf-8"))
    if step == "build":
        return list(data["build-system"]["requires"])
    known = data["project"]["optional-dependencies"]
    for unknown in sorted(set(extras) - set(known)):
        sys.exit(f"error: no extra is called {unknown}: there are {', '.join(known)}")
    named = [line for extra in (*OWN_EXTRAS, *extras) for line in known[extra]]
    return [*data["project"]["dependencies"], *named]


if __name__ == "__main__":
    words = ",".join(sys.argv[2:]).replace(" ", ",").split(",")
    print(*requirements(Path("pyproject.toml"), sys.argv[1], [word for word in words if word]), sep="\n")
