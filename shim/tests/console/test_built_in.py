"""The console where the broker serves its metrics."""

from __future__ import annotations

import json
import urllib.error
import urllib.request

import pytest

from kafka_shim.config import ConfigError
from kafka_shim.embedded import Broker
from kafka_shim.tests.produced import make_topic
from kafka_shim.wire_client import Connection

HTTP = "127.0.0.1:0"


def get(broker: Broker, path: str) -> bytes:
    with urllib.request.urlopen(broker.state.http_address + path, timeout=60) as answer:
        return bytes(answer.read())


@pytest.mark.option("kafka.shim.http.console")
def test_a_broker_shows_itself() -> None:
    with Broker(kafka_shim_http_listener=HTTP, kafka_shim_http_console=True) as broker:
        with Connection(broker.bootstrap_servers) as client:
            make_topic(client, "t", 1)
        assert b"<title>Kafka console</title>" in get(broker, "/")
        assert [one["name"] for one in json.loads(get(broker, "/api/topics"))["topics"]] == ["t"]
        assert json.loads(get(broker, "/api/metrics"))["sums"]["kafka_controller_kafkacontroller_globaltopiccount"] == 1
        assert json.loads(get(broker, "/api/session"))["hasMetrics"]
        assert get(broker, "/health/ready") == b"ready\n"
        with pytest.raises(urllib.error.HTTPError, match="404"):
            get(broker, "/missing")


@pytest.mark.option("kafka.shim.http.bearer.token")
def test_the_page_plots_the_metrics_for_those_alone_whom_they_are_for() -> None:
    with Broker(
        kafka_shim_http_listener=HTTP, kafka_shim_http_console=True, kafka_shim_http_bearer_token="x"
    ) as broker:
        assert not json.loads(get(broker, "/api/session"))["hasMetrics"]
        with pytest.raises(urllib.error.HTTPError, match="404"):
            get(broker, "/api/metrics")
        address = f"{broker.state.http_address}/api/metrics"
        asked = urllib.request.Request(address, headers={"Authorization": "Bearer x"})
        with urllib.request.urlopen(asked, timeout=60) as answer:
            assert "kafka_controller_kafkacontroller_globaltopiccount" in json.load(answer)["sums"]


@pytest.mark.option("kafka.shim.http.console.public.url")
def test_who_comes_by_another_name_is_told_the_option_that_allows_it() -> None:
    """It was told the option of `kafka-shim console`, which a broker does not have."""
    options = {"kafka_shim_http_listener": HTTP, "kafka_shim_http_console": True}

    def ask(broker: Broker) -> bytes:
        asked = urllib.request.Request(broker.state.http_address, headers={"Host": "shop.example:8080"})
        with urllib.request.urlopen(asked, timeout=60) as answer:
            return bytes(answer.read())

    with Broker(**options) as broker:
        with pytest.raises(urllib.error.HTTPError, match="403") as refused:
            ask(broker)
        assert json.load(refused.value)["error"].endswith("allow it with kafka.shim.http.console.public.url")
    with Broker(**options, kafka_shim_http_console_public_url="http://shop.example:8080") as broker:
        assert b"<title>Kafka console</title>" in ask(broker)


@pytest.mark.option("kafka.shim.http.console.changes")
@pytest.mark.parametrize("allowed", [True, False])
def test_a_broker_lets_people_change_things_where_that_is_said(allowed: bool) -> None:
    options = {"kafka_shim_http_console_changes": True} if allowed else {}
    with Broker(kafka_shim_http_listener=HTTP, kafka_shim_http_console=True, **options) as broker:
        address = broker.state.http_address
        headers = {"Origin": address, "Content-Type": "application/json"}
        asked = urllib.request.Request(f"{address}/api/topic/new", b'{"name":"t"}', headers)
        if allowed:
            urllib.request.urlopen(asked, timeout=60).close()
        else:
            with pytest.raises(urllib.error.HTTPError, match="405"):
                urllib.request.urlopen(asked, timeout=60)
        assert [one["name"] for one in json.loads(get(broker, "/api/topics"))["topics"]] == ["t"] * allowed


