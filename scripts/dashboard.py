"""Writes docs/grafana/kafka-shim.json, a dashboard for Grafana of what a broker exports (docs/metrics.md)."""

from __future__ import annotations

import json
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
TARGET = ROOT / "docs" / "grafana" / "kafka-shim.json"
SOURCE = {"type": "prometheus", "uid": "${datasource}"}
OWN, RATE = 'instance=~"$instance"', "[$__rate_interval]"
WIDTH, HEIGHT, COLUMNS = 8, 8, 3


def rate(name: str) -> str:
    return f"rate({name}{{{OWN}}}{RATE})"


def quantile(histogram: str, by: str = "") -> str:
    inner = rate(f"{histogram}_bucket")
    return f"histogram_quantile(0.99, sum by (le{by}) ({inner}))"


def value(name: str) -> str:
    return f"{name}{{{OWN}}}"


FAILURES = rate("kafka_shim_authentication_failures_total")
SERVER = "kafka_server_brokertopicmetrics"
# Row -> panels: title, unit of Grafana, and legend -> query.
ROWS: dict[str, tuple[tuple[str, str, dict[str, str]], ...]] = {
    "Traffic": (
        (
            "Bytes in and out by topic",
            "Bps",
            {
                "in {{topic}}": f"sum by (topic) ({rate(f'{SERVER}_bytesin_total')})",
                "out {{topic}}": f"sum by (topic) ({rate(f'{SERVER}_bytesout_total')})",
            },
        ),
        ("Records in by topic", "cps", {"{{topic}}": f"sum by (topic) ({rate(f'{SERVER}_messagesin_total')})"}),
        (
            "Requests by API",
            "reqps",
            {"{{request}}": f"sum by (request) ({rate('kafka_network_requestmetrics_requests_total')})"},
        ),
        (
            "Connections",
            "short",
            {
                "open": value("kafka_shim_connections"),
                "accepted a second": rate("kafka_shim_connections_opened_total"),
                "refused a second": rate("kafka_shim_connections_refused_total"),
            },
        ),
        (
            "Waiting for records",
            "short",
            {"{{delayedOperation}}": value("kafka_server_delayedoperationpurgatory_numdelayedoperations")},
        ),
        (
            "Kept away",
            "short",
            {
                "throttled responses a second": rate("kafka_shim_throttled_responses_total"),
                "seconds of rest a second": rate("kafka_shim_throttled_seconds_total"),
                "failed authentications a second": f"sum({FAILURES}) or vector(0)",
                "refused frames a second": rate("kafka_shim_frames_refused_total"),
            },
        ),
    ),
    "Times": (
        ("p99 of requests, with waiting", "s", {"{{request}}": quantile("kafka_shim_request_seconds", ", request")}),
        (
            "p99 of the loop's time of requests",
            "s",
            {"{{request}}": quantile("kafka_shim_request_local_seconds", ", request")},
        ),
        ("p99 of the lag of the event loop", "s", {"lag": quantile("kafka_shim_loop_lag_seconds")}),
    ),
    "Transactions and groups": (
        ("Transactional ids by state", "short", {"{{state}}": value("kafka_shim_transactions")}),
        (
            "Oldest and hanging transactions",
            "s",
            {
                "age of the oldest": value("kafka_shim_oldest_transaction_seconds"),
                "partitions with a hanging one": value(
                    "kafka_server_replicamanager_partitionswithlatetransactionscount"
                ),
            },
        ),
        (
            "Records above the last stable offset",
            "short",
            {"{{topic}}-{{partition}}": value("kafka_shim_last_stable_offset_lag")},
        ),
        ("Lag of groups", "short", {"{{group}} {{topic}}": value("kafka_shim_group_lag")}),
        ("Groups by type and state", "short", {"{{type}} {{state}}": value("kafka_shim_groups")}),
        (
            "Share groups",
            "short",
            {
                "sessions": value("kafka_server_sharesessioncache_sharesessionscount"),
                "in flight {{group}}": value("kafka_shim_share_records_in_flight"),
            },
        ),
    ),
    "Storage": (
        ("Stored bytes by topic", "bytes", {"{{topic}}": value("kafka_shim_log_bytes")}),
        ("Segments by topic", "short", {"{{topic}}": value("kafka_shim_log_segments")}),
        (
            "Partitions",
            "short",
            {
                "all": value("kafka_controller_kafkacontroller_globalpartitioncount"),
                "offline": value("kafka_server_replicamanager_offlinereplicacount"),
                "uncleanable": value("kafka_shim_uncleanable_partitions"),
            },
        ),
        (
            "fsync",
            "s",
            {
                "calls a second": rate("kafka_shim_fsync_seconds_count"),
                "seconds of fsync a second": rate("kafka_shim_fsync_seconds_sum"),
                "errors a second": rate("kafka_shim_fsync_errors_total"),
            },
        ),
        (
            "Compaction",
            "Bps",
            {
                "read": rate("kafka_shim_compaction_read_bytes_total"),
                "written": rate("kafka_shim_compaction_written_bytes_total"),
                "errors a second": rate("kafka_shim_compaction_errors_total"),
            },
        ),
        (
            "Descriptors",
            "short",
            {
                "of partitions": value("kafka_shim_open_partition_files"),
                "of partitions at most": value("kafka_shim_open_partition_files_limit"),
                "of the process": value("process_open_fds"),
                "of the process at most": value("process_max_fds"),
            },
        ),
    ),
    "Process": (
        ("CPU", "percentunit", {"of one core": rate("process_cpu_seconds_total")}),
        (
            "Memory",
            "bytes",
            {
                "resident": value("process_resident_memory_bytes"),
                "requests being received": value("kafka_shim_receive_memory_bytes"),
                "responses not taken": value("kafka_shim_send_memory_bytes"),
            },
        ),
        ("Unexpected errors", "short", {"a second": rate("kafka_shim_unexpected_errors_total")}),
    ),
}


