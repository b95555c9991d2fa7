"""A headless Chromium, driven through its DevTools protocol.

Chromium is the one on PATH, its headless shell if there is one: that starts with a fifth of the CPU, and
shows pages with four fifths. Without one, a test gets a `NoBrowser` that says so.
"""

from __future__ import annotations

import base64
import json
import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Any

from websockets.sync.client import connect

from tests.patience import PATIENCE_S

_NAMES = (
    "chromium-headless-shell",
    "chromium",
    "chromium-browser",
    "google-chrome",
    "google-chrome-stable",
    "chrome",
)
_KEY_CODES = {
    "Tab": 9,
    "Enter": 13,
    "Escape": 27,
    " ": 32,
    "End": 35,
    "Home": 36,
    "ArrowLeft": 37,
    "ArrowUp": 38,
    "ArrowRight": 39,
    "ArrowDown": 40,
    "k": 75,
    "F2": 113,
}
_FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-extensions",
    "--hide-scrollbars",
    "--mute-audio",
    "--force-color-profile=srgb",
    "--remote-debugging-port=0",
)
_LIGHT_FLAGS = (
    # One process runs all pages: each then loads with three quarters of the CPU.
    "--renderer-process-limit=1",
    "--in-process-gpu",
    "--enable-features=NetworkServiceInProcess2",
    # No page is shown long enough to be worth optimizing its code, and the next one runs what is compiled.
    "--js-flags=--no-opt --no-maglev --no-flush-bytecode",
)


class NoBrowser(Exception):
    """There is no Chromium on this machine."""


