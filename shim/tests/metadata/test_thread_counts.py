"""What Kafka refuses of numbers of threads, with its texts; a broker answers it for AlterConfigs."""

from __future__ import annotations

import pytest

from kafka_shim.config import BrokerConfig, ConfigError, check_values
from kafka_shim.errors import ErrorCode, KafkaError
from kafka_shim.metadata.configs import SET, decide_incremental
from kafka_shim.metadata.image import RESOURCE_BROKER
from kafka_shim.metadata.thread_counts import check_thread_counts
from kafka_shim.tests.metadata.opened import opened

POOL = "Dynamic thread count update validation failed for"


@pytest.mark.parametrize(
    ("option", "value", "reason"),
    [
        ("num.io.threads", "17", f"{POOL} num.io.threads=17, value should not be greater than double the current "
         "value 8"),
        ("num.io.threads", "3", f"{POOL} num.io.threads=3, value should be at least half the current value 8"),
        ("background.threads", "21", f"{POOL} background.threads=21, value should not be greater than double the "
         "current value 10"),
        ("num.replica.fetchers", "3", f"{POOL} num.replica.fetchers=3, value should not be greater than double the "
         "current value 1"),
        ("num.network.threads", "7", f"{POOL} num.network.threads=7, value should not be greater than double the "
         "current value 3"),
        ("listener.name.plaintext.num.network.threads", "7", f"{POOL} num.network.threads=7, value should not be "
         "greater than double the current value 3"),
        ("log.cleaner.threads", "3", "Log cleaner threads cannot be increased to more than double the current value 1"),
        ("log.cleaner.threads", "0", "Log cleaner threads should be at least 1"),
        ("remote.log.reader.threads", "21", f"{POOL} remote.log.reader.threads=21, value should not be greater than "
         "double the current value 10"),
        ("remote.log.manager.follower.thread.pool.size", "5", f"{POOL} remote.log.manager.follower.thread.pool.size=5, "
         "value should not be greater than double the current value 2"),
    ],
)  # fmt: skip
def test_numbers_of_threads_change_by_half_or_double_at_most(tmp_path, option, value, reason):
    with opened(tmp_path) as store, pytest.raises(KafkaError) as raised:
        decide_incremental(store, RESOURCE_BROKER, "1", [(option, SET, value)])
    assert raised.value.code == ErrorCode.INVALID_REQUEST
    assert raised.value.message == (
        f"Invalid value org.apache.kafka.common.config.ConfigException: {reason} for configuration Invalid dynamic "
        "configuration"
    )


@pytest.mark.parametrize(
    ("option", "value"),
    [("num.io.threads", "4"), ("num.io.threads", "16"), ("num.network.threads", "6"), ("log.cleaner.threads", "2")],
)
def test_half_and_double_are_stored(tmp_path, option, value):
    with opened(tmp_path) as store:
        store.alter_configs(decide_incremental(store, RESOURCE_BROKER, "1", [(option, SET, value)]))
        assert store.broker_options == {option: value}


def test_the_next_change_counts_from_the_last():
    before, after = {"num.io.threads": "16"}, {"num.io.threads": "32"}
    check_thread_counts({"num.io.threads": "9"}, before, after)
    with pytest.raises(ConfigError, match="double the current value 9"):
        check_thread_counts({"num.io.threads": "9"}, {}, after)
    with pytest.raises(ConfigError, match=r"num.io.threads=7, value should be at least half the current value 16"):
        check_thread_counts({"num.io.threads": "7"}, before, {})


def test_a_listener_has_a_number_of_its_own():
    own = "listener.name.a.num.network.threads"
    check_thread_counts({own: "10"}, {}, {own: "20"})
    with pytest.raises(ConfigError, match="double the current value 10"):
        check_thread_counts({own: "10"}, {}, {own: "21"})
    with pytest.raises(ConfigError, match="half the current value 10"):
        check_thread_counts({}, {own: "10"}, {})


def test_threads_for_followers_are_counted_from_the_former_option_where_it_alone_is_set():
    former, option = "remote.log.manager.thread.pool.size", "remote.log.manager.follower.thread.pool.size"
    check_thread_counts({former: "10"}, {}, {option: "20"})
    with pytest.raises(ConfigError, match=f"{option}=4, value should be at least half the current value 10"):
        check_thread_counts({former: "10"}, {}, {option: "4"})
    check_thread_counts({former: "10", option: "2"}, {}, {option: "4"})


def test_each_thread_of_the_cleaner_has_more_than_a_megabyte():
    check_values({"log.cleaner.dedupe.buffer.size": "2097154", "log.cleaner.threads": "2"})
    text = r"log\.cleaner\.dedupe\.buffer\.size must be at least 1MB per cleaner thread\."
    with pytest.raises(ConfigError, match=text):
        check_values({"log.cleaner.dedupe.buffer.size": "2097152", "log.cleaner.threads": "2"})


def test_a_broker_with_less_memory_for_its_cleaner_does_not_start():
    BrokerConfig.parse({"log.cleaner.dedupe.buffer.size": "1048577"})
    for options in ({"log.cleaner.dedupe.buffer.size": "1048576"}, {"log.cleaner.threads": "128"}):
        with pytest.raises(ConfigError, match="at least 1MB per cleaner thread"):
            BrokerConfig.parse(options)