def dashboard() -> dict[str, object]:
    panels: list[dict[str, object]] = []
    top = 0
    for row, charts in ROWS.items():
        place = {"h": 1, "w": WIDTH * COLUMNS, "x": 0, "y": top}
        panels.append(
            {"id": len(panels) + 1, "type": "row", "title": row, "collapsed": False, "gridPos": place, "panels": []}
        )
        top += 1
        for number, (title, unit, queries) in enumerate(charts):
            x, y = WIDTH * (number % COLUMNS), top + HEIGHT * (number // COLUMNS)
            panels.append(chart(len(panels) + 1, title, unit, queries, {"h": HEIGHT, "w": WIDTH, "x": x, "y": y}))
        top += HEIGHT * -(-len(charts) // COLUMNS)
    instances = f"label_values({value('kafka_shim_connections').partition('{')[0]}, instance)"
    return {
        "uid": "kafka-shim",
        "title": "kafka-shim",
        "description": "What a kafka-shim broker exports at kafka.shim.http.listener.",
        "tags": ["kafka", "kafka-shim"],
        "timezone": "browser",
        "editable": True,
        "graphTooltip": 1,
        "schemaVersion": 36,
        "refresh": "10s",
        "time": {"from": "now-30m", "to": "now"},
        "templating": {
            "list": [
                {"type": "datasource", "name": "datasource", "label": "Data source", "query": "prometheus"},
                {
                    "type": "query",
                    "name": "instance",
                    "label": "Broker",
                    "datasource": SOURCE,
                    "query": instances,
                    "refresh": 2,
                    "includeAll": True,
                    "multi": True,
                    "allValue": ".*",
                    "current": {"selected": True, "text": "All", "value": "$__all"},
                },
            ]
        },
        "annotations": {"list": []},
        "links": [],
        "panels": panels,
    }


def chart(number: int, title: str, unit: str, queries: dict[str, str], place: dict[str, int]) -> dict[str, object]:
    """One panel of lines over time."""
    return {
        "id": number,
        "type": "timeseries",
        "title": title,
        "datasource": SOURCE,
        "gridPos": place,
        "fieldConfig": {"defaults": {"unit": unit, "min": 0}, "overrides": []},
        "options": {"legend": {"displayMode": "list", "placement": "bottom"}, "tooltip": {"mode": "multi"}},
        "targets": [
            {"refId": chr(ord("A") + at), "datasource": SOURCE, "expr": query, "legendFormat": legend}
            for at, (legend, query) in enumerate(queries.items())
        ],
    }


def text() -> str:
    return json.dumps(dashboard(), indent=2) + "\n"


if __name__ == "__main__":
    TARGET.write_text(text())
    sys.stdout.write(f"{TARGET}\n")
