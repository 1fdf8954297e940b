"""The page in a real Chromium without network: it renders, filters, and texts stay texts."""

import os
import re
import signal
import socket
import subprocess
import sys
import time
from contextlib import suppress
from html import unescape
from pathlib import Path
from urllib.request import urlopen

import pytest

from tests.analysis.report.conftest import EVIL

pytestmark = pytest.mark.slow


def seen(chromium: str, page: Path | str, scratch: Path, address: str = "") -> str:
    """Return the page as the browser has it after its script ran."""
    local = isinstance(page, Path)
    options = [
        *("--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-sync"),
        *("--disable-background-networking", "--disable-component-update", "--dump-dom"),
        f"--user-data-dir={scratch / 'profile'}",
        f"--host-resolver-rules=MAP * ~NOTFOUND{'' if local else ', EXCLUDE 127.0.0.1'}",
        f"--virtual-time-budget={4000 if local else 20000}",
    ]
    place = (page.resolve().as_uri() if isinstance(page, Path) else page) + address
    command = [chromium, *options, place]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    return done.stdout


def shown(dom: str) -> int:
    match = re.search(r'data-shown="(\d+)"', dom)
    assert match is not None, "the script did not come to its end"
    return int(match[1])


def body(dom: str) -> str:
    """Return the lines of the table of probes."""
    return dom.split('id="probe-table"')[1].split("</main>", maxsplit=1)[0]


def test_it_renders_and_texts_stay_texts(chromium: str, made: Path, tmp_path: Path) -> None:
    dom = seen(chromium, made / "index.html", tmp_path)
    assert shown(dom) == 4 * 2 * 3
    assert dom.count("<svg") == 2 * 5  # each of them for broad screens and for narrow ones
    assert "<title>Compression report</title>" in dom
    assert "<img" not in dom.split('id="probe-data"')[0]
    assert "<img" not in body(dom)
    assert EVIL in unescape(body(dom))
    assert "日誌" in body(dom)


def test_filters_stand_in_the_address(chromium: str, made: Path, tmp_path: Path) -> None:
    page = made / "index.html"
    dom = seen(chromium, page, tmp_path, "#probes?arm=tail&type=recall")
    assert shown(dom) == 2
    assert body(dom).count('class="row"') == 2
    assert shown(seen(chromium, page, tmp_path, "#probes?result=failed")) == 6
    assert shown(seen(chromium, page, tmp_path, "#probes?q=onerror%20document&arm=full")) == 2
    assert shown(seen(chromium, page, tmp_path, "#probes?q=nothing-like-this")) == 0


def test_a_probe_opens_with_answer_facts_reasons_and_link(
    chromium: str, made: Path, tmp_path: Path
) -> None:
    dom = seen(chromium, made / "index.html", tmp_path, "#probes?arm=full&q=onerror&open=1")
    opened = body(dom)
    for part in ("Question", "Answer", "Expected facts", "accuracy_factual", "Reason"):
        assert part in opened
    assert EVIL in unescape(opened)
    assert "<img" not in opened
    peers = opened.split("This probe in every arm")[1].split("</table>")[0]
    arms = re.findall(r"<td[^>]*>(full|none|tail|trim)</td>", peers)
    assert sorted(arms) == ["full", "none", "tail", "trim"]
    assert "failed" in peers
    link = re.search(r'href="([^"]+)"', opened)
    assert link is not None
    assert re.fullmatch(
        r"http://127\.0\.0\.1:7575/#/logs/[\w.+-]+\.eval/samples/sample/[\w.]+%2Ftiny%2Fnext/[12]/",
        link[1],
    )


def test_the_printed_command_serves_the_linked_sample(
    chromium: str, made: Path, tmp_path: Path
) -> None:
    dom = seen(chromium, made / "index.html", tmp_path, "#probes?arm=tail&type=recall&open=1")
    link = re.search(r'href="http://127\.0\.0\.1:7575/([^"]+)"', body(dom))
    command = re.search(r"<code>([^<]+inspect view[^<]+)</code>", dom)
    assert link is not None
    assert command is not None
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    # As a user would: in a shell, in the folder of the report.
    served = subprocess.Popen(
        ["sh", "-c", f"{unescape(command[1])} --port {port}"],
        cwd=made,
        env=os.environ | {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"},
        start_new_session=True,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        address = f"http://127.0.0.1:{port}/"
        for _ in range(120):
            with suppress(OSError), urlopen(address, timeout=5):
                break
            time.sleep(0.5)
        page = seen(chromium, address + unescape(link[1]), tmp_path)
    finally:
        os.killpg(served.pid, signal.SIGTERM)
        served.wait(30)
    assert "/tiny/code (Epoch" in page


def test_the_page_asks_for_nothing_outside_of_it(made: Path) -> None:
    page = (made / "index.html").read_text("utf-8")
    markup = page.split('id="probe-data"')[0]
    assert not re.search(r"<(link|img|iframe|object|embed|base)\b", markup)
    assert not re.search(r"<[^>]*\bsrc\s*=|url\((?!#)|@import", markup)
    assert "default-src 'none'" in markup
