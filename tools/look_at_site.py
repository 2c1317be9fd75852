"""Looks at the built site in a real browser: widths, schemes, keyboard, and takes pictures.

    python tools/look_at_site.py out/report/site [--shots docs/images/site]

Needs `pip install playwright pillow` and its Chromium (`playwright install chromium`), or a Chromium on the
path. Ends with 1 if a page is wider than the window, says something on the console, fetches from
elsewhere, or cannot be used by keyboard; 77 where there is no browser.
"""

import argparse
import functools
import http.server
import shutil
import sys
import threading
from pathlib import Path

try:
    from PIL import Image
    from playwright.sync_api import Browser, Error, Page, sync_playwright
except ModuleNotFoundError:
    print("absent: playwright, pillow: expected `pip install playwright pillow`")
    sys.exit(77)

WIDTHS = {"desktop": (1280, 800), "phone": (390, 844)}
SCHEMES = ("light", "dark")
#: Pages that are shown in the documentation, and what of them.
SHOTS = {"index.html": "front", "papers/index.html": "papers", "papers/kim-table1.html": "table",
         "papers/claims.html": "claims", "explanation/index.html": "coding"}  # fmt: skip
#: Which of them: both widths in one scheme each, and the front page in both.
KEPT = {("front", "desktop", "light"), ("front", "desktop", "dark"), ("front", "phone", "light"),
        ("papers", "desktop", "dark"), ("table", "desktop", "light"), ("table", "phone", "dark"),
        ("claims", "phone", "light"), ("coding", "desktop", "light"),
        ("coding", "phone", "dark")}  # fmt: skip
#: Colours of a picture that is kept: a palette makes it a third as large.
COLOURS = 64
#: Each reader of the front page has a section that fits a screen.
READER = ".reader"


def main() -> int:
    parser = argparse.ArgumentParser(description="Look at the built site in a browser.")
    parser.add_argument("site", type=Path)
    parser.add_argument("--shots", type=Path, help="leave pictures in this folder")
    given = parser.parse_args()
    server = _serve(given.site)
    base = f"http://127.0.0.1:{server.server_address[1]}"
    with sync_playwright() as playwright:
        try:
            browser = playwright.chromium.launch(
                executable_path=shutil.which("chromium") or None, args=["--no-sandbox"]
            )
        except Error as error:
            print(f"absent: a browser: {error.message.splitlines()[0]}")
            return 77
        faults = look(browser, base, given.site, given.shots)
    for fault in faults:
        print(fault)
    print(f"{len(faults)} faults")
    return 1 if faults else 0


def look(browser: "Browser", base: str, site: Path, shots: Path | None) -> list[str]:
    names = sorted(
        str(path.relative_to(site)) for path in site.rglob("*.html") if "files" not in path.parts
    )
    faults = []
    for scheme in SCHEMES:
        for width, (wide, high) in WIDTHS.items():
            context = browser.new_context(
                viewport={"width": wide, "height": high}, color_scheme=scheme,
                reduced_motion="reduce",
            )  # fmt: skip
            page = context.new_page()
            said: list[str] = []
            page.on("console", lambda m, said=said: m.type == "error" and said.append(m.text))
            page.on("pageerror", lambda e, said=said: said.append(str(e)))
            page.on(
                "request",
                lambda r, said=said: r.url.startswith((base, "data:", "blob:"))
                or said.append(f"fetched {r.url}"),
            )
            for name in names:
                said.clear()
                page.goto(f"{base}/{name}")
                found = [*said, *_wide(page)]
                if name == "index.html":
                    found += _readers(page, high)
                faults += [f"{name}, {width}, {scheme}: {fault}" for fault in found]
                if shots and (SHOTS.get(name), width, scheme) in KEPT:
                    _keep(page, shots / f"{SHOTS[name]}-{width}-{scheme}.png")
            if width == "desktop" and scheme == "light":
                faults += [f"keyboard: {fault}" for fault in _keyboard(page, base)]
            context.close()
    return faults


def _keep(page: "Page", file: Path) -> None:
    """Leaves a small picture of what the window shows; of moving pictures, one in mid-course."""
    if page.locator(".moving").count():
        page.eval_on_selector_all(
            ".moving input[type=range]",
            "all => all.forEach(e => { e.value = Math.round(e.max * 0.8); e.dispatchEvent(new Event('input')) })",
        )
        page.eval_on_selector(".moving", "e => e.scrollIntoView({ block: 'center' })")
    file.parent.mkdir(parents=True, exist_ok=True)
    page.screenshot(path=file)
    with Image.open(file) as image:
        image.quantize(COLOURS).save(file, optimize=True)


def _wide(page: "Page") -> list[str]:
    over = page.evaluate("document.documentElement.scrollWidth - window.innerWidth")
    return [f"{over} px wider than the window"] if over > 0 else []


def _readers(page: "Page", high: int) -> list[str]:
    heights = page.eval_on_selector_all(READER, "all => all.map(e => e.scrollHeight)")
    faults = [] if len(heights) == 3 else [f"{len(heights)} readers: expected three"]
    return faults + [f"a reader's section has {h} px: expected {high}" for h in heights if h > high]


def _keyboard(page: "Page", base: str) -> list[str]:
    faults = []
    page.goto(f"{base}/index.html")
    page.keyboard.press("Tab")
    if "skip" not in (page.evaluate("document.activeElement.className") or ""):
        faults.append("the first stop is not the link to the content")
    page.goto(f"{base}/papers/claims.html")
    page.focus("select[name=status]")
    page.keyboard.press("d")
    shown = page.eval_on_selector_all("#claims tbody tr:not([hidden])", "all => all.length")
    count = page.eval_on_selector_all("#claims tbody tr", "all => all.length")
    if not 0 < shown < count:
        faults.append(f"a status chosen by a key leaves {shown} of {count} claims")
    page.goto(f"{base}/explanation/index.html")
    for place in range(page.locator(".moving").count()):
        moving = page.locator(".moving").nth(place)
        before = moving.locator("output").inner_text()
        moving.locator("input[type=range]").focus()
        page.keyboard.press("ArrowRight")
        if moving.locator("output").inner_text() == before:
            faults.append(f"picture {place + 1} does not move by a key")
    return faults


def _serve(site: Path) -> http.server.ThreadingHTTPServer:
    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *_: object) -> None:
            pass

    class Patient(http.server.ThreadingHTTPServer):
        def handle_error(self, *_: object) -> None:
            """A page that is left while it loads is no fault."""

    handler = functools.partial(Quiet, directory=str(site))
    server = Patient(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server


if __name__ == "__main__":
    sys.exit(main())
