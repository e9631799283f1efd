"""The processing of one request: header, API row, version, decoding, handling, encoding. Every error has a defined
outcome:

| error | outcome |
| --- | --- |
| ApiVersions of an unknown version | a version 0 response with UNSUPPORTED_VERSION |
| a request before authentication that is not part of it | the connection is closed, one log line |
| another request during a SASL exchange | ILLEGAL_SASL_STATE, then the connection is closed |
| a cluster operation that the client is not allowed | the API's response with CLUSTER_AUTHORIZATION_FAILED |
| unknown API, version outside the range, a body that cannot be read | the connection is closed, one log line |
| a handler raises KafkaError | the API's response with that error (`shim/api/failures.py`) |
| an error message is longer than a string may be, as with a long name in it | it is cut |
| the module of an API cannot be read, for lack of descriptors or memory | the connection is closed, one log line |
| any other exception | a bug: logged with its traceback, the response is UNKNOWN_SERVER_ERROR |
"""

from __future__ import annotations

import logging
import re
from types import CoroutineType, GeneratorType

from kafka_shim.api import Api, ThrottleClass
from kafka_shim.api.authentication import hold_back_failure
from kafka_shim.api.failures import failure_in_steps, shorten_messages
from kafka_shim.authorization import require_on_cluster
from kafka_shim.cext.dispatcher_base import DispatcherBase
from kafka_shim.cext.headers import RequestHeaderParser
from kafka_shim.cext.messages import EncodeError, encode_response_frame
from kafka_shim.cext.replies import Reply
from kafka_shim.errors import DisconnectError, ErrorCode, KafkaError
from kafka_shim.large_requests import copied
from kafka_shim.outcome import Outcome, run_follow_up, wait_for
from kafka_shim.protocol.api_keys import API_KEYS
from kafka_shim.storage.open_files import OUT_OF_DESCRIPTORS
from kafka_shim.turns import at_once

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine
    from typing import Any

    from kafka_shim.broker import Broker
    from kafka_shim.context import Context
    from kafka_shim.quota.quotas import Quotas
    from kafka_shim.security.sasl.authenticator import Authenticator
    from kafka_shim.turns import Steps

    Parts = list[Any]

logger = logging.getLogger("kafka_shim.request")

PRODUCE, API_VERSIONS = 0, 18
# Requests that may contain passwords: AlterConfigs, SaslAuthenticate, IncrementalAlterConfigs, and those of SCRAM
# credentials and delegation tokens. Not even a debug log shows them.
SECRETS = frozenset({33, 36, 39, 40, 44, 51})
# Requests that may wait for other clients or for a time: Fetch, JoinGroup, SyncGroup, ShareFetch, and failed logins.
PARKED = frozenset({1, 11, 14, 17, 36, 78})
# Of these, those that act first: `Session.is_abandonable` says from when on they only wait.
PARKED_LATER = frozenset({78})
RECEIVED, READY = "request.received", "response.ready"

_headers = RequestHeaderParser({key: row[3] for key, row in API_KEYS.items()})


