"""Kafka's StandardAuthorizer: decides by the ACLs in the metadata log.

The rules (StandardAuthorizerData of Kafka 4.3.1): a super user may do everything. Else the ACLs that apply to the
resource, the client's principal or `User:*`, and the client's address or `*` decide: one that denies outweighs all that
allow. READ, WRITE, DELETE and ALTER allow DESCRIBE too, and ALTER_CONFIGS allows DESCRIBE_CONFIGS; a denied operation
denies nothing else. If no ACL at all applies to the resource, `allow.everyone.if.no.acl.found` decides.
"""

from __future__ import annotations

from kafka_shim.config import ConfigError
from kafka_shim.security.acl import WILDCARD, WILDCARD_PRINCIPAL, AclOperation, PatternType, PermissionType
from kafka_shim.security.acl_index import AclIndex

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from kafka_shim.security.acl import ResourceType
    from kafka_shim.security.acl_binding import Acl

SUPER_USERS = "super.users"
ALLOW_EVERYONE = "allow.everyone.if.no.acl.found"

_O = AclOperation
# The operations of an ALLOW ACL that allow another operation.
IMPLIED_BY: dict[int, frozenset[int]] = {
    _O.DESCRIBE: frozenset({_O.ALL, _O.DESCRIBE, _O.READ, _O.WRITE, _O.DELETE, _O.ALTER}),
    _O.DESCRIBE_CONFIGS: frozenset({_O.ALL, _O.DESCRIBE_CONFIGS, _O.ALTER_CONFIGS}),
}

# Decisions are remembered until the ACLs change, for as many resources in all, whose names are at most so long.
MAX_REMEMBERED = 65_536
MAX_REMEMBERED_NAME = 256

# Kafka asks about a resource of this name to learn whether a client may do something anywhere.
ANYWHERE = "hardcode"
_NOTHING: dict[str, bool] = {}


