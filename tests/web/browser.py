"""A browser without a window: Debian's Chromium, over its DevTools protocol."""

from __future__ import annotations

import asyncio
import base64
import json
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import aiohttp

from tests.waiting import until

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")


class Browser:
    """One tab. Methods return when the browser has answered."""

    def __init__(self, port: int) -> None:
        self._loop = asyncio.new_event_loop()
        self._port = port
        self._number = 0
        self._loop.run_until_complete(self._connect())

    async def _connect(self) -> None:
        self._http = aiohttp.ClientSession()
        async with self._http.get(f"http://127.0.0.1:{self._port}/json") as answer:
            (tab,) = [t for t in await answer.json() if t["type"] == "page"]
        self._socket = await self._http.ws_connect(tab["webSocketDebuggerUrl"], max_msg_size=0)

    def say(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Ask the browser for something."""
        return self._loop.run_until_complete(self._say(method, parameters))

    async def _say(self, method: str, parameters: dict[str, Any]) -> dict[str, Any]:
        self._number += 1
        await self._socket.send_str(json.dumps({"id": self._number, "method": method, "params": parameters}))
        while True:
            answer = json.loads((await self._socket.receive()).data)
            if answer.get("id") == self._number:
                assert "error" not in answer, answer
                return answer["result"]

    def size(self, width: int, height: int) -> None:
        """Look through a window of so many pixels; a narrow one is a phone's."""
        self.say(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=width < 700,
        )

    def theme(self, name: str) -> None:
        """Prefer "dark" or "light"."""
        self.say("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": name}])

    def go(self, url: str) -> None:
        """Open a page."""
        self.say("Page.navigate", url=url)

    def run(self, script: str) -> Any:
        """The value of a JavaScript expression."""
        found = self.say("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in found, found["exceptionDetails"]
        return found["result"].get("value")

    def text(self, selector: str) -> str:
        """What an element says."""
        return str(self.run(f"document.querySelector({selector!r})?.innerText ?? ''"))

    def picture(self, path: Path) -> None:
        """The whole page as a PNG file."""
        shot = self.say("Page.captureScreenshot", format="png", captureBeyondViewport=True)
        path.write_bytes(base64.b64decode(shot["data"]))

    def close(self) -> None:
        """Leave."""

        async def leave() -> None:
            await self._socket.close()
            await self._http.close()

        self._loop.run_until_complete(leave())
        self._loop.close()


@contextmanager
def browser(folder: Path) -> Iterator[Browser]:
    """A browser whose profile is in a folder of its own."""
    assert CHROMIUM is not None, "tests that look are skipped without it"
    options = ["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run"]
    options += ["--remote-debugging-port=0", f"--user-data-dir={folder}", "--hide-scrollbars"]
    with subprocess.Popen(
        [CHROMIUM, *options, "about:blank"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    ) as process:
        try:
            port = folder / "DevToolsActivePort"
            until(lambda: port.exists() and len(port.read_text().split()) == 2)
            one = Browser(int(port.read_text().split()[0]))
            try:
                yield one
            finally:
                one.close()
        finally:
            process.kill()
