"""The answers that leave together in a turn of the event loop that serves many connections (ADR 50).

Each answer that is sent may wake a client, which sleeps again until the next one is there. Kafka's network threads send
what a poll has made ready in a row. Here the answers of a turn with many requests are held and sent 16 at a time, the
last ones when the turn ends.

The size of a turn is not known before it is over: a turn holds its answers if the one before served 8 requests or more
in little time. With few clients nothing is held: they and the broker would wait for each other. Nor does an answer wait
for long work: a request that takes the slow path has the others' answers sent first, and after a turn that took
long, because such work went on in it, the next one holds nothing.

Nothing is held with a virtual clock, which counts the turns until nothing is under way.
"""

from typing import Any

class Answering:
    """The base of `cext.frame_base.FrameBase`: a connection whose answers may be held."""

class HeldAnswers:
    """Owned by the dispatcher, for all of its connections. Event-loop thread only."""

    def __init__(self, clock: Any) -> None: ...
