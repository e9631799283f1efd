"""Creates, deletes and finds ACLs, which are records of the metadata log (Kafka: AclControlManager, AclApis)."""

from __future__ import annotations

import asyncio
import logging
from functools import partial

from kafka_shim.errors import ErrorCode, KafkaError
from kafka_shim.metadata.prepared_changes import announced_if_memory_suffices
from kafka_shim.places import Places
from kafka_shim.protocol.records.access_control_entry_record import AccessControlEntryRecord
from kafka_shim.protocol.records.remove_access_control_entry_record import RemoveAccessControlEntryRecord
from kafka_shim.security.acl import CLUSTER_NAME, AclOperation, PatternType, PermissionType, ResourceType
from kafka_shim.security.acl_binding import acl_of
from kafka_shim.security.acl_index import AclIndex

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterable
    from typing import Any, Protocol, TypeVar

    T = TypeVar("T")

    from kafka_shim.clock import Clock
    from kafka_shim.metadata.authors import Author
    from kafka_shim.metadata.prepared_changes import PreparedChange
    from kafka_shim.metadata.store import MetadataStore
    from kafka_shim.security.acl_binding import Acl, AclFilter
    from kafka_shim.turns import Steps

    class AclListener(Protocol):
        """An authorizer that decides by the stored ACLs."""

        def change_acls(self, added: Iterable[Acl], removed: Iterable[Acl]) -> None:
            """Take over a change. Called once at the start with all ACLs, then after each commit. A class that has
            `take_index(index)` as well is given the whole new index (`AclIndex`) after a commit of many."""


logger = logging.getLogger("kafka_shim.security")

# QuorumController.MAX_RECORDS_PER_USER_OP
MAX_RECORDS = 10_000
# How many ACLs are looked at before other connections are served: about two milliseconds.
SLICE = 500


