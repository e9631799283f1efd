"""What the image runs: the broker with options from the environment, and the steps of other images' start scripts.

``run`` is `/etc/kafka/docker/run` of Kafka's image. ``configure FILE`` and ``launch FILE`` are the two halves of it, as
the images of Confluent have them; ``zookeeper FILE`` stands in for a ZooKeeper. The variables are those of Kafka's
image: KAFKA_LOG_RETENTION_MS is log.retention.ms, two underscores stand for one, three for a hyphen (Kafka:
docker/resources/common-scripts, KafkaDockerWrapper).
"""

from __future__ import annotations

import errno
import os
import re
import shlex
import socket
import sys
import time
from pathlib import Path

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

DATA_DIR = "/var/lib/kafka/data"
# Where Kafka's image has its data without the option, if nothing is set, and if something is. Here there are no such
# folders: one that exists is a volume.
KAFKAS_DATA_DIRS = ("/tmp/kraft-combined-logs", "/tmp/kafka-logs")
SECRETS = "/etc/kafka/secrets"
MOUNTED = "/mnt/shared/config"
FINAL = "/opt/kafka/config/server.properties"
# The cluster id of Kafka's image, where CLUSTER_ID is not set.
CLUSTER_ID = "5L6g3nShT-eMCtK--X86sw"
EXPOSED_PORT = "9092"
EXPOSED = "EXPOSED"
# Of Kafka's JVM, scripts and logging, and the shim's own variables: no options of a broker.
OTHERS = ("KAFKA_SHIM_", "KAFKA_LOG4J_", "KAFKA_TOOLS_", "KAFKA_JMX_", "KAFKA_VERSION")
STORES = ("KEYSTORE", "TRUSTSTORE")
# Levels of Log4j that Python's logging calls otherwise.
LEVELS = {"ALL": "DEBUG", "TRACE": "DEBUG", "WARN": "WARNING", "FATAL": "ERROR", "OFF": "ERROR"}
# What shells say of a command that SIGINT ended.
INTERRUPTED = 130
# Properties of a JVM that the broker reads in KAFKA_OPTS.
HONOURED_PROPERTIES = ("java.security.", "org.apache.kafka.")
# A backslash that is not escaped, at the end of a line: the line goes on in the next one, without its leading blanks.
CONTINUATION = re.compile(r"(?<!\\)((?:\\\\)*)\\(?:\r\n|\r|\n)[ \t\f]*")


class SetupError(Exception):
    """The environment asks for what cannot be. The message is one line for the user."""


def option_name(variable: str) -> str:
    """The option that a KAFKA_ variable sets."""
    name = variable.removeprefix("KAFKA_").lower()
    return name.replace("___", "-").replace("__", "\0").replace("_", ".").replace("\0", "_")


def options(environment: Mapping[str, str]) -> dict[str, str]:
    """Every broker option that a variable sets, without those that `secrets` makes options of."""
    return {
        option_name(variable): value
        for variable, value in sorted(environment.items())
        if variable.startswith("KAFKA_")
        and not variable.startswith(OTHERS)
        and not variable.endswith("_OPTS")
        and not (variable.startswith("KAFKA_SSL_") and variable.endswith(("_FILENAME", "_CREDENTIALS")))
    }


def secrets(environment: Mapping[str, str], folder: str = SECRETS) -> dict[str, str]:
    """The options of TLS whose values are files of `folder`: stores by their names, passwords by the files that hold
    them. Raises SetupError for a file that is missing or no text, and for a TLS listener without a key."""
    found: dict[str, str] = {}
    for store in STORES:
        if name := environment.get(f"KAFKA_SSL_{store}_FILENAME"):
            found[f"ssl.{store.lower()}.location"] = str(_file(folder, name))
    for subject in (*STORES, "KEY"):
        if name := environment.get(f"KAFKA_SSL_{subject}_CREDENTIALS"):
            path = _file(folder, name)
            try:
                found[f"ssl.{subject.lower()}.password"] = path.read_text(encoding="utf-8").rstrip("\r\n")
            except UnicodeDecodeError:
                raise SetupError(f"{path} is not a password in UTF-8") from None
    has_key = found.keys() | options(environment).keys()
    if "SSL://" in environment.get("KAFKA_ADVERTISED_LISTENERS", "") and not {
        one for one in has_key if one.endswith(("ssl.keystore.location", "ssl.keystore.key"))
    }:
        raise SetupError(
            "a listener has TLS, but no key: set KAFKA_SSL_KEYSTORE_FILENAME (a file in /etc/kafka/secrets), "
            "KAFKA_SSL_KEYSTORE_CREDENTIALS and KAFKA_SSL_KEY_CREDENTIALS (files there with the passwords)"
        )
    return found


