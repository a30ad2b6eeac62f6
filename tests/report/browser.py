"""A real browser on a leash: Chromium without a window or a network, spoken to over a pipe."""

import base64
import contextlib
import json
import os
import select
import shutil
import subprocess
import tempfile
import time
from pathlib import Path

import pytest

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
needs_browser = pytest.mark.skipif(
    CHROMIUM is None,
    reason="chromium is not installed, so the page is not tested in a browser "
    "(Debian: apt-get install chromium)",
)
FLAGS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
    "--hide-scrollbars",
    "--remote-debugging-pipe",
    # Nothing but this machine can be reached, whatever the page would like to.
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
]


class Browser:
    """One Chromium with one page."""

    def __init__(self, profile: str) -> None:
        to_child, self._out = os.pipe()
        self._in, from_child = os.pipe()

        def plumb():
            # First out of the way, so that neither pipe is closed by the other's move.
            a, b = os.dup(to_child), os.dup(from_child)
            os.dup2(a, 3)
            os.dup2(b, 4)

        self._process = subprocess.Popen(
            [CHROMIUM, *FLAGS, f"--user-data-dir={profile}", "about:blank"],
            preexec_fn=plumb,
            close_fds=False,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        os.close(to_child)
        os.close(from_child)
        self._buffer = b""
        self._number = 0
        self.events: list[dict] = []
        targets = self._ask("Target.getTargets")["targetInfos"]
        page = next(target for target in targets if target["type"] == "page")
        attached = self._ask("Target.attachToTarget", targetId=page["targetId"], flatten=True)
        self._session = attached["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.send(f"{domain}.enable")

    def send(self, method: str, **parameters):
        """Ask the page for something and wait for the answer."""
        return self._ask(method, self._session, **parameters)

    def open(
        self, page: Path | str, *, width: int = 1200, height: int = 900, dark: bool = False
    ) -> None:
        """Show a file or an address, and wait until it is drawn."""
        self.send(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=False,
        )
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.send("Emulation.setEmulatedMedia", features=[scheme])
        self.events.clear()
        address = page if isinstance(page, str) else page.resolve().as_uri()
        self.send("Page.navigate", url=address)
        self.wait("(document.documentElement || {dataset: {}}).dataset.ready === 'yes'")
        # Two frames later everything has been painted.
        self.run("new Promise(r => requestAnimationFrame(() => requestAnimationFrame(r)))")

    def first_paint(self) -> float:
        """Seconds from the start of loading to the first paint with content."""
        entry = "performance.getEntriesByName('first-contentful-paint')[0]"
        self.wait(f"{entry} !== undefined")
        return self.run(f"{entry}.startTime") / 1000

    def run(self, script: str):
        """The value of an expression in the page."""
        answer = self.send(
            "Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True
        )
        if "exceptionDetails" in answer:
            raise AssertionError(answer["exceptionDetails"])
        return answer["result"].get("value")

    def wait(self, condition: str, seconds: float = 60) -> None:
        """Until an expression is true."""
        end = time.monotonic() + seconds
        while not self.run(condition):
            assert time.monotonic() < end, f"never true: {condition}"
            time.sleep(0.03)

    def move(self, selector: str, x: float = 0.5, y: float = 0.5) -> None:
        """Bring an element into view and put the pointer on it."""
        place = self.run(
            f"(() => {{ const e = document.querySelector({json.dumps(selector)});"
            "e.scrollIntoView({block: 'center', behavior: 'instant'});"
            "const b = e.getBoundingClientRect(); return [b.left, b.top, b.width, b.height]; })()"
        )
        at = {"x": place[0] + x * place[2], "y": place[1] + y * place[3]}
        self.send("Input.dispatchMouseEvent", type="mouseMoved", **at)

    def click(self, selector: str) -> None:
        self.run(f"document.querySelector({json.dumps(selector)}).click()")

    def press(self, *keys: str) -> None:
        """Press keys one after another, as a person would."""
        for key in keys:
            text = key if len(key) == 1 else ""
            self.send("Input.dispatchKeyEvent", type="keyDown", key=key, text=text)
            self.send("Input.dispatchKeyEvent", type="keyUp", key=key)

    def tip(self) -> str:
        """What the hover box says; empty where it is hidden."""
        return self.run("(t => t.hidden ? '' : t.textContent)(document.getElementById('tip'))")

    def complaints(self) -> list[str]:
        """Errors and warnings on the console, and what the policy blocked."""
        self.run("0")
        found = []
        for event in self.events:
            if event["method"] == "Runtime.exceptionThrown":
                found.append(str(event["params"]["exceptionDetails"]))
            if event["method"] == "Log.entryAdded":
                found.append(event["params"]["entry"]["text"])
            if event["method"] == "Runtime.consoleAPICalled":
                found.append(str(event["params"]["args"]))
            if event["method"] == "Page.javascriptDialogOpening":
                found.append("dialog " + event["params"]["message"])
        return found

    def requests(self) -> list[str]:
        """Addresses that were asked for, the page itself included."""
        return [
            event["params"]["request"]["url"]
            for event in self.events
            if event["method"] == "Network.requestWillBeSent"
        ]

    def picture(self, path: Path, *, whole: bool = False) -> None:
        answer = self.send("Page.captureScreenshot", format="png", captureBeyondViewport=whole)
        path.write_bytes(base64.b64decode(answer["data"]))

    def printed(self) -> bytes:
        return base64.b64decode(self.send("Page.printToPDF", printBackground=True)["data"])

    def close(self) -> None:
        with contextlib.suppress(Exception):
            self._ask("Browser.close")
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(10)
        if self._process.poll() is None:
            self._process.kill()
            self._process.wait()
        os.close(self._out)
        os.close(self._in)

    def _ask(self, method: str, session: str | None = None, **parameters):
        self._number += 1
        number = self._number
        message = {"id": number, "method": method, "params": parameters}
        if session:
            message["sessionId"] = session
        os.write(self._out, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._receive()
            if answer.get("id") == number:
                assert "error" not in answer, answer["error"]
                return answer["result"]
            if "method" in answer:
                self.events.append(answer)

    def _receive(self) -> dict:
        while b"\0" not in self._buffer:
            ready, _, _ = select.select([self._in], [], [], 90)
            assert ready, "the browser does not answer"
            block = os.read(self._in, 1 << 20)
            assert block, "the browser is gone"
            self._buffer += block
        message, self._buffer = self._buffer.split(b"\0", 1)
        return json.loads(message)


@contextlib.contextmanager
def browser():
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        one = Browser(profile)
        try:
            yield one
        finally:
            one.close()
