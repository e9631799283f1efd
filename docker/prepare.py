"""Complete the image's file system while it is built: Kafka's tools by their names, a mark for each of our commands.

By the mark the first process tells a command of kafka-shim from a program without starting Python.
"""

from __future__ import annotations

import sys
from pathlib import Path

from kafka_shim.commands.main import NOUNS
from kafka_shim.tools import TOOLS

NOUNS_FOLDER = "opt/kafka-shim/nouns"
TOOLS_FOLDER = "opt/kafka/bin"
SCRIPT = """\
#!/bin/sh
exec /opt/kafka-shim/bin/python -m kafka_shim.tools.{module} "$@"
"""


def prepare(root: Path) -> None:
    folder = root / NOUNS_FOLDER
    folder.mkdir(parents=True)
    for noun in NOUNS:
        (folder / noun).touch()
    programs = root / TOOLS_FOLDER
    for tool in TOOLS:
        script = programs / f"kafka-{tool}.sh"
        script.write_text(SCRIPT.format(module=tool.replace("-", "_")))
        script.chmod(0o755)
    # Confluent's images have them without the ending, on the path.
    on_path = root / "usr/bin"
    on_path.mkdir()
    for script in programs.iterdir():
        (on_path / script.stem).symlink_to(Path("/", TOOLS_FOLDER, script.name))


if __name__ == "__main__":
    prepare(Path(sys.argv[1]))
