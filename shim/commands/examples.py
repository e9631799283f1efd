"""Examples for the help of those commands that have none in their own file."""

from __future__ import annotations

# Noun -> lines of words.
EXAMPLES = {
    "acls": (
        "acls add --topic orders --allow-principal User:alice --operation Read",
        "acls list --principal User:alice --json",
        "acls remove --topic orders --force",
    ),
    "certs": ("certs make ./certs", "certs show ./certs/ca.pem"),
    "cluster": (
        "cluster nodes",
        "cluster features --json",
        "cluster listeners",
        "cluster health --json",
    ),
    "configs": (
        "configs describe --entity-type topics --entity-name orders",
        "configs alter --entity-type topics --entity-name orders --add-config retention.ms=60000",
    ),
    "console": (
        "console",
        "console --bootstrap-server broker:9092 --schema-registry http://registry:8081",
        "console --allow-changes --http 127.0.0.1:9000",
    ),
    "diff": ("diff kafka.capture shim.capture",),
    "dump-log": (
        "dump-log --files kafka-shim-data/orders-0/00000000000000000000.log --print-data-log",
        "dump-log --files kafka-shim-data/__cluster_metadata-0/00000000000000000000.log --cluster-metadata-decoder",
    ),
    "groups": (
        "groups list --verbose",
        "groups describe billing",
        "groups describe --all --state --json",
        "groups delete-offsets billing --topic orders",
        "groups delete billing",
    ),
    "quotas": (
        "quotas set --user alice --add producer_byte_rate=1048576",
        "quotas set --user alice --delete producer_byte_rate",
        "quotas list --json",
    ),
    "record": ("record --upstream 127.0.0.1:9092 --listen 127.0.0.1:9192 app.capture",),
    "replay": ("replay --target 127.0.0.1:9092 app.capture", "replay --target 127.0.0.1:9092 --keep now app.capture"),
    "serve": (
        "serve",
        "serve --memory --listen 127.0.0.1:0",
        "serve --data-dir /data -o num.partitions=3 -o kafka.shim.http.listener=127.0.0.1:9404",
    ),
    "storage": (
        "storage format ./kafka-shim-data",
        "storage info ./kafka-shim-data",
        "storage check ./kafka-shim-data --json",
        "storage mend /data/1 /data/2",
        "storage upgrade-to-kafka ./kafka-shim-data",
    ),
    "topics": (
        "topics list --exclude-internal",
        "topics create orders --partitions 3 -c retention.ms=60000",
        "topics describe orders --json",
        "topics alter orders --partitions 6",
        "topics delete orders",
    ),
    "transactions": (
        "transactions list --state Ongoing",
        "transactions describe payments-1 --json",
        "transactions explain payments-1",
        "transactions describe-producers --topic orders --partition 0",
        "transactions find-hanging --topic orders",
        "transactions abort --topic orders --partition 0 --start-offset 4711",
        "transactions force-terminate payments-1",
    ),
    "users": (
        "users add alice --password-file password.txt",
        "users list",
        "users remove alice --mechanism SCRAM-SHA-512",
    ),
}


def epilog_of(noun: str, verb: str = "") -> str | None:
    """The text below the options of the help of a noun, or of one of its subcommands; None for those that say it
    themselves."""
    lines = [line for line in EXAMPLES.get(noun, ()) if not verb or line.split()[1] == verb]
    if not lines:
        return None
    return "\n".join(["\b", "Examples:", *(f"  kafka-shim {line}" for line in lines)])
