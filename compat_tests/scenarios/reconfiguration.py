"""Row G4: options of a broker and its listeners change while it runs (KIP-226)."""

from __future__ import annotations

from kafka_shim.compat.scenarios import scenario
from kafka_shim.compat.scenarios.scenario_client import NONE, ScenarioClient, name_of
from kafka_shim.targets import Power
from kafka_shim.targets.base import answers, free_ports
from kafka_shim.targets.requests import make, produce
from kafka_shim.wire_client import Connection

TYPE_CHECKING = False
if TYPE_CHECKING:
    Change = tuple[str, int, str | None]

BROKER = 4
SET, DELETE = 0, 1
# Sources of DescribeConfigs.
OF_BROKER, OF_ALL_BROKERS, DEFAULT = 2, 3, 5
LARGEST = "message.max.bytes"
LISTENERS, PROTOCOLS = "listeners", "listener.security.protocol.map"


def _node(t: ScenarioClient) -> str:
    return str(t.quietly("DescribeCluster", 0).brokers[0].broker_id)


def _alter(t: ScenarioClient, broker: str, *changes: Change) -> str:
    """Changes options of one broker, or of all (an empty name), and returns the name of the error."""
    configs = [{"name": name, "config_operation": how, "value": value} for name, how, value in changes]
    resource = {"resource_type": BROKER, "resource_name": broker, "configs": configs}
    return name_of(t.quietly("IncrementalAlterConfigs", 1, resources=[resource]).responses[0].error_code)


def _described(t: ScenarioClient, broker: str, option: str) -> tuple[str, int]:
    """(value, source) of an option in force; one of a listener that is not set has none."""
    resource = {"resource_type": BROKER, "resource_name": broker, "configuration_keys": [option]}
    entries = t.quietly("DescribeConfigs", 4, resources=[resource]).results[0].configs
    return (entries[0].value, entries[0].config_source) if entries else ("", 0)


@scenario("G4", spoils=True)
def an_option_of_a_broker_is_in_force_at_once(t: ScenarioClient) -> None:
    """Set for all brokers and for one, which wins; deleted, the level behind it is back. A batch feels each change."""
    node, topic = _node(t), t.topic()

    def answer() -> str:
        message = produce(topic, 0, [(None, b"z" * 2000)])
        return name_of(t.connection.request(message, 9).responses[0].partition_responses[0].error_code)

    def await_in_force(value: str, source: int, wanted: str) -> None:
        t.wait(lambda: _described(t, node, LARGEST) == (value, source) and answer() == wanted, f"{value} in force")

    default, _ = _described(t, node, LARGEST)
    for broker, how, value, source, wanted in (
        ("", SET, "1000", OF_ALL_BROKERS, "MESSAGE_TOO_LARGE"),
        (node, SET, "5000", OF_BROKER, NONE),
        (node, DELETE, None, OF_ALL_BROKERS, "MESSAGE_TOO_LARGE"),
        ("", DELETE, None, DEFAULT, NONE),
    ):
        t.same(_alter(t, broker, (LARGEST, how, value)), NONE, f"{how} {value} of {broker or 'all brokers'}")
        await_in_force(value or ("1000" if broker else default), source, wanted)


@scenario("G4")
def what_is_not_dynamic_is_refused(t: ScenarioClient) -> None:
    """INVALID_REQUEST for an option that is read at the start, for one of single brokers or single listeners at
    another level, and for another broker."""
    node = _node(t)
    for broker, option, value in (
        (node, "num.partitions", "3"),
        ("", "process.roles", "broker"),
        ("", LISTENERS, "PLAINTEXT://127.0.0.1:0"),
        ("", "listener.name.plaintext.ssl.keystore.type", "PEM"),
        (node, "ssl.keystore.type", "PEM"),
        ("77", LARGEST, "5000"),
    ):
        t.same(_alter(t, broker, (option, SET, value)), "INVALID_REQUEST", f"{option} of {broker or 'all brokers'}")
    t.same(_alter(t, node, (LARGEST, SET, "many")), "INVALID_REQUEST", "a value of another type")


@scenario("G4", needs=Power.CONTROLLER, spoils=True)
def a_listener_is_opened_while_the_broker_runs(t: ScenarioClient) -> None:
    """A new listener answers; one that stays keeps its protocol; a stored option of SASL of a listener that stays pins
    them all, because the change is compared with the options of the start."""
    node = _node(t)
    port, other = free_ports(2)
    first, map_ = (_described(t, node, name)[0] for name in (LISTENERS, PROTOCOLS))
    map_ = ",".join([map_, *(["CONTROLLER:PLAINTEXT"] if "CONTROLLER" not in map_ else []), "ADDED:PLAINTEXT,MORE:SSL"])
    added = f"{first},ADDED://127.0.0.1:{port}"
    t.same(_alter(t, node, (LISTENERS, SET, added)), "INVALID_REQUEST", "a listener without a protocol")
    t.same(_alter(t, node, (LISTENERS, SET, added), (PROTOCOLS, SET, map_)), NONE, "one that is added")
    t.wait(lambda: answers("127.0.0.1", port), "its socket")
    with Connection(f"127.0.0.1:{port}") as through:
        t.same(name_of(through.request(make("ListGroups"), 4).error_code), NONE, "a request through it")
    changed = map_.replace("ADDED:PLAINTEXT", "ADDED:SSL")
    t.same(_alter(t, node, (PROTOCOLS, SET, changed)), "INVALID_REQUEST", "another protocol of it")
    t.same(_alter(t, node, ("listener.name.added.sasl.enabled.mechanisms", SET, "PLAIN")), NONE, "its option of SASL")
    wanted = ("PLAIN", OF_BROKER)
    option = "listener.name.added.sasl.enabled.mechanisms"
    t.wait(lambda: _described(t, node, option) == wanted, "the option")
    more = (LISTENERS, SET, f"{added},MORE://127.0.0.1:{other}")
    t.same(_alter(t, node, more), "INVALID_REQUEST", "one more, while that is stored")
    t.same(_alter(t, node, (option, DELETE, None), more), NONE, "one more, as it goes")
