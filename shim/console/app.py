"""What the console answers to a request of HTTP: its page, and JSON under `/api/`. All routes are in this one place.

A browser may be led here by another site: the Host is the console's own (DNS rebinding), no other site's script reads
or changes anything (Origin, Sec-Fetch-Site), and nothing that comes from records is ever HTML or script (the page sets
text; Content-Security-Policy).
"""

from __future__ import annotations

import json
from importlib.resources import files
from urllib.parse import urlsplit

from kafka_shim.client.offset_reset import ResetError
from kafka_shim.client_security import LoginRefusedError
from kafka_shim.console import access, changes, configs, groups, metrics, overview, records, topics, transactions
from kafka_shim.console.cluster import is_denied
from kafka_shim.console.parameters import BadRequestError, Body, Query
from kafka_shim.console.schemas import Schemas
from kafka_shim.http.hosts import host_name, is_numeric
from kafka_shim.http.server import Request, Response
from kafka_shim.wire_client import RequestError, WireClientError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection
    from typing import Any

    from kafka_shim.console.cluster import Cluster
    from kafka_shim.console.sessions import Session, Sessions

    Resource = Callable[[Cluster, Query], dict[str, Any]]

COOKIE = "kafka-shim-console"
METRICS = "/api/metrics"
JSON = "application/json"
TYPES = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; base-uri 'none'; "
    "form-action 'none'; frame-ancestors 'none'"
)
SAFE = (
    ("Content-Security-Policy", POLICY),
    ("X-Content-Type-Options", "nosniff"),
    ("X-Frame-Options", "DENY"),
    ("Referrer-Policy", "no-referrer"),
    ("Cross-Origin-Resource-Policy", "same-origin"),
    ("Cache-Control", "no-store"),
)

ANOTHER_SITE = (
    "another site may not ask here; behind a proxy, --public-url, or kafka.shim.http.console.public.url of a broker, "
    "says where browsers find the console"
)
SWITCH = "--allow-changes, or kafka.shim.http.console.changes of a broker,"


