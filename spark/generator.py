"""Orders and payments for the streaming job, made by number: the same number always gives the same records.

``python -m kafka_shim.spark.generator --bootstrap-servers ... --count 100000`` writes them; before every eleventh
transaction another is written and aborted, so that a reader that forgets read_committed counts too much, and every
hundredth order is sent twice.
"""

from __future__ import annotations

import json
import sys
import time

import click

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from confluent_kafka import Producer

ORDERS, PAYMENTS = "orders", "payments"
CUSTOMERS = 50
BEGAN_MS = 1_750_000_000_000
# Event time between two orders, and from an order to its payment.
STEP_MS, PAYS_AFTER_MS = 250, 4_000
ABORT_EVERY, REPEAT_EVERY, PAID_EVERY = 11, 100, 2
TRANSACTION_RECORDS = 500
TOLD_EVERY_RECORDS = 100_000
PATIENCE_S = 60


def order(number: int) -> dict[str, object]:
    return {
        "order_id": number,
        "customer": f"customer-{number * 7919 % CUSTOMERS}",
        "amount_cents": 100 + number * 37 % 9_900,
        "at_ms": BEGAN_MS + number * STEP_MS,
    }


def payment(number: int) -> dict[str, object]:
    """Of the order of that number."""
    return {"order_id": number, "paid_at_ms": BEGAN_MS + number * STEP_MS + PAYS_AFTER_MS}


def is_paid(number: int) -> bool:
    return number % PAID_EVERY == 0


def records(first: int, end: int, *, repeats: bool = True) -> Iterator[tuple[str, bytes, bytes]]:
    """(topic, key, value) of the orders from ``first`` up to and without ``end``, with their payments."""
    for number in range(first, end):
        key = str(number).encode()
        value = json.dumps(order(number), separators=(",", ":")).encode()
        yield ORDERS, key, value
        if repeats and number % REPEAT_EVERY == 0:
            yield ORDERS, key, value
        if is_paid(number):
            yield PAYMENTS, key, json.dumps(payment(number), separators=(",", ":")).encode()


def write(
    bootstrap_servers: str,
    count: int,
    *,
    first: int = 0,
    repeats: bool = True,
    prefix: str = "",
    aborts: bool = True,
    echo: Callable[[str], None] | None = None,
) -> int:
    """Writes ``count`` orders and what belongs to them in transactions; returns the number of committed records.

    ``prefix`` stands before the names of the topics; ``echo`` gets a line for each 100,000 records.
    """
    from confluent_kafka import Producer

    producer = Producer(
        {
            "bootstrap.servers": bootstrap_servers,
            "transactional.id": f"{prefix}generator",
            "linger.ms": 20,
            "log_level": 2,
            # The default puts keys elsewhere than Java's producers do.
            "partitioner": "murmur2_random",
        }
    )
    producer.init_transactions(PATIENCE_S)
    written = 0
    for turn, start in enumerate(range(first, first + count, TRANSACTION_RECORDS)):
        chunk = list(records(start, min(start + TRANSACTION_RECORDS, first + count), repeats=repeats))
        if aborts and turn % ABORT_EVERY == 0:
            producer.begin_transaction()
            _send(producer, [(topic, key, b'{"order_id":-1}') for topic, key, _ in chunk[:50]], prefix)
            producer.flush(60)
            producer.abort_transaction(60)
        producer.begin_transaction()
        _send(producer, chunk, prefix)
        producer.commit_transaction(60)
        told, written = written // TOLD_EVERY_RECORDS, written + len(chunk)
        if echo is not None and written // TOLD_EVERY_RECORDS > told:
            echo(f"{written:,} records")
    return written


def _send(producer: Producer, chunk: list[tuple[str, bytes, bytes]], prefix: str) -> None:
    for topic, key, value in chunk:
        producer.produce(prefix + topic, value, key)
    producer.poll(0)


@click.command(help=(__doc__ or "").partition("\n")[0])
@click.option("--bootstrap-servers", required=True)
@click.option("--count", type=int, default=100_000, show_default=True, help="Orders.")
@click.option("--first", type=int, default=0, show_default=True)
@click.option("--prefix", default="", help="Before the names of the topics.")
def main(bootstrap_servers: str, count: int, first: int, prefix: str) -> None:
    began = time.monotonic()
    written = write(
        bootstrap_servers, count, first=first, prefix=prefix, echo=lambda line: print(line, file=sys.stderr, flush=True)
    )
    seconds = time.monotonic() - began
    click.echo(f"{written:,} records in {seconds:.1f} s ({written / seconds:,.0f} records/s)")


if __name__ == "__main__":
    main()