class AclControl:
    """The stored ACLs. Owned by the broker. Event-loop thread only. A response to a change awaits `metadata.flushed()`
    first.

    Changes are made one after another, as in Kafka's controller. All that a change of many costs is done in slices
    before it is committed: its records are encoded, and the new index is built beside the one in force. The commit
    itself takes one turn of the event loop, so that no request sees a part of a change."""

    def __init__(self, metadata: MetadataStore, clock: Clock, listener: AclListener) -> None:
        self._metadata = metadata
        self._clock = clock
        self._listener = listener
        self._take_index = getattr(listener, "take_index", None)
        self._changing = Places(1)
        self._after_many: Callable[[], object] | None = None
        self._dismantling: asyncio.Task[None] | None = None
        self._ids = _stored(metadata)
        listener.change_acls(self._ids, ())

    def call_after_many(self, function: Callable[[], object]) -> None:
        """Call `function` whenever many ACLs were changed at once."""
        self._after_many = function

    async def create(self, acls: Iterable[Acl], by: Author | None = None) -> list[KafkaError | None]:
        """Store those that are valid and new, in one commit. Returns the error of each, or None. An ACL that exists is
        no error. `by` is who asked for it. Other connections are served between slices of the work.

        Raises KafkaError POLICY_VIOLATION for too many at once, and UNKNOWN_SERVER_ERROR if one has a code that is for
        filters alone, as Kafka does; then none is stored."""
        results: list[KafkaError | None] = []
        ids: dict[Acl, bytes] = {}
        async with self._changing:
            self._metadata.resume()  # else an ACL could be stored twice, and its deletion would remove one of them
            async for acl in in_slices(acls):
                _require_binding(acl)
                error = _error_of(acl)
                results.append(error)
                if error is None and acl not in self._ids and acl not in ids:
                    ids[acl] = self._new_id()
            if len(ids) > MAX_RECORDS:
                raise KafkaError(ErrorCode.POLICY_VIOLATION, "Unable to perform excessively large batch operation.")
            if ids:
                records = [_record(acl_id, acl) async for acl, acl_id in in_slices(ids.items())]
                await self._change(records, ids, {}, by)
        return results

    async def delete(self, filters: Iterable[AclFilter], by: Author | None = None) -> list[list[Acl] | KafkaError]:
        """Delete what the filters match, in one commit. Returns for each filter its ACLs, or its error. An ACL that two
        filters match is in both results. Other connections are served between slices of the work.

        Raises KafkaError INVALID_REQUEST if they match too many, and then deletes none."""
        results: list[list[Acl] | KafkaError] = []
        deleted: dict[Acl, bytes] = {}
        looked = 0
        async with self._changing:
            self._metadata.resume()
            async for one in in_slices(filters):
                error = _filter_error(one)
                if error is not None:
                    results.append(error)
                    continue
                found: list[Acl] = []
                for acl, acl_id in self._ids.items():
                    if one.matches(acl):
                        found.append(acl)
                        deleted[acl] = acl_id
                    looked += 1
                    if not looked % SLICE:
                        await asyncio.sleep(0)
                results.append(found)
                if len(deleted) > MAX_RECORDS:
                    reason = f"Cannot remove more than {MAX_RECORDS} acls in a single delete operation."
                    raise KafkaError(ErrorCode.INVALID_REQUEST, reason)
            if deleted:
                records = [RemoveAccessControlEntryRecord(id=acl_id) async for acl_id in in_slices(deleted.values())]
                await self._change(records, {}, deleted, by)
        return results

    async def find(self, wanted: AclFilter) -> list[Acl]:
        """Returns the ACLs that the filter matches. Other connections are served meanwhile."""
        return [acl async for acl in in_slices(list(self._ids)) if wanted.matches(acl)]

    async def _prepared(self, records: list[Any]) -> PreparedChange:
        """What a commit needs of these records holds also after changes by others: no other record concerns them."""
        made: list[PreparedChange] = []

        def steps() -> Steps[None]:
            made.append((yield from self._metadata.prepare(records)))

        async for _ in in_slices(steps()):
            pass
        return made[0]

    async def _change(
        self, records: list[Any], added: dict[Acl, bytes], removed: dict[Acl, bytes], by: Author | None
    ) -> None:
        """Commit a change and let the authorizer take it over, both in one turn of the event loop."""
        prepared = await self._prepared(records)
        if len(records) <= SLICE or self._take_index is None:
            self._commit(records, prepared, partial(self._take_over, added, removed))
        else:
            await self._change_many(records, prepared, added, removed)
        for _ in announced_if_memory_suffices(prepared, by):
            await asyncio.sleep(0)

    async def _change_many(
        self, records: list[Any], prepared: PreparedChange, added: dict[Acl, bytes], removed: dict[Acl, bytes]
    ) -> None:
        """The same, with a new index that is built beside the one in force."""
        ids = {acl: acl_id async for acl, acl_id in in_slices(self._ids.items()) if acl not in removed}
        ids.update(added)
        index = AclIndex()
        async for acl in in_slices(ids):
            index.add(acl)
        self._dismantling = None
        self._commit(records, prepared, partial(self._replace, ids, index))
        if self._dismantling is not None:
            await self._dismantling

    def _commit(self, records: list[Any], prepared: PreparedChange, take_over: Callable[[], None]) -> None:
        """Commit a change and let it be taken over: if memory ends on the way, later."""
        self._metadata.commit_and_follow(records, [partial(self._follow, [take_over])], prepared)

    def _follow(self, first: list[Callable[[], None]]) -> None:
        """Take over a change. Half of it may be taken over after a MemoryError: then all ACLs are taken over again."""
        if first:
            first.pop()()
            return
        ids = _stored(self._metadata)
        if self._take_index is None:
            self._tell(ids.keys() - self._ids.keys(), self._ids.keys() - ids.keys())
            self._ids = ids
            return
        index = AclIndex()
        for acl in ids:
            index.add(acl)
        self._replace(ids, index)

    def _take_over(self, added: dict[Acl, bytes], removed: dict[Acl, bytes]) -> None:
        self._tell(added, removed)
        self._ids.update(added)
        for acl in removed:
            del self._ids[acl]

    def _tell(self, added: Iterable[Acl], removed: Iterable[Acl]) -> None:
        try:
            self._listener.change_acls(added, removed)
        except MemoryError:
            raise
        except Exception:  # of a user's class, as in Kafka: what is stored must not be stored again
            logger.exception("the authorizer failed to take over a change of ACLs")

    def _replace(self, ids: dict[Acl, bytes], index: AclIndex) -> None:
        """Put an index in force. What follows is a task: nobody waits for a change that is taken over later."""
        assert self._take_index is not None
        self._ids = ids
        old: AclIndex = self._take_index(index)
        self._dismantling = asyncio.get_running_loop().create_task(self._dismantle(old))

    async def _dismantle(self, old: AclIndex) -> None:
        """To free the index that was in force takes its time, too. A failure is logged: the change is in force."""
        try:
            async for _ in in_slices(old.dismantle()):
                pass
            if self._after_many is not None:
                self._after_many()
        except Exception:
            logger.exception("the ACLs that were in force before a change could not be freed in slices")

    def _new_id(self) -> bytes:
        acl_id = self._clock.random.uuid()
        while acl_id in self._metadata.image.acls:
            acl_id = self._clock.random.uuid()
        return acl_id


