"""Memory that ends while a change of ACLs, tokens or quotas is applied, and again where they are taken over: the change
is in the log, and holds when there is memory."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from kafka_shim.api import k49_alter_client_quotas
from kafka_shim.errors import KafkaError
from kafka_shim.metadata.replay import APPLY_RETRY_MS, APPLY_TRIES, Replayer
from kafka_shim.protocol.messages.alter_client_quotas_request import (
    AlterClientQuotasRequest,
    EntityData,
    EntryData,
    OpData,
)
from kafka_shim.protocol.messages.delete_acls_request import DeleteAclsFilter
from kafka_shim.security import acl_control
from kafka_shim.security.acl import AclOperation, PatternType, PermissionType, ResourceType
from kafka_shim.security.acl_binding import Acl, AclFilter
from kafka_shim.security.acl_control import AclControl
from kafka_shim.security.acl_index import AclIndex
from kafka_shim.security.delegation_tokens import DelegationTokens
from kafka_shim.security.standard_authorizer import StandardAuthorizer
from kafka_shim.tests.metadata.opened import Opened
from kafka_shim.tests.no_memory import no_memory_left
from kafka_shim.turns import at_once

EVERY_ACL = DeleteAclsFilter(
    resource_type_filter=ResourceType.ANY,
    resource_name_filter=None,
    pattern_type_filter=PatternType.ANY,
    principal_filter=None,
    host_filter=None,
    operation=AclOperation.ANY,
    permission_type=PermissionType.ANY,
)


@pytest.fixture
def node(tmp_path: Path) -> Iterator[Opened]:
    opened = Opened(tmp_path, delegation_token_secret_key="a key").start()
    yield opened
    opened.stop()


@pytest.fixture
def memory_ends(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """Let no record be applied until it is tried again later."""
    left = [0]
    for name in ("apply", "adopt"):
        real = getattr(Replayer, name)

        def some(replayer: Replayer, what: Any, real: Callable[..., None] = real) -> None:
            if left[0]:
                left[0] -= 1
                raise MemoryError
            real(replayer, what)

        monkeypatch.setattr(Replayer, name, some)
    return lambda: left.__setitem__(0, APPLY_TRIES)


class Authorizer(StandardAuthorizer):
    """One that finds no memory half-way, so many times."""

    failures = 0

    def change_acls(self, added: Iterable[Acl], removed: Iterable[Acl]) -> None:
        super().change_acls(added, removed)
        if self.failures:
            self.failures -= 1
            raise MemoryError


def acl(number: int) -> Acl:
    codes = AclOperation.READ, PermissionType.ALLOW
    return Acl(ResourceType.TOPIC, f"t{number}", PatternType.LITERAL, "User:eve", "*", *codes)


def readable(authorizer: StandardAuthorizer, count: int) -> int:
    names = [f"t{number}" for number in range(count)]
    return len(authorizer.allowed("User:eve", "h", AclOperation.READ, ResourceType.TOPIC, names))


@pytest.mark.parametrize("failures", [0, 1, 5])
@pytest.mark.parametrize("slice_size", [500, 2], ids=["few", "many"])
@pytest.mark.parametrize("is_retried", [False, True], ids=["later", "before the next change"])
def test_acls_are_in_force_and_stored_once(
    node: Opened,
    memory_ends: Callable[[], None],
    monkeypatch: pytest.MonkeyPatch,
    is_retried: bool,
    slice_size: int,
    failures: int,
) -> None:
    monkeypatch.setattr(acl_control, "SLICE", slice_size)
    authorizer = Authorizer()
    control = AclControl(node.store, node.clock, authorizer)
    acls = [acl(number) for number in range(3)]

    async def change(make: Callable[[], Any]) -> None:
        memory_ends()
        authorizer.failures = failures
        with pytest.raises(MemoryError):
            await make()
        if not is_retried:
            for _ in range(3):
                with contextlib.suppress(MemoryError):
                    node.clock.advance(APPLY_RETRY_MS)
        else:
            authorizer.failures = 0
            await make()

    asyncio.run(change(lambda: control.create(acls)))
    assert (readable(authorizer, 3), len(node.store.image.acls)) == (3, 3)
    asyncio.run(change(lambda: control.delete([AclFilter(EVERY_ACL)])))
    assert (readable(authorizer, 3), len(node.store.image.acls)) == (0, 0)
    assert asyncio.run(control.find(AclFilter(EVERY_ACL))) == []


class Failing:
    def change_acls(self, added: Iterable[Acl], removed: Iterable[Acl]) -> None:
        if added or removed:
            raise ValueError("a bug of the user's class")


def test_an_acl_is_stored_once_and_deleted_although_the_authorizer_fails_to_take_it_over(
    node: Opened, caplog: pytest.LogCaptureFixture
) -> None:
    """Each retry stored it again, and a deletion left all of them for the next start."""
    control = AclControl(node.store, node.clock, Failing())
    for _ in range(2):
        assert asyncio.run(control.create([acl(1)])) == [None]
    assert "failed to take over" in caplog.text
    assert len(node.store.image.acls) == 1
    assert asyncio.run(control.delete([AclFilter(EVERY_ACL)])) == [[acl(1)]]
    assert node.store.image.acls == {}


def test_what_follows_a_change_of_many_acls_follows_a_late_one(
    node: Opened, memory_ends: Callable[[], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The index that was in force is freed in slices, and what lives now is frozen."""
    monkeypatch.setattr(acl_control, "SLICE", 2)
    authorizer = StandardAuthorizer()
    control = AclControl(node.store, node.clock, authorizer)
    asyncio.run(control.create([acl(number) for number in range(3)]))
    before = authorizer.index
    followed: list[int] = []
    control.call_after_many(lambda: followed.append(indexed(before)))

    async def add_more() -> None:
        memory_ends()
        with pytest.raises(MemoryError):
            await control.create([acl(number) for number in range(3, 6)])
        node.clock.advance(APPLY_RETRY_MS)
        assert (readable(authorizer, 6), indexed(before)) == (6, 3)
        for _ in range(3):
            await asyncio.sleep(0)

    asyncio.run(add_more())
    assert followed == [0]


