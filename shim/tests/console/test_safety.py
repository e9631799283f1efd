"""What other sites, other people and hostile records try on a console."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

import pytest

from kafka_shim.config import ConfigError
from kafka_shim.console.app import COOKIE, Console
from kafka_shim.console.sessions import MOST_SESSIONS, Sessions
from kafka_shim.embedded import Broker
from kafka_shim.tests.console.asking import console_of, get, request
from kafka_shim.tests.produced import batch, make_topic, produce
from kafka_shim.wire_client import Connection

SCRIPT = "<script>alert(1)</script>"
OWN = {"Origin": "http://127.0.0.1:8080", "Content_Type": "application/json"}


@pytest.fixture
def console(broker: Broker) -> Iterator[Console]:
    made = console_of(broker, hosts=("console.example",))
    yield made
    made.close()


PUBLIC = "https://console.example"


@pytest.mark.parametrize("host", ["console.example", "Console.example:443", "127.0.0.1:8080", "localhost"])
def test_behind_a_proxy_the_page_has_the_public_origin(broker: Broker, host: str) -> None:
    console = console_of(broker, public_url=PUBLIC + ":443/")
    own = {**OWN, "Origin": PUBLIC}
    answer = request(console, "/api/session", "DELETE", host=host, **own)
    assert (answer.status, "; Secure" in dict(answer.headers)["Set-Cookie"]) == (200, True)
    origins = ["http://console.example", f"{PUBLIC}:8443", f"{PUBLIC}.evil.example", "https://evil.example", "null"]
    for origin in [*origins, ""]:
        assert request(console, "/api/session", "DELETE", host=host, **{**OWN, "Origin": origin}).status == 403, origin
    forged = {"Origin": "https://127.0.0.1:8080", "X_Forwarded_Proto": "https", "Forwarded": "proto=https"}
    assert request(console, "/api/topics", host=host, **forged).status == 403
    for other in ("evil.example", "", "console.example.evil.example", "[console.example]"):
        assert request(console, "/api/session", host=other, Origin=PUBLIC).status == 403
    assert request(console, "/api/session", host=host, **{**own, "Sec_Fetch_Site": "cross-site"}).status == 403
    console.close()


def test_the_public_origin_does_not_close_the_own_one(broker: Broker) -> None:
    console = console_of(broker, public_url=PUBLIC)
    answer = request(console, "/api/session", "DELETE", **OWN)
    assert (answer.status, "; Secure" in dict(answer.headers)["Set-Cookie"]) == (200, False)
    console.close()


@pytest.mark.parametrize(
    "url",
    [
        "console.example",
        "https://",
        "ftp://a.example",
        "https://a.example/console",
        "https://a:x",
        "https://u@a.example",
    ],
)
def test_a_public_url_is_an_origin(broker: Broker, url: str) -> None:
    with pytest.raises(ValueError, match=re.escape(url)):
        console_of(broker, public_url=url)


@pytest.mark.parametrize("path", ["/", "/main.js", "/api/topics", "/api/session"])
def test_a_host_of_another_name_is_refused(console: Console, path: str) -> None:
    """DNS rebinding: the name is the attacker's, the address is ours."""
    for host in ("evil.example", "evil.example:8080", "localhost.evil.example", "", "127.0.0.1.evil.example:80"):
        assert request(console, path, host=host).status == 403, host
    for host in ("localhost", "localhost:8080", "[::1]:8080", "192.168.1.2", "Console.Example:1"):
        assert request(console, path, host=host).status == 200, host


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "http://evil.example"},
        {"Origin": "null"},
        {"Origin": "https://127.0.0.1:8080"},
        {"Origin": "http://127.0.0.1:9090"},
        {"Sec_Fetch_Site": "cross-site"},
        {"Sec_Fetch_Site": "same-site"},
    ],
)
def test_another_site_neither_reads_nor_changes(console: Console, headers: dict[str, str]) -> None:
    assert request(console, "/api/topics", **headers).status == 403
    assert request(console, "/api/session", "POST", **{**OWN, **headers}).status == 403


def test_a_change_needs_an_origin_and_a_type_that_forms_cannot_send(console: Console) -> None:
    for headers in ({}, {"Origin": OWN["Origin"]}, {**OWN, "Content_Type": "text/plain"}):
        assert request(console, "/api/session", "DELETE", **headers).status == 403
    assert request(console, "/api/session", "DELETE", **OWN).status == 200
    for method in ("POST", "DELETE"):
        assert request(console, "/api/topics", method, **OWN).status == 405
        assert request(console, "/", method, **OWN).status == 405


