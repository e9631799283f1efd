"""Authorisation checks against the broker's authorizer (Kafka's AuthHelper).

`dispatch` checks the cluster operations that a row of `api.ROWS` requires. A handler checks what depends on the request
or the response, such as topic and group names. It checks at the same place as KafkaApis and returns the same response
for a name that is not authorised. Without an authorizer everything is allowed, and a check costs one function call.
"""

from __future__ import annotations

from inspect import isawaitable
from itertools import chain, islice

from kafka_shim.errors import KafkaError
from kafka_shim.security.acl import CLUSTER_NAME, DENIED, SUPPORTED_OPERATIONS, AclOperation, ResourceType

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable
    from collections.abc import Set as AbstractSet
    from typing import Any, TypeVar

    from kafka_shim.context import Context
    from kafka_shim.turns import Steps

    Group = TypeVar("Group")
    # What is quick to look up: callers ask for each name whether it is among the allowed ones, which may be these.
    Names = AbstractSet[str] | dict[str, Any]

# Names that are checked in one step.
NAMES_PER_STEP = 16


def authorized(
    context: Context,
    operation: AclOperation,
    resource_type: ResourceType,
    names: Names,
    *,
    logs_denied: bool = True,
) -> Collection[str]:
    """Returns those of the names on which the client is allowed the operation. `logs_denied`: whether the client asked
    for these names, so that a denial is logged (Kafka's logIfDenied)."""
    broker = context.broker
    authorizer = broker.authorizer
    if authorizer is None or not names:
        return names
    principal, host = context.session.principal, context.session.peer_host
    allowed = authorizer.allowed(principal, host, operation, resource_type, names)
    audit_log = broker.audit_log
    if audit_log is not None and (len(allowed) != len(names) or audit_log.shows_allowed()):
        from kafka_shim.security.audit_log import Asked

        asked = Asked(context.api_key, principal, host, operation, resource_type)
        audit_log.note(asked, names, allowed, logs_denied=logs_denied)
    return allowed


def authorized_in_steps(
    context: Context,
    operation: AclOperation,
    resource_type: ResourceType,
    names: Iterable[str],
    *,
    logs_denied: bool = True,
) -> Steps[Collection[str]]:
    """As `authorized`, in steps (`turns.py`): for names of which a client may send any number. One that it sends again
    is asked for once, as in Kafka, so that the log has one line of it."""
    if context.broker.authorizer is None:
        return names if isinstance(names, dict) else dict.fromkeys(names)
    allowed: dict[str, None] = {}
    asked: dict[str, None] = {}
    rest = iter(names)
    while some := list(islice(rest, NAMES_PER_STEP)):
        new = dict.fromkeys(name for name in some if name not in asked)
        if new:
            asked |= new
            some_allowed = authorized(context, operation, resource_type, new, logs_denied=logs_denied)
            allowed.update(dict.fromkeys(some_allowed))
        yield
    return allowed


def hide_groups_by_topic(
    context: Context,
    groups: list[Group],
    topics_of: Callable[[Group], Collection[str]],
    hidden: Callable[[Group], Group],
) -> Steps[None]:
    """Put `hidden(group)` in the place of each group that has a topic which the client may not describe, in steps."""
    if context.broker.authorizer is None:
        return
    shown = []
    for group in groups:
        shown.append(topics_of(group))
        yield
    names = dict.fromkeys(chain.from_iterable(shown))
    described = yield from authorized_in_steps(context, AclOperation.DESCRIBE, ResourceType.TOPIC, names)
    for place, topics in enumerate(shown):
        if not all(name in described for name in topics):
            groups[place] = hidden(groups[place])
        yield


def is_authorized(
    context: Context, operation: AclOperation, resource_type: ResourceType, name: str, *, logs_denied: bool = True
) -> bool:
    """Returns whether the client is allowed the operation on this resource."""
    return context.broker.authorizer is None or name in authorized(
        context, operation, resource_type, {name}, logs_denied=logs_denied
    )


def require(context: Context, operation: AclOperation, resource_type: ResourceType, name: str) -> None:
    """Raises the resource type's ..._AUTHORIZATION_FAILED if the client is not allowed the operation."""
    if context.broker.authorizer is None:
        return  # one call for most requests of a group or a transaction
    if not is_authorized(context, operation, resource_type, name):
        raise KafkaError(DENIED[resource_type])


def may_on_cluster(context: Context, operation: AclOperation, *, logs_denied: bool = True) -> bool:
    """Returns whether the client is allowed the operation on the cluster."""
    return is_authorized(context, operation, ResourceType.CLUSTER, CLUSTER_NAME, logs_denied=logs_denied)


def require_on_cluster(context: Context, *operations: AclOperation) -> None:
    """Raises CLUSTER_AUTHORIZATION_FAILED if the client is allowed none of the operations on the cluster."""
    last = operations[-1]
    if not any(may_on_cluster(context, operation, logs_denied=operation is last) for operation in operations):
        raise KafkaError(DENIED[ResourceType.CLUSTER])


def may_on_any(context: Context, operation: AclOperation, resource_type: ResourceType) -> bool:
    """Returns whether the client is allowed the operation on at least one resource of this type."""
    authorizer = context.broker.authorizer
    if authorizer is None:
        return True
    session = context.session
    answer: object = authorizer.allowed_on_any(session.principal, session.peer_host, operation, resource_type)
    if isawaitable(answer):  # of a method whose `async` a wrapper hides: it would be taken for a yes
        raise TypeError(f"allowed_on_any returns a {type(answer).__name__}, which nothing awaits")
    return bool(answer)


def topics_described_by(context: Context) -> Callable[[str], bool] | None:
    """Returns a function that says of a topic whether the client may describe it, also after this request; None without
    an authorizer. Nothing of it is logged."""
    broker = context.broker
    if broker.authorizer is None:
        return None
    principal, host = context.session.principal, context.session.peer_host

    def may_describe(name: str) -> bool:
        authorizer = broker.authorizer
        return authorizer is None or bool(
            authorizer.allowed(principal, host, AclOperation.DESCRIBE, ResourceType.TOPIC, (name,))
        )

    return may_describe


def authorized_operations(context: Context, resource_type: ResourceType, name: str) -> int:
    """Returns the operations that the client is allowed on this resource, as a bit field indexed by AclOperation's
    codes. Nothing of it is logged."""
    authorizer, session = context.broker.authorizer, context.session
    bits = 0
    for operation in SUPPORTED_OPERATIONS[resource_type]:
        if authorizer is None or authorizer.allowed(
            session.principal, session.peer_host, operation, resource_type, (name,)
        ):
            bits |= 1 << operation
    return bits
