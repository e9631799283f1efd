"""Each API answers as Apache Kafka with StandardAuthorizer does, to clients that may and that may not."""

from __future__ import annotations

import pytest

from kafka_shim.compat.tests.security.acl_sweep import acl_sets, prepare, sweep
from kafka_shim.compat.tests.security.principals import Secured
from kafka_shim.compat.tests.security.secured import SecuredKafka, SecuredShim

# Every so-manieth set of ACLs is the sample.
STEP = 24


def run(sets: list[object], **settings: str) -> None:
    options = {name.replace("_", "."): text for name, text in settings.items()}
    with Secured(SecuredShim, options) as shim, Secured(SecuredKafka, options) as kafka:
        for broker in (shim, kafka):
            prepare(broker)
        count, found = sweep(shim, kafka, sets)  # type: ignore[arg-type]
    print(f"{count} requests under {len(sets)} sets of ACLs, {len(found)} differ")
    assert not found, "\n".join(found[:60])
    assert count > 60 * len(sets)


def test_a_sample_of_acls_gives_kafkas_answers() -> None:
    run([*acl_sets()[:2], *acl_sets()[2::STEP]])


@pytest.mark.soak
def test_each_operation_on_each_resource_gives_kafkas_answers() -> None:
    run(acl_sets())


@pytest.mark.soak
def test_where_everyone_may_what_no_acl_is_about() -> None:
    run(acl_sets(), allow_everyone_if_no_acl_found="true")
