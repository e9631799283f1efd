"""Plug-ins of the shim that ask the JVM of the tests: the plug-in classes that tests name are Java, and some read what
their test keeps for them. ``java/PluginServer.java`` is the other end."""

from __future__ import annotations

import base64
import json
import os
import socket

TYPE_CHECKING = False
if TYPE_CHECKING:
    from kafka_shim.security.principals import AuthenticationContext

PORT_VARIABLE = "KAFKA_SHIM_TEST_PLUGINS"
TIMEOUT_S = 10


def ask(question: dict[str, object]) -> str:
    """Send a line, return the answer's. Raises OSError or ValueError when the plug-in raised."""
    with socket.create_connection(("127.0.0.1", int(os.environ[PORT_VARIABLE])), TIMEOUT_S) as connection:
        connection.sendall(json.dumps(question).encode() + b"\n")
        with connection.makefile("rb") as answers:
            answer = json.loads(answers.readline())
    return str(answer)


class PrincipalBuilder:
    """The builder that the test's configuration names for the listener."""

    def build(self, context: AuthenticationContext) -> str:
        certificate = context.certificate
        return ask(
            {
                "listener": context.listener_name,
                "protocol": context.security_protocol,
                "address": context.client_address,
                "mechanism": context.mechanism,
                "authorization_id": context.authorization_id,
                "certificate": None if certificate is None else base64.b64encode(certificate).decode(),
            }
        )