class _RefusedError(Exception):
    """The request is refused with a status."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


class Console:
    """Answers requests, in any thread."""

    def __init__(
        self,
        sessions: Sessions,
        *,
        hosts: Collection[str] = (),
        hosts_option: str = "--host-name",
        public_url: str = "",
        schemas: Schemas | None = None,
        read_metrics: Callable[[], bytes] | None = None,
        may_read_metrics: Callable[[Request], bool] = lambda request: True,
        allows_changes: bool = False,
    ) -> None:
        """`hosts`: the names by which browsers may reach it, besides localhost and numeric addresses, and
        `hosts_option`, what a person writes to add one; `public_url`: where they find it behind a proxy;
        `read_metrics`: returns the broker's metrics, if they are plotted, or raises TimeoutError, WireClientError;
        `may_read_metrics`: whether they are for who sends a request; `schemas`: how keys and values are decoded;
        `allows_changes`: whether people change things too. Raises ValueError if `public_url` is not one."""
        self._sessions = sessions
        self._hosts = {"localhost", *(host.lower() for host in hosts)}
        self._hosts_option = hosts_option
        self._public_name, self._public_origin = _public(public_url) if public_url else ("", "")
        schemas = schemas or Schemas()
        self._allows_changes = allows_changes
        self._pages = _read_pages()
        self._resources: dict[str, Resource] = {
            "/api/topics": topics.listed,
            "/api/topic": topics.described,
            "/api/records": lambda cluster, query: records.page(cluster, query, schemas),
            "/api/record": lambda cluster, query: records.whole_record(cluster, query, schemas),
            "/api/groups": groups.listed,
            "/api/group": groups.described,
            "/api/transactions": transactions.listed,
            "/api/transaction": transactions.described,
            "/api/held": transactions.held,
            "/api/producers": transactions.producers,
            "/api/configs": configs.described,
            "/api/own": access.own,
            "/api/acls": access.acls,
            "/api/users": access.users,
            "/api/quotas": access.quotas,
            "/api/cluster": overview.described,
        }
        self._may_read_metrics = may_read_metrics
        if read_metrics is not None:
            self._resources[METRICS] = lambda cluster, query: metrics.described(read_metrics)

    def close(self) -> None:
        """End all sessions."""
        self._sessions.close()

    def handle(self, request: Request) -> Response:
        """Answer a request."""
        try:
            origins = self._origins_of(request)
            if request.path.startswith("/api/"):
                return self._api(request, origins)
            return self._page(request)
        except _RefusedError as error:
            return _json(error.status, {"error": str(error)})
        except BadRequestError as error:
            return _json(400, {"error": str(error)})
        except WireClientError as error:
            return _failed(error)

    def _origins_of(self, request: Request) -> set[str]:
        """Return the origins that the page can have, for the Host by which the console was reached."""
        name = host_name(request)
        is_own = name in self._hosts or is_numeric(name)
        # A proxy passes on the public Host, with or without its port, or puts the console's own in its place.
        if not is_own and (not name or name != self._public_name):
            how = f"allow it with {self._hosts_option}"
            raise _RefusedError(403, f"the console does not serve this host name: {how}")
        origins = {self._public_origin} if self._public_origin else set()
        if is_own:
            origins.add(f"{'https' if request.is_secure else 'http'}://{request.headers['Host']}")
        return origins

    def _page(self, request: Request) -> Response:
        if request.method not in ("GET", "HEAD"):
            raise _RefusedError(405, "pages take GET and HEAD only")
        found = self._pages.get("index.html" if request.path == "/" else request.path.removeprefix("/"))
        if found is None:
            raise _RefusedError(404, "there is no such page")
        body, content_type = found
        return Response(200, body, content_type, SAFE)

    # --- /api/

    def _api(self, request: Request, origins: set[str]) -> Response:
        given = request.headers.get("Origin")
        if given is not None and given not in origins:
            raise _RefusedError(403, ANOTHER_SITE)
        if request.headers.get("Sec-Fetch-Site", "same-origin") not in ("same-origin", "none"):
            raise _RefusedError(403, ANOTHER_SITE)
        is_change = request.method not in ("GET", "HEAD")
        if is_change and (given is None or request.headers.get("Content-Type") != JSON):
            raise _RefusedError(403, f"a request that changes something needs an Origin and Content-Type: {JSON}")
        token = _token_of(request)
        if request.path == "/api/session":
            return self._session(request, token)
        session = self._sessions.find(token)
        if session is None:
            raise _RefusedError(401, "log in first")
        change = changes.CHANGES.get(request.path)
        if is_change and not self._allows_changes:
            raise _RefusedError(405, f"the console only reads: {SWITCH} lets people change things")
        if change is not None:
            if request.method != "POST":
                raise _RefusedError(405, "a change is asked for by POST")
            return _json(200, changes.make(change, session, Body(request.body)))
        resource = self._resources.get(request.path)
        if resource is None or (request.path == METRICS and not self._may_read_metrics(request)):
            raise _RefusedError(404, "there is no such resource")
        if is_change:
            raise _RefusedError(405, "this resource takes GET and HEAD only")
        return _json(200, resource(session.cluster, Query(request.query)))

    def _session(self, request: Request, token: str) -> Response:
        """Who looks, at what; POST logs in, DELETE out."""
        # The browser's side: a proxy with TLS speaks plain HTTP to the console.
        is_secure = request.headers.get("Origin", "").startswith("https://")
        if request.method == "POST":
            if not self._sessions.wants_login:
                raise _RefusedError(405, "nobody logs in here: the broker has no SASL, or the console its own login")
            user, password = _credentials(request.body)
            try:
                token = self._sessions.log_in(user, password)
            except LoginRefusedError as error:
                raise _RefusedError(401, error.reason) from None
            except WireClientError as error:
                raise _RefusedError(401, str(error)) from None
            return _json(200, {"user": user}, (("Set-Cookie", _cookie(token, is_secure)),))
        if request.method == "DELETE":
            self._sessions.log_out(token)
            gone = _cookie("", is_secure) + "; Max-Age=0"
            return _json(200, {}, (("Set-Cookie", gone),))
        session: Session | None = self._sessions.find(token)
        return _json(
            200,
            {
                "bootstrap": self._sessions.bootstrap,
                "wantsLogin": self._sessions.wants_login,
                "isIn": session is not None,
                "user": "" if session is None else session.user,
                "hasMetrics": METRICS in self._resources and self._may_read_metrics(request),
                "mayChange": self._allows_changes,
            },
        )


def _read_pages() -> dict[str, tuple[bytes, str]]:
    """The files of the page by name, so that no path of a request ever reaches the file system."""
    found = {}
    for one in files("kafka_shim.console").joinpath("static").iterdir():
        content_type = TYPES.get("." + one.name.rpartition(".")[2])
        if content_type is not None:
            found[one.name] = (one.read_bytes(), content_type)
    return found


def _public(url: str) -> tuple[str, str]:
    """Return the host's name and the origin, as browsers write it, of a URL. Raises ValueError."""
    try:
        parts = urlsplit(url)
        name, port = (parts.hostname or "").lower(), parts.port
    except ValueError:
        raise ValueError(f"{url}: it is no URL, as https://console.example is") from None
    if parts.scheme not in ("http", "https") or not name or not url.isascii():
        raise ValueError(f"{url}: it is https:// or http:// and a host, as https://console.example")
    if parts.path.strip("/") or parts.query or parts.fragment or parts.username is not None:
        raise ValueError(f"{url}: it ends with the host or its port; the console has no path below one")
    if ":" in name:
        name = f"[{name}]"
    suffix = "" if port in (None, {"http": 80, "https": 443}[parts.scheme]) else f":{port}"
    return name, f"{parts.scheme}://{name}{suffix}"