def _file(folder: str, name: str) -> Path:
    path = Path(folder, name)
    if not path.is_file():
        raise SetupError(f"{path} does not exist: mount it, or its folder, into the container")
    return path


def with_listeners(given: Mapping[str, str]) -> dict[str, str]:
    """`given` with listeners where it has none: on all addresses, at the ports that are advertised, as in Kafka's
    image. One plain listener alone is reached at the image's port too, to which any port of the host can be published;
    not one with TLS, SASL or options of its own, which that port would not have. Raises ConfigError for advertised
    listeners of another form."""
    from kafka_shim.listeners import parse_endpoints

    found = dict(given)
    if found.get("listeners"):
        return found
    advertised = [one.strip() for one in found.get("advertised.listeners", "").split(",") if one.strip()]
    if not advertised:
        found["listeners"] = f"PLAINTEXT://0.0.0.0:{EXPOSED_PORT}"
        found["advertised.listeners"] = f"PLAINTEXT://localhost:{EXPOSED_PORT}"
        return found
    parse_endpoints(",".join(advertised), "advertised.listeners")
    bound = [f"{one.partition('://')[0]}://0.0.0.0:{one.rpartition(':')[2]}" for one in advertised]
    name, _, address = advertised[0].partition("://")
    mapping = found.get("listener.security.protocol.map") or f"{name}:{name}"
    if len(bound) == 1 and not bound[0].endswith(f":{EXPOSED_PORT}"):
        if _is_plain(name, mapping, found):
            bound.append(f"{EXPOSED}://0.0.0.0:{EXPOSED_PORT}")
            advertised.append(f"{EXPOSED}://{address}")
            found["listener.security.protocol.map"] = f"{mapping},{EXPOSED}:PLAINTEXT"
        if "inter.broker.listener.name" not in found and "security.inter.broker.protocol" not in found:
            found["inter.broker.listener.name"] = name
    return {**found, "listeners": ",".join(bound), "advertised.listeners": ",".join(advertised)}


def _is_plain(name: str, mapping: str, given: Mapping[str, str]) -> bool:
    """Whether a listener is PLAINTEXT, without options of its own."""
    protocols = dict(pair.strip().upper().split(":", 1) for pair in mapping.split(",") if ":" in pair)
    own = f"listener.name.{name.lower()}."
    plain = protocols.get(name.upper(), name.upper()).strip() == "PLAINTEXT"
    return plain and not any(option.startswith(own) for option in given)


def escaped(values: Mapping[str, str]) -> dict[str, str]:
    """Values as they stand in a properties file. Those of variables stand there as they are, as in Kafka's image: in
    them a backslash is that of a properties file."""
    return {name: value.replace("\\", "\\\\") for name, value in values.items()}


def properties_text(given: Mapping[str, str]) -> str:
    """`given` as a properties file, each on one line: lines that a backslash continues are joined, other ends of lines
    belong to the value."""
    joined = {name: CONTINUATION.sub(r"\1", value) for name, value in given.items()}
    return "".join(f"{name}={value}\n".replace("\n", "\\n", value.count("\n")) for name, value in joined.items())


