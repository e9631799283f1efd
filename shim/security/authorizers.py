"""Builds what `authorizer.class.name` names.

A Python class, by its dotted path, has this interface:

    class MyAuthorizer:
        def configure(self, options: Mapping[str, str]) -> None: ...
        def allowed(self, principal, host, operation, resource_type, names) -> Collection[str]: ...
        def allowed_on_any(self, principal, host, operation, resource_type) -> bool: ...
        def change_acls(self, added: Iterable[Acl], removed: Iterable[Acl]) -> None: ...
        def rule(self, principal, host, operation, resource_type, name) -> str: ...

`configure` gets all options that were given, by Kafka's names; what it raises stops the start. `allowed` returns those
of the names on which the operation is allowed. The last two methods are optional: with `change_acls` the class decides
by the ACLs that DescribeAcls, CreateAcls and DeleteAcls manage, without it they answer SECURITY_DISABLED; `rule` says
in the log what a decision is based on.

It is made without arguments, configured once, and called on the event loop for each request: it must not wait. It may
extend `kafka_shim.security.standard_authorizer.StandardAuthorizer`. `kafka_shim.security.acl.Authorizer` has the types.
"""

from __future__ import annotations

from kafka_shim.security.plugins import make_plugin

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from kafka_shim.config import BrokerConfig

OPTION = "authorizer.class.name"
BUILT_IN = {
    "org.apache.kafka.metadata.authorizer.StandardAuthorizer": (
        "kafka_shim.security.standard_authorizer.StandardAuthorizer"
    )
}
METHODS = ("configure", "allowed", "allowed_on_any")
OPTIONAL = ("change_acls", "rule")


def make_authorizer(config: BrokerConfig) -> Any:
    """Returns the configured authorizer. Raises ConfigError."""
    return make_plugin(OPTION, config.authorizer_class_name, BUILT_IN, METHODS, dict(config.given), optional=OPTIONAL)
