"""What Python classes need that an option names: policies, authorizers, principal builders, callback handlers.
docs/plugins.md has their interfaces. Nothing in the broker imports this module.
"""

from __future__ import annotations

from kafka_shim.config import ConfigError
from kafka_shim.errors import ErrorCode, KafkaError
from kafka_shim.metadata.policies import ConfigChange, NewTopic, PolicyViolation
from kafka_shim.security.acl import AclOperation, ResourceType
from kafka_shim.security.acl_binding import Acl
from kafka_shim.security.principals import AuthenticationContext
from kafka_shim.security.sasl.callback_handlers import ScramCredential
from kafka_shim.security.sasl.mechanism import InvalidTokenError
from kafka_shim.security.standard_authorizer import StandardAuthorizer

__all__ = [
    "Acl",
    "AclOperation",
    "AuthenticationContext",
    "ConfigChange",
    "ConfigError",
    "ErrorCode",
    "InvalidTokenError",
    "KafkaError",
    "NewTopic",
    "PolicyViolation",
    "ResourceType",
    "ScramCredential",
    "StandardAuthorizer",
]