def configure(
    target: str,
    environment: Mapping[str, str],
    mounted: str = MOUNTED,
    folder: str = SECRETS,
    volumes: tuple[str, ...] = KAFKAS_DATA_DIRS,
    data_dir: str = DATA_DIR,
) -> None:
    """Write the broker's properties to `target`: the mounted file, the environment over it, and what neither says.
    Raises SetupError, ConfigError, OSError."""
    from kafka_shim.config import read_properties

    base = Path(mounted, "server.properties")
    given = escaped(read_properties(str(base))) if base.is_file() else {}
    given = with_listeners(given | options(environment) | escaped(secrets(environment, folder)))
    if not given.keys() & {"log.dirs", "log.dir"}:
        # A volume for the data, of who took no heed of the option, is one here too. Not beside data of a start before.
        others = () if Path(data_dir, "meta.properties").exists() else volumes
        given["log.dirs"] = next((one for one in others if Path(one).is_dir()), data_dir)
    _write(target, properties_text(given))
    told = given.get("advertised.listeners") or _unadvertised(given["listeners"])
    say(f"listening at {given['listeners']}; clients are told to connect to {told}")
    if told == f"PLAINTEXT://localhost:{EXPOSED_PORT}":
        say("for another published port or machine set KAFKA_ADVERTISED_LISTENERS=PLAINTEXT://HOST:PORT")
    for line in without_effect(environment, mounted):
        say(line)


