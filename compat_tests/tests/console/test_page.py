"""The console's page in a real browser: what it shows, that no record runs as script, and that it fits."""

from __future__ import annotations

import json
import socket
import socketserver
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

import pytest

from kafka_shim import Broker
from kafka_shim.cext import builder
from kafka_shim.client.requests import make
from kafka_shim.compat.tests.console.chromium import Chromium, Page
from kafka_shim.console.app import Console
from kafka_shim.console.sessions import Sessions
from kafka_shim.http.server import HttpServer
from kafka_shim.security.tls.authority import CertificateAuthority
from kafka_shim.targets.waiting import PATIENCE_S, right_answer
from kafka_shim.tests.api.test_fetch_committed import Producer
from kafka_shim.tests.produced import make_topic, produce
from kafka_shim.tests.security.test_tls import store_options
from kafka_shim.wire_client import Connection

SCRIPT = "</pre><script>document.title='broken out'</script><img src=x onerror=\"document.title='broken out'\">"
# Opens a dialog once, and fills each that comes.
DIALOG = """
const dialog = document.querySelector('dialog.change');
const opener = [...document.querySelectorAll('main button')].find(one => one.textContent === '%s');
const type = (control, text) => { control.value = text; control.dispatchEvent(new Event('input')); };
if (opener && !dialog && !window.hasOpened) { window.hasOpened = true; opener.click(); }
if (dialog && !dialog.dataset.isFilled) {
  dialog.dataset.isFilled = '1';
  const go = dialog.querySelector('button');
  %s;
  go.click();
  document.body.dataset.hasActed = '1';
}
"""
TYPE_NAME = "const it = dialog.querySelector('input[placeholder]'); if (it) type(it, it.placeholder)"
# What a reader does, and what is measured then: files of the page's own origin, as its policy wants.
ACTS = {
    "open": "const row = document.querySelector('.records tbody tr'); if (row) { clearInterval(again); row.click(); }",
    "create": DIALOG % ("Create a topic", "type(dialog.querySelector('input'), 'made')"),
    # The first click is one of somebody who has not typed the name.
    "delete": DIALOG % ("Delete", f"go.click(); {TYPE_NAME}"),
    "hesitate": DIALOG % ("Delete", "type(dialog.querySelector('input'), 'Doomed')"),
    "record": DIALOG % ("Write a record", f"type(dialog.querySelectorAll('textarea')[1], {json.dumps(SCRIPT)})"),
    "reset": DIALOG % ("Reset offsets", TYPE_NAME),
    "option": DIALOG % ("Set", "type(dialog.querySelector('textarea'), 'compact')"),
    "end": DIALOG % ("End it by force", TYPE_NAME),
    "measure": "document.title = document.documentElement.scrollWidth <= innerWidth ? 'fits' : 'too wide';",
}

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def view(tmp_path_factory: pytest.TempPathFactory) -> Iterator[View]:
    # The records are old, and a slow machine may come to the first removal of such.
    with Broker(log_retention_ms=-1) as broker, Connection(broker.bootstrap_servers) as client:
        make_topic(client, "hostile", 1)
        script = SCRIPT.encode()
        produce(client, "hostile", 0, bytes(builder.build([(script, b'{"a":[%s]}' % script, 1, [(SCRIPT, script)])])))
        make_topic(client, "t", 1)
        one, other = Producer(client, "one"), Producer(client, SCRIPT)
        one.write(b"dropped")
        one.end(commit=False)
        other.write(b"waits")
        commit = make("OffsetCommit", group_id=SCRIPT, generation_id_or_member_epoch=-1)
        commit.topics = make(
            "OffsetCommit", topics=[{"name": "t", "partitions": [{"partition_index": 0, "committed_offset": 1}]}]
        ).topics
        client.request(make("FindCoordinator", key_type=0, coordinator_keys=[SCRIPT]))
        client.request(commit, 8)
        make_topic(client, "doomed", 1)
        with shown(broker.bootstrap_servers, tmp_path_factory.mktemp("console")) as found:
            yield found


