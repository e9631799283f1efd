"""Where a client has its OAUTHBEARER token from, by the properties of Kafka's clients (Kafka: OAuthBearerLoginModule
without a handler; OAuthBearerLoginCallbackHandler with FileJwtRetriever or ClientCredentialsJwtRetriever).
"""

from __future__ import annotations

import base64
import json
from http.client import HTTPException
from pathlib import Path
from urllib.parse import quote, unquote, urlencode, urlsplit

from kafka_shim.config import ConfigError
from kafka_shim.embedded_security import unsecured_token
from kafka_shim.wire_client import WireClientError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from ssl import SSLContext

    GivesToken = Callable[[], str]

URL = "sasl.oauthbearer.token.endpoint.url"
CLAIM = "unsecuredLoginStringClaim_sub"
LARGEST_ANSWER_BYTES = 1 << 20
READ_SECONDS = 10.0


def token_source(properties: Mapping[str, str], login: Mapping[str, str]) -> GivesToken:
    """Return what makes or fetches a token: one that nobody has signed if the login module names its subject, the text
    of a `file:` URL, or what an `http:` or `https:` endpoint issues for the client's id and secret. `login` are the
    options of `sasl.jaas.config`. Calling it raises WireClientError, without a secret. Raises ConfigError."""
    url = properties.get(URL, "").strip()
    if not url:
        subject = login.get(CLAIM)
        if subject is None:
            raise ConfigError(f"OAUTHBEARER needs {URL}, or {CLAIM} in sasl.jaas.config for an unsigned token")
        return lambda: unsecured_token(subject)
    scheme = urlsplit(url).scheme
    if scheme == "file":
        return lambda: _from_file(unquote(urlsplit(url).path))
    if scheme not in ("http", "https"):
        raise ConfigError(f"{URL}: {url} is not a file:, http: or https: URL")

    def own(name: str, of_jaas: str) -> str | None:
        """The option of Kafka 4 (KIP-1139), else that of the login module."""
        return properties.get(f"sasl.oauthbearer.client.credentials.{name}") or login.get(of_jaas)

    client_id, secret = own("client.id", "clientId"), own("client.secret", "clientSecret")
    if not client_id or secret is None:
        raise ConfigError('sasl.jaas.config needs clientId="NAME" and clientSecret="WORD" for the token endpoint')
    scope = properties.get("sasl.oauthbearer.scope") or login.get("scope")
    encodes = properties.get("sasl.oauthbearer.header.urlencode", "false").strip().lower() == "true"
    context = None
    if scheme == "https":
        from kafka_shim.security.tls.context import login_context

        context = login_context(login)
    return lambda: _from_endpoint(url, client_id, secret, scope, context, encodes=encodes)


def _from_file(path: str) -> str:
    try:
        return Path(path).read_text().strip()
    except (OSError, UnicodeDecodeError) as err:
        raise WireClientError(f"{URL}: cannot read {path}: {err}") from err


def _from_endpoint(
    url: str, client_id: str, secret: str, scope: str | None, context: SSLContext | None, *, encodes: bool
) -> str:
    """The grant of client credentials (RFC 6749, 4.4)."""
    from urllib.error import HTTPError
    from urllib.request import HTTPRedirectHandler, HTTPSHandler, ProxyHandler, Request, build_opener

    class Stays(HTTPRedirectHandler):
        """The secret is for this endpoint alone: it does not follow to another one."""

        def redirect_request(self, *_: object) -> None:
            return None

    if encodes:
        client_id, secret = quote(client_id, safe=""), quote(secret, safe="")
    words = {"grant_type": "client_credentials"} | ({"scope": scope} if scope else {})
    headers = {
        "Accept": "application/json",
        "Authorization": "Basic " + base64.b64encode(f"{client_id}:{secret}".encode()).decode(),
        "Content-Type": "application/x-www-form-urlencoded",
    }
    try:
        # Without the proxies of the environment, of which Java knows nothing: one would see the secret of an http: URL.
        opener = build_opener(Stays, ProxyHandler({}), HTTPSHandler(context=context))
        with opener.open(Request(url, urlencode(words).encode(), headers), timeout=READ_SECONDS) as answer:
            token = json.loads(answer.read(LARGEST_ANSWER_BYTES))["access_token"]
    except HTTPError as err:
        with err:
            raise WireClientError(
                f"{url} gives no token: {err.code} {err.reason}; check clientId, clientSecret"
            ) from err
    except (OSError, HTTPException) as err:
        raise WireClientError(f"{url} gives no token: {getattr(err, 'reason', None) or err}") from err
    except (ValueError, KeyError, TypeError) as err:
        raise WireClientError(f"{url} gives no token: its response is not JSON with access_token") from err
    if not isinstance(token, str) or not token:
        raise WireClientError(f"{url} gives no token: access_token is not a string")
    return token
