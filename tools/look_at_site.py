"""Checks the built site in a browser: widths, colour schemes, keyboard; takes screenshots.

    python tools/look_at_site.py out/report/site [--shots docs/images/site] [--only index.html 'papers/*']

Needs `pip install playwright pillow axe-playwright-python`, and a Chromium on the path (Debian's
package `chromium`) or Playwright's own (`playwright install chromium`). Exits with 1 if a page is
wider than the window, writes to the console, loads anything from elsewhere, has text with less
contrast than WCAG 2.1 requires (1.4.3), has any other fault of levels A and AA that axe-core finds,
or cannot be used by keyboard; with 77 if there is no browser.
"""

import argparse
import fnmatch
import functools
import http.server
import shutil
import sys
import threading
from pathlib import Path

try:
    from axe_playwright_python.sync_playwright import Axe
    from PIL import Image
    from playwright.sync_api import Browser, Error, Page, sync_playwright
except ModuleNotFoundError:
    print("absent: expected `pip install playwright pillow axe-playwright-python`")
    sys.exit(77)

WIDTHS = {"desktop": (1280, 800), "phone": (390, 844)}
SCHEMES = ("light", "dark")
#: Pages shown in the documentation, with their screenshots' names.
SHOTS = {"index.html": "front", "papers/index.html": "papers", "papers/kim-table1.html": "table",
         "papers/claims.html": "claims", "explanation/index.html": "coding",
         "measurements.html": "measurements"}  # fmt: skip
#: Which screenshots: both widths in one scheme each, and the front page in both.
KEPT = {("front", "desktop", "light"), ("front", "desktop", "dark"), ("front", "phone", "light"),
        ("papers", "desktop", "dark"), ("table", "desktop", "light"), ("table", "phone", "dark"),
        ("claims", "phone", "light"), ("coding", "desktop", "light"),
        ("coding", "phone", "dark"), ("measurements", "desktop", "light")}  # fmt: skip
#: Colours of a saved screenshot: a palette reduces its size to a third.
COLOURS = 64
#: Each group of readers has a section of the front page that fits a screen.
READER = ".reader"
#: The schemes' names in the page.
APPLIED = {"light": "default", "dark": "slate"}
#: What axe-core checks, except contrast, which `CONTRAST` checks in less time.
AXE = {
    "runOnly": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa"],
    "rules": {"color-contrast": {"enabled": False}},
    "resultTypes": ["violations"],
}
#: Text with too little contrast; text over an image is left out.
CONTRAST = """() => {
  const context = new OffscreenCanvas(1, 1).getContext("2d", { willReadFrequently: true });
  const parsed = (colour) => {
    context.clearRect(0, 0, 1, 1);
    context.fillStyle = colour;
    context.fillRect(0, 0, 1, 1);
    const [r, g, b, a] = context.getImageData(0, 0, 1, 1).data;
    return [r, g, b, a / 255];
  };
  const over = (top, below) => [0, 1, 2].map((i) => top[i] * top[3] + below[i] * (1 - top[3]));
  const linear = (v) => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4;
  const luminance = (rgb) => {
    const [r, g, b] = rgb.map((value) => linear(value / 255));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const behind = (element) => {
    const layers = [];
    for (let at = element; at; at = at.parentElement) {
      const style = getComputedStyle(at);
      if (style.backgroundImage !== "none") return null;
      const colour = parsed(style.backgroundColor);
      if (colour[3] > 0) layers.push(colour);
      if (colour[3] === 1) break;
    }
    return layers.reverse().reduce((below, layer) => over(layer, below), [255, 255, 255]);
  };
  const opacity = (element) => {
    let product = 1;
    for (let at = element; at; at = at.parentElement) product *= getComputedStyle(at).opacity;
    return product;
  };
  const found = new Map();
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  const seen = new Set();
  while (walker.nextNode()) {
    const element = walker.currentNode.parentElement;
    if (!walker.currentNode.data.trim() || seen.has(element)) continue;
    seen.add(element);
    if (!element.checkVisibility({ opacityProperty: true, visibilityProperty: true })) continue;
    if (element.closest("svg, script, style, [disabled], .md-clipboard, .headerlink")) continue;
    const style = getComputedStyle(element);
    const ground = behind(element);
    if (!ground) continue;
    const colour = parsed(style.color);
    colour[3] *= opacity(element);
    const [a, b] = [luminance(over(colour, ground)), luminance(ground)];
    const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    const size = parseFloat(style.fontSize);
    const large = size >= 24 || (size >= 18.66 && style.fontWeight >= 700);
    if (ratio < (large ? 3 : 4.5)) {
      const name = `${element.tagName.toLowerCase()}.${element.className}`;
      const words = walker.currentNode.data.trim().replace(/\\s+/g, " ").slice(0, 30);
      if (!found.has(name)) found.set(name, `contrast ${ratio.toFixed(2)}: ${name}: ${words}`);
    }
  }
  return [...found.values()];
}"""


