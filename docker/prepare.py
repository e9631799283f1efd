"""Complete the image's file system while it is built: Kafka's tools by their names, a mark for each of our commands,
and what SIGTERM does to Python as a container's first process.

By the mark the first process tells a command of kafka-shim from a program without starting Python.
"""

from __future__ import annotations

import sys
import sysconfig
from pathlib import Path

from kafka_shim.commands.main import NOUNS
from kafka_shim.tools import TOOLS

NOUNS_FOLDER = "opt/kafka-shim/nouns"
TOOLS_FOLDER = "opt/kafka/bin"
SCRIPT = """\
#!/bin/sh
exec /opt/kafka-shim/bin/python -m {module} "$@"
"""
DUMP_LOG = "kafka_shim dump-log"
# The other scripts of Kafka's image, with what to do instead.
KAFKAS = "run that of Kafka's image against this broker"
ELSEWHERE = {
    "kafka-share-groups": "use kafka-shim groups",
    "kafka-streams-groups": "use kafka-shim groups",
    "kafka-client-metrics": "use kafka-configs.sh --entity-type client-metrics",
    "kafka-metadata-shell": "use kafka-dump-log.sh --cluster-metadata-decoder",
    "kafka-server-stop": "stop the container",
    "kafka-run-class": "the scripts beside it do the same as the classes that they are named after",
    **dict.fromkeys(
        (
            "connect-distributed",
            "connect-mirror-maker",
            "connect-plugin-path",
            "connect-standalone",
            "kafka-console-share-consumer",
            "kafka-consumer-perf-test",
            "kafka-delegation-tokens",
            "kafka-e2e-latency",
            "kafka-jmx",
            "kafka-leader-election",
            "kafka-producer-perf-test",
            "kafka-reassign-partitions",
            "kafka-replica-verification",
            "kafka-share-consumer-perf-test",
            "kafka-streams-application-reset",
            "kafka-verifiable-consumer",
            "kafka-verifiable-producer",
            "kafka-verifiable-share-consumer",
        ),
        KAFKAS,
    ),
}
MISSING = """\
#!/bin/sh
echo "{name}.sh is not in this image: {advice}" >&2
exit 1
"""
# The kernel keeps from the first process of a container what it has no handler for, so that it went on until SIGKILL.
# By this line Python has one as it begins: it ends as any other process does, until a program asks for the signal.
FIRST_PROCESS = """\
import os, _signal; os.getpid() == 1 and _signal.signal(_signal.SIGTERM, lambda *_, end=os._exit: end(143))
"""


def prepare(root: Path) -> None:
    folder = root / NOUNS_FOLDER
    folder.mkdir(parents=True)
    for noun in NOUNS:
        (folder / noun).touch()
    programs = root / TOOLS_FOLDER
    scripts = {f"kafka-{tool}": SCRIPT.format(module=f"kafka_shim.tools.{tool.replace('-', '_')}") for tool in TOOLS}
    scripts["kafka-dump-log"] = SCRIPT.format(module=DUMP_LOG)
    scripts |= {name: MISSING.format(name=name, advice=advice) for name, advice in ELSEWHERE.items()}
    for name, text in scripts.items():
        script = programs / f"{name}.sh"
        script.write_text(text)
        script.chmod(0o755)
    # Confluent's images have them without the ending, on the path.
    on_path = root / "usr/bin"
    on_path.mkdir()
    for script in programs.iterdir():
        (on_path / script.stem).symlink_to(Path("/", TOOLS_FOLDER, script.name))


def end_first_process(packages: Path) -> None:
    """Let SIGTERM end a Python whose installed packages are in this folder, also as a container's first process."""
    (packages / "first_process.pth").write_text(FIRST_PROCESS)


if __name__ == "__main__":
    prepare(Path(sys.argv[1]))
    end_first_process(Path(sysconfig.get_path("purelib")))