@contextmanager
def shown(bootstrap: str, folder: Path, **properties: str) -> Iterator[View]:
    """The page of a console that lets people change things, on which `ACTS` can be done."""
    console = Console(Sessions(bootstrap, properties), allows_changes=True)
    body, kind = console._pages["main.js"]
    acts = "".join(f"if (location.search.includes('{name}')) {{ {act} }}" for name, act in ACTS.items())
    # Again and again: the page draws what it has asked for when it comes.
    console._pages["main.js"] = body + f"\nconst again = setInterval(() => {{ {acts} }}, 200);".encode(), kind
    server = HttpServer(("127.0.0.1", 0), console.handle, most_requests=32)
    server.start()
    try:
        with Chromium(folder) as browser:
            yield View(server.address, browser, console)
    finally:
        server.stop()
        console.close()


class View:
    """A console's page, shown by one browser again and again."""

    def __init__(self, address: str, browser: Chromium, console: Console | None = None) -> None:
        self.address = address
        self.browser = browser
        self.console = console

    def open(self, place: str, *, act: str = "", **options: Any) -> Page:
        return self.browser.open(f"{self.address}/?{act}#/{place}", **options)

    def elements(
        self, place: str, *shown: str, act: str = "", until: Callable[[str], bool] = lambda html: True, **options: Any
    ) -> str:
        """The page's elements when it has asked for everything, contains `shown`, and `until` holds for it."""
        with self.open(place, act=act, **options) as page:
            return page.wait(*shown, until=until)


def test_the_page_is_shown_by_tls_where_the_broker_serves_it(tmp_path: Path) -> None:
    """And refused by a browser that does not trust the authority."""
    options = {"kafka.shim.http.listener": "https://127.0.0.1:0", "kafka.shim.http.console": "true"}
    with Broker(**options, **store_options(CertificateAuthority())) as broker, Chromium(tmp_path) as browser:
        with Connection(broker.bootstrap_servers) as client:
            make_topic(client, "secured", 1)
        view = View(broker.state.http_address, browser)
        with pytest.raises(ConnectionError, match="ERR_CERT_AUTHORITY_INVALID"):
            view.open("topics")
        view.elements("topics", 'href="#/topics/secured"', trusts_all=True)


def test_topics_groups_and_transactions_are_shown(view: View) -> None:
    here = '<a href="#/topics" data-name="topics" aria-current="page">Topics</a>'
    view.elements("topics", 'href="#/topics/hostile"', here)
    view.elements("topics/t", 'class=" aborted"', "ABORT of producer", '<span class="tag warn">open</span>')
    view.elements("transactions/-/held", "the first")


@pytest.mark.parametrize(
    "place", ["topics/hostile", "groups", "transactions/-/held", f"topics/{quote(SCRIPT, safe='')}"]
)
def test_no_script_escapes_from_data(view: View, place: str) -> None:
    shown = view.elements(place, "&lt;script&gt;document.title", act="open" if place == "topics/hostile" else "")
    assert "<title>Kafka console</title>" in shown
    assert "<script>document" not in shown
    assert "<img src=" in shown  # the page's own
    assert '<img src="x"' not in shown


def test_people_change_what_they_confirm(view: View) -> None:
    view.elements("topics", "<h1>made ", act="create")
    shown = view.elements("topics/made", "&lt;script&gt;document.title", act="record")
    assert "<title>Kafka console</title>" in shown
    assert '<dialog class="change"' in view.elements("topics/doomed", "data-has-acted", act="hesitate")
    shown = view.elements("topics/doomed", 'href="#/topics/made"', act="delete", until=is_done)
    assert 'href="#/topics/doomed"' not in shown
    place = f"groups/{quote(SCRIPT, safe='')}"
    view.elements(place, "<b>2</b>")
    view.elements(place, "<b>3</b>", act="reset")


