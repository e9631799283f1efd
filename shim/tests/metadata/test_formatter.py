"""The options of the storage tool: releases, features, voters; each mistake has Kafka's words."""

from __future__ import annotations

import pytest

from kafka_shim.config import ConfigError
from kafka_shim.metadata.bootstrap import default_records
from kafka_shim.metadata.formatter import (
    DynamicVoter,
    effective_levels,
    feature_records,
    parse_features,
    parse_voters,
    release_level,
    version_name,
)

DIRECTORY = "JEXY6aqzQY-32P5TStzaFg"


def levels(*features: str, release: str | None = None, unstable: bool = False, is_dynamic: bool = False):
    return effective_levels(parse_features(features), release, unstable, is_dynamic=is_dynamic)


def test_without_options_a_directory_gets_the_newest_release():
    assert [(one.name, one.feature_level) for one in feature_records(levels())] == [
        (one.name, one.feature_level) for one in default_records()
    ]
    assert levels()["kraft.version"] == 0
    assert levels(is_dynamic=True)["kraft.version"] == 1
    assert levels("kraft.version=1", is_dynamic=True)["kraft.version"] == 1
    assert levels("kraft.version=0")["kraft.version"] == 0
    assert levels(unstable=True)["metadata.version"] == 31


@pytest.mark.parametrize(
    ("release", "expected"),
    [
        ("3.3", {"metadata.version": 7}),
        ("3.9.1", {"metadata.version": 21}),
        ("4.0", {"metadata.version": 25, "group.version": 1, "transaction.version": 2}),
        (
            "4.1-IV1",
            {
                "metadata.version": 27,
                "eligible.leader.replicas.version": 1,
                "group.version": 1,
                "transaction.version": 2,
            },
        ),
        (
            "4.2-IV0",
            {
                "metadata.version": 28,
                "eligible.leader.replicas.version": 1,
                "group.version": 1,
                "share.version": 1,
                "transaction.version": 2,
            },
        ),
    ],
)
def test_a_release_has_the_features_of_its_time(release: str, expected: dict[str, int]):
    assert {name: level for name, level in levels(release=release).items() if level} == expected


def test_names_of_levels():
    assert [version_name(level) for level in (7, 14, 30, 31)] == ["3.3-IV3", "3.6-IV2", "4.3-IV0", "4.4-IV0"]
    assert release_level("3.7", False) == 19
    assert release_level("4.4-IV0", True) == 31


@pytest.mark.parametrize(
    ("features", "options", "part"),
    [
        (["metadata.version=25"], {"release": "4.0"}, "Use --release-version instead of --feature metadata.version=X"),
        (["metadata.version=31"], {}, "metadata.version 4.4-IV0 is not yet stable."),
        (["metadata.version=99"], {}, "No MetadataVersion with feature level 99"),
        ([], {"release": "2.8"}, "Unknown metadata.version '2.8'. Supported metadata.version are: 3.3-IV3, 3.4-IV0,"),
        ([], {"release": "4.4-IV0"}, "Unknown metadata.version '4.4-IV0'."),
        (["no.such=1"], {}, "Unsupported feature: no.such. Supported features are: eligible.leader.replicas.version,"),
        (["group.version=5"], {}, "No feature:group.version with feature level 5"),
        (["group.version"], {}, "Can't parse feature=level string group.version: equals sign not found."),
        (["group.version=x"], {}, "unable to parse x as a short."),
        (
            ["eligible.leader.replicas.version=1"],
            {"release": "3.9"},
            "eligible.leader.replicas.version could not be set to 1 because it depends on metadata.version level 23",
        ),
        (["kraft.version=1"], {}, "Cannot set kraft.version to 1 unless controller.quorum.voters is empty"),
        (["kraft.version=0"], {"is_dynamic": True}, "Cannot set kraft.version to 0 if controller.quorum.voters is emp"),
    ],
)
def test_what_kafka_refuses_is_refused_in_its_words(features, options, part):
    with pytest.raises(ConfigError) as error:
        levels(*features, **options)
    assert part in str(error.value)


def test_voters_are_parsed():
    voters = parse_voters(f"2@[::1]:9:{DIRECTORY}, 1@h:8082:{DIRECTORY},")
    assert voters == {1: DynamicVoter(1, "h", 8082, DIRECTORY), 2: DynamicVoter(2, "::1", 9, DIRECTORY)}
    assert list(voters) == [1, 2]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "No voters given."),
        ("1", "No @ found in dynamic voter string."),
        ("@h:1:x", "Invalid @ at beginning of dynamic voter string."),
        ("x@h:1:x", "Failed to parse node id in dynamic voter string."),
        ("-1@h:1:x", "Invalid negative node id -1 in dynamic voter string."),
        ("1@", "No hostname found after node id."),
        ("1@[::1:1", "Hostname began with left bracket, but no right bracket was found."),
        ("1@h", "No colon following hostname could be found."),
        ("1@[::1]9", "Port section must start with a colon."),
        ("1@h:9", "No colon following port could be found."),
        ("1@h:x:y", "Failed to parse port in dynamic voter string."),
        ("1@h:99999:y", "Invalid port 99999 in dynamic voter string."),
        ("1@h:9:short", "Failed to parse directory ID in dynamic voter string."),
        (f"1@h:9:{DIRECTORY},1@h:9:{DIRECTORY}", "Node id 1 was specified more than once."),
    ],
)
def test_a_voter_that_is_none_is_refused(text: str, message: str):
    with pytest.raises(ConfigError) as error:
        parse_voters(text)
    assert str(error.value) == message