def main() -> int:
    parser = argparse.ArgumentParser(description="Look at the built site in a browser.")
    parser.add_argument("site", type=Path)
    parser.add_argument("--shots", type=Path, help="leave pictures in this folder")
    parser.add_argument("--only", nargs="+", default=["*"], help="pages that fit these patterns")
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
        faults = look(browser, base, given.site, given.shots, given.only)
    for fault in faults:
        print(fault)
    print(f"{len(faults)} faults")
    return 1 if faults else 0


def look(
    browser: "Browser", base: str, site: Path, shots: Path | None, only: list[str]
) -> list[str]:
    found = (path.relative_to(site) for path in site.rglob("*.html"))
    names = sorted(str(path) for path in found if path.parts[0] != "files")
    names = [name for name in names if any(fnmatch.fnmatch(name, each) for each in only)]
    context = browser.new_context(reduced_motion="reduce")
    page = context.new_page()
    said: list[str] = []
    page.on("console", lambda m: m.type == "error" and said.append(m.text))
    page.on("pageerror", lambda e: said.append(str(e)))
    page.on(
        "request",
        lambda r: r.url.startswith((base, "data:", "blob:")) or said.append(f"fetched {r.url}"),
    )
    faults = []
    for place, name in enumerate(names):
        if sys.stderr.isatty():
            print(f"\r{place + 1} of {len(names)}", end="", file=sys.stderr, flush=True)
        said.clear()
        page.goto(f"{base}/{name}")
        for scheme in SCHEMES:
            page.emulate_media(color_scheme=scheme)
            page.wait_for_selector(f"body[data-md-color-scheme={APPLIED[scheme]}]")
            found = {}
            for width, (wide, high) in WIDTHS.items():
                page.set_viewport_size({"width": wide, "height": high})
                found[width] = [*_wide(page), *page.evaluate(CONTRAST)]
                if scheme == SCHEMES[0]:
                    found[width] += _axe(page)
                if name == "index.html":
                    found[width] += _readers(page, high)
                if shots and (SHOTS.get(name), width, scheme) in KEPT:
                    _keep(page, shots / f"{SHOTS[name]}-{width}-{scheme}.png")
            faults += [f"{name}, {w}, {scheme}: {f}" for w, each in found.items() for f in each]
        faults += [f"{name}: {fault}" for fault in said]
    page.set_viewport_size(dict(zip(("width", "height"), WIDTHS["desktop"], strict=True)))
    said.clear()
    pressed = [*_keyboard(page, base), *said]
    return faults + [f"keyboard: {fault}" for fault in pressed]


def _keep(page: "Page", file: Path) -> None:
    """Saves a small screenshot of the window, with animations stopped half-way."""
    if page.locator(".moving").count():
        page.eval_on_selector_all(
            ".moving input[type=range]",
            "all => all.forEach(e => { e.value = Math.round(e.max * 0.8); e.dispatchEvent(new Event('input')) })",
        )
        page.eval_on_selector(".moving", "e => e.scrollIntoView({ block: 'center' })")
    else:
        page.evaluate("window.scrollTo(0, 0)")
    file.parent.mkdir(parents=True, exist_ok=True)
    page.screenshot(path=file)
    with Image.open(file) as image:
        image.quantize(COLOURS).save(file, optimize=True)


def _axe(page: "Page") -> list[str]:
    violations = Axe().run(page, options=AXE).response["violations"]
    return [
        f"{each['id']}: {each['help']}: {each['nodes'][0]['html'][:120]}" for each in violations
    ]


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
            """Leaving a page while it loads is no error."""

    handler = functools.partial(Quiet, directory=str(site))
    server = Patient(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server


if __name__ == "__main__":
    sys.exit(main())
