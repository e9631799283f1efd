"""`/api/metrics`: the broker's metrics as sums, read from its `/metrics`; the page draws how they change."""

from __future__ import annotations

import re
import ssl
import urllib.error
import urllib.request
from http.client import HTTPException

from kafka_shim.wire_client import WireClientError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

LARGEST_ANSWER_BYTES = 16 << 20
PATIENCE_S = 5.0
# Names that do not grow with the number of topics, summed over their labels.
_SAMPLE = re.compile(r"(?m)^(kafka_[a-z0-9_]+|process_[a-z_]+)(?:\{[^\n]*\})? (-?[0-9][0-9.e+-]*)$")


def described(read_metrics: Callable[[], bytes]) -> dict[str, Any]:
    """Return the sums by name. Raises WireClientError if there is no answer, also of the loop of the broker that serves
    the console itself."""
    try:
        return {"sums": sums_of(read_metrics().decode(errors="replace"))}
    except TimeoutError:
        raise WireClientError("no metrics: the event loop does not answer") from None


class MetricsReader:
    """Reads the metrics of a broker that runs elsewhere. May be called in any thread."""

    def __init__(self, url: str, *, tls: ssl.SSLContext | None = None, token: str = "") -> None:
        """`tls`: whom an https:// URL is trusted by, and the certificate to show; `token`: to be sent, if one is."""
        self._url = url
        self._headers = {"Authorization": f"Bearer {token}"} if token else {}
        # Without the proxies of the environment: one would see the token of an http: URL.
        handlers = _NoRedirect, urllib.request.ProxyHandler({}), urllib.request.HTTPSHandler(context=tls)
        self._opener = urllib.request.build_opener(*handlers)

    def __call__(self) -> bytes:
        """Raises WireClientError if nobody answers, or with too much."""
        request = urllib.request.Request(self._url, headers=self._headers)
        try:
            with self._opener.open(request, timeout=PATIENCE_S) as answer:
                text: bytes = answer.read(LARGEST_ANSWER_BYTES + 1)
        except urllib.error.HTTPError as error:
            error.close()
            advice = _ADVICE.get(error.code, "")
            raise WireClientError(f"no metrics at {self._url}: HTTP {error.code} {error.reason}{advice}") from None
        except (OSError, ValueError, HTTPException) as error:
            reason = getattr(error, "reason", error)
            advice = "; --metrics-ca names who signs it" if isinstance(reason, ssl.SSLCertVerificationError) else ""
            raise WireClientError(f"no metrics at {self._url}: {reason}{advice}") from None
        if len(text) > LARGEST_ANSWER_BYTES:
            raise WireClientError(f"the metrics at {self._url} have more than {LARGEST_ANSWER_BYTES >> 20} MB")
        return text


_ADVICE = {401: "; --metrics-token-file has the token", 403: "; --metrics-certificate has a certificate to show"}


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """Follows no redirect: the token is for the given address, not for one to which that redirects."""

    def redirect_request(self, *_: Any) -> None:
        return None


def sums_of(text: str) -> dict[str, float]:
    """Return the sums by name of metrics in the text format of Prometheus, without buckets."""
    found: dict[str, float] = {}
    for name, value in _SAMPLE.findall(text):
        if not name.endswith(("_bucket", "_created")):
            found[name] = found.get(name, 0.0) + float(value)
    return found
