"""A headless Chromium for the tests of the page: what a script of the test's finds out in it, and what the console says."""

from __future__ import annotations

import functools
import html
import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

_NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
_ASK = """
<script>
  const wait = () => document.documentElement.dataset.ready ? answer() : setTimeout(wait, 10);
  const answer = async () => {
    let found;
    try { found = await (async () => { %s })(); } catch (error) { found = { error: String(error) }; }
    document.body.append(Object.assign(document.createElement("pre"), { id: "answer", textContent: JSON.stringify(found) }));
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
    """Open a page, run a script (the body of an async function) in it: what it returns, and the console's lines."""
    path = directory / "asked.html"
    path.write_text(page.replace("</body>", _ASK % script + "</body>"), encoding="utf-8")
    done = subprocess.run(
        [
            str(executable()), "--headless", "--no-sandbox", "--disable-gpu", "--enable-logging=stderr",
            f"--user-data-dir={directory / 'profile'}", f"--window-size={width},900", "--virtual-time-budget=20000",
            "--dump-dom", path.as_uri(),
        ],
        capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    found = re.search(r'<pre id="answer">(.*?)</pre>', done.stdout, re.DOTALL)
    console = [line for line in done.stderr.splitlines() if "CONSOLE" in line]
    assert found, done.stderr[-2000:]
    return json.loads(html.unescape(found[1])), console
