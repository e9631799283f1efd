"""Checks the history of a share group against KIP-932: each record is acknowledged by exactly those who may, none is
lost, none comes again after an acknowledgement that was answered without error, and delivery counts are true.

What makes this possible without a global order: within one life of the broker the delivery counts of a record order its
deliveries, and across lives what was answered before a request began has happened before it.
"""

from __future__ import annotations

from kafka_shim.history.operations import FAIL, INFO, OK
from kafka_shim.history.share_operations import ACCEPT, ACKNOWLEDGE, CLOSE, FETCH, GAP, REJECT, RELEASE, RENEW, SEND

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from kafka_shim.history.share_operations import ShareOperation

WRONG_RECORD = "wrong-record"
REPEATED_COUNT = "repeated-delivery-count"
COUNT_WENT_BACK = "delivery-count-went-back"
COUNT_SKIPPED = "delivery-count-skipped"
OVER_LIMIT = "over-the-delivery-limit"
UNDER_LOCK = "delivered-under-lock"
AFTER_ACCEPT = "delivered-after-accept"
AFTER_REJECT = "delivered-after-reject"
NOT_THE_OWNER = "acknowledged-by-another"
TWICE = "acknowledged-twice"
LOST = "lost"
# Nobody accepted the record, but deliveries whose answers were lost may have used up its delivery count.
UNCLEAR = "unclear"
SHOWN_PER_CLASS = 10
# The types after which a record does not come again.
_ENDS = frozenset({ACCEPT, REJECT, GAP})


class ShareReport:
    """The result of a check. `errors` maps a class to its details."""

    __slots__ = ("accepted", "delivered", "errors", "rejected", "released", "sent", "unclear")

    def __init__(self) -> None:
        self.errors: dict[str, list[str]] = {}
        self.sent = self.delivered = 0
        # Acknowledgements that were answered without error, by record.
        self.accepted = self.released = self.rejected = 0
        self.unclear = 0

    @property
    def is_clean(self) -> bool:
        return not self.errors

    def lines(self) -> Iterator[str]:
        """Yields the report as text lines."""
        yield (
            f"{self.sent} records sent, {self.delivered} delivered, {self.accepted} accepted, {self.released} released,"
            f" {self.rejected} rejected, {self.unclear} unclear"
        )
        for name, details in sorted(self.errors.items()):
            yield f"error: {name} x {len(details)}"
            yield from (f"  {text}" for text in details[:SHOWN_PER_CLASS])


class _Delivery:
    __slots__ = ("count", "fetch", "is_concluded")

    def __init__(self, fetch: ShareOperation, count: int) -> None:
        self.fetch = fetch
        self.count = count
        # An acknowledgement other than a renewal was answered without error.
        self.is_concluded = False


class _Acknowledgement:
    """What a member said of one record."""

    __slots__ = ("delivery", "is_ok", "kind", "operation")

    def __init__(self, operation: ShareOperation, kind: int, delivery: _Delivery | None) -> None:
        self.operation = operation
        self.kind = kind
        # The delivery that it concludes; None: the member did not have the record.
        self.delivery = delivery
        self.is_ok = operation.outcome == OK

    @property
    def is_end(self) -> bool:
        """Whether the record does not come again if this was carried out."""
        return self.kind in _ENDS


class _Record:
    """What the history says of one offset."""

    __slots__ = ("acknowledgements", "deliveries", "sent", "values")

    def __init__(self) -> None:
        self.sent: ShareOperation | None = None
        self.values: set[str | None] = set()
        self.deliveries: list[_Delivery] = []
        self.acknowledgements: list[_Acknowledgement] = []

    def delivery_of(self, acknowledgement: ShareOperation) -> _Delivery | None:
        """Returns the delivery that this member may acknowledge."""
        mine = None
        for one in self.deliveries:
            fetch = one.fetch
            if fetch.life != acknowledgement.life or fetch.end_ms > acknowledgement.begin_ms:
                continue
            is_open = fetch.member == acknowledgement.member and not one.is_concluded
            if is_open and (mine is None or one.count > mine.count):
                mine = one
        return mine

    def void_late_ones(self, lost: list[ShareOperation], delivery_limit: int, lock_ms: float) -> None:
        """An acknowledgement of what lies before the start of the window is answered without error, and has no effect.
        So may be one whose lock may have ended, of a record that others have finished, or the member itself when it
        had come to it again, or that was delivered too often, the last times in answers that were lost."""
        for one in self.acknowledgements:
            operation, mine = one.operation, one.delivery
            if not one.is_ok or mine is None:
                continue
            before = [other for other in self.deliveries if other.fetch.begin_ms < operation.end_ms]
            is_late = (lock_ms > 0 and operation.end_ms > mine.fetch.begin_ms + lock_ms) or any(
                other.fetch.life == operation.life and other.count > mine.count for other in before
            )
            unseen = sum(
                other.life == operation.life and other.begin_ms < operation.end_ms and other.member != operation.member
                for other in lost
            )
            is_over = any(other.count + unseen >= delivery_limit for other in before) or any(
                other.is_end
                and other.operation.begin_ms < operation.end_ms
                and (
                    other.operation.member != operation.member
                    if other.delivery is None
                    else other.delivery.count > mine.count
                )
                for other in self.acknowledgements
            )
            if is_late and is_over:
                one.is_ok = False


