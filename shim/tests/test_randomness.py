from __future__ import annotations

import uuid

from kafka_shim.clock import RealClock, VirtualClock
from kafka_shim.randomness import Randomness


def draws(random: Randomness) -> list[object]:
    return [random.bytes_of(5), random.integer(1, 6), random.uuid(), random.uuid_text(), random.java_uuid_text()]


def test_a_seed_repeats_everything_and_can_be_asked_for():
    clock = VirtualClock()
    seed = clock.random.seed
    assert draws(clock.random) == draws(VirtualClock(seed=seed).random)
    assert draws(Randomness(1)) != draws(Randomness(2))
    assert VirtualClock().random.seed != VirtualClock().random.seed


def test_a_real_clock_has_the_chance_of_the_operating_system():
    assert RealClock().random.seed is None
    assert draws(RealClock().random) != draws(RealClock().random)


def test_integers_reach_both_ends_and_no_further():
    random = Randomness(7)
    assert {random.integer(3, 5) for _ in range(200)} == {3, 4, 5}
    assert random.integer(9, 9) == 9


def test_uuids_are_of_version_4_and_begin_with_no_dash():
    random = Randomness(7)
    for _ in range(500):
        assert uuid.UUID(bytes=random.uuid()).version == 4
        text = random.uuid_text()
        assert len(text) == 22
        assert not text.startswith("-")
        java = random.java_uuid_text()
        assert str(uuid.UUID(java)) == java
