from __future__ import annotations

import pytest

from kafka_shim.errors import ErrorCode, KafkaError
from kafka_shim.metadata.elr import elr_safety_records
from kafka_shim.metadata.features import (
    SAFE_DOWNGRADE,
    UNSAFE_DOWNGRADE,
    UPGRADE,
    decide_update,
    partition_record_version,
    register_broker_version,
    supported_levels,
)
from kafka_shim.metadata.image import Image

FINALISED = {"metadata.version": 30, "group.version": 1, "transaction.version": 2}


def sentence(updates, finalised=FINALISED):
    with pytest.raises(KafkaError) as error:
        decide_update(finalised, updates, 1)
    assert error.value.code is ErrorCode.INVALID_UPDATE_VERSION
    return error.value.message


def test_an_upgrade_is_recorded():
    records = decide_update({"metadata.version": 29}, {"metadata.version": (30, UPGRADE)}, 1)
    assert [(record.name, record.feature_level) for record in records] == [("metadata.version", 30)]


def test_an_unreleased_level_needs_the_option_that_allows_it():
    assert supported_levels(False)["metadata.version"] == (7, 30)
    assert supported_levels(True)["metadata.version"] == (7, 31)
    assert supported_levels(True)["group.version"] == supported_levels(False)["group.version"]
    records = decide_update(FINALISED, {"metadata.version": (31, UPGRADE)}, 1, 0, supported_levels(True))
    assert [record.feature_level for record in records] == [31]


def test_a_downgrade_needs_its_type():
    records = decide_update(FINALISED, {"transaction.version": (1, SAFE_DOWNGRADE)}, 1)
    assert [(record.name, record.feature_level) for record in records] == [("transaction.version", 1)]
    assert "without setting the upgrade type" in sentence({"transaction.version": (1, UPGRADE)})
    assert "downgrade to a newer version" in sentence(
        {"group.version": (1, UNSAFE_DOWNGRADE)}, {"metadata.version": 30}
    )


@pytest.mark.parametrize(
    ("updates", "part"),
    [
        ({"no.such": (1, UPGRADE)}, "Local controller 1 does not support this feature."),
        ({"group.version": (2, UPGRADE)}, "Local controller 1 only supports versions 0-1"),
        ({"group.version": (-1, UPGRADE)}, "A feature version cannot be less than 0."),
        ({"group.version": (1, 0)}, "The controller does not support the given upgrade type."),
        ({"metadata.version": (31, UPGRADE)}, "only supports versions 7-30"),
        ({"metadata.version": (29, SAFE_DOWNGRADE)}, "might delete metadata information."),
        ({"metadata.version": (29, UNSAFE_DOWNGRADE)}, "Unsafe metadata downgrade is not supported"),
        ({"kraft.version": (1, SAFE_DOWNGRADE)}, "Can't downgrade to a newer version."),
    ],
)
def test_levels_that_cannot_be_set_say_why(updates, part):
    assert part in sentence(updates)


def test_a_downgrade_that_changed_no_record_is_allowed():
    records = decide_update({"metadata.version": 28}, {"metadata.version": (24, SAFE_DOWNGRADE)}, 1)
    assert records[0].feature_level == 24


def test_eligible_leader_replicas_need_their_metadata_version():
    assert "depends on metadata.version level 23" in sentence(
        {"eligible.leader.replicas.version": (1, UPGRADE)}, {"metadata.version": 22}
    )


def test_one_bad_feature_refuses_all():
    assert "no.such" in sentence({"transaction.version": (1, SAFE_DOWNGRADE), "no.such": (1, UPGRADE)})


@pytest.mark.parametrize(("level", "broker", "partition"), [(7, 1, 0), (8, 2, 0), (17, 3, 1), (23, 3, 2), (30, 4, 2)])
def test_records_are_written_in_the_versions_of_the_finalised_level(level, broker, partition):
    assert (register_broker_version(level), partition_record_version(level)) == (broker, partition)


def test_before_eligible_leader_replicas_min_insync_replicas_is_made_the_clusters():
    image = Image()
    image.configs[(4, "1")] = {"min.insync.replicas": "2", "other": "x"}
    image.configs[(4, "2")] = {"other": "x"}
    records = elr_safety_records(image, 3)
    assert [(one.resource_name, one.name, one.value) for one in records] == [
        ("", "min.insync.replicas", "3"),
        ("1", "min.insync.replicas", None),
    ]
    image.configs = {(4, ""): {"min.insync.replicas": "1"}}
    assert elr_safety_records(image, 3) == []
