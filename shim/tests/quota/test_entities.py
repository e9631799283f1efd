"""Which quota holds for a client: the order of precedence (DefaultQuotaCallback)."""

from __future__ import annotations

import pytest

from kafka_shim.clock import VirtualClock
from kafka_shim.quota.client_quota_manager import LOOK_EVERY, MOST_METERS, ClientQuotaManager
from kafka_shim.quota.entities import ABSENT, DEFAULT, candidates, entity_of, measured_as, otherwise_of
from kafka_shim.quota.rate import Rate, TokenBucket

# From the most specific on.
ORDER = [
    ("u", "c"),
    ("u", DEFAULT),
    ("u", ABSENT),
    (DEFAULT, "c"),
    (DEFAULT, DEFAULT),
    (DEFAULT, ABSENT),
    (ABSENT, "c"),
    (ABSENT, DEFAULT),
]


@pytest.mark.parametrize("first", range(len(ORDER)), ids=lambda number: str(ORDER[number]))
def test_most_specific_quota_holds(first):
    bounds = {entity: float(number + 1) for number, entity in enumerate(ORDER) if number >= first}
    manager = ClientQuotaManager(VirtualClock(), Rate, 11, 1)
    manager.set_quotas(bounds)
    meter = manager.meter("u", "c")
    assert meter is not None
    assert meter.bound == first + 1


def test_quota_of_a_user_counts_all_its_clients_together():
    manager = ClientQuotaManager(VirtualClock(), Rate, 11, 1)
    manager.set_quotas({("u", ABSENT): 100.0})
    assert manager.record("u", "c1", 1000) == 0
    assert manager.record("u", "c2", 1000) == 10_000
    assert manager.record("other", "c1", 1_000_000) == 0


def test_default_of_users_counts_each_user_for_itself():
    manager = ClientQuotaManager(VirtualClock(), Rate, 11, 1)
    manager.set_quotas({(DEFAULT, ABSENT): 100.0})
    assert manager.record("u1", "c", 1000) == 0
    assert manager.record("u2", "c", 1000) == 0
    assert manager.record("u1", "c", 1000) == 10_000


def test_new_quota_counts_what_was_used_before():
    manager = ClientQuotaManager(VirtualClock(), Rate, 11, 1)
    manager.set_quotas({(ABSENT, "c"): 100.0})
    assert manager.record("u", "c", 1000) == 0
    manager.set_quotas({(ABSENT, "c"): 50.0})
    assert manager.record("u", "c", 0) == 10_000


def test_a_quota_that_was_taken_away_counts_what_was_used_when_it_comes_again():
    manager = ClientQuotaManager(VirtualClock(), Rate, 11, 1)
    manager.set_quotas({(ABSENT, "c"): 100.0})
    assert manager.record("u", "c", 2000) == 10_000
    manager.set_quotas({})
    assert manager.record("u", "c", 5000) == 0  # not measured, as nobody has a quota
    manager.set_quotas({(ABSENT, "c"): 100.0})
    assert manager.record("u", "c", 0) == 10_000


@pytest.mark.parametrize(
    ("others", "own", "measured"),
    [
        ([(ABSENT, "o")], (ABSENT, "c"), (ABSENT, "c")),
        ([("o", ABSENT)], ("u", ABSENT), ("u", ABSENT)),
        ([("o", "o")], ("u", "c"), ("u", "c")),
        ([("o", "o"), ("o", ABSENT)], (ABSENT, "c"), (ABSENT, "c")),
    ],
)
def test_a_first_quota_counts_what_was_used_while_others_had_one(others, own, measured):
    """By the one kind that all quotas have, else by the client id (ClientQuotaManager.quotaTypesEnabled)."""
    manager = ClientQuotaManager(VirtualClock(), Rate, 11, 1)
    quotas = dict.fromkeys(others, 1.0)
    manager.set_quotas(quotas)
    assert manager.record("u", "c", 2000) == 0
    assert manager.most_in_window("u", "c") is None
    assert list(manager._meters) == [measured]
    manager.set_quotas(quotas | {own: 100.0})
    assert manager.record("u", "c", 0) == 10_000


def test_mutations_without_a_quota_leave_the_bucket_full():
    manager = ClientQuotaManager(VirtualClock(), TokenBucket, 11, 1)
    manager.set_quotas({("o", ABSENT): 1.0})
    assert manager.record("u", "c", 1_000_000) == 0
    manager.set_quotas({("o", ABSENT): 1.0, ("u", ABSENT): 1.0})
    assert manager.record("u", "c", 11) == 0
    assert manager.record("u", "c", 1) == 1000


def test_without_a_quota_nothing_is_measured():
    manager = ClientQuotaManager(VirtualClock(), Rate, 11, 1)
    manager.set_quotas({("u", ABSENT): 1.0})
    assert manager.record("u", "c", 100) > 0
    manager.set_quotas({})
    assert not manager.is_enabled
    assert manager.meter("u", "c") is None


def test_clients_that_change_their_id_are_forgotten():
    clock = VirtualClock()
    manager = ClientQuotaManager(clock, Rate, 11, 1)
    manager.set_quotas({(ABSENT, DEFAULT): 100.0})
    for number in range(LOOK_EVERY):
        manager.record("u", f"c{number}", 1)
    clock.advance(3_600_001)  # an hour, as Kafka's sensors
    manager.record("u", "one more", 1)
    assert len(manager._meters) == 1


def test_stored_entity_is_read_whatever_the_order_of_its_parts():
    assert entity_of([("user", "u"), ("client-id", None)]) == ("u", DEFAULT)
    assert entity_of([("client-id", "c")]) == (ABSENT, "c")
    assert measured_as([], otherwise_of([]), "u", "c") == (ABSENT, "c")
    assert candidates((ABSENT, "c")) == ((ABSENT, "c"), (ABSENT, DEFAULT))


def test_a_client_that_always_changes_its_id_costs_bounded_memory():
    """Within an hour, too: what counts is who is known, not for how long."""
    clock = VirtualClock()
    manager = ClientQuotaManager(clock, Rate, 11, 1)
    manager.set_quotas({("", None): 100.0, ("", "known"): 100.0, ("", "o" * 300): 7.0})
    for number in range(MOST_METERS + LOOK_EVERY):
        manager.record("User:a", f"id-{number}", 1)
        if not number % 5000:
            clock.advance(10)
            manager.record("User:a", "known", 1)
    assert len(manager._meters) <= MOST_METERS
    assert ("", "known") in manager._meters  # it was used all the time
    before = len(manager._meters)
    meters = {id(manager.meter("User:a", "x" * 30_000 + str(number))) for number in range(50)}
    assert len(meters) == 1
    assert len(manager._meters) == before + 1
    assert max(len(one[1] or "") for one in manager._meters) <= 256
    # One that has a quota of its own is not cut.
    own = manager.meter("User:a", "o" * 300)
    assert own is not None
    assert own.bound == 7.0
    assert manager.meter("User:a", "o" * 301) is not own
