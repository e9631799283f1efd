"""Functions that the three ACL APIs share."""

from __future__ import annotations

from kafka_shim.errors import DisconnectError, ErrorCode, KafkaError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from kafka_shim.broker import Broker
    from kafka_shim.security.acl_control import AclControl

UNKNOWN = 0


def stored_acls(broker: Broker, without_authorizer: str) -> AclControl:
    """Returns the stored ACLs. Raises SECURITY_DISABLED without an authorizer that decides by them."""
    if broker.acls is not None:
        return broker.acls
    if broker.authorizer is None:
        raise KafkaError(ErrorCode.SECURITY_DISABLED, without_authorizer)
    name = type(broker.authorizer).__name__
    raise KafkaError(ErrorCode.SECURITY_DISABLED, f"The authorizer {name} does not decide by ACLs.")


def require_known(api: str, *codes: int) -> None:
    """Raises DisconnectError for the code of UNKNOWN, with which Kafka does not read the request."""
    if UNKNOWN in codes:
        raise DisconnectError(f"cannot read {api}: it contains UNKNOWN elements")