class _History:
    """All records of a history, and what is known of fetches without an answer and of ends of sessions."""

    def __init__(self, operations: Iterable[ShareOperation]) -> None:
        self.records: dict[tuple[str, int], _Record] = {}
        # Fetches without an answer, by key: what they acquired nobody knows.
        self.lost: dict[str, list[ShareOperation]] = {}
        self.closed: dict[str, float] = {}
        acknowledgements = []
        for operation in sorted(operations, key=lambda one: one.end_ms):
            if operation.kind == SEND and operation.outcome == OK:
                for offset, value in operation.records:
                    if offset is not None:
                        record = self._record(operation.key, offset)
                        record.sent = operation
                        record.values.add(value)
            elif operation.kind == FETCH and operation.outcome != FAIL:
                self._add_fetch(operation)
            elif operation.kind == ACKNOWLEDGE:
                acknowledgements.append(operation)
            elif operation.kind == CLOSE:
                self.closed.setdefault(operation.member, operation.begin_ms)
        for operation in acknowledgements:
            self._add_acknowledgement(operation)

    def _record(self, key: str, offset: int) -> _Record:
        return self.records.setdefault((key, offset), _Record())

    def _add_fetch(self, fetch: ShareOperation) -> None:
        for key, acquired in fetch.acquired.items():
            if fetch.outcome == INFO:
                self.lost.setdefault(key, []).append(fetch)
                continue
            for offset, count, value in acquired:
                record = self._record(key, offset)
                record.values.add(value)
                record.deliveries.append(_Delivery(fetch, count))

    def _add_acknowledgement(self, operation: ShareOperation) -> None:
        if operation.outcome == FAIL:
            return
        for offset, kind in operation.types:
            record = self._record(operation.key, offset)
            delivery = record.delivery_of(operation)
            record.acknowledgements.append(_Acknowledgement(operation, kind, delivery))
            if delivery is not None and operation.outcome == OK and kind != RENEW:
                delivery.is_concluded = True


def check(operations: Iterable[ShareOperation], *, delivery_limit: int, lock_ms: float = 0) -> ShareReport:
    """Runs all checks on a whole history, at whose end members have taken all that was available. `lock_ms`: no lock
    was shorter; 0: locks are not checked."""
    history = _History(operations)
    report = ShareReport()
    for (key, offset), record in history.records.items():
        report.sent += record.sent is not None
        report.delivered += len(record.deliveries)
        lost = history.lost.get(key, [])
        record.void_late_ones(lost, delivery_limit, lock_ms)
        for acknowledged in record.acknowledgements:
            if acknowledged.is_ok:
                report.accepted += acknowledged.kind == ACCEPT
                report.released += acknowledged.kind == RELEASE
                report.rejected += acknowledged.kind in (REJECT, GAP)
        for found in (
            _values(record),
            _counts(record, lost, delivery_limit),
            _order(record),
            _after_completion(record),
            _owners(record),
            _locks(record, history.closed, lock_ms) if lock_ms else (),
            _missing(record, lost, delivery_limit),
        ):
            for anomaly, details in found:
                if anomaly == UNCLEAR:
                    report.unclear += 1
                else:
                    report.errors.setdefault(anomaly, []).append(f"{key}:{offset} {details}")
    return report


Found = tuple[str, str]


def _values(record: _Record) -> Iterator[Found]:
    if len(record.values) > 1:
        yield WRONG_RECORD, f"is {sorted(record.values, key=str)!r}"


def _counts(record: _Record, lost: list[ShareOperation], limit: int) -> Iterator[Found]:
    """Delivery counts that are too high."""
    for one in record.deliveries:
        if one.count > limit:
            yield OVER_LIMIT, f"came to {_who(one)} the {one.count}. time"
        if one.count > 1:
            before = sum(other.fetch.begin_ms < one.fetch.end_ms for other in record.deliveries)
            before += sum(other.begin_ms < one.fetch.end_ms for other in lost)
            if one.count > before:
                yield COUNT_SKIPPED, f"came to {_who(one)} the {one.count}. time, after {before - 1} others at most"


