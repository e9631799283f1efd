"""The console's page in a real browser: what it shows, that no record runs as script, and that it fits."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import quote

import pytest

from kafka_shim import Broker
from kafka_shim.cext import builder
from kafka_shim.client.requests import make
from kafka_shim.console.app import Console
from kafka_shim.console.sessions import Sessions
from kafka_shim.http.server import HttpServer
from kafka_shim.security.tls.authority import CertificateAuthority
from kafka_shim.tests.api.test_fetch_committed import Producer
from kafka_shim.tests.produced import make_topic, produce
from kafka_shim.tests.security.test_tls import store_options
from kafka_shim.wire_client import Connection

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
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
def page(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
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
def shown(bootstrap: str, folder: Path) -> Iterator[Page]:
    """The page of a console that lets people change things, on which `ACTS` can be done."""
    console = Console(Sessions(bootstrap, {}), allows_changes=True)
    body, kind = console._pages["main.js"]
    acts = "".join(f"if (location.search.includes('{name}')) {{ {act} }}" for name, act in ACTS.items())
    # Again and again: the page draws what it has asked for when it comes.
    console._pages["main.js"] = body + f"\nconst again = setInterval(() => {{ {acts} }}, 200);".encode(), kind
    server = HttpServer(("127.0.0.1", 0), console.handle, most_requests=32)
    server.start()
    try:
        yield Page(server.address, folder, console)
    finally:
        server.stop()
        console.close()


class Page:
    def __init__(self, address: str, folder: Path, console: Console | None = None) -> None:
        self.console = console
        self.address = address
        self.folder = folder

    def browse(self, place: str, *options: str, act: str = "") -> str:
        """The page's elements as they are when it has asked for everything; virtual time passes at once."""
        assert CHROMIUM is not None, "chromium is not installed"
        line = [CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={self.folder / 'profile'}"]
        line += ["--virtual-time-budget=30000", *options, f"{self.address}/?{act}#/{place}"]
        return subprocess.run(line, capture_output=True, text=True, timeout=90, check=True).stdout

    def elements(self, place: str, *options: str, act: str = "") -> str:
        return self.browse(place, "--dump-dom", *options, act=act)


def test_the_page_is_shown_by_tls_where_the_broker_serves_it(tmp_path: Path) -> None:
    """And refused by a browser that does not trust the authority."""
    options = {"kafka.shim.http.listener": "https://127.0.0.1:0", "kafka.shim.http.console": "true"}
    with Broker(**options, **store_options(CertificateAuthority())) as broker:
        with Connection(broker.bootstrap_servers) as client:
            make_topic(client, "secured", 1)
        shown = Page(broker.state.http_address, tmp_path)
        assert 'href="#/topics/secured"' in shown.elements("topics", "--ignore-certificate-errors")
        assert "secured" not in shown.elements("topics")


def test_topics_groups_and_transactions_are_shown(page: Page) -> None:
    shown = page.elements("topics")
    assert 'href="#/topics/hostile"' in shown
    assert '<a href="#/topics" data-name="topics" aria-current="page">Topics</a>' in shown
    shown = page.elements("topics/t")
    assert 'class=" aborted"' in shown
    assert "ABORT of producer" in shown
    assert '<span class="tag warn">open</span>' in shown
    shown = page.elements("transactions/-/held")
    assert "the first" in shown


@pytest.mark.parametrize(
    "place", ["topics/hostile", "groups", "transactions/-/held", f"topics/{quote(SCRIPT, safe='')}"]
)
def test_no_script_escapes_from_data(page: Page, place: str) -> None:
    shown = page.elements(place, act="open" if place == "topics/hostile" else "")
    assert "<title>Kafka console</title>" in shown
    assert "&lt;script&gt;document.title" in shown
    assert "<script>document" not in shown
    assert "<img src=" in shown  # the page's own
    assert '<img src="x"' not in shown


def test_people_change_what_they_confirm(page: Page) -> None:
    assert "<h1>made " in page.elements("topics", act="create")
    shown = page.elements("topics/made", act="record")
    assert "&lt;script&gt;document.title" in shown
    assert "<title>Kafka console</title>" in shown
    assert '<dialog class="change"' in page.elements("topics/doomed", act="hesitate")
    shown = page.elements("topics/doomed", act="delete")
    assert '<dialog class="change"' not in shown
    assert 'href="#/topics/made"' in shown
    assert 'href="#/topics/doomed"' not in shown
    place = f"groups/{quote(SCRIPT, safe='')}"
    assert "<b>2</b>" in page.elements(place)
    assert "<b>3</b>" in page.elements(place, act="reset")


def test_a_console_that_reads_offers_no_change(page: Page) -> None:
    page.console._allows_changes = False
    try:
        for place in ("topics/t", "topics/t/configs", f"groups/{quote(SCRIPT, safe='')}", "transactions/one"):
            main = page.elements(place).partition("<main")[2]
            assert "<table" in main or "<p" in main, place
            for word in ("Write a record", "Delete", ">Set<", "Reset offsets", "End it by force"):
                assert word not in main, (place, word)
    finally:
        page.console._allows_changes = True


@pytest.mark.parametrize(("width", "scheme"), [(1400, 1), (400, 0)])
def test_it_is_drawn_light_and_dark_narrow_and_wide(page: Page, width: int, scheme: int) -> None:
    options = (f"--blink-settings=preferredColorScheme={scheme}", f"--window-size={width},800", "--hide-scrollbars")
    picture = page.folder / f"{width}-{scheme}.png"
    page.browse("topics/t", *options, f"--screenshot={picture}")
    assert picture.read_bytes()[:8] == b"\x89PNG\r\n\x1a\n"
    for place in ("topics/hostile", "groups"):
        assert "<title>fits</title>" in page.elements(place, *options, act="measure"), place