class Browser:
    """One browser with one page.

    Args:
        flags: of its command line, besides the usual ones.
        full: as people use it, for measurements; otherwise it takes as little CPU as it can.

    Attributes:
        base: the address that paths given to `open` belong to.
        complaints: warnings and errors in the page's console, uncaught exceptions and violations of its
            Content-Security-Policy among them.
        tolerates: whether a complaint is left out.

    Raises:
        NoBrowser: none is installed, or it does not start.

    Example:
        >>> with Browser() as browser:
        ...     browser.base = "http://127.0.0.1:8900"
        ...     browser.open("/")
        ...     browser.text("h1")
        'Runs'
    """

    def __init__(self, *flags: str, full: bool = False) -> None:
        self._flags = flags if full else (*_LIGHT_FLAGS, *flags)
        names = [name for name in _NAMES if not (full and name.endswith("shell"))]
        program = next((path for name in names if (path := shutil.which(name))), None)
        if program is None:
            raise NoBrowser(f"no browser: none of {', '.join(names)} is on PATH")
        self.base = ""
        self.complaints: list[str] = []
        self.tolerates: Callable[[str], bool] = lambda complaint: False
        self._program = program
        self._session = self._context = ""
        self._last_id = 0

    def __enter__(self) -> Browser:
        with ExitStack() as stack:
            profile = stack.enter_context(
                tempfile.TemporaryDirectory(prefix="runvitals-browser-", ignore_cleanup_errors=True)
            )
            self._process = self._start(profile)
            stack.callback(self._stop)
            self._socket = stack.enter_context(connect(self._address(profile), max_size=None, proxy=None))
            self.renew()
            self._stack = stack.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.close()

    def _start(self, profile: str) -> subprocess.Popen[bytes]:
        command = [self._program, *_FLAGS, *self._flags, f"--user-data-dir={profile}", "about:blank"]
        return subprocess.Popen(
            command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True
        )

    def _stop(self) -> None:
        """End the program, which may be a script, and the browser that it started."""
        os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()

    def _address(self, profile: str) -> str:
        """The port of the browser's DevTools, which it writes into its profile when they are ready."""
        reported = Path(profile, "DevToolsActivePort")
        until = time.monotonic() + PATIENCE_S
        while not (reported.exists() and len(lines := reported.read_text().split("\n")) >= 2):
            if time.monotonic() > until or self._process.poll() is not None:
                raise NoBrowser(f"{self._program} did not start (exit code {self._process.poll()})")
            time.sleep(0.05)
        return f"ws://127.0.0.1:{lines[0]}{lines[1]}"

    def renew(self) -> None:
        """Open an empty window of a new profile: nothing that was stored or set before is left."""
        self._session = ""
        if self._context:
            self.call("Target.disposeBrowserContext", browserContextId=self._context)
        self._context = self.call("Target.createBrowserContext")["browserContextId"]
        window = {"url": "about:blank", "browserContextId": self._context}
        target = self.call("Target.createTarget", **window)["targetId"]
        self._session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log"):
            self.call(f"{domain}.enable")
        self.base = ""
        self.complaints.clear()

    def call(self, method: str, **params: Any) -> dict[str, Any]:
        """The answer of a DevTools method; events that come meanwhile are taken in."""
        number = self._send(method, **params)
        while True:
            reply = json.loads(self._socket.recv(timeout=PATIENCE_S))
            if reply.get("id") == number:
                if "error" in reply:
                    raise AssertionError(f"{method}: {reply['error']['message']}")
                result: dict[str, Any] = reply["result"]
                return result
            self._take(reply)

    def _send(self, method: str, **params: Any) -> int:
        self._last_id += 1
        message: dict[str, Any] = {"id": self._last_id, "method": method, "params": params}
        if self._session:
            message["sessionId"] = self._session
        self._socket.send(json.dumps(message))
        return self._last_id

    def _take(self, event: dict[str, Any]) -> None:
        params = event.get("params", {})
        if event.get("method") == "Log.entryAdded" and params["entry"]["level"] in ("warning", "error"):
            self._complain(f"{params['entry']['text']} ({params['entry'].get('url', '')})")
        elif event.get("method") == "Runtime.consoleAPICalled" and params["type"] in ("warning", "error"):
            self._complain(" ".join(str(arg.get("value", arg)) for arg in params["args"]))
        elif event.get("method") == "Runtime.exceptionThrown":
            details = params["exceptionDetails"]
            self._complain(details.get("exception", {}).get("description", details["text"]))
        elif event.get("method") == "Page.javascriptDialogOpening" and params["type"] == "beforeunload":
            self._send("Page.handleJavaScriptDialog", accept=True)  # leave, whatever is not saved

    def _complain(self, complaint: str) -> None:
        if not self.tolerates(complaint):
            self.complaints.append(complaint)

    def permit(self, *permissions: str) -> None:
        """Let the page do what a user would be asked about."""
        self.call("Browser.grantPermissions", permissions=permissions, browserContextId=self._context)

    def resize(self, width: int, height: int, dark: bool = False, scale: float = 1) -> None:
        """The window in CSS pixels, whether the system prefers dark colours, and its dots for a CSS pixel."""
        size = {"width": width, "height": height, "deviceScaleFactor": scale, "mobile": False}
        self.call("Emulation.setDeviceMetricsOverride", **size)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.call("Emulation.setEmulatedMedia", features=[scheme])

    def open(self, path: str) -> None:
        self.call("Page.navigate", url=self.base + path)

    def leave(self) -> None:
        """Show no page, and forget what those of `base` stored: another server may listen there next."""
        origin, self.base = self.base, "about:"
        self.open("blank")
        self.call("Storage.clearDataForOrigin", origin=origin, storageTypes="all")
        self.call("Network.clearBrowserCache")

    def evaluate(self, expression: str) -> Any:
        """The value of a JavaScript expression, or what its promise resolves to.

        Raises:
            AssertionError: it threw.
        """
        response = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in response:
            details = response["exceptionDetails"]
            raise AssertionError(details.get("exception", {}).get("description", details["text"]))
        return response["result"].get("value")

    def wait(self, expression: str) -> Any:
        """The value of an expression as soon as it is true; of an element, which has no value, True."""
        until = time.monotonic() + PATIENCE_S
        check = f"(found => found instanceof Element || found)({expression})"
        while not (value := self.evaluate(check)):
            if time.monotonic() > until:
                body = self.evaluate("document.body.innerText")
                raise AssertionError(f"still not true: {expression}\n{self.complaints}\n{body}")
            time.sleep(0.05)
        return value

    def text(self, selector: str) -> str:
        """The visible text of the first element that fits, once there is one."""
        text: str = self.wait(f"document.querySelector({json.dumps(selector)})?.innerText")
        return text

    def mouse(self, kind: str, x: float, y: float, clicks: int = 0, shift: bool = False) -> None:
        """`mouseMoved`, `mousePressed` or `mouseReleased`, at a place in the window."""
        button = "none" if kind == "mouseMoved" and not clicks else "left"
        self.call(
            "Input.dispatchMouseEvent",
            type=kind,
            x=x,
            y=y,
            button=button,
            clickCount=clicks,
            buttons=int(clicks > 0),
            modifiers=8 * shift,
        )

    def press(
        self, key: str, alt: bool = False, shift: bool = False, ctrl: bool = False, text: str = ""
    ) -> None:
        """A key, for the element that has the focus.

        Args:
            text: what the key writes: of Enter, which follows a link only then, it is a carriage return.
        """
        # By its code the browser itself knows a key: Escape closes a dialog.
        code = {"windowsVirtualKeyCode": _KEY_CODES[key]} if key in _KEY_CODES else {}
        written = {"text": text} if text else {}
        for kind in ("keyDown", "keyUp"):
            self.call(
                "Input.dispatchKeyEvent",
                type=kind,
                key=key,
                modifiers=alt + 2 * ctrl + 8 * shift,
                **code,
                **written,
            )

    def box(self, selector: str) -> tuple[float, float, float, float]:
        """(left, top, width, height) of an element in the window.

        It is scrolled into view only if it is not in view: boxes of elements that are in view together stay
        where they are.
        """
        box = self.wait(
            f"(() => {{ const e = document.querySelector({json.dumps(selector)}); if (!e) return null;"
            "const inView = ({ left, top, width, height, bottom }) => top >= 0 && bottom <= innerHeight"
            " && e.contains(document.elementFromPoint(left + width / 2, top + height / 2));"
            "if (!inView(e.getBoundingClientRect())) e.scrollIntoView({ block: 'center' });"
            "const b = e.getBoundingClientRect(); return [b.left, b.top, b.width, b.height]; })()"
        )
        return tuple(box)

    def screenshot(self, path: str | os.PathLike[str]) -> None:
        """A PNG of the window."""
        image = self.call("Page.captureScreenshot", format="png")["data"]
        Path(path).write_bytes(base64.b64decode(image))


def keep_picture(page: Browser, name: str) -> None:
    """Save a picture of the page for who wants to look: PICTURES=folder."""
    if folder := os.environ.get("PICTURES"):
        page.screenshot(Path(folder, f"{name}.png"))