@pytest.mark.option("kafka.shim.http.console.public.url")
def test_a_broker_behind_a_proxy_knows_the_origin_of_its_page() -> None:
    options = {"kafka_shim_http_console_public_url": "https://console.example"}
    with Broker(
        kafka_shim_http_listener=HTTP, kafka_shim_http_console=True, kafka_shim_http_console_changes=True, **options
    ) as broker:
        address = broker.state.http_address
        for origin, status in (("https://console.example", 200), ("https://other.example", 403)):
            headers = {"Origin": origin, "Host": "console.example", "Content-Type": "application/json"}
            asked = urllib.request.Request(f"{address}/api/topic/new", b'{"name":"t"}', headers)
            if status == 200:
                urllib.request.urlopen(asked, timeout=60).close()
            else:
                with pytest.raises(urllib.error.HTTPError, match="403"):
                    urllib.request.urlopen(asked, timeout=60)


def test_without_the_option_there_is_none() -> None:
    with Broker(kafka_shim_http_listener=HTTP) as broker, pytest.raises(urllib.error.HTTPError, match="404"):
        get(broker, "/api/topics")


def test_on_a_broker_with_sasl_everybody_logs_in() -> None:
    listen = "PLAINTEXT://127.0.0.1:0,SASL_PLAINTEXT://127.0.0.1:0"
    options = {"kafka_shim_http_listener": HTTP, "kafka_shim_http_console": True}
    with Broker(sasl="SCRAM-SHA-256", users={"alice": "secret"}, listen=listen, **options) as broker:
        assert json.loads(get(broker, "/api/session"))["wantsLogin"]
        with pytest.raises(urllib.error.HTTPError, match="401"):
            get(broker, "/api/topics")
        address = broker.state.http_address
        body = json.dumps({"user": "alice", "password": "secret"}).encode()
        headers = {"Origin": address, "Content-Type": "application/json"}
        with urllib.request.urlopen(urllib.request.Request(f"{address}/api/session", body, headers)) as answer:
            cookie = answer.headers["Set-Cookie"].partition(";")[0]
        request = urllib.request.Request(f"{address}/api/topics", headers={"Cookie": cookie})
        with urllib.request.urlopen(request, timeout=60) as answer:
            assert answer.status == 200


def test_a_login_with_the_only_mechanism_of_the_broker_leaves_no_warning(caplog: pytest.LogCaptureFixture) -> None:
    """The console asked for a better one first, which the broker refused."""
    options = {"kafka_shim_http_listener": HTTP, "kafka_shim_http_console": True}
    with Broker(sasl="PLAIN", users={"bob": "secret"}, **options) as broker:
        address = broker.state.http_address
        body = json.dumps({"user": "bob", "password": "secret"}).encode()
        headers = {"Origin": address, "Content-Type": "application/json"}
        with urllib.request.urlopen(urllib.request.Request(f"{address}/api/session", body, headers)) as answer:
            assert answer.status == 200
    assert "failed to authenticate" not in caplog.text


def test_a_start_says_what_it_needs() -> None:
    with pytest.raises(ConfigError, match=r"needs kafka\.shim\.http\.listener"):
        Broker(kafka_shim_http_console=True).start()
    with pytest.raises(ConfigError, match=r"public\.url needs kafka\.shim\.http\.console"):
        Broker(kafka_shim_http_console_public_url="https://a").start()
    with pytest.raises(ConfigError, match=r"public\.url=https://a/b: it ends with the host"):
        Broker(
            kafka_shim_http_listener=HTTP,
            kafka_shim_http_console=True,
            kafka_shim_http_console_public_url="https://a/b",
        ).start()
    with pytest.raises(ConfigError, match=r"changes needs kafka\.shim\.http\.console"):
        Broker(kafka_shim_http_listener=HTTP, kafka_shim_http_console_changes=True).start()
    with pytest.raises(ConfigError, match="needs a listener without TLS"):
        Broker(tls=True, kafka_shim_http_listener=HTTP, kafka_shim_http_console=True).start()
