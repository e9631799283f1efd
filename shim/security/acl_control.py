"""Creates, deletes and finds ACLs, which are records of the metadata log (Kafka: AclControlManager, AclApis)."""

from __future__ import annotations

from kafka_shim.errors import ErrorCode, KafkaError
from kafka_shim.protocol.records.access_control_entry_record import AccessControlEntryRecord
from kafka_shim.protocol.records.remove_access_control_entry_record import RemoveAccessControlEntryRecord
from kafka_shim.security.acl import CLUSTER_NAME, AclOperation, PatternType, PermissionType, ResourceType
from kafka_shim.security.acl_binding import acl_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from typing import Any, Protocol

    from kafka_shim.clock import Clock
    from kafka_shim.metadata.store import MetadataStore
    from kafka_shim.security.acl_binding import Acl, AclFilter

    class AclListener(Protocol):
        """An authorizer that decides by the stored ACLs."""

        def change_acls(self, added: Iterable[Acl], removed: Iterable[Acl]) -> None:
            """Take over a change. Called once at the start with all ACLs, then after each commit."""


# QuorumController.MAX_RECORDS_PER_USER_OP
MAX_RECORDS = 10_000


class AclControl:
    """The stored ACLs. Owned by the broker. Event-loop thread only. A response to a change awaits `metadata.flushed()`
    first."""

    def __init__(self, metadata: MetadataStore, clock: Clock, listener: AclListener) -> None:
        self._metadata = metadata
        self._clock = clock
        self._listener = listener
        self._ids: dict[Acl, bytes] = {acl_of(record): key for key, record in metadata.image.acls.items()}
        listener.change_acls(self._ids, ())

    def create(self, acls: Sequence[Acl]) -> list[KafkaError | None]:
        """Store those that are valid and new, in one commit. Returns the error of each, or None. An ACL that exists is
        no error.

        Raises KafkaError POLICY_VIOLATION for too many at once, and UNKNOWN_SERVER_ERROR if one has a code that is for
        filters alone, as Kafka does; then none is stored."""
        for acl in acls:
            _require_binding(acl)
        results = [_error_of(acl) for acl in acls]
        new = [acl for acl, error in zip(acls, results, strict=True) if error is None and acl not in self._ids]
        ids = {acl: self._new_id() for acl in dict.fromkeys(new)}
        if len(ids) > MAX_RECORDS:
            raise KafkaError(ErrorCode.POLICY_VIOLATION, "Unable to perform excessively large batch operation.")
        if ids:
            self._metadata.commit([_record(acl_id, acl) for acl, acl_id in ids.items()])
            self._ids.update(ids)
            self._listener.change_acls(ids, ())
        return results

    def delete(self, filters: Sequence[AclFilter]) -> list[list[Acl] | KafkaError]:
        """Delete what the filters match, in one commit. Returns for each filter its ACLs, or its error. An ACL that two
        filters match is in both results.

        Raises KafkaError INVALID_REQUEST if they match too many, and then deletes none."""
        results: list[list[Acl] | KafkaError] = []
        deleted: dict[Acl, bytes] = {}
        for one in filters:
            error = _filter_error(one)
            if error is not None:
                results.append(error)
                continue
            found = self.find(one)
            results.append(found)
            deleted.update((acl, self._ids[acl]) for acl in found)
            if len(deleted) > MAX_RECORDS:
                reason = f"Cannot remove more than {MAX_RECORDS} acls in a single delete operation."
                raise KafkaError(ErrorCode.INVALID_REQUEST, reason)
        if deleted:
            self._metadata.commit([RemoveAccessControlEntryRecord(id=acl_id) for acl_id in deleted.values()])
            for acl in deleted:
                del self._ids[acl]
            self._listener.change_acls((), deleted)
        return results

    def find(self, wanted: AclFilter) -> list[Acl]:
        """Returns the ACLs that the filter matches."""
        return [acl for acl in self._ids if wanted.matches(acl)]

    def _new_id(self) -> bytes:
        acl_id = self._clock.random.uuid()
        while acl_id in self._metadata.image.acls:
            acl_id = self._clock.random.uuid()
        return acl_id


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
    for kind, code in (
        ("resourceType", acl.resource_type),
        ("patternType", acl.pattern_type),
        ("operation", acl.operation),
        ("permissionType", acl.permission_type),
    ):
        if code.name in ("ANY", "MATCH"):
            raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, f"{kind} must not be {code.name}")


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
