"""Every conversation about groups reads the same with the shim as with Apache Kafka."""

from __future__ import annotations

import os

import pytest

from kafka_shim.compat.groups.conversations import CONVERSATIONS
from kafka_shim.compat.groups.script import Script
from kafka_shim.compat.tests.admin.compare import differences
from kafka_shim.targets import Target


def told(name: str, target: Target, suffix: str) -> list[tuple[str, object]]:
    script = Script(target.bootstrap, suffix)
    try:
        # The coordinator's topic exists from here on.
        script.quietly("FindCoordinator", 4, key_type=0, coordinator_keys=["any"])
        CONVERSATIONS[name](script)
    finally:
        script.close()
    return script.said


@pytest.mark.parametrize("name", CONVERSATIONS)
def test_conversation_reads_the_same(name: str, shim: Target, kafka: Target) -> None:
    suffix = os.urandom(3).hex()
    ours, theirs = told(name, shim, suffix), told(name, kafka, suffix)
    found = []
    for number, ((what, one), (_, other)) in enumerate(zip(ours, theirs, strict=True)):
        found += [f"step {number}, {what}{line}" for line in differences(one, other)]
    assert not found, "\n".join(found)
