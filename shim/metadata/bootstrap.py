"""The initial metadata of a new data directory: `bootstrap.checkpoint` and the first records of the metadata log.

Source: Kafka's storage tool (Formatter), BootstrapDirectory and ActivationRecordsGenerator.
"""

from __future__ import annotations

import os

from kafka_shim.metadata.features import BOOTSTRAP_LEVELS, ELR_VERSION, METADATA_VERSION, TRANSACTIONS
from kafka_shim.metadata.image import RESOURCE_BROKER
from kafka_shim.metadata.log import read_records, snapshot_bytes
from kafka_shim.protocol.records.begin_transaction_record import BeginTransactionRecord
from kafka_shim.protocol.records.config_record import ConfigRecord
from kafka_shim.protocol.records.end_transaction_record import EndTransactionRecord
from kafka_shim.protocol.records.feature_level_record import FeatureLevelRecord
from kafka_shim.storage.checkpoint import replace_file
from kafka_shim.storage.regular_files import read_file

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path
    from typing import Any

FILE_NAME = "bootstrap.checkpoint"
TRANSACTION_NAME = "Bootstrap records"


def default_records() -> list[FeatureLevelRecord]:
    """Return the finalised feature levels of a new directory, as Kafka's storage tool (`format`) writes them."""
    return [FeatureLevelRecord(name=name, feature_level=level) for name, level in BOOTSTRAP_LEVELS]


def write_checkpoint(directory: Path, now_ms: int, records: Sequence[Any] | None = None) -> None:
    """Write `bootstrap.checkpoint` if it does not exist, because Kafka does not start without it. `records`: what the
    first start adds; None: `default_records()`. Raises OSError."""
    path = directory / FILE_NAME
    if not path.exists():
        content = snapshot_bytes(
            [(record, 0) for record in (default_records() if records is None else records)], now_ms
        )
        replace_file(os.fspath(path), content, sync=True)


def read_checkpoint(directory: Path) -> list[Any]:
    """Return the records of `bootstrap.checkpoint`, or `default_records` if there is no such file."""
    path = directory / FILE_NAME
    try:
        content = read_file(os.fspath(path))
    except FileNotFoundError:
        return default_records()
    return list(read_records(content))


def activation_records(bootstrap: list[Any], min_insync_replicas: int) -> list[Any]:
    """Return the records that the first leader of an empty metadata log appends, as one metadata transaction
    (KIP-868)."""
    levels = {record.name: record.feature_level for record in bootstrap if isinstance(record, FeatureLevelRecord)}
    records = list(bootstrap)
    # With eligible leader replicas, min.insync.replicas must be set at cluster level (KIP-966).
    if levels.get(ELR_VERSION, 0) > 0:
        records.append(
            ConfigRecord(
                resource_type=RESOURCE_BROKER,
                resource_name="",
                name="min.insync.replicas",
                value=str(min_insync_replicas),
            )
        )
    if levels.get(METADATA_VERSION, 0) >= TRANSACTIONS:
        records = [BeginTransactionRecord(name=TRANSACTION_NAME), *records, EndTransactionRecord()]
    return records
