"""`kafka-broker-api-versions.sh` (Kafka: BrokerApiVersionsCommand, NodeApiVersions)."""

from __future__ import annotations

from kafka_shim.protocol.api_keys import API_KEYS
from kafka_shim.tools.options import VALUE, Options, connect
from kafka_shim.tools.running import flat_main, leave
from kafka_shim.wire_client import WireClientError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from kafka_shim.tools.options import Given

OPTIONS = Options(
    "This tool helps to retrieve broker version information.",
    {"bootstrap-server": VALUE, "command-config": VALUE},
)


def run(given: Given) -> int:
    given.require("bootstrap-server")
    with connect(given, "admin-1") as cluster:
        for broker in cluster.metadata().brokers:
            name = f"{broker.host}:{broker.port} (id: {broker.node_id} rack: {broker.rack or 'null'} isFenced: false)"
            try:
                print(f"{name} -> {_text(cluster.to(broker.node_id).ranges())}")
            except WireClientError as err:
                print(f"{name} -> ERROR: {err}")
    return 0


def _text(ranges: dict[int, tuple[int, int]]) -> str:
    lines = {key: _line(key, low, high) for key, (low, high) in ranges.items()}
    for key, row in API_KEYS.items():
        if "broker" in row[5]:
            lines.setdefault(key, f"{row[0]}({key}): UNSUPPORTED")
    return "(\n\t" + ",\n\t".join(lines[key] for key in sorted(lines)) + "\n)"


def _line(key: int, low: int, high: int) -> str:
    shown = str(low) if low == high else f"{low} to {high}"
    if key not in API_KEYS:
        return f"UNKNOWN({key}): {shown}"
    name, first, last, _, last_is_unstable, *_ = API_KEYS[key]
    newest = last - last_is_unstable
    if newest < low:
        usable = "unusable: node too new"
    elif high < first:
        usable = "unusable: node too old"
    else:
        usable = f"usable: {min(newest, high)}"
    return f"{name}({key}): {shown} [{usable}]"


main = flat_main(OPTIONS, run)

if __name__ == "__main__":
    leave(main)