def _stored(metadata: MetadataStore) -> dict[Acl, bytes]:
    return {acl_of(record): key for key, record in metadata.image.acls.items()}


async def in_slices(many: Iterable[T]) -> AsyncIterator[T]:
    """Yields each of them, and lets the event loop run after each slice."""
    for number, one in enumerate(many, 1):
        yield one
        if not number % SLICE:
            await asyncio.sleep(0)


def _record(acl_id: bytes, acl: Acl) -> Any:
    return AccessControlEntryRecord(
        id=acl_id,
        resource_type=acl.resource_type,
        resource_name=acl.resource_name,
        pattern_type=acl.pattern_type,
        principal=acl.principal,
        host=acl.host,
        operation=acl.operation,
        permission_type=acl.permission_type,
    )


def _require_binding(acl: Acl) -> None:
    """Kafka cannot make an AclBinding of codes that are for filters alone, and fails the whole request."""
    if acl.resource_type is ResourceType.ANY:
        kind, code = "resourceType", "ANY"
    elif acl.pattern_type in (PatternType.ANY, PatternType.MATCH):
        kind, code = "patternType", acl.pattern_type.name
    elif acl.operation is AclOperation.ANY:
        kind, code = "operation", "ANY"
    elif acl.permission_type is PermissionType.ANY:
        kind, code = "permissionType", "ANY"
    else:
        return
    raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, f"{kind} must not be {code}")


def _error_of(acl: Acl) -> KafkaError | None:
    """The first reason why this ACL cannot be stored, in Kafka's order and words (AclApis, then validateNewAcl)."""
    reason = None
    if acl.resource_type == ResourceType.CLUSTER and acl.resource_name != CLUSTER_NAME:
        reason = f"The only valid name for the CLUSTER resource is {CLUSTER_NAME}"
    elif not acl.resource_name:
        reason = "Invalid empty resource name"
    elif acl.resource_type == ResourceType.UNKNOWN:
        reason = f"Invalid resourceType {acl.resource_type.name}"
    elif acl.pattern_type not in (PatternType.LITERAL, PatternType.PREFIXED):
        reason = f"Invalid patternType {acl.pattern_type.name}"
    elif acl.operation == AclOperation.UNKNOWN:
        reason = f"Invalid operation {acl.operation.name}"
    elif acl.permission_type not in (PermissionType.DENY, PermissionType.ALLOW):
        reason = f"Invalid permissionType {acl.permission_type.name}"
    elif ":" not in acl.principal:
        reason = (
            f"Could not parse principal from `{acl.principal}` (no colon is present separating the principal type from "
            "the principal name)"
        )
    return None if reason is None else KafkaError(ErrorCode.INVALID_REQUEST, reason)


def _filter_error(wanted: AclFilter) -> KafkaError | None:
    if wanted.resource_type == ResourceType.UNKNOWN or wanted.pattern_type == PatternType.UNKNOWN:
        return KafkaError(ErrorCode.INVALID_REQUEST, "Unknown patternFilter.")
    if wanted.operation == AclOperation.UNKNOWN or wanted.permission_type == PermissionType.UNKNOWN:
        return KafkaError(ErrorCode.INVALID_REQUEST, "Unknown entryFilter.")
    return None