@pytest.mark.parametrize(
    "path",
    [
        "/../app.py",
        "/static/../app.py",
        "/%2e%2e/app.py",
        "//etc/passwd",
        "/app.py",
        "/..%5capp.py",
        "/main.js/",
        "/__init__.py",
    ],
)
def test_no_path_leads_out_of_the_page(console: Console, path: str) -> None:
    assert request(console, path).status == 404


def test_nothing_runs_but_the_pages_own_script(console: Console) -> None:
    answer = request(console, "/")
    headers = dict(answer.headers)
    policy = headers["Content-Security-Policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert (headers["X-Content-Type-Options"], headers["X-Frame-Options"]) == ("nosniff", "DENY")
    page = answer.body.decode()
    assert re.findall(r"<script[^>]*>(?!</script>)", page) == []  # none inline
    assert not re.search(r"\son\w+=|style=|https?://", page)
    for name in re.findall(r'(?:href|src)="/([^"]+)"', page):
        assert request(console, f"/{name}").status == 200


def test_no_file_of_the_page_makes_html_of_text(console: Console) -> None:
    for name, (body, _) in console._pages.items():
        if name.endswith(".js"):
            html = rb"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function"
            assert not re.search(html, body), name
            assert not re.search(rb"https?://(?!www\.w3\.org/2000/svg)", body), f"{name} asks the network"


def test_hostile_records_come_as_data(console: Console, client: Connection) -> None:
    from kafka_shim.cext import builder

    make_topic(client, "t", 1)
    told = [
        (SCRIPT.encode(), b'{"a":"' + SCRIPT.encode() + b'"}', 1, [(SCRIPT, SCRIPT.encode())]),
        (b"\xff\xfe", None, 2, [("\udcff", b"")]),
    ]
    produce(client, "t", 0, bytes(builder.build(told)))
    answer = request(console, "/api/records?topic=t")
    assert answer.content_type.startswith("application/json")
    assert dict(answer.headers)["X-Content-Type-Options"] == "nosniff"
    other, row = json.loads(answer.body)["records"]
    assert (row["key"]["text"], row["headers"][0][0], row["headers"][0][1]["text"]) == (SCRIPT, SCRIPT, SCRIPT)
    assert other["headers"][0][0] == "\ufffd"
    refused = get(console, "topic", 409, name=SCRIPT)  # a name that no topic can have
    assert refused["code"] == "INVALID_TOPIC_EXCEPTION"


@pytest.mark.parametrize(
    "query",
    [
        "topic=t&limit=201",
        "topic=t&limit=0",
        "topic=t&limit=-1",
        "topic=t&limit=x",
        "topic=t&limit=" + "9" * 5000,
        "topic=t&partition=-1",
        "topic=t&from=at:x",
        "topic=t&from=time:-1",
        "topic=t&from=offset:" + "9" * 30,
        "topic=t&from=nowhere",
        "topic=t&direction=sideways",
        "topic=t&topic=u",
        "topic=" + "x" * 9000,
        "topic=t&" + "x" * 20000,
        "&".join(f"a{n}=1" for n in range(100)),
        "topic=%ff%fe",
        "",
    ],
)
def test_parameters_are_checked_and_bounded(console: Console, client: Connection, query: str) -> None:
    make_topic(client, "t", 1)
    answer = request(console, f"/api/records?{query}")
    assert answer.status == 400
    assert len(answer.body) < 200


def test_a_cursor_for_partitions_that_are_not_there_reads_what_is(console: Console, client: Connection) -> None:
    make_topic(client, "t", 1)
    produce(client, "t", 0, batch(b"x"))
    page = get(console, "records", topic="t", direction="forward", **{"from": f"at:0.0,7.5,{2**62}.9"})
    assert len(page["records"]) == 1


# --- people who log in


@pytest.fixture(scope="module")
def secured() -> Iterator[Console]:
    acls = [{"principal": "User:alice", "operation": operation, "topic": "hers"} for operation in ("READ", "DESCRIBE")]
    users = {"alice": 'a"\\secret', "bob": "b-secret", "root": "r-secret"}
    with Broker(sasl="SCRAM-SHA-512", users=users, acls=acls, super_users="User:root;User:ANONYMOUS") as broker:
        sessions = Sessions(broker.bootstrap_servers, {"security.protocol": "SASL_PLAINTEXT"})
        console = Console(sessions)
        root = cookie_of(log_in(console, "root", "r-secret"))
        for name in ("hers", "others"):
            session = sessions.find(root.partition("=")[2])
            assert session is not None
            with session.cluster.lend() as connection:
                make_topic(connection, name, 1)
                produce(connection, name, 0, batch(b"of " + name.encode()))
        yield console
        console.close()


def log_in(console: Console, user: object, password: object) -> tuple[int, str]:
    answer = request(console, "/api/session", "POST", json.dumps({"user": user, "password": password}).encode(), **OWN)
    return answer.status, dict(answer.headers).get("Set-Cookie", "")


def cookie_of(answer: tuple[int, str]) -> str:
    status, cookie = answer
    assert status == 200
    assert cookie.endswith("; Path=/; HttpOnly; SameSite=Strict")
    return cookie.partition(";")[0]


def read(console: Console, topic: str, cookie: str) -> tuple[int, str]:
    answer = request(console, f"/api/records?topic={quote(topic)}", Cookie=cookie)
    told = json.loads(answer.body)
    return answer.status, told.get("code") or told["records"][0]["value"]["text"]


def test_a_person_sees_what_their_acls_allow(secured: Console) -> None:
    cookie = cookie_of(log_in(secured, "alice", 'a"\\secret'))
    assert read(secured, "hers", cookie) == (200, "of hers")
    assert read(secured, "others", cookie) == (403, "TOPIC_AUTHORIZATION_FAILED")
    listed = json.loads(request(secured, "/api/topics", Cookie=cookie).body)
    assert [one["name"] for one in listed["topics"]] == ["hers"]
    assert read(secured, "hers", cookie_of(log_in(secured, "bob", "b-secret")))[0] == 403


def test_a_person_sees_which_parts_of_access_they_may_not_see_and_what_that_takes(secured: Console) -> None:
    alice, root = cookie_of(log_in(secured, "alice", 'a"\\secret')), cookie_of(log_in(secured, "root", "r-secret"))

    def part(name: str, cookie: str) -> dict[str, Any]:
        answer = request(secured, f"/api/{name}", Cookie=cookie)
        assert answer.status == 200
        told: dict[str, Any] = json.loads(answer.body)
        return told

    for name, operation in (("acls", "Describe"), ("users", "Describe"), ("quotas", "DescribeConfigs")):
        told = part(name, alice)
        assert (told[name], told["refused"]) == ([], True)
        assert told["note"].startswith(f"You may not see the {'ACLs' if name == 'acls' else name}. ")
        assert told["note"].endswith(f" --cluster --operation {operation}")
        assert "refused" not in part(name, root)
    assert part("own", alice)["own"] == [{"topic": "hers", "operations": ["READ", "DESCRIBE"]}]
    (of_root,) = [one for one in part("own", root)["own"] if one["topic"] == "others"]
    assert {"READ", "WRITE", "ALTER_CONFIGS"} <= set(of_root["operations"])
    assert request(secured, "/api/own").status == 401


def test_nobody_reads_without_a_session(secured: Console) -> None:
    for cookie in ("", f"{COOKIE}=", f"{COOKIE}={'0' * 64}", f"{COOKIE}=../../x", "a=b;;;="):
        assert request(secured, "/api/topics", Cookie=cookie).status == 401
    told = json.loads(request(secured, "/api/session").body)
    assert (told["wantsLogin"], told["isIn"]) == (True, False)


def test_a_cookie_is_read_in_linear_time(secured: Console) -> None:
    """http.cookies takes 24 s of CPU for this one, which fits into a line of a request, before anybody logs in."""
    cookie = f'{COOKIE}="' + '\\"' * 32000 + '"'
    began_s = time.process_time()
    assert request(secured, "/api/topics", Cookie=cookie).status == 401
    assert time.process_time() - began_s < 2
    assert request(secured, "/api/topics", Cookie=f"other=1; {COOKIE}=x; z").status == 401


@pytest.mark.parametrize(
    ("user", "password", "status"),
    [
        ("alice", "wrong", 401),
        ("nobody", "x", 401),
        ("", "", 401),
        ("x" * 2000, "y", 401),
        (None, "x", 400),
        (["alice"], "x", 400),
        ('alice" password="b-secret', "x", 401),
        ("alice", 'x" username="bob', 401),
    ],
)
def test_a_wrong_login_is_refused(secured: Console, user: object, password: object, status: int) -> None:
    assert log_in(secured, user, password) == (status, "")


def test_a_refused_login_is_told_without_a_file_that_the_person_does_not_have(secured: Console) -> None:
    """It said "check username and password in sasl.jaas.config", which is where the console has what was typed."""
    answer = request(secured, "/api/session", "POST", b'{"user": "alice", "password": "wrong"}', **OWN)
    told = json.loads(answer.body)["error"]
    assert told.startswith("SASL_AUTHENTICATION_FAILED: ")
    assert "jaas" not in told


def test_people_log_in_where_another_of_the_named_brokers_is_down_and_the_log_warns_of_nothing(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """The first of them alone was asked how people log in; and each login left a line in the broker's log about a
    client that had failed to authenticate with a mechanism `(any)`."""
    with Broker(sasl="SCRAM-SHA-512", users={"bob": "b-secret"}) as broker:
        addresses = f"127.0.0.1:1,{broker.bootstrap_servers}"
        console = Console(Sessions(addresses, {"security.protocol": "SASL_PLAINTEXT"}))
        for _ in range(2):
            cookie_of(log_in(console, "bob", "b-secret"))
        console.close()
    assert "failed to authenticate" not in caplog.text


def test_the_listener_is_asked_once_how_people_log_in(caplog: pytest.LogCaptureFixture) -> None:
    """Of a mechanism that it does not have it logs the refusal."""
    with Broker(sasl="PLAIN", users={"bob": "b-secret"}) as broker:
        console = Console(Sessions(broker.bootstrap_servers, {"security.protocol": "SASL_PLAINTEXT"}))
        assert log_in(console, "bob", "wrong") == (401, "")
        for _ in range(2):
            cookie_of(log_in(console, "bob", "b-secret"))
        console.close()
    assert caplog.text.count("it wants 'SCRAM-SHA-512', this listener has PLAIN") == 1


def test_a_mechanism_that_no_page_can_ask_for_is_told_at_the_start() -> None:
    """The first login was a KeyError in the log, and an empty page."""
    properties = {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "GSSAPI"}
    with pytest.raises(ConfigError, match=r"sasl\.mechanism GSSAPI needs sasl\.jaas\.config"):
        Sessions("127.0.0.1:1", properties)


def test_where_nobody_logs_in_a_login_is_refused(console: Console) -> None:
    answer = request(console, "/api/session", "POST", b'{"user": "alice", "password": "secret"}', **OWN)
    assert (answer.status, b"nobody logs in here" in answer.body) == (405, True)


NO_UNICODE, TWO_LINES = [{"user": text, "password": "x"} for text in ("\ud800", "a\nb")]
SECRETS = [{"user": "a", "password": f"top{end}secret"} for end in ("\n", "\r")]
BODIES = [json.dumps(one).encode() for one in (NO_UNICODE, TWO_LINES, *SECRETS)]


@pytest.mark.parametrize("body", [b"", b"[]", b"{", b"[" * 60000, b"\xff", *BODIES])
def test_a_login_that_is_none_is_refused(secured: Console, body: bytes) -> None:
    assert request(secured, "/api/session", "POST", body, **OWN).status == 400


def test_a_session_ends_with_its_log_out(secured: Console) -> None:
    cookie = cookie_of(log_in(secured, "alice", 'a"\\secret'))
    assert request(secured, "/api/session", "DELETE", Cookie=cookie, **OWN).status == 200
    assert request(secured, "/api/topics", Cookie=cookie).status == 401


def test_sessions_are_bounded_and_end_by_themselves(secured: Console, monkeypatch: pytest.MonkeyPatch) -> None:
    from kafka_shim.console import sessions

    monkeypatch.setattr(sessions, "MOST_SESSIONS", 2)
    assert MOST_SESSIONS > 2
    cookies = [cookie_of(log_in(secured, "bob", "b-secret")) for _ in range(3)]
    assert [request(secured, "/api/topics", Cookie=one).status for one in cookies] == [401, 200, 200]
    monkeypatch.setattr(sessions, "IDLE_S", -1)
    assert request(secured, "/api/topics", Cookie=cookies[2]).status == 401