def _write(target: str, text: str) -> None:
    """Write the broker's properties, in which others are not to read passwords. Raises SetupError."""
    try:
        Path(target).unlink(missing_ok=True)
        with os.fdopen(os.open(target, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="utf-8") as file:
            file.write(text)
    except OSError as err:
        folder = Path(target).parent
        advice = {
            errno.EACCES: "let the container's user be of group 0 (docker run --user UID:0)",
            errno.EROFS: f"mount a folder there (docker run --tmpfs {folder})",
        }.get(err.errno or 0, f"the broker's options are written to {folder} at each start")
        raise SetupError(f"{target} cannot be written: {err.strerror}; {advice}") from err


def _unadvertised(listeners: str) -> str:
    """What clients are told where no listener is advertised: the hosts that are bound, as in Kafka."""
    from kafka_shim.listeners import EVERYWHERE, parse_endpoints

    if any(host in EVERYWHERE for _, host, _ in parse_endpoints(listeners, "listeners")):
        return "this container's name"
    return listeners


def without_effect(environment: Mapping[str, str], mounted: str = MOUNTED) -> list[str]:
    """A line for each thing that Kafka's image takes and this one has no use for."""
    found = [
        f"{variable} has no effect: this broker has no JVM and no Log4j"
        for variable, value in sorted(environment.items())
        if value
        and variable.startswith(("KAFKA_LOG4J_", "KAFKA_JMX_", "KAFKA_HEAP_OPTS", "KAFKA_JVM_", "KAFKA_GC_"))
        and variable != "KAFKA_LOG4J_ROOT_LOGLEVEL"
    ]
    try:
        words = shlex.split(environment.get("KAFKA_OPTS", ""))
    except ValueError:
        words = []
        found.append("KAFKA_OPTS has no effect: a quotation in it does not end")
    idle = [word for word in words if not word.startswith(tuple(f"-D{name}" for name in HONOURED_PROPERTIES))]
    if idle:
        found.append(f"without effect in KAFKA_OPTS, because this broker has no JVM: {' '.join(idle)}")
    if Path(mounted).is_dir():
        found += [
            f"{path} has no effect: KAFKA_LOG4J_ROOT_LOGLEVEL sets the level of the log"
            for path in sorted(Path(mounted).iterdir())
            if path.name != "server.properties" and path.is_file()
        ]
    return found


def log_level(environment: Mapping[str, str]) -> str:
    """The level of Python's logging for that of Log4j's root logger. Raises SetupError."""
    wanted = environment.get("KAFKA_LOG4J_ROOT_LOGLEVEL", "").strip().upper() or "INFO"
    level = LEVELS.get(wanted, wanted)
    if level not in ("DEBUG", "INFO", "WARNING", "ERROR"):
        raise SetupError(f"KAFKA_LOG4J_ROOT_LOGLEVEL is {wanted}: TRACE, DEBUG, INFO, WARN, ERROR or OFF")
    return level


def cluster_id(given: Mapping[str, str], environment: Mapping[str, str]) -> str | None:
    """What a new data directory gets; None where the first one has an id, as Kafka's image leaves that alone."""
    first = (given.get("log.dirs") or given.get("log.dir") or DATA_DIR).split(",")[0].strip()
    return None if Path(first, "meta.properties").exists() else environment.get("CLUSTER_ID") or CLUSTER_ID


def launch(target: str, environment: Mapping[str, str], words: list[str]) -> int:
    """Serve with the properties of `target` and further arguments of `kafka-shim serve`. Returns the exit status."""
    from kafka_shim.cli import main, plain_serve
    from kafka_shim.config import read_properties

    arguments = ["--config", target, "--log-level", log_level(environment), *words]
    known = plain_serve(arguments)
    if known is None:
        return main(["serve", *arguments])
    from kafka_shim.serve import serve

    is_new = not (known.get("memory") or known.get("data_dir"))
    wanted = cluster_id(read_properties(target), environment) if is_new else None
    return serve(**known, cluster_id=wanted, on_started=announce)


def announce(server: Any) -> None:
    """Say what programs that start Kafka's image wait for; the listeners accept connections by now."""
    node, now = server.broker.node_id, time.time()
    stamp = f"{time.strftime('%Y-%m-%d %H:%M:%S', time.gmtime(now))},{int(now * 1000) % 1000:03d}"
    for said in (
        f"[BrokerLifecycleManager id={node}] The broker has been unfenced. Transitioning from RECOVERY to RUNNING. "
        "(kafka.server.BrokerLifecycleManager)",
        f"[KafkaServer id={node}] started (kafka.server.KafkaServer)",
        f"[KafkaRaftServer nodeId={node}] Kafka Server started (kafka.server.KafkaRaftServer)",
    ):
        print(f"[{stamp}] INFO {said}")
    sys.stdout.flush()


def run(words: list[str], environment: dict[str, str], target: str = FINAL) -> int:
    """`/etc/kafka/docker/run`: leading arguments NAME=VALUE are variables, the rest goes to `kafka-shim serve`."""
    while words and not words[0].startswith("-") and "=" in words[0]:
        name, _, value = words.pop(0).partition("=")
        environment[name] = value
    configure(target, environment)
    return launch(target, environment, words)


def zookeeper(target: str) -> None:
    """Accept and close connections at `clientPort` of a ZooKeeper's properties until the process ends.

    Programs wait for the port. Raises OSError, ConfigError.
    """
    from kafka_shim.config import read_properties

    port = int(read_properties(target).get("clientPort", "2181"))
    say(f"no ZooKeeper is needed, none is started; port {port} is only there to be waited for")
    with socket.create_server(("", port)) as listener:
        while True:
            listener.accept()[0].close()


def say(line: str) -> None:
    print(f"kafka-shim: {line}", flush=True)


def main(words: list[str]) -> int:
    environment = os.environ
    steps: dict[str, Callable[[list[str]], int | None]] = {
        "run": lambda rest: run(rest, environment),  # type: ignore[arg-type]
        "configure": lambda rest: configure(rest[0], environment),
        "zookeeper": lambda rest: zookeeper(rest[0]),
        "launch": lambda rest: launch(rest[0], environment, rest[1:]),
    }
    # A volume may be used by other users later (--user UID:0): the group, root's, may write what the user may.
    os.umask(0o002)
    try:
        from kafka_shim.config import ConfigError
        from kafka_shim.errors import not_in_encoding

        return steps[words[0]](words[1:]) or 0
    except KeyboardInterrupt:  # Ctrl-C of `docker run`, before the broker takes the signal
        return INTERRUPTED
    except (SetupError, ConfigError, OSError) as err:
        print(f"error: {err}", file=sys.stderr)
        return 1
    except UnicodeError as err:  # of a variable
        print(f"error: {not_in_encoding(err)}", file=sys.stderr)
        return 1


def start() -> int:
    """Run `main` with this process's arguments. Ctrl-C ends it also where Python drops what is raised."""
    try:
        from kafka_shim.cli import ended_by_interrupts
    except KeyboardInterrupt:
        return INTERRUPTED
    return ended_by_interrupts(lambda: main(sys.argv[1:]))


if __name__ == "__main__":
    sys.exit(start())
