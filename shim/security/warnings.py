"""Warnings about a configuration that leaves a door open by mistake, one line each.

`serve` logs them; with `--strict-security` they stop the start. A new warning is a function in `RULES`.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path

from kafka_shim.config import ConfigError
from kafka_shim.security.principals import ANONYMOUS

STANDARD_AUTHORIZER = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator

    from kafka_shim.config import BrokerConfig


class Exposure:
    """What the rules look at: the options, the security protocols of the listeners, and the number of stored ACLs."""

    __slots__ = ("acl_count", "config", "protocols")

    def __init__(self, config: BrokerConfig, protocols: Collection[str], acl_count: int) -> None:
        self.config = config
        self.protocols = protocols
        self.acl_count = acl_count

    @property
    def has_authorizer(self) -> bool:
        return bool(self.config.authorizer_class_name)

    @property
    def authenticates(self) -> bool:
        """Whether some listener asks clients who they are: by SASL, or by certificate."""
        given = self.config.given
        by_certificate = any(
            (name == "ssl.client.auth" or name.endswith(".ssl.client.auth")) and text.strip() != "none"
            for name, text in given.items()
        )
        return any(one.startswith("SASL") or (one == "SSL" and by_certificate) for one in self.protocols)


def authorizer_without_authentication(exposure: Exposure) -> Iterator[str]:
    named = exposure.config.acl_principals
    if exposure.has_authorizer and not exposure.authenticates and not {ANONYMOUS, "User:*"}.intersection(named):
        yield (
            "authorizer.class.name is set, but no listener authenticates clients: all of them are User:ANONYMOUS; "
            "use SASL_PLAINTEXT, SASL_SSL, or SSL with ssl.client.auth=required"
        )


def authorizer_without_super_users(exposure: Exposure) -> Iterator[str]:
    # An authorizer of the user's own may know its administrators by other means.
    is_kafkas = exposure.config.authorizer_class_name == STANDARD_AUTHORIZER
    is_administered = exposure.config.given.get("super.users", "").strip("; ") or exposure.config.acl_principals
    if is_kafkas and not is_administered:
        yield (
            "authorizer.class.name is set without super.users: only ACLs that are already stored allow a client to "
            "administer ACLs; set super.users=User:NAME"
        )


def acls_without_authorizer(exposure: Exposure) -> Iterator[str]:
    if exposure.acl_count and not exposure.has_authorizer:
        stored = "1 ACL is" if exposure.acl_count == 1 else f"{exposure.acl_count} ACLs are"
        yield (
            f"{stored} stored, but without authorizer.class.name no ACL is enforced; set "
            f"authorizer.class.name={STANDARD_AUTHORIZER}"
        )


def secrets_on_the_command_line(exposure: Exposure) -> Iterator[str]:
    for name in exposure.config.shown_secrets:
        yield f"{name} is on the command line, which every process of this machine can read; put it into --config FILE"


RULES: tuple[Callable[[Exposure], Iterator[str]], ...] = (
    authorizer_without_authentication,
    authorizer_without_super_users,
    acls_without_authorizer,
    secrets_on_the_command_line,
)


def world_readable(option: str, location: str | None) -> list[str]:
    """Returns a warning if every user of the machine can read a file with a key. A file that is not there is the error
    of who reads it."""
    if not location:
        return []
    try:
        mode = Path(location).stat().st_mode
    except OSError:
        return []
    if os.name != "posix" or not mode & stat.S_IROTH:
        return []
    return [f"{option}: every user of this machine can read {location}: chmod o-r {location}"]


def security_warnings(exposure: Exposure) -> list[str]:
    """Returns the warnings, each one line that says what is open and what to do. Raises ConfigError with all of them if
    the operator asked for `--strict-security`."""
    lines = [line for rule in RULES for line in rule(exposure)]
    if lines and exposure.config.strict_security:
        raise ConfigError(f"--strict-security: {'; '.join(lines)}")
    return lines
