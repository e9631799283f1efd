"""Finds the ACLs that apply to a resource and a principal, without looking at the others.

Kafka walks a sorted set backwards from the resource's name (StandardAuthorizerData.checkSection). Here a resource type
has a dict of literal names, with the wildcard among them, and one of prefixes, and each name has its ACLs by principal.
A look-up takes one step for the name, one for the wildcard, and one for each length that some prefix of the type has,
however many ACLs there are.
"""

from __future__ import annotations

from bisect import insort

from kafka_shim.security.acl import WILDCARD, PatternType

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from kafka_shim.security.acl_binding import Acl

    ByPrincipal = dict[str, list[Acl]]


class AclIndex:
    """ACLs by resource and principal. Event-loop thread only."""

    __slots__ = ("_types",)

    def __init__(self) -> None:
        self._types: dict[int, _ResourceAcls] = {}

    def add(self, acl: Acl) -> None:
        """Add an ACL that is not there yet."""
        self._types.setdefault(acl.resource_type, _ResourceAcls()).add(acl)

    def remove(self, acl: Acl) -> None:
        """Remove an ACL that is there."""
        self._types[acl.resource_type].remove(acl)

    def matching(self, resource_type: int, name: str) -> Iterator[ByPrincipal]:
        """Yields the ACLs of each pattern that fits this resource: its literal name, the wildcard, its prefixes."""
        found = self._types.get(resource_type)
        return iter(()) if found is None else found.matching(name)

    def of_type(self, resource_type: int) -> Iterator[Acl]:
        """Yields all ACLs of a resource type."""
        found = self._types.get(resource_type)
        if found is not None:
            for patterns in (found.literal, found.prefixed):
                for by_principal in patterns.values():
                    for acls in by_principal.values():
                        yield from acls

    def dismantle(self) -> Iterator[None]:
        """Empties the index, one name at each step: to free many ACLs at once takes long. Nothing uses it any more."""
        for found in self._types.values():
            for patterns in (found.literal, found.prefixed):
                while patterns:
                    patterns.popitem()
                    yield


class _ResourceAcls:
    """The ACLs of one resource type."""

    __slots__ = ("lengths", "literal", "prefix_counts", "prefixed")

    def __init__(self) -> None:
        self.literal: dict[str, ByPrincipal] = {}
        self.prefixed: dict[str, ByPrincipal] = {}
        # The lengths of the prefixes, ascending, and how many different prefixes have each.
        self.lengths: list[int] = []
        self.prefix_counts: dict[int, int] = {}

    def add(self, acl: Acl) -> None:
        name, size = acl.resource_name, len(acl.resource_name)
        patterns = self.literal
        if acl.pattern_type == PatternType.PREFIXED:
            patterns = self.prefixed
            if name not in patterns:
                if size not in self.prefix_counts:
                    insort(self.lengths, size)
                self.prefix_counts[size] = self.prefix_counts.get(size, 0) + 1
        patterns.setdefault(name, {}).setdefault(acl.principal, []).append(acl)

    def remove(self, acl: Acl) -> None:
        name, size = acl.resource_name, len(acl.resource_name)
        is_prefix = acl.pattern_type == PatternType.PREFIXED
        patterns = self.prefixed if is_prefix else self.literal
        by_principal = patterns[name]
        by_principal[acl.principal].remove(acl)
        if by_principal[acl.principal]:
            return
        del by_principal[acl.principal]
        if by_principal:
            return
        del patterns[name]
        if is_prefix:
            self.prefix_counts[size] -= 1
            if not self.prefix_counts[size]:
                del self.prefix_counts[size]
                self.lengths.remove(size)

    def matching(self, name: str) -> Iterator[ByPrincipal]:
        literal, prefixed = self.literal, self.prefixed
        if name in literal:
            yield literal[name]
        # Kafka takes the wildcard for a literal name that is shorter than "*x", and passes over it: it is not for names
        # that begin with an asterisk. A topic cannot have such a name.
        if WILDCARD in literal and not name.startswith(WILDCARD):
            yield literal[WILDCARD]
        longest = len(name)
        for size in self.lengths:
            if size > longest:
                break
            found = prefixed.get(name[:size])
            if found is not None:
                yield found
