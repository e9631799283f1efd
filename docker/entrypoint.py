"""The first process of the image: `serve` with options from the environment, or any other command of kafka-shim.

Variables are those of Kafka's own image: KAFKA_LOG_RETENTION_MS is log.retention.ms, two underscores stand for one,
three for a hyphen. An option that the broker does not know stops the start and is named.
"""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

DATA_DIR = "/var/lib/kafka-shim"
# Of Kafka's JVM and scripts, and the shim's own variables: no options of a broker.
OTHERS = ("KAFKA_SHIM_", "KAFKA_LOG4J_", "KAFKA_TOOLS_", "KAFKA_VERSION")


def option_name(variable: str) -> str:
    """The option that a KAFKA_ variable sets."""
    name = variable.removeprefix("KAFKA_").lower()
    return name.replace("___", "-").replace("__", "\0").replace("_", ".").replace("\0", "_")


def options(environment: Mapping[str, str]) -> dict[str, str]:
    """Every broker option of an environment."""
    return {
        option_name(variable): value
        for variable, value in sorted(environment.items())
        if variable.startswith("KAFKA_") and not variable.startswith(OTHERS) and not variable.endswith("_OPTS")
    }


def command_line(arguments: list[str], environment: Mapping[str, str]) -> list[str]:
    """What kafka-shim is called with: `arguments`, behind `serve` the environment's options before them."""
    if arguments[:1] != ["serve"]:
        return arguments
    given = options(environment)
    line = ["serve"]
    if "listeners" not in given:
        line += ["--listen", "0.0.0.0:9092"]
    if not {"log.dirs", "log.dir"} & given.keys() and not {"--memory", "--data-dir"} & set(arguments):
        line += ["--data-dir", DATA_DIR]
    for name, value in given.items():
        line += ["-o", f"{name}={value}"]
    return line + arguments[1:]


if __name__ == "__main__":
    from kafka_shim.cli import main

    sys.exit(main(command_line(sys.argv[1:], os.environ)))