class StandardAuthorizer:
    """Decides by ACLs. Owned by the broker. Event-loop thread only."""

    def __init__(self) -> None:
        # How often the rules changed. A decision holds until the next change.
        self.changes = 1
        self._super_users: frozenset[str] = frozenset()
        self._allows_everyone = False
        self.index = AclIndex()
        # (principal, host, operation, resource type) -> name -> whether it is allowed.
        self._remembered: dict[tuple[str, str, int, int], dict[str, bool]] = {}
        self._remembered_count = 0

    def configure(self, options: Mapping[str, str]) -> None:
        """Read the options, by Kafka's names, as texts. Raises ConfigError for a super user that is no principal."""
        users = [user.strip() for user in options.get(SUPER_USERS, "").split(";")]
        for user in filter(None, users):
            kind, colon, _ = user.partition(":")
            if not (kind and colon):
                raise ConfigError(
                    f"{SUPER_USERS}: expected a string in format principalType:principalName but got {user}; "
                    f"separate several by semicolons"
                )
        self.changes += 1
        self._super_users = frozenset(filter(None, users))
        self._allows_everyone = options.get(ALLOW_EVERYONE, "").strip().lower() == "true"

    # --- the ACLs

    def change_acls(self, added: Iterable[Acl], removed: Iterable[Acl]) -> None:
        """Take over a change of the stored ACLs. The next request is decided by it."""
        self.changes += 1
        for acl in removed:
            self.index.remove(acl)
        for acl in added:
            self.index.add(acl)
        self._remembered.clear()
        self._remembered_count = 0

    def take_index(self, index: AclIndex) -> AclIndex:
        """Decide by these ACLs from the next request on. Returns the index that was in force."""
        old, self.index = self.index, index
        self.change_acls((), ())
        return old

    # --- decisions

    def allowed(
        self, principal: str, host: str, operation: AclOperation, resource_type: ResourceType, names: Iterable[str]
    ) -> Collection[str]:
        """Returns those of the names on which the principal is allowed the operation."""
        remembered = self._remembered.get((principal, host, operation, resource_type), _NOTHING)
        found = set()
        for name in names:
            verdict = remembered.get(name)
            if verdict is None:
                verdict = self._decide(principal, host, operation, resource_type, name)[0]
                self._remember((principal, host, operation, resource_type), name, verdict)
            if verdict:
                found.add(name)
        return found

    def allowed_on_any(self, principal: str, host: str, operation: AclOperation, resource_type: ResourceType) -> bool:
        """Returns whether the principal is allowed the operation on any name of this type: some ACL allows it, and no
        ACL of the same or a wider pattern denies it (Authorizer.authorizeByResourceType). Implied operations do not
        count."""
        if self.allowed(principal, host, operation, resource_type, (ANYWHERE,)):
            return True
        denied: dict[int, set[str]] = {PatternType.LITERAL: set(), PatternType.PREFIXED: set()}
        allowed: dict[int, set[str]] = {PatternType.LITERAL: set(), PatternType.PREFIXED: set()}
        for acl in self.index.of_type(resource_type):
            if (
                acl.host in (host, WILDCARD)
                and acl.principal in (principal, WILDCARD_PRINCIPAL)
                and acl.operation in (operation, AclOperation.ALL)
            ):
                group = denied if acl.permission_type == PermissionType.DENY else allowed
                is_prefix = acl.pattern_type == PatternType.PREFIXED
                group[PatternType.PREFIXED if is_prefix else PatternType.LITERAL].add(acl.resource_name)
        if WILDCARD in denied[PatternType.LITERAL]:
            return False
        if WILDCARD in allowed[PatternType.LITERAL]:
            return True
        lengths = sorted({len(prefix) for prefix in denied[PatternType.PREFIXED]})

        def is_denied(name: str) -> bool:
            return any(name[:size] in denied[PatternType.PREFIXED] for size in lengths if size <= len(name))

        literal = allowed[PatternType.LITERAL] - denied[PatternType.LITERAL]
        return not all(map(is_denied, literal | allowed[PatternType.PREFIXED]))

    def rule(self, principal: str, host: str, operation: AclOperation, resource_type: ResourceType, name: str) -> str:
        """Returns what the decision is based on, for the log, in Kafka's words."""
        reason = self._decide(principal, host, operation, resource_type, name)[1]
        return reason if isinstance(reason, str) else f"MatchingAcl(acl={reason})"

    def _decide(
        self, principal: str, host: str, operation: AclOperation, resource_type: ResourceType, name: str
    ) -> tuple[bool, Acl | str]:
        """Returns whether it is allowed, and the ACL or the rule that says so."""
        if principal in self._super_users:
            return True, "SuperUser"
        allowing: Acl | None = None
        has_acls = False
        implied_by = IMPLIED_BY.get(operation) or (operation, AclOperation.ALL)
        who = (WILDCARD_PRINCIPAL,) if principal == WILDCARD_PRINCIPAL else (principal, WILDCARD_PRINCIPAL)
        for by_principal in self.index.matching(resource_type, name):
            has_acls = True
            for acl in [acl for one in who for acl in by_principal.get(one, ())]:
                if acl.host not in (host, WILDCARD):
                    continue
                if acl.permission_type == PermissionType.ALLOW:
                    if acl.operation in implied_by:
                        allowing = acl
                elif acl.operation in (operation, AclOperation.ALL):
                    return False, acl
        if allowing is not None:
            return True, allowing
        if not has_acls and self._allows_everyone:
            return True, "DefaultAllow"
        return False, "DefaultDeny"

    def _remember(self, key: tuple[str, str, int, int], name: str, verdict: bool) -> None:
        if len(name) > MAX_REMEMBERED_NAME:
            return
        if self._remembered_count >= MAX_REMEMBERED:
            self._remembered.clear()
            self._remembered_count = 0
        self._remembered_count += 1
        self._remembered.setdefault(key, {})[name] = verdict