def tab_to(page: Page, wanted: str) -> None:
    """Press Tab until what has the focus is the element `wanted`."""
    for _ in range(100):
        page.press("Tab")
        if page.value(f"document.activeElement.matches({json.dumps(wanted)})"):
            return
    raise AssertionError(f"no Tab leads to {wanted}")


def test_the_link_to_the_content_leads_to_that_of_the_page(view: View) -> None:
    """It led to the topics: what stands after # in the address says which page is shown."""
    with view.open("groups") as page:
        page.wait("<h1>Groups</h1>")
        page.press("Tab")
        assert page.value("document.activeElement.className") == "skip"
        page.press("Enter")
        assert page.value("document.activeElement.id") == "content"
        assert page.value("location.hash") == "#/groups"


def test_with_the_keyboard_alone_several_options_are_set_of_those_that_were_looked_for(view: View) -> None:
    """Each change emptied the filter and led back to the first field."""
    with view.open("topics/hostile/configs", width=400) as page:
        page.wait("aria-label", "max.message.bytes")
        tab_to(page, "input[type=search]")
        page.type("flush.")
        for option in ("flush.messages", "flush.ms"):
            tab_to(page, f"button[aria-label='Set {option}']")
            page.press("Enter")
            page.wait('<dialog class="change"')
            page.value("document.activeElement.select()")
            page.type("123456789")
            tab_to(page, "dialog button")
            page.press("Enter")
            page.wait(until=lambda html: '<dialog class="change"' not in html and "123456789" in html)
            focus = f"document.activeElement.getAttribute('aria-label') === 'Set {option}'"
            right_answer(lambda focus=focus: page.value(focus), bool, "the focus is where it was")
        assert page.value("document.querySelector('main input[type=search]').value") == "flush."


def test_what_is_to_be_typed_has_the_focus_in_a_dialog_with_a_table(view: View) -> None:
    with view.open(f"groups/{quote(SCRIPT, safe='')}") as page:
        page.wait("Reset offsets")
        page.value("[...document.querySelectorAll('button')].find(one => one.textContent === 'Reset offsets').focus()")
        page.press("Enter")
        tab_to(page, "dialog button")
        page.press("Enter")
        page.wait("Type its name")
        assert page.value("document.activeElement.placeholder") == SCRIPT


def log_in(page: Page, user: str, password: str) -> None:
    page.wait("<h1>Log in</h1>")
    page.type(user)
    page.press("Tab")
    page.type(password)
    page.press("Enter")


def test_a_refused_login_keeps_the_name_and_wants_the_password(tmp_path: Path) -> None:
    with (
        Broker(sasl="PLAIN", users={"bob": "b-secret"}) as broker,
        shown(broker.bootstrap_servers, tmp_path, **{"security.protocol": "SASL_PLAINTEXT"}) as view,
        view.open("topics", width=400) as page,
    ):
        log_in(page, "bob", "wrong")
        page.wait("Invalid username or password")
        page.type("b-secret")
        page.press("Enter")
        page.wait("<h1>Topics</h1>", "<span>bob</span>")


def test_access_of_a_person_without_acls_on_the_cluster(tmp_path: Path) -> None:
    acls = [{"principal": "User:alice", "operation": "READ", "topic": "t"}]
    with (
        Broker(sasl="PLAIN", users={"bob": "b-secret"}, acls=acls) as broker,
        shown(broker.bootstrap_servers, tmp_path, **{"security.protocol": "SASL_PLAINTEXT"}) as view,
        view.open("access", width=400) as page,
    ):
        log_in(page, "bob", "b-secret")
        page.wait("<h1>Access</h1>", "You may not see the ACLs", ">Quotas</a>")
        page.value("location.hash = '#/access/own'")
        page.wait("There is no topic that you may see.")


def test_a_console_that_reads_offers_no_change(view: View) -> None:
    view.console._allows_changes = False
    try:
        for place in ("topics/t", "topics/t/configs", f"groups/{quote(SCRIPT, safe='')}", "transactions/one"):
            shown = view.elements(place, until=is_drawn)
            for word in ("Write a record", "Delete", ">Set<", "Reset offsets", "End it by force"):
                assert word not in shown.partition("<main")[2], (place, word)
    finally:
        view.console._allows_changes = True


