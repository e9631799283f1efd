"""Debezium in a worker of Kafka Connect: the snapshot and the changes of a table, while the worker is killed."""

from __future__ import annotations

import hashlib
import json

from kafka_shim.compat.ecosystem import packages, plain, postgresql
from kafka_shim.compat.ecosystem.base import Lab, Part, wait_for
from kafka_shim.compat.ecosystem.connect import ARTIFACTS, Worker

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pathlib import Path
    from typing import Any

VERSION = "3.6.1.Final"
TOPIC = "db.public.orders"
ROWS = 200
UPDATED, KEPT, LAST_ID = 50, 190, 1000
JSON = "org.apache.kafka.connect.json.JsonConverter"
CONNECTOR = {
    "connector_class": "io.debezium.connector.postgresql.PostgresConnector",
    "tasks_max": "1",
    "database_hostname": "127.0.0.1",
    "database_user": postgresql.USER,
    "database_password": "",
    "database_dbname": postgresql.DATABASE,
    "topic_prefix": "db",
    "plugin_name": "pgoutput",
    "table_include_list": "public.orders",
    "exactly_once_support": "required",
    "key_converter": JSON,
    "key_converter_schemas_enable": "false",
    "value_converter": JSON,
    "value_converter_schemas_enable": "false",
}


class Debezium(Part):
    name = "debezium"
    title = "Debezium for PostgreSQL in Kafka Connect"
    what = "snapshot and changes of a table, with exactly-once sources; the worker is killed and started again"
    version = VERSION

    _libs: Path

    def prepare(self) -> None:
        postgresql.programs()
        self._libs = packages.jars("debezium", (*ARTIFACTS, ("io.debezium", "debezium-connector-postgres", VERSION)))

    def run(self, lab: Lab) -> list[str]:
        database = postgresql.Database(lab.scratch / "database.log")
        try:
            return self._run_with(lab, database)
        finally:
            database.close()

    def _run_with(self, lab: Lab, database: postgresql.Database) -> list[str]:
        database.do(
            "create table orders (id int primary key, cents int not null)",
            "alter table orders replica identity full",
            f"insert into orders select n, n * 10 from generate_series(1, {ROWS}) n",
        )
        worker = Worker(lab.bootstrap, self._libs, lab.scratch)
        try:
            worker.create("database", database_port=str(database.port), **CONNECTOR)
            wait_for("the snapshot", lambda: len(changes(lab.bootstrap)) == ROWS, worker.log)
            database.do(f"update orders set cents = cents + 1 where id <= {UPDATED}")
            wait_for("changes", lambda: len(changes(lab.bootstrap)) > ROWS, worker.log)
            worker.kill()
            database.do(
                f"delete from orders where id > {KEPT}",
                "alter table orders add column note text not null default 'none'",
                f"insert into orders values ({LAST_ID}, 7, 'the last')",
            )
            worker = Worker(lab.bootstrap, self._libs, lab.scratch)
            wait_for("the last", lambda: any(key == LAST_ID for key, _ in changes(lab.bootstrap)), worker.log)
            return findings(changes(lab.bootstrap))
        finally:
            worker.kill()


def changes(bootstrap: str) -> list[tuple[int, dict[str, Any] | None]]:
    """Key and change of each committed record, in order; a change without a value is a tombstone."""
    if TOPIC not in plain.topics(bootstrap):
        return []
    return [
        (json.loads(message.key() or b"")["id"], json.loads(value) if (value := message.value()) else None)
        for message in plain.read(bootstrap, TOPIC)
    ]


def findings(found: list[tuple[int, dict[str, Any] | None]]) -> list[str]:
    """The changes counted, played back into a table, and one line that stands for all of them in their order."""
    kinds: dict[str, int] = {}
    table: dict[int, int] = {}
    told = []
    for key, change in found:
        kind = change["op"] if change else "tombstone"
        kinds[kind] = kinds.get(kind, 0) + 1
        if change is None or change["after"] is None:
            table.pop(key, None)
        else:
            table[key] = change["after"]["cents"]
        # Without what differs from run to run: times, transaction ids and positions in the log.
        told.append([key, kind, *([change["before"], change["after"], change["source"]["snapshot"]] if change else [])])
    expected = {n: n * 10 + (n <= UPDATED) for n in range(1, KEPT + 1)} | {LAST_ID: 7}
    return [
        f"changes: {dict(sorted(kinds.items()))}",
        f"the table as the topic has it: {len(table)} rows, right: {table == expected}",
        f"each change in its order: {hashlib.sha256(json.dumps(told, sort_keys=True).encode()).hexdigest()[:16]}",
        f"last: {found[-1][1] and found[-1][1]['after']}",
    ]


PARTS: dict[str, Part] = {"debezium": Debezium()}
