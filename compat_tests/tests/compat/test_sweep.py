"""Every advertised API in every version answers the same requests as Apache Kafka does."""

from __future__ import annotations

from kafka_shim.api import APIS
from kafka_shim.compat.sweep import CASES, LEFT_OUT, prepare, sweep, unswept
from kafka_shim.protocol.api_keys import API_KEYS
from kafka_shim.targets import make


def test_every_version_of_every_api_answers_as_kafka_does() -> None:
    with make("shim") as shim, make("kafka-native") as kafka:
        for target in (shim, kafka):
            prepare(target.bootstrap)
        done = sweep(shim.bootstrap, kafka.bootstrap)
    print(f"{done.asked} requests over {done.apis} APIs, {len(done.disparities)} differ")
    assert not done.disparities, "\n".join(map(str, done.disparities[:40]))
    assert done.apis == len([api for api in CASES if api not in LEFT_OUT])


def test_each_served_api_is_swept_or_left_out_for_a_reason() -> None:
    names = {key: row[0] for key, row in API_KEYS.items()}
    assert unswept(names[api.key] for api in APIS) == set()
    assert not CASES.keys() & LEFT_OUT.keys()
    assert unswept(["Nonsense", *CASES, *LEFT_OUT]) == {"Nonsense"}