class Dispatcher(DispatcherBase):
    """All connections of a broker share one, those of its controller another. `table` has their APIs by key. The
    base serves an ordinary request, in C, and calls what is here for the others. A class with its own `handle` has it
    called for each request."""

    __slots__ = ()

    if TYPE_CHECKING:
        broker: Broker
        _table: dict[int, Api]

    def __init__(self, broker: Broker, table: dict[int, Api]) -> None:
        # A logger keeps what `isEnabledFor` said, and clears that when a level changes: each request asks.
        super().__init__(broker, table, _headers, logger.isEnabledFor, getattr(logger, "_cache", {}))

    # --- what the base calls

    def _begin_raw_token(self, authenticator: Authenticator, frame: memoryview) -> Reply:
        return Reply(None, waiting=self._raw_token(authenticator, bytes(frame)), is_abandonable=True)

    @staticmethod
    def _no_header(error: ValueError) -> DisconnectError:
        return DisconnectError(f"cannot read the header of a request: {error}")

    @staticmethod
    def _not_served(api_key: int) -> DisconnectError:
        return DisconnectError(f"{API_KEYS[api_key][0]} (key {api_key}) is not served")

    @staticmethod
    def _cannot_read(api: Api, version: int, error: ValueError) -> DisconnectError:
        return DisconnectError(f"cannot read {api.name} version {version}: {error}")

    def _serves_unstable(self, api: Api, version: int) -> bool:
        return self.broker.config.unstable_api_versions_enable and api.last < version <= api.last_unstable

    @staticmethod
    def _unsupported(api: Api, version: int, correlation_id: int) -> Reply:
        """Returns the reply to ApiVersions. Raises DisconnectError for any other request."""
        if api.key != API_VERSIONS:
            raise DisconnectError(f"{api.name} version {version} is not served")
        from kafka_shim.api.k18_api_versions import unsupported

        return Reply(encode_response_frame(correlation_id, unsupported(), 0))

    @staticmethod
    def _load(api: Api) -> None:
        try:
            api.load()
        except OSError as error:  # no descriptor is left; without the handler's module there is no response
            raise DisconnectError(
                f"cannot load {api.name}: {error.strerror}; raise the limit of open files (ulimit -n)"
            ) from error
        except MemoryError as error:
            raise DisconnectError(f"cannot load {api.name}: no memory is left; raise its limit (ulimit -v)") from error

    def _begin_large(self, context: Context, api: Api, frame: memoryview, at: int, is_admitted: bool) -> Reply:
        if not is_admitted:
            raise DisconnectError(f"{api.name} with thousands of entries during SASL authentication") from None
        context.is_large = True
        return _waits(api, self._large(context, api, copied(frame), at))

    @staticmethod
    def _log(context: Context, api: Api, request: Any) -> None:
        session = context.session
        text = "[hidden]" if context.api_key in SECRETS else repr(request)
        if len(text) > 1000:
            text = f"{text[:1000]}..."
        logger.debug(
            "%s:%d %s v%d correlation %d client %r: %s",
            session.peer_host,
            session.peer_port,
            api.name,
            context.api_version,
            context.correlation_id,
            context.client_id,
            text,
        )

    @staticmethod
    def _meter(context: Context, quotas: Quotas, frame_bytes: int) -> None:
        session = context.session
        if quotas.is_enabled and (session.authenticator is None or session.authenticator.principal):
            context.throttle = quotas.throttle(session.principal, context.client_id, frame_bytes)

    def _begin_refusal(self, context: Context, api: Api, request: Any) -> Reply:
        authenticator = context.session.authenticator
        assert authenticator is not None
        refusal = self._refuse_login(authenticator, context, api, request)
        return Reply(None, waiting=refusal, is_abandonable=True)

    @staticmethod
    def _require_on_cluster(context: Context, api: Api) -> None:
        require_on_cluster(context, *api.cluster_operations)

    def _begin_held(self, context: Context, api: Api, request: Any) -> Reply:
        held = self._held(context, api, request)
        return Reply(None, waiting=self._complete(context, api, request, held))

    def _refuse(self, context: Context, api: Api, request: Any, error: Exception) -> Any:
        if isinstance(error, DisconnectError):
            raise error
        return self._fail(context, api, request, error)

    def _begin_wait(self, context: Context, api: Api, request: Any, response: Any) -> Reply:
        """Returns the reply for a response that must be waited for, or an outcome with fsyncs."""
        if isinstance(response, Outcome):
            return Reply(None, waiting=self._complete_flushed(context, api, request, response))
        return _waits(api, self._complete(context, api, request, response))

    def _charge(self, context: Context, response: Any | None) -> None:
        """Count what the request used against the client's quotas. The response says for how long the client is
        throttled, and the connection is muted for that time (KIP-219). `response` is None for a Produce with
        acks=0."""
        throttle, api = context.throttle, self._table[context.api_key]
        if throttle is None or api.throttle is ThrottleClass.EXEMPT:
            return
        if api.throttle is ThrottleClass.PRODUCE:
            throttle_ms = throttle.charge_produce(is_answered=response is not None)
        else:
            throttle_ms = throttle.charge()
        if throttle_ms:
            context.session.muted_ms = throttle_ms
            if hasattr(response, "throttle_time_ms"):
                response.throttle_time_ms = throttle_ms  # type: ignore[union-attr]

    # --- requests that wait

    def _begin(self, context: Context, api: Api, request: Any) -> Any:
        """Returns the handler's response, or the coroutine that returns it."""
        response = api.handle(context, request)
        is_in_steps = response.__class__ is GeneratorType
        return self.broker.turns.finish(response, context.throttle) if is_in_steps else response

    async def _large(self, context: Context, api: Api, frame: memoryview, at: int) -> Parts | None:
        """Serve a request with very many entries: few at a time, unless it may wait for other clients."""
        if api.key in PARKED:
            return await self._large_now(context, api, frame, at)
        async with self.broker.large_requests.places:
            return await self._large_now(context, api, frame, at)

    async def _large_now(self, context: Context, api: Api, frame: memoryview, at: int) -> Parts | None:
        """What takes long is done in a thread or in turns."""
        request = await self._decode_large(context, api, frame, at)
        self._note(context, api, request, len(frame))
        response = await self._response_to_large(context, api, request)
        self._meter_late(context, api)
        if context.throttle is not None:
            self._charge(context, response)
        if response is None:
            return None
        parts = await self._encode_large(context, response)
        await self.broker.large_requests.dismantle(request, response)
        return parts

    async def _decode_large(self, context: Context, api: Api, frame: memoryview, at: int) -> Any:
        try:
            return await self.broker.large_requests.decode(api.request, context.api_version, frame, at)
        except ValueError as error:
            raise self._cannot_read(api, context.api_version, error) from error

    async def _response_to_large(self, context: Context, api: Api, request: Any) -> Any:
        try:
            return await self._handle_large(context, api, request)
        except DisconnectError:
            raise
        except Exception as error:
            steps = self._fail_in_steps(context, api, request, error)
            return await self.broker.turns.run(steps, context.throttle)

    async def _handle_large(self, context: Context, api: Api, request: Any) -> Any:
        if api.cluster_operations:
            self._require_on_cluster(context, api)
        await self.broker.faults.gate(RECEIVED, api_key=context.api_key, client_id=context.client_id)
        response = self._begin(context, api, request)
        if context.throttle is not None and not isinstance(response, api.response):
            context.throttle.wait()
        return await self._finish_large(api, response)

    async def _finish_large(self, api: Api, response: Any) -> Any:
        """Await what a handler has returned."""
        # Steps may end in a request that has to wait.
        while response is not None and not isinstance(response, (api.response, Outcome)):
            response = await response
        if isinstance(response, Outcome):
            # Before the response is encoded: a thread may do that, and requests served meanwhile must find the work
            # done.
            self.run(response.follow_up)
            await wait_for(response.flushes)
            response = response.response
        return response

    async def _raw_token(self, authenticator: Authenticator, token: bytes) -> Parts | None:
        """A token after SaslHandshake version 0. A failure has no answer."""
        try:
            answer, _ = await authenticator.authenticate(token)
        except KafkaError as error:
            await hold_back_failure(self.broker, authenticator)
            raise DisconnectError from error  # logged already
        return [len(answer).to_bytes(4) + answer]

    async def _refuse_login(self, authenticator: Authenticator, context: Context, api: Api, request: Any) -> Parts:
        """Another request during a SASL exchange."""
        authenticator.refuse()
        name = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", API_KEYS[context.api_key][0]).upper()
        reason = f"Unexpected Kafka request of type {name} during SASL authentication."
        response = self._fail(context, api, request, KafkaError(ErrorCode.ILLEGAL_SASL_STATE, reason))
        await hold_back_failure(self.broker, authenticator)
        return self._encode(context, response)

    def run(self, follow_up: Callable[[], None] | None) -> None:
        """Run the work that follows a response. An error is logged and fails no request."""
        run_follow_up(follow_up, self.broker.metrics)

    async def _held(self, context: Context, api: Api, request: Any) -> Any:
        """A request that a test holds back before it is handled."""
        await self.broker.faults.gate(RECEIVED, api_key=context.api_key, client_id=context.client_id)
        response = self._begin(context, api, request)
        is_ready = response is None or isinstance(response, (api.response, Outcome))
        return response if is_ready else await response

    async def _complete(
        self, context: Context, api: Api, request: Any, waiting: Coroutine[Any, Any, Any]
    ) -> Parts | None:
        """Returns the response to a request that waits."""
        try:
            response = await waiting
            if response.__class__ is CoroutineType:
                response = await response  # steps may end in a request that has to wait
        except Exception as error:
            response = self._refuse(context, api, request, error)
        self._meter_late(context, api)
        if isinstance(response, Outcome):
            if response.flushes:
                return await self._complete_flushed(context, api, request, response)
            self.run(response.follow_up)
            response = response.response
        if response is None:
            self._charge(context, None)
            return None
        return self._encode(context, response)

    def _meter_late(self, context: Context, api: Api) -> None:
        """The first quota may have been set while a request waited. Kafka looks for one when it answers."""
        quotas = self.broker.quotas
        if context.throttle is not None or quotas is None or not quotas.is_enabled:
            return
        if api.key == PRODUCE:
            self._meter(context, quotas, context.size_bytes)
        elif api.key in PARKED:
            self._meter(context, quotas, 0)

    def _complete_flushed(
        self, context: Context, api: Api, request: Any, outcome: Outcome[Any]
    ) -> Coroutine[Any, Any, Parts]:
        """Returns the response once its fsyncs are done. The follow-up runs now, because other requests are served
        during the wait."""
        self.run(outcome.follow_up)
        return self._wait_and_encode(context, api, request, outcome)

    async def _wait_and_encode(self, context: Context, api: Api, request: Any, outcome: Outcome[Any]) -> Parts:
        response = outcome.response
        try:
            await wait_for(outcome.flushes)
        except Exception as error:
            response = self._fail(context, api, request, error)
        return self._encode(context, response)

    def _encode_shortened(self, context: Context, response: Any, error: EncodeError) -> Parts:
        """Encode a response that failed with this error: what a client has sent may make an error message too long."""
        if not at_once(shorten_messages(response)):
            raise error
        return encode_response_frame(context.correlation_id, response, context.api_version)

    async def _encode_large(self, context: Context, response: Any) -> Parts:
        broker = self.broker
        broker.faults.reach(READY, api_key=context.api_key, client_id=context.client_id)
        encode = broker.large_requests.encode
        try:
            return await encode(context.correlation_id, response, context.api_version)
        except EncodeError:
            if not await broker.turns.run(shorten_messages(response), context.throttle):
                raise
        return await encode(context.correlation_id, response, context.api_version)

    def _fail(self, context: Context, api: Api, request: Any, error: Exception) -> Any:
        return at_once(self._fail_in_steps(context, api, request, error))

    def _fail_in_steps(self, context: Context, api: Api, request: Any, error: Exception) -> Steps[Any]:
        if isinstance(error, KafkaError):
            code, message = error.code, error.message
        elif isinstance(error, OSError) and error.errno in OUT_OF_DESCRIPTORS:
            # A handler's first use of a module, for example. The client may try again.
            code = ErrorCode.KAFKA_STORAGE_ERROR
            message = f"{error.strerror}: raise the broker's limit of open files (ulimit -n)"
            self.broker.metrics.errors_unexpected += 1
            refusals = self.broker.logs.services.refusals
            refusals.write("%s version %d failed: %s", api.name, context.api_version, message)
        else:
            code, message = ErrorCode.UNKNOWN_SERVER_ERROR, None
            self.broker.metrics.errors_unexpected += 1
            logger.error("%s version %d failed", api.name, context.api_version, exc_info=error)
        return failure_in_steps(api, context.api_version, request, code, message)


def _waits(api: Api, waiting: Coroutine[Any, Any, Parts | None]) -> Reply:
    is_delayed = api.key in PARKED and api.key not in PARKED_LATER
    return Reply(None, waiting=waiting, is_abandonable=api.is_abandonable, is_delayed=is_delayed)