def test_a_change_of_many_acls_is_answered_although_the_old_index_is_not_freed_in_slices(
    node: Opened, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """It was answered with an error, and was stored and in force."""
    monkeypatch.setattr(acl_control, "SLICE", 2)
    authorizer = StandardAuthorizer()
    control = AclControl(node.store, node.clock, authorizer)
    assert asyncio.run(control.create([acl(number) for number in range(3)])) == [None] * 3
    with monkeypatch.context() as patch:
        patch.setattr(AclIndex, "dismantle", no_memory_left)
        assert asyncio.run(control.create([acl(number) for number in range(3, 6)])) == [None] * 3
    assert "could not be freed in slices" in caplog.text
    assert (readable(authorizer, 6), len(node.store.image.acls)) == (6, 6)
    (deleted,) = asyncio.run(control.delete([AclFilter(EVERY_ACL)]))
    assert len(deleted) == 6


def indexed(index: AclIndex) -> int:
    """Returns how many names have ACLs there."""
    return sum(len(found.literal) for found in index._types.values())


def test_a_token_can_be_used_and_is_gone(node: Opened, memory_ends: Callable[[], None]) -> None:
    tokens = DelegationTokens(node.store, node.config, node.clock)
    removed: list[str] = []
    tokens.on_removed = removed.extend
    memory_ends()
    with pytest.raises(MemoryError):
        tokens.create("User:a", "User:a", [], -1)
    node.clock.advance(APPLY_RETRY_MS)
    (token,) = tokens
    secret = tokens.hmac_of(token.token_id)
    assert tokens.renew("User:a", secret, -1) > node.clock.now_ms()
    memory_ends()
    with pytest.raises(MemoryError):
        tokens.expire("User:a", secret, -1)
    node.clock.advance(APPLY_RETRY_MS)
    assert removed == [token.token_id]
    with pytest.raises(KafkaError):
        tokens.renew("User:a", secret, -1)


def test_a_token_whose_line_finds_no_memory_is_removed(
    node: Opened, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The request failed, and its client was told next that there is no such token."""
    tokens = DelegationTokens(node.store, node.config, node.clock)
    _, secret = tokens.create("User:a", "User:a", [], -1)
    monkeypatch.setattr(logging.getLogger("kafka_shim.security"), "filters", [no_memory_left])
    caplog.set_level(logging.INFO, "kafka_shim.security")
    assert tokens.expire("User:a", secret, -1) == node.clock.now_ms()
    assert not list(tokens)


def test_quotas_hold_although_memory_ended_after_their_record(node: Opened, memory_ends: Callable[[], None]) -> None:
    broker = SimpleNamespace(metadata=node.store, config=node.config, clock=node.clock, quotas=None)
    entity = [EntityData(entity_type="user", entity_name="a")]
    entry = EntryData(entity=entity, ops=[OpData(key="producer_byte_rate", value=5.0)])
    request = AlterClientQuotasRequest(entries=[entry], validate_only=False)
    context: Any = SimpleNamespace(broker=broker)
    memory_ends()
    with pytest.raises(MemoryError):
        at_once(k49_alter_client_quotas.handle(context, request))
    assert broker.quotas is None
    node.clock.advance(APPLY_RETRY_MS)
    assert broker.quotas is not None