def _token_of(request: Request) -> str:
    """The token of a session, or nothing. It is never quoted, and `http.cookies` takes seconds for a long quoted value
    (CVE-2024-7592), which anybody can send."""
    for cookie in request.headers.get("Cookie", "").split(";"):
        name, _, value = cookie.strip().partition("=")
        if name == COOKIE:
            return value
    return ""


def _cookie(token: str, is_secure: bool) -> str:
    return f"{COOKIE}={token}; Path=/; HttpOnly; SameSite=Strict{'; Secure' if is_secure else ''}"


def _credentials(body: bytes) -> tuple[str, str]:
    try:
        given = json.loads(body)
        user, password = given["user"], given["password"]
    except (ValueError, KeyError, TypeError, RecursionError):
        user = password = None
    if not (isinstance(user, str) and isinstance(password, str)):
        raise BadRequestError("a login is an object with user and password")
    for text in (user, password):
        # JAAS options have neither: what a client of Kafka cannot log in with.
        if "\n" in text or "\r" in text or not _is_unicode(text):
            raise BadRequestError("a user's name and password are Unicode text of one line")
    return user, password


def _is_unicode(text: str) -> bool:
    """Whether the text has no lone surrogate, which JSON can name and UTF-8 not."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _failed(error: WireClientError) -> Response:
    body: dict[str, Any] = {"error": str(error)}
    if not isinstance(error, RequestError):
        return _json(409 if isinstance(error, ResetError) else 502, body)
    body["code"] = error.code.name
    if is_denied(error):
        return _json(403, body)
    return _json(404 if error.code.name.startswith("UNKNOWN_TOPIC") else 409, body)


def _json(status: int, value: dict[str, Any], headers: tuple[tuple[str, str], ...] = ()) -> Response:
    # ASCII alone: a lone surrogate of broken UTF-8 is no error.
    return Response(status, json.dumps(value, separators=(",", ":")).encode(), f"{JSON}; charset=utf-8", SAFE + headers)
