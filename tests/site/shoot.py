"""`python -m tests.site.shoot [--out DIR] [names…]`: serve the gallery and photograph it, light and dark, wide and narrow.

Prints what the browser's console complained about (a broken Content-Security-Policy shows there) and pages that scroll
sideways. Pictures go to DIR (default /tmp/schemadesk-gallery).
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import threading
from pathlib import Path
from wsgiref.simple_server import WSGIRequestHandler, make_server

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or "/usr/bin/chromium"
ARGS = [
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync",
]  # fmt: skip
WIDTHS = {"wide": 1280, "phone": 390}


class _Quiet(WSGIRequestHandler):
    def log_message(self, format: str, *args: object) -> None:
        """Say nothing of good answers."""


def serve() -> str:
    """Serve the gallery on a free port of loopback; gives its address."""
    os.environ["DJANGO_SETTINGS_MODULE"] = "tests.site.site_settings"
    os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"] = "true"
    from django.core.wsgi import get_wsgi_application

    server = make_server("127.0.0.1", 0, get_wsgi_application(), handler_class=_Quiet)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return f"http://127.0.0.1:{server.server_port}"


def shoot(names: list[str], out: Path, themes: list[str], widths: list[str]) -> int:
    """Photograph the named samples (all, if none); gives how many complaints there were."""
    from playwright.sync_api import sync_playwright

    address = serve()
    from tests.site.gallery import SAMPLES

    out.mkdir(parents=True, exist_ok=True)
    complaints: list[str] = []
    with sync_playwright() as play:
        browser = play.chromium.launch(executable_path=CHROMIUM, args=ARGS)
        for theme in themes:
            for width in widths:
                context = browser.new_context(viewport={"width": WIDTHS[width], "height": 900}, color_scheme=theme)  # type: ignore[arg-type]
                page = context.new_page()
                page.on("console", lambda message, page=page: complaints.append(f"{page.url}: {message.text}"))
                page.on("pageerror", lambda error, page=page: complaints.append(f"{page.url}: {error}"))
                for name in names or SAMPLES:
                    page.goto(f"{address}/gallery/{name}")
                    page.evaluate("document.fonts.ready.then(() => true)")
                    sideways = page.evaluate(
                        "document.documentElement.scrollWidth - document.documentElement.clientWidth"
                    )
                    if sideways > 0:
                        complaints.append(f"{name} at {WIDTHS[width]}: scrolls sideways by {sideways} px")
                    page.screenshot(path=str(out / f"{name}.{theme}.{width}.png"), full_page=True)
                context.close()
        browser.close()
    print("\n".join(complaints) or "no complaints")
    return len(complaints)


def main() -> None:
    """Read the command line and photograph."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--out", type=Path, default=Path("/tmp/schemadesk-gallery"))
    parser.add_argument("--themes", nargs="*", default=["light", "dark"])
    parser.add_argument("--serve", action="store_true", help="print the gallery's address and serve until stdin ends")
    parser.add_argument("--widths", nargs="*", default=list(WIDTHS))
    given = parser.parse_args()
    if given.serve:
        print(serve(), flush=True)
        sys.stdin.read()
        return
    sys.exit(1 if shoot(given.names, given.out, given.themes, given.widths) else 0)


if __name__ == "__main__":
    main()
