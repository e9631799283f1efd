"""Levels of features that are committed, up and down: the answers, the levels in force and the records of Kafka."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest

from kafka_shim.cext.batch import scan_all
from kafka_shim.cext.records import iterate
from kafka_shim.compat.tests.admin.compare import Pair
from kafka_shim.protocol.record_frames import decode_metadata
from kafka_shim.protocol.records.feature_level_record import FeatureLevelRecord
from kafka_shim.targets import Target, make
from kafka_shim.targets import requests as ask
from kafka_shim.targets.waiting import last_answer
from kafka_shim.wire_client import Connection

UPGRADE, SAFE, UNSAFE = 1, 2, 3
GROUP, SHARE, STREAMS, TRANSACTION = "group.version", "share.version", "streams.version", "transaction.version"
ELR, METADATA, KRAFT = "eligible.leader.replicas.version", "metadata.version", "kraft.version"
# Each is asked to be validated, then to be done.
CHANGES = [
    *([(name, 0, kind)] for name in (GROUP, SHARE, STREAMS, TRANSACTION, ELR, METADATA, KRAFT) for kind in (UPGRADE,)),
    *(
        [(name, level, kind)]
        for name in (GROUP, SHARE, STREAMS, ELR)
        for level, kind in ((0, SAFE), (0, SAFE), (1, SAFE), (1, UPGRADE), (0, UNSAFE), (1, UPGRADE))
    ),
    *(
        [(TRANSACTION, level, kind)]
        for level, kind in ((1, SAFE), (2, UPGRADE), (1, UNSAFE), (0, SAFE), (1, UPGRADE), (0, UNSAFE), (2, UPGRADE))
    ),
    *([(METADATA, level, kind)] for level in (29, 22, 7) for kind in (SAFE, UNSAFE)),
    [(METADATA, 30, SAFE)],
    [(KRAFT, 0, SAFE)],
    [(KRAFT, 0, UNSAFE)],
    [(GROUP, 0, SAFE), (SHARE, 0, SAFE), (METADATA, 29, SAFE)],
    [(GROUP, 0, SAFE), (SHARE, 0, UNSAFE), (STREAMS, 0, SAFE)],
    [(GROUP, 1, UPGRADE), (SHARE, 1, UPGRADE), (STREAMS, 1, UPGRADE)],
]


def levels(connection: Connection) -> list[tuple[str, int]]:
    versions = ask.make("ApiVersions", client_software_name="a", client_software_version="1")
    found = connection.request(versions, 4).finalized_features
    return sorted((feature.name, feature.max_version_level) for feature in found)


def levels_after(connection: Connection, wanted: list[tuple[str, int]]) -> list[tuple[str, int]]:
    """Kafka's broker learns of a change a moment after its controller has answered: its levels once they are those
    wanted, or at the deadline."""
    return last_answer(lambda: levels(connection), lambda found: found == wanted)


def records(target: Target) -> list[tuple[str, int]]:
    """The levels in the metadata log, in their order."""
    found = []
    for path in sorted((Path(target.data_dir) / "__cluster_metadata-0").glob("*.log")):
        content = path.read_bytes()
        for batch in scan_all(content):
            if batch.is_control:
                continue
            for record in iterate(content, batch.position, batch.position + batch.size_bytes):
                message = decode_metadata(record.value or b"")[0]
                if isinstance(message, FeatureLevelRecord):
                    found.append((message.name, message.feature_level))
    return found


@pytest.mark.timeout(300)
def test_levels_go_up_and_down_as_kafkas_do(tmp_path: Path) -> None:
    done = set()
    with (
        make("shim", data_dir=tmp_path / "shim") as ours,
        make("kafka-native", data_dir=tmp_path / "kafka") as theirs,
        closing(Pair(ours.bootstrap, theirs.bootstrap)) as both,
    ):
        for updates in CHANGES:
            keys = [
                {"feature": name, "max_version_level": level, "upgrade_type": kind} for name, level, kind in updates
            ]
            request = ask.make("UpdateFeatures", timeout_ms=60_000, feature_updates=keys, validate_only=True)
            before = levels(both.shim)
            assert both.ask(request, [1, 2]) == [], updates
            assert levels(both.shim) == before, updates
            request.validate_only = False
            assert both.ask(request, [2]) == [], updates
            assert levels_after(both.kafka, levels(both.shim)) == levels(both.shim), updates
            done.update(name for name, *_ in set(before) ^ set(levels(both.shim)))
    assert done == {GROUP, SHARE, STREAMS, TRANSACTION, ELR}
    assert records(ours) == records(theirs)
