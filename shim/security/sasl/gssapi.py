"""GSSAPI: Kerberos tickets (RFC 4752; Java: GssKrb5Server, Krb5LoginModule; Kafka: SaslServerCallbackHandler).

The broker accepts with the key of its service principal, from the keytab that the JAAS options of the listener name; it
asks no KDC. MIT's library checks the tickets, through the package `gssapi` of the extra `gssapi`. Like
Kafka it offers authentication alone, without a security layer, and takes the ticket's principal whatever authorization
id the client asks for.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

from kafka_shim.config import ConfigError
from kafka_shim.security.kerberos_rules import KerberosRules
from kafka_shim.security.sasl.jaas import java_property
from kafka_shim.security.sasl.mechanism import SaslError
from kafka_shim.security.warnings import world_readable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from kafka_shim.config import ListenerOptions
    from kafka_shim.security.sasl.jaas import LoginModule

NAME = "GSSAPI"
LOGIN_MODULE = "com.sun.security.auth.module.Krb5LoginModule"
NO_LAYER = 1
# The longest wrapped message that the server takes, which Java's server announces though there is no layer.
MAX_RECEIVE_BYTES = 65536
KRB5_CONFIG = "KRB5_CONFIG"


class Acceptor:
    """The credentials of one listener."""

    def __init__(self, modules: Sequence[LoginModule], options: ListenerOptions, warnings: list[str]) -> None:
        """`warnings` gets what leaves a door open. Raises ConfigError."""
        gssapi = library()
        found = [module for module in modules if module.name == LOGIN_MODULE]
        if not found:
            raise ConfigError(f"the JAAS options have no {LOGIN_MODULE}")
        given = found[0].options
        _check_service_name(given.get("serviceName"), options.text("sasl.kerberos.service.name"))
        keytab, principal = given.get("keyTab"), given.get("principal")
        if given.get("useKeyTab", "").lower() != "true" or not keytab or not principal:
            raise ConfigError('the JAAS options need useKeyTab=true, keyTab="FILE" and principal="SERVICE/HOST@REALM"')
        keytab = keytab.removeprefix("file:")
        try:
            with Path(keytab).open("rb"):
                pass
        except OSError as err:
            raise ConfigError(f"keyTab {keytab}: {err.strerror}") from None
        warnings += world_readable("keyTab", keytab)
        name = gssapi.Name(principal, gssapi.NameType.kerberos_principal)
        try:
            self._credentials = gssapi.Credentials(name=name, usage="accept", store={"keytab": keytab})
        except gssapi.exceptions.GSSError as err:
            raise ConfigError(f"keyTab {keytab} has no key of {principal}: {reason_of(err)}") from None
        self._gssapi = gssapi

    def context(self) -> Any:
        """Return a new security context."""
        context = self._gssapi.SecurityContext(creds=self._credentials, usage="accept")
        # The library would pass an error's token to the client first; Java's server raises at once.
        context.__DEFER_STEP_ERRORS__ = False
        return context

    @property
    def error(self) -> type[Exception]:
        """What the library raises."""
        error: type[Exception] = self._gssapi.exceptions.GSSError
        return error


class Gssapi:
    """One exchange: the context's tokens, then the negotiation of the security layer."""

    def __init__(self, acceptor: Acceptor) -> None:
        self._acceptor = acceptor
        self._context = acceptor.context()
        self._is_layer_offered = False
        self.authorization_id = ""
        self.is_complete = False
        self.token_id = ""
        self.expires_at_ms: int | None = None

    async def evaluate(self, token: bytes) -> bytes:
        if self.is_complete:
            raise SaslError("the client sent a token after the exchange had ended")
        try:
            if not self._context.complete:
                return self._accept(token)
            if not self._is_layer_offered:
                return self._offer_layer(token)
            return self._choose_layer(token)
        except self._acceptor.error as err:
            raise SaslError(f"the client's ticket or message is not accepted: {reason_of(err)}") from None

    def _accept(self, token: bytes) -> bytes:
        answer = self._context.step(token)
        if answer is None and self._context.complete:
            return self._offer_layer(b"")
        return bytes(answer or b"")

    def _offer_layer(self, token: bytes) -> bytes:
        if token:
            raise SaslError("the client sends data where it has to wait for the offer of security layers")
        self._is_layer_offered = True
        offer = NO_LAYER.to_bytes(1) + MAX_RECEIVE_BYTES.to_bytes(3)
        return bytes(self._context.wrap(offer, False).message)

    def _choose_layer(self, token: bytes) -> bytes:
        chosen = bytes(self._context.unwrap(token).message)
        if len(chosen) < 4:
            raise SaslError("the client's choice of a security layer is too short")
        if not chosen[0] & NO_LAYER:
            raise SaslError("the client wants a security layer (sasl.qop), of which there is none here or in Kafka")
        self.authorization_id = str(self._context.initiator_name)
        self.is_complete = True
        return b""


def rules_of(options: ListenerOptions) -> KerberosRules:
    """Return the rules that make a user of a principal. Raises ConfigError."""
    rules = options.get("sasl.kerberos.principal.to.local.rules")
    try:
        return KerberosRules(default_realm(), rules)
    except ConfigError as err:
        raise ConfigError(f"sasl.kerberos.principal.to.local.rules: {err}") from None


def default_realm() -> str:
    """Return the realm of `krb5.conf` or of `KAFKA_OPTS`, or "" if there is none."""
    if realm := java_property("java.security.krb5.realm"):
        return realm
    gssapi = library()
    try:
        name = gssapi.Name("x", gssapi.NameType.user).canonicalize(gssapi.MechType.kerberos)
    except gssapi.exceptions.GSSError:
        return ""
    return str(name).partition("@")[2]


def reason_of(error: Exception) -> str:
    """Return an error of the library on one line: what Kerberos says, without the code of GSSAPI before it."""
    text = re.sub(r"\s+", " ", str(error))
    return text.partition("Minor ")[2].partition(": ")[2] or text


def library() -> Any:
    """Return the package `gssapi`, after `krb5.conf` is the file that `KAFKA_OPTS` names for Java. Raises
    ConfigError."""
    path = java_property("java.security.krb5.conf")
    if path is not None:
        os.environ.setdefault(KRB5_CONFIG, path)
    try:
        import gssapi
    except ImportError:
        raise ConfigError(
            "GSSAPI needs the package gssapi: pip install gssapi (a container image is built with "
            "EXTRAS=gssapi), or change sasl.enabled.mechanisms"
        ) from None
    return gssapi


def _check_service_name(of_jaas: str | None, of_options: str | None) -> None:
    if of_jaas is not None and of_options is not None and of_jaas != of_options:
        raise ConfigError(
            f"Conflicting serviceName values found in JAAS and Kafka configs value in JAAS file {of_jaas}, value in "
            f"Kafka config {of_options}"
        )
    if of_jaas is None and of_options is None:
        raise ConfigError("No serviceName defined in either JAAS or Kafka config: set sasl.kerberos.service.name")
