"""What one listener asks of its clients: SASL, TLS, and how a principal is made. It is replaced as a whole when options
change; the old one stays if the new one is bad.
"""

from __future__ import annotations

import logging
from dataclasses import replace

from kafka_shim.config import ConfigError
from kafka_shim.line_limit import LineLimit
from kafka_shim.security.principals import principal_builder

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection
    from ssl import SSLContext

    from kafka_shim.clock import Clock
    from kafka_shim.config import ListenerOptions
    from kafka_shim.security.principals import AuthenticationContext, PrincipalBuilder
    from kafka_shim.security.sasl.scram import Credentials
    from kafka_shim.security.sasl.settings import SaslSettings
    from kafka_shim.security.tls.replacement import Stores

logger = logging.getLogger("kafka_shim.security")

PLAIN = "PLAIN"


class ListenerSecurity:
    """The security of one listener whose protocol is not PLAINTEXT, or which has a principal builder of its own.
    Event-loop thread only."""

    def __init__(
        self,
        protocol: str,
        options: ListenerOptions,
        credentials: Credentials,
        clock: Clock,
        *,
        is_between_brokers: bool = False,
        is_of_start: bool = True,
    ) -> None:
        """`is_between_brokers`: its own clients must be able to connect when its stores change; `is_of_start`: the
        broker starts with it, and had not read the stored options when it was made. Raises ConfigError."""
        # Constant.
        self.protocol = protocol
        self.uses_sasl = protocol.startswith("SASL_")
        self.uses_tls = protocol.endswith("SSL")
        self._credentials = credentials
        self._clock = clock
        self._is_between_brokers = is_between_brokers
        # Log lines about logins that failed.
        self.failures = LineLimit(logger, clock)
        # What is stored of the options that an open listener keeps.
        self._kept = {} if is_of_start else options.kept()
        # From one change of options to the next.
        self._sasl: SaslSettings | None = None
        self._tls: SSLContext | None = None
        self._stores: Stores | None = None
        # Of a listener between brokers: a client with its stores.
        self._own_client: SSLContext | None = None
        # The options as they were set.
        self._texts: dict[str, str] = {}
        self._warned: set[str] = set()
        # Called with (mechanism, users) whose passwords in the options changed, and when the certificates that clients
        # have shown, or have not, may not let them in any more.
        self.on_users_changed: Callable[[str, Collection[str]], None] | None = None
        self.on_trust_changed: Callable[[], None] | None = None
        self.reload(options)

    def reload(self, options: ListenerOptions) -> None:
        """Take over changed options. Raises ConfigError and then keeps the old ones."""
        texts, options = options.texts(), options.keeping(self._kept)
        builder = self._principal_builder(options)
        tls = self._tls_of(options) if self.uses_tls else None
        sasl = self._sasl_settings(options) if self.uses_sasl else None
        if sasl is not None:
            self._warn(options.listener_name, sasl.warnings)
        self._builder = builder
        if tls is not None:
            trusted, (self._tls, self._stores, self._own_client) = self._stores, tls
            if trusted is not None and self.on_trust_changed is not None and _is_narrower(trusted, self._stores):
                self.on_trust_changed()
        before, self._sasl = self._sasl, sasl
        self._texts = texts
        if before is not None and sasl is not None and self.on_users_changed is not None:
            self.on_users_changed(PLAIN, sasl.changed_since(before))

    def check(self, options: ListenerOptions) -> None:
        """Raises ConfigError if `reload` would, with other options than those in force. As in Kafka, a file that has
        become bad stops no change of other options: `reload` then keeps what is in force."""
        if options.texts() == self._texts:
            return
        # What a listener that is opened later reads, and what holds of this one: nearly always the same.
        held = options.keeping(self._kept)
        for one in [options] if held.texts() == options.texts() else [options, held]:
            self._principal_builder(one)
            if self.uses_tls:
                self._tls_of(one)
        if self.uses_sasl:
            self._sasl_settings(options)

    def _sasl_settings(self, options: ListenerOptions) -> SaslSettings:
        from kafka_shim.security.sasl.settings import SaslSettings

        settings = SaslSettings(options, self._credentials, self._clock)
        if settings.warnings and options.is_strict:
            raise ConfigError(f"--strict-security: listener {options.listener_name}: {'; '.join(settings.warnings)}")
        return settings

    def _principal_builder(self, options: ListenerOptions) -> PrincipalBuilder:
        map_kerberos = map_certificate = None
        warnings: list[str] = []
        if self.uses_sasl and "GSSAPI" in options.get("sasl.enabled.mechanisms"):
            from kafka_shim.security.sasl.gssapi import rules_of

            kerberos_rules = rules_of(options)
            map_kerberos = kerberos_rules.name_of
            warnings += [f"sasl.kerberos.principal.to.local.rules: {line}" for line in kerberos_rules.warnings]
        if self.uses_tls:
            from kafka_shim.security.tls.mapping_rules import MappingRules

            rules = MappingRules(options.get("ssl.principal.mapping.rules"))
            map_certificate = rules.name_of
            warnings += [f"ssl.principal.mapping.rules: {line}" for line in rules.warnings]
        if warnings and options.is_strict:
            raise ConfigError(f"--strict-security: listener {options.listener_name}: {'; '.join(warnings)}")
        self._warn(options.listener_name, warnings)
        class_name = options.text("principal.builder.class")
        return principal_builder(class_name, map_certificate, options.given(), map_kerberos)

    def _tls_of(self, options: ListenerOptions) -> tuple[SSLContext, Stores, SSLContext | None]:
        from kafka_shim.security.tls.context import make_client_context, make_context, out_of_date
        from kafka_shim.security.tls.own_clients import check_own_clients
        from kafka_shim.security.tls.replacement import check_replacement
        from kafka_shim.security.warnings import world_readable

        try:
            context, stores, weak = make_context(options, uses_sasl=self.uses_sasl)
            if self._stores is not None:
                check_replacement(self._stores, stores, options)
            own_client = make_client_context(options) if self._is_between_brokers and stores.has_truststore else None
            if self._tls is not None and self._own_client is not None and own_client is not None:
                check_own_clients((self._tls, self._own_client), (context, own_client))
        except ConfigError as err:
            raise ConfigError(f"listener {options.listener_name}, {err}") from None
        warnings = weak + world_readable("ssl.keystore.location", options.text("ssl.keystore.location"))
        if warnings and options.is_strict:
            raise ConfigError(f"--strict-security: listener {options.listener_name}: {'; '.join(warnings)}")
        self._warn(options.listener_name, warnings + out_of_date(stores.certificate))
        return context, stores, own_client

    def tls_context(self) -> SSLContext:
        """The TLS context in force, on a listener with TLS."""
        assert self._tls is not None
        return self._tls

    def _warn(self, listener_name: str, warnings: list[str]) -> None:
        for warning in warnings:
            if warning not in self._warned:
                self._warned.add(warning)
                logger.warning("listener %s: %s", listener_name, warning)

    def sasl_settings(self) -> SaslSettings:
        """The SASL settings in force, on a listener with SASL."""
        assert self._sasl is not None
        return self._sasl

    def principal_of(
        self, context: AuthenticationContext, mechanism: str | None = None, authorization_id: str | None = None
    ) -> str:
        """Return the principal of a client that has authenticated."""
        if authorization_id is not None:
            context = replace(context, mechanism=mechanism, authorization_id=authorization_id)
        return self._builder.build(context)


def _is_narrower(before: Stores, after: Stores) -> bool:
    """Whether a client that was let in may not be any more."""
    return bool(after.client_auth) and before.truststore_digest != after.truststore_digest
