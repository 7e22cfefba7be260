"""A headless Chromium for the tests of the page: what a script of the test's finds out in it, and what the console says."""

from __future__ import annotations

import functools
import json
import shutil
import subprocess
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

_NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
_PATIENCE = 60
_ASK = """
<script>
  const wait = () => document.documentElement.dataset.ready ? answer() : setTimeout(wait, 10);
  const answer = async () => {
    let found;
    try { found = await (async () => { %s })(); } catch (error) { found = { error: String(error) }; }
    location = "http://127.0.0.1:%d/?answer=" + encodeURIComponent(JSON.stringify(found));
  };
  wait();
</script>
"""


@functools.cache
def executable() -> str | None:
    """The browser of this machine, if it has one that runs."""
    found = next((path for name in _NAMES if (path := shutil.which(name))), None)
    if found is None:
        return None
    try:
        subprocess.run([found, "--version"], check=True, capture_output=True, timeout=30)
    except (OSError, subprocess.SubprocessError):
        return None
    return found


needs_browser = pytest.mark.skipif(executable() is None, reason="there is no Chromium on this machine")


def ask(directory: Path, page: str, script: str, width: int = 1280) -> tuple[Any, list[str]]:
    """Open a page, run a script (the body of an async function) in it: what it returns, and the console's lines.

    The page may load nothing; the answer comes by going to another page, which is a server's that waits for it.
    """
    answers: list[str] = []

    class Answer(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            answers.extend(parse_qs(urlsplit(self.path).query).get("answer", []))
            self.send_response(204)
            self.end_headers()

        def log_message(self, format: str, *args: Any) -> None:
            pass

    server = HTTPServer(("127.0.0.1", 0), Answer)
    server.timeout = _PATIENCE
    path, log = directory / "asked.html", directory / "log"
    path.write_text(page.replace("</body>", _ASK % (script, server.server_port) + "</body>"), encoding="utf-8")
    command = [
        str(executable()), "--headless", "--no-sandbox", "--disable-gpu", "--enable-logging=stderr",
        "--remote-debugging-port=0",
        f"--user-data-dir={directory / 'profile'}", f"--window-size={width},900", path.as_uri(),
    ]  # fmt: skip
    with log.open("w") as errors, subprocess.Popen(command, stdout=errors, stderr=errors) as browser:
        server.handle_request()
        browser.terminate()
    server.server_close()
    told = log.read_text(errors="replace")
    assert answers, told[-2000:]
    return json.loads(answers[0]), [line for line in told.splitlines() if "CONSOLE" in line]
