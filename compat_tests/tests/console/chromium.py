"""Chromium without a window, driven by the Chrome DevTools Protocol over a pipe. A page is looked at until it shows
what a test waits for, in real time.

Source: https://chromedevtools.github.io/devtools-protocol/ (domains Target, Page, Runtime, Emulation, Security).
"""

from __future__ import annotations

import base64
import itertools
import json
import os
import select
import shutil
import subprocess
import time
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

from kafka_shim.targets.waiting import PATIENCE_S, right_answer

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")


# Codes of Windows, and what a key types.
KEYS = {"Tab": (9, ""), "Enter": (13, "\r"), "Escape": (27, "")}

# What is said of a question to a page that goes, and to one that has not come yet.
LEFT = {"Inspected target navigated or closed", "Cannot find default execution context"}


class PageLeft(Exception):
    """The page was left before it answered: it loads itself again, or was told to."""


class Chromium:
    """One browser with a profile of its own in `folder`; a context manager that ends it."""

    def __init__(self, folder: Path) -> None:
        assert CHROMIUM is not None, "chromium is not installed"
        line = [CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={folder}"]
        line += ["--hide-scrollbars", "--remote-debugging-pipe"]
        commands, self._write_fd = os.pipe()
        self._read_fd, answers = os.pipe()
        # Chromium reads commands from descriptor 3 and writes to 4.
        shell = ["bash", "-c", f'exec "$@" 3<&{commands} 4>&{answers}', "bash", *line]
        self._process = subprocess.Popen(
            shell, pass_fds=(commands, answers), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        os.close(commands)
        os.close(answers)
        self._numbers = itertools.count(1)
        self._received = b""
        self._idle_pages: set[str] = set()
        # Those of a session in order: one may load itself again.
        self._begun_pages: dict[str, list[str]] = defaultdict(list)

    def __enter__(self) -> Chromium:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.terminate()
        self._process.wait(PATIENCE_S)
        os.close(self._write_fd)
        os.close(self._read_fd)

    def open(self, url: str, *, width: int = 1400, scheme: str = "light", trusts_all: bool = False) -> Page:
        """Returns a new page of 800 rows of pixels at `url`, of which everything that it asks for at first has come,
        also if it loads itself again.
        Raises `ConnectionError` with Chromium's reason if nothing is shown."""
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        page = Page(self, target, session)
        page.call("Page.enable")
        page.call("Page.setLifecycleEventsEnabled", enabled=True)
        page.call("Emulation.setDeviceMetricsOverride", width=width, height=800, deviceScaleFactor=1, mobile=False)
        page.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
        page.call("Security.setIgnoreCertificateErrors", ignore=trusts_all)
        answer = page.call("Page.navigate", url=url)
        if "errorText" in answer:
            page.close()
            raise ConnectionError(answer["errorText"])
        deadline_s = time.monotonic() + PATIENCE_S
        begun = self._begun_pages[session]
        while answer["loaderId"] not in begun or begun[-1] not in self._idle_pages:
            self._receive(deadline_s)
        return page

    def call(self, method: str, session: str | None = None, **parameters: Any) -> dict[str, Any]:
        """Returns the result of one command of the protocol. Raises `AssertionError` with its error, `PageLeft` if
        the page was left meanwhile."""
        number = next(self._numbers)
        command = {"id": number, "method": method, "params": parameters}
        if session is not None:
            command["sessionId"] = session
        left = json.dumps(command).encode() + b"\0"
        while left:
            left = left[os.write(self._write_fd, left) :]
        deadline_s = time.monotonic() + PATIENCE_S
        while True:
            message = self._receive(deadline_s)
            if message.get("id") == number:
                if message.get("error", {}).get("message") in LEFT:
                    raise PageLeft(method)
                assert "error" not in message, (method, message["error"])
                result: dict[str, Any] = message["result"]
                return result

    def _receive(self, deadline_s: float) -> dict[str, Any]:
        while b"\0" not in self._received:
            is_readable, _, _ = select.select([self._read_fd], [], [], max(0.0, deadline_s - time.monotonic()))
            assert is_readable, f"Chromium said nothing for {PATIENCE_S:.0f} s"
            piece = os.read(self._read_fd, 1 << 16)
            assert piece, "Chromium has ended"
            self._received += piece
        one, _, self._received = self._received.partition(b"\0")
        message: dict[str, Any] = json.loads(one)
        if message.get("method") == "Page.lifecycleEvent":
            name, page = message["params"]["name"], message["params"]["loaderId"]
            if name == "init":
                self._begun_pages[message["sessionId"]].append(page)
            elif name == "networkIdle":
                self._idle_pages.add(page)
        return message


class Page:
    """One page; a context manager that closes it."""

    def __init__(self, browser: Chromium, target: str, session: str) -> None:
        self._browser = browser
        self._target = target
        self._session = session

    def __enter__(self) -> Page:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        return self._browser.call(method, self._session, **parameters)

    def close(self) -> None:
        self._browser.call("Target.closeTarget", targetId=self._target)

    def elements(self) -> str:
        """Returns the page's elements as they are now, as HTML. There are none while it loads itself again."""
        try:
            html: str | None = self.value("document.documentElement.outerHTML")
        except PageLeft:
            return ""
        return html or ""

    def wait(self, *shown: str, until: Callable[[str], bool] = lambda html: True) -> str:
        """Returns the page's elements as soon as they contain all of `shown`, and `until` holds for them; it does not
        hold for a page that is left while it asks."""

        def is_shown(html: str) -> bool:
            try:
                return all(one in html for one in shown) and until(html)
            except PageLeft:
                return False

        return right_answer(self.elements, is_shown, f"the page shows {shown}")

    def press(self, key: str) -> None:
        """Press one of KEYS, as a person would: it goes to what has the focus."""
        code, text = KEYS[key]
        event = {"key": key, "code": key, "windowsVirtualKeyCode": code}
        self.call("Input.dispatchKeyEvent", type="keyDown" if text else "rawKeyDown", text=text, **event)
        self.call("Input.dispatchKeyEvent", type="keyUp", **event)

    def type(self, text: str) -> None:
        """Type `text` into what has the focus."""
        self.call("Input.insertText", text=text)

    def value(self, expression: str) -> Any:
        """Returns what `expression` of JavaScript is on the page."""
        found = self.call("Runtime.evaluate", expression=expression, returnByValue=True)
        return found["result"].get("value")

    def picture(self) -> bytes:
        """Returns the visible part as a PNG."""
        return base64.b64decode(self.call("Page.captureScreenshot", format="png")["data"])
