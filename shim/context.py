"""What a handler knows of one request (Kafka's RequestContext)."""

from __future__ import annotations

from kafka_shim.cext import replies

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from kafka_shim.broker import Broker
    from kafka_shim.quota.request_throttle import RequestThrottle
    from kafka_shim.session import Listener, Session

    class Context(replies.Context):
        """One request, valid from its decoding until its response. `node_id` is an attribute and not a constant, so
        that one process can hold several nodes later. `is_large`: the request has very many entries, and is served in
        steps; it holds nothing of the receive buffer. `size_bytes`: of its frame, without the length. `throttle` counts
        what the request uses, while a client has a quota. `done` is what the API's fast path has done of the request
        already (`cext.plain_api`), or None."""

        broker: Broker
        session: Session
        size_bytes: int
        throttle: RequestThrottle | None
        done: Any

        def note_member(self, group_id: str, member_id: str) -> None:
            """The connection speaks for this member, which lives as long as it while a virtual clock is moved for
            clients that are alive."""

        @property
        def listener(self) -> Listener: ...
        @property
        def peer_host(self) -> str:
            """The client's address. Groups show it after a slash."""

else:  # every request makes one
    Context = replies.Context
