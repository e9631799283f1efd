"""Whether requests are logged is asked for each of them, and may change while the broker runs."""

from __future__ import annotations

import logging

from kafka_shim.tests.produced import batch, make_topic, produce


def test_a_changed_level_is_in_force_at_once(client, caplog):
    logger = logging.getLogger("kafka_shim.request")
    make_topic(client, "t", 1)
    produce(client, "t", 0, batch(b"opens"))
    for level, shown in ((logging.DEBUG, 1), (logging.INFO, 0), (logging.DEBUG, 1)):
        caplog.clear()
        logger.setLevel(level)
        try:
            produce(client, "t", 0, batch(b"a"))
        finally:
            logger.setLevel(logging.NOTSET)
        assert sum("ProduceRequest(" in one.getMessage() for one in caplog.records) == shown
