from __future__ import annotations

import pytest

from kafka_shim.config import generated_rows
from kafka_shim.config.transcribe import TARGET, facts, render


@pytest.mark.java
def test_the_rows_are_what_kafkas_jars_say():
    from kafka_shim.targets.kafka_jars import kafka_libs

    assert render(facts(kafka_libs())) == TARGET.read_text()


def test_rows_are_rendered_as_python_reads_them():
    text = render(
        'CLIENT\tacks\nBROKER\ta.b\tSTRING\t\x00\t\tHIGH\tread-only\t\nTOPIC\tc\tINT\tx"y\\\t[0,...]\tLOW\t\tinternal'
    )
    names: dict[str, object] = {}
    exec(text, names)
    assert names["BROKER"] == (("a.b", "STRING", None, "", "HIGH", "read-only"),)
    assert names["CLIENT_NAMES"] == ("acks",)
    assert names["TOPIC"] == (("c", "INT", 'x"y\\', "[0,...]", "LOW", "", "internal"),)


def test_no_option_has_two_rows():
    for table in (generated_rows.BROKER, generated_rows.TOPIC, generated_rows.GROUP, generated_rows.CLIENT_METRICS):
        names = [row[0] for row in table]
        assert len(names) == len(set(names)) > 0
