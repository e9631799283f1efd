"""Examples for the help of those subcommands that have none in their own file."""

from __future__ import annotations

# Noun -> lines of words.
EXAMPLES = {
    "acls": (
        "acls add --topic orders --allow-principal User:alice --operation Read",
        "acls list --principal User:alice --json",
        "acls remove --topic orders --force",
    ),
    "certs": ("certs make ./certs", "certs show ./certs/ca.pem"),
    "configs": (
        "configs describe --entity-type topics --entity-name orders",
        "configs alter --entity-type topics --entity-name orders --add-config retention.ms=60000",
    ),
    "console": ("console", "console --bootstrap-server broker:9092 --schema-registry http://registry:8081"),
    "diff": ("diff kafka.capture shim.capture",),
    "dump-log": (
        "dump-log --files kafka-shim-data/orders-0/00000000000000000000.log --print-data-log",
        "dump-log --files kafka-shim-data/__cluster_metadata-0/00000000000000000000.log --cluster-metadata-decoder",
    ),
    "quotas": ("quotas set --user alice --add producer_byte_rate=1048576", "quotas list --json"),
    "record": ("record --upstream 127.0.0.1:9092 --listen 127.0.0.1:9192 app.capture",),
    "replay": ("replay --target 127.0.0.1:9092 app.capture", "replay --target 127.0.0.1:9092 --keep now app.capture"),
    "serve": (
        "serve",
        "serve --memory --listen 127.0.0.1:0",
        "serve --data-dir /data -o num.partitions=3 -o kafka.shim.http.listener=127.0.0.1:9404",
    ),
    "storage": (
        "storage info ./kafka-shim-data",
        "storage check ./kafka-shim-data --json",
        "storage upgrade-to-kafka ./kafka-shim-data",
    ),
    "topics": (
        "topics create orders --partitions 3 -c retention.ms=60000",
        "topics describe orders --json",
        "topics delete orders",
    ),
    "transactions": (
        "transactions list --state Ongoing",
        "transactions explain payments-1",
        "transactions find-hanging --topic orders",
    ),
    "users": ("users add alice --password-file password.txt", "users list"),
}


def epilog_of(noun: str) -> str | None:
    """The text below the options of a noun's help; None for those that say it themselves."""
    lines = EXAMPLES.get(noun)
    return None if lines is None else "\n".join(["\b", "Examples:", *(f"  kafka-shim {line}" for line in lines)])
