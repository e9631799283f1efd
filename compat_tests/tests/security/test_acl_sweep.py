"""Each API answers as Apache Kafka with StandardAuthorizer does, to clients that may and that may not."""

from __future__ import annotations

import pytest

from kafka_shim.compat.tests.security.acl_sweep import AclSet, acl_sets, compare, sample


def run(sets: list[AclSet], **settings: str) -> None:
    line, found = compare(sets, {name.replace("_", "."): text for name, text in settings.items()})
    print(line)
    assert not found, "\n".join(found[:60])
    assert int(line.split()[0]) > 60 * len(sets)


def test_a_sample_of_acls_gives_kafkas_answers() -> None:
    run(sample())


@pytest.mark.soak
def test_each_operation_on_each_resource_gives_kafkas_answers() -> None:
    run(acl_sets())


@pytest.mark.soak
def test_where_everyone_may_what_no_acl_is_about() -> None:
    run(acl_sets(), allow_everyone_if_no_acl_found="true")