class Relay(socketserver.ThreadingTCPServer):
    """Passes on requests to the console at `address`, but closes those for a file without an answer, until the page is
    loaded more than `dropped` times: a browser may ask twice on one page."""

    daemon_threads = True

    def __init__(self, address: str, file: str, dropped: int) -> None:
        super().__init__(("127.0.0.1", 0), _Relayed)
        self.to = urlsplit(address)
        self.wanted = f"GET /{file} ".encode()
        self.loads = 0
        self.dropped = dropped

    def __enter__(self) -> Relay:
        threading.Thread(target=self.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self.shutdown()
        self.server_close()

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"


class _Relayed(socketserver.StreamRequestHandler):
    server: Relay

    def handle(self) -> None:
        head = b""
        while (line := self.rfile.readline()) != b"\r\n":
            if not line:  # a connection that the browser made before it needed one, and did not need
                return
            head += line
        self.server.loads += head.startswith((b"GET / ", b"GET /?"))
        if head.startswith(self.server.wanted) and self.server.loads <= self.server.dropped:
            return
        with socket.create_connection((self.server.to.hostname, self.server.to.port), timeout=PATIENCE_S) as console:
            console.sendall(head + b"\r\n")
            while piece := console.recv(1 << 16):
                self.wfile.write(piece)


@pytest.mark.parametrize("file", ["dom.js", "main.js", "style.css"])
def test_the_page_is_drawn_although_one_of_its_files_does_not_come_at_first(view: View, file: str) -> None:
    """It stayed blank, or without its style: a browser does not ask again."""
    with Relay(view.address, file, 1) as relay, View(relay.address, view.browser).open("topics") as page:
        page.wait('href="#/topics/hostile"', UNTOLD, until=lambda _: relay.loads == 2 and has_style(page))
        # Later another one may be lost.
        relay.dropped = 3
        page.call("Page.reload")
        page.wait('href="#/topics/hostile"', UNTOLD, until=lambda _: relay.loads == 4 and has_style(page))


@pytest.mark.parametrize("file", ["dom.js", "style.css"])
def test_the_page_says_so_if_one_of_its_files_does_not_come_again(view: View, file: str) -> None:
    with Relay(view.address, file, 1000) as relay, View(relay.address, view.browser).open("topics") as page:
        page.wait('<div id="unloaded" class="message bad" role="alert">', "A part of this page did not come")
        assert page.value("document.getElementById('unloaded').checkVisibility()")
        assert relay.loads == 2
        relay.dropped = 0
        page.value("document.getElementById('reload').click()")
        page.wait('href="#/topics/hostile"', UNTOLD, until=lambda _: has_style(page))


UNTOLD = '<div id="unloaded" class="message bad" role="alert" hidden="">'


def has_style(page: Page) -> bool:
    """Whether the page is loaded, and with its style."""
    return page.value("document.readyState + getComputedStyle(document.body).margin") == "complete0px"


def is_done(html: str) -> bool:
    """Whether a dialog was confirmed and is gone."""
    return "data-has-acted" in html and '<dialog class="change"' not in html


def is_drawn(html: str) -> bool:
    main = html.partition("<main")[2]
    return "<table" in main or "<p" in main


@pytest.mark.parametrize(("width", "scheme"), [(1400, "dark"), (400, "light")])
def test_it_is_drawn_light_and_dark_narrow_and_wide(view: View, width: int, scheme: str) -> None:
    with view.open("topics/t", width=width, scheme=scheme) as page:
        page.wait(until=is_drawn)
        assert page.picture()[:8] == b"\x89PNG\r\n\x1a\n"
    for place in ("topics/hostile", "groups"):
        shown = view.elements(place, act="measure", until=is_measured, width=width, scheme=scheme)
        assert "<title>fits</title>" in shown, place


def is_measured(html: str) -> bool:
    return is_drawn(html) and "<title>Kafka console</title>" not in html