def _order(record: _Record) -> Iterator[Found]:
    """Delivery counts that come again or are too low."""
    seen: dict[tuple[int, int], _Delivery] = {}
    for one in record.deliveries:
        former = seen.setdefault((one.fetch.life, one.count), one)
        if former is not one:
            yield REPEATED_COUNT, f"came to {_who(former)} and to {_who(one)} the {one.count}. time"
        for other in record.deliveries:
            if (
                other.fetch.life == one.fetch.life
                and other.fetch.end_ms < one.fetch.begin_ms
                and one.count < other.count
            ):
                yield COUNT_WENT_BACK, f"came to {_who(one)} the {one.count}. time, after {other.count}"
        for released in record.acknowledgements:
            last = released.delivery
            if released.kind != RELEASE or not released.is_ok or last is None:
                continue
            if one.fetch.begin_ms >= released.operation.end_ms and one.count <= last.count:
                yield COUNT_WENT_BACK, f"came to {_who(one)} the {one.count}. time, released after {last.count}"


def _after_completion(record: _Record) -> Iterator[Found]:
    """Deliveries and acknowledgements of what was accepted or rejected."""
    done = False
    for ended in record.acknowledgements:
        if not ended.is_ok or not ended.is_end:
            continue
        operation, last = ended.operation, ended.delivery
        if done:
            yield TWICE, f"again by {operation.member}"
        done = True
        for one in record.deliveries:
            fetch = one.fetch
            is_later = fetch.life > operation.life or fetch.begin_ms >= operation.end_ms
            if last is not None and fetch.life == operation.life:
                is_later = is_later or one.count > last.count
            if is_later:
                name = AFTER_ACCEPT if ended.kind == ACCEPT else AFTER_REJECT
                yield name, f"came to {_who(one)}, after {operation.member} had it at {operation.end_ms:.0f} ms"


def _owners(record: _Record) -> Iterator[Found]:
    """Acknowledgements without error of members who did not have the record."""
    for acknowledged in record.acknowledgements:
        operation, mine = acknowledged.operation, acknowledged.delivery
        if not acknowledged.is_ok:
            continue
        if mine is None:
            yield NOT_THE_OWNER, f"by {operation.member}, who did not have it"
            continue
        for one in record.deliveries:
            fetch = one.fetch
            if fetch.life == operation.life and fetch.end_ms <= operation.begin_ms and one.count > mine.count:
                yield NOT_THE_OWNER, f"by {operation.member} after it had come to {_who(one)}"


def _locks(record: _Record, closed: dict[str, float], lock_ms: float) -> Iterator[Found]:
    """Deliveries while another delivery was neither acknowledged nor over."""
    for one in record.deliveries:
        fetch = one.fetch
        # The broker counts whole milliseconds, so a lock may be shorter by less than one.
        ends = [fetch.begin_ms + lock_ms - 1, closed.get(fetch.member, float("inf"))]
        ends += [
            given.operation.begin_ms
            for given in record.acknowledgements
            if given.operation.member == fetch.member and given.kind != RENEW
        ]
        for other in record.deliveries:
            if (
                other is not one
                and other.fetch.life == fetch.life
                and other.count > one.count
                and other.fetch.end_ms < min(ends)
            ):
                yield UNDER_LOCK, f"came to {_who(other)} while {_who(one)} had it"


def _missing(record: _Record, lost: list[ShareOperation], limit: int) -> Iterator[Found]:
    """Records that nobody can have accepted, rejected or received too often."""
    sent = record.sent
    if sent is None or any(one.is_end for one in record.acknowledgements):
        return
    last = max(record.deliveries, key=lambda one: one.fetch.end_ms, default=None)
    most = max((one.count for one in record.deliveries), default=0)
    # A fetch whose member does not wait for the answer is carried out when the broker comes to it, as late as that is.
    life = sent.life if last is None else last.fetch.life
    unseen = sum(one.life >= life for one in lost)
    if most >= limit:
        return
    if most + unseen >= limit:
        yield UNCLEAR, ""
    else:
        yield LOST, f"was delivered {len(record.deliveries)} times, and accepted by nobody"


def _who(delivery: _Delivery) -> str:
    return f"{delivery.fetch.member} (life {delivery.fetch.life}, {delivery.fetch.end_ms:.0f} ms)"
