"""One ACL, and the filter that finds ACLs (Kafka: StandardAcl, AclBinding, AclBindingFilter)."""

from __future__ import annotations

from kafka_shim.security.acl import (
    WILDCARD,
    AclOperation,
    PatternType,
    PermissionType,
    ResourceType,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from enum import IntEnum
    from typing import Any, TypeVar

    E = TypeVar("E", bound=IntEnum)


class Acl:
    """One ACL. Equal ACLs are one and the same in Kafka, whatever their ids. Never changed once made."""

    __slots__ = (
        "_hash",
        "host",
        "operation",
        "pattern_type",
        "permission_type",
        "principal",
        "resource_name",
        "resource_type",
    )

    def __init__(
        self,
        resource_type: int,
        resource_name: str,
        pattern_type: int,
        principal: str,
        host: str,
        operation: int,
        permission_type: int,
    ) -> None:
        """Codes that this version does not know become UNKNOWN, as in Kafka."""
        self.resource_type = known(ResourceType, resource_type)
        self.resource_name = resource_name
        self.pattern_type = known(PatternType, pattern_type)
        self.principal = principal
        self.host = host
        self.operation = known(AclOperation, operation)
        self.permission_type = known(PermissionType, permission_type)
        self._hash = hash(self.fields)

    @property
    def fields(self) -> tuple[ResourceType, str, PatternType, str, str, AclOperation, PermissionType]:
        return (
            self.resource_type,
            self.resource_name,
            self.pattern_type,
            self.principal,
            self.host,
            self.operation,
            self.permission_type,
        )

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Acl) and self.fields == other.fields

    def __hash__(self) -> int:
        return self._hash

    def __repr__(self) -> str:
        """Kafka's text in its audit log."""
        return (
            f"StandardAcl[resourceType={self.resource_type.name}, resourceName={self.resource_name}, "
            f"patternType={self.pattern_type.name}, principal={self.principal}, host={self.host}, "
            f"operation={self.operation.name}, permissionType={self.permission_type.name}]"
        )


def acl_of(record: Any) -> Acl:
    """Returns the ACL in an AccessControlEntryRecord, or in another message with its fields."""
    return Acl(
        record.resource_type,
        record.resource_name,
        record.pattern_type,
        record.principal,
        record.host,
        record.operation,
        record.permission_type,
    )


class AclFilter:
    """Which ACLs DescribeAcls shows and DeleteAcls deletes. None as a text stands for any."""

    __slots__ = (
        "host",
        "operation",
        "pattern_type",
        "permission_type",
        "principal",
        "resource_name",
        "resource_type",
    )

    def __init__(self, asked: Any) -> None:
        """`asked` is a DescribeAclsRequest or a DeleteAclsFilter, which have the same fields."""
        self.resource_type = known(ResourceType, asked.resource_type_filter)
        self.resource_name: str | None = asked.resource_name_filter
        self.pattern_type = known(PatternType, asked.pattern_type_filter)
        self.principal: str | None = asked.principal_filter
        self.host: str | None = asked.host_filter
        self.operation = known(AclOperation, asked.operation)
        self.permission_type = known(PermissionType, asked.permission_type)

    def matches(self, acl: Acl) -> bool:
        return (
            self.resource_type in (ResourceType.ANY, acl.resource_type)
            and self.principal in (None, acl.principal)
            and self.host in (None, acl.host)
            and self.operation in (AclOperation.ANY, acl.operation)
            and self.permission_type in (PermissionType.ANY, acl.permission_type)
            and self._matches_name(acl)
        )

    def _matches_name(self, acl: Acl) -> bool:
        """MATCH finds the ACLs that apply to a resource of this name; other pattern types compare the names."""
        if self.pattern_type not in (PatternType.ANY, PatternType.MATCH, acl.pattern_type):
            return False
        if self.resource_name is None:
            return True
        if self.pattern_type != PatternType.MATCH:
            return self.resource_name == acl.resource_name
        if acl.pattern_type == PatternType.LITERAL:
            return acl.resource_name in (self.resource_name, WILDCARD)
        return self.resource_name.startswith(acl.resource_name)


def known(kind: type[E], code: int) -> E:
    """Returns the member with this code, or UNKNOWN (Kafka's fromCode)."""
    # A call of the enum costs three times as much, and a request may bring 40,000 codes.
    member: E | None = kind._value2member_map_.get(code)  # type: ignore[assignment]
    return kind(0) if member is None else member
