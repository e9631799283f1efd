"""Every client writes and reads back exactly what was written: client x acks x codec x sizes x keys x nulls."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence

import pytest

from kafka_shim.compat.clients import CLIENTS, Client, Message
from kafka_shim.compat.clients.base import ACKS, CODECS
from kafka_shim.targets import Target

TEXT = b"abcdefghijklmnopqrstuvwxyz0123456789 "
SIZES = (0, 1, 100, 1000, 16_384, 1_000_000, 10_485_760)
NewTopic = Callable[..., str]


def content(size_bytes: int, seed: int) -> bytes:
    """Text that compresses by half or so."""
    block = bytes(random.Random(seed).choices(TEXT, k=min(size_bytes, 4096)))
    return (block * (size_bytes // max(len(block), 1) + 1))[:size_bytes]


def messages() -> list[Message]:
    """Sizes, keys, nulls, headers and times; two partitions."""
    made = [Message(content(size, seed=size), b"key") for size in SIZES]
    made += [
        Message(b"no key"),
        Message(b"empty key", b""),
        Message(None, b"no value"),
        Message(None, None),
        Message(b"", b""),
        Message(bytes(range(256)), bytes(range(255, -1, -1))),
        Message(b"one header", b"k", headers=(("name", b"value"),)),
        Message(b"repeated", b"k", headers=(("name", b"1"), ("other", b"2"), ("name", b"3"))),
        Message(b"odd", b"k", headers=(("", b""), ("null", None), ("\u00fc\u4e2d", b"\xff\x00"))),
        Message(b"at the epoch", b"k", timestamp_ms=1),
        Message(b"in 2001", b"k", timestamp_ms=1_000_000_000_000),
        Message(b"a second ago twice", b"k", timestamp_ms=1_000_000_000_000),
        Message(b"other partition", b"k", partition=1),
    ]
    return made


def explain(wrote: Sequence[Message], found: Sequence[Message]) -> str:
    lines = [f"wrote {len(wrote)}, read {len(found)}"]
    for index, (mine, other) in enumerate(zip(wrote, found, strict=False)):
        if not mine.same_as(other):
            lines.append(f"{index}: wrote {mine.brief()}\n     read {other.brief()}")
    return "\n".join(lines)


def read_back(reader: Client, target: Target, topic: str, wrote: Sequence[Message], partitions: int = 2) -> None:
    found = reader.read(target.bootstrap, topic, partitions, len(wrote))
    found.sort(key=lambda message: message.partition)  # stable: each partition keeps its order
    expected = sorted(wrote, key=lambda message: message.partition)
    equal = len(found) == len(expected) and all(a.same_as(b) for a, b in zip(expected, found, strict=True))
    assert equal, explain(expected, found)


# acks=0 and 1 differ in nothing that a codec touches: every codec at acks=all, every acks with none and zstd.
CELLS = [(acks, codec) for acks in ACKS for codec in CODECS if acks == "all" or codec in ("none", "zstd")]


@pytest.mark.parametrize(("acks", "codec"), CELLS)
@pytest.mark.parametrize("name", CLIENTS)
def test_client_reads_back_what_it_wrote(
    name: str,
    acks: str,
    codec: str,
    target: Target,
    new_topic: NewTopic,
    client_of: Callable[[str], Client],
) -> None:
    client = client_of(name)
    topic = new_topic(2 if client.chooses_partition else 1, max_message_bytes="33554432")
    wrote = [message for message in messages() if client.can_write(message)]
    wrote = [message for message in wrote if client.can_read(message)]
    if acks == "0":
        # Without an answer to wait for, kafka-python's close drops the tail of what the socket has not taken yet.
        wrote = [message for message in wrote if len(message.value or b"") <= 1_000_000]
    client.write(target.bootstrap, topic, wrote, acks=acks, codec=codec)
    read_back(client, target, topic, wrote, 2 if client.chooses_partition else 1)


@pytest.mark.parametrize("codec", CODECS)
def test_every_client_reads_what_java_wrote(
    codec: str,
    target: Target,
    new_topic: NewTopic,
    client_of: Callable[[str], Client],
) -> None:
    topic = new_topic(2, max_message_bytes="33554432")
    wrote = messages()
    client_of("java").write(target.bootstrap, topic, wrote, acks="all", codec=codec)
    for name in CLIENTS:
        reader = client_of(name)
        if all(reader.can_read(message) for message in wrote):
            read_back(reader, target, topic, wrote)
