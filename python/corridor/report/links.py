"""Checks of a built site: all links resolve, and nothing is fetched from elsewhere."""

from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

#: Link attributes, by element.
_LEADS = {"a": "href", "img": "src", "script": "src", "link": "href", "iframe": "src"}


class _Page(HTMLParser):
    """Collects a page's links, its anchors, and images without alternative text."""

    def __init__(self) -> None:
        super().__init__()
        self.leads: list[tuple[str, str]] = []
        self.anchors: set[str] = set()
        self.mute: list[str] = []
        self.is_whole = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = {name: value or "" for name, value in attrs}
        self.anchors |= {found[name] for name in ("id", "name") if name in found}
        to = found.get(_LEADS.get(tag, ""), "")
        if to:
            self.leads.append((tag, to))
        if tag == "img" and not found.get("alt"):
            self.mute.append(found.get("src", "?"))
        self.is_whole |= tag == "main"


def faults(site: Path) -> list[str]:
    """Return the faults of a built site, one per line.

    Internal links to missing pages or anchors; scripts, styles and images from elsewhere; images
    without alternative text. Links to other sites are not followed.
    """
    pages = {path: _read(path) for path in sorted(site.rglob("*.html"))}
    found = []
    for path, page in pages.items():
        name = path.relative_to(site)
        found += [f"{name}: {source}: a picture without words" for source in page.mute]
        for tag, to in page.leads:
            if fault := _fault(site, path, tag, to, pages):
                found.append(f"{name}: {to}: {fault}")
    return found


def _read(path: Path) -> _Page:
    page = _Page()
    page.feed(path.read_text(encoding="utf-8"))
    return page


def _fault(site: Path, path: Path, tag: str, to: str, pages: dict[Path, _Page]) -> str:
    parts = urlsplit(to)
    if parts.scheme or parts.netloc:
        is_fetched = tag != "a" and parts.scheme != "data"
        return "fetched from elsewhere" if is_fetched else ""
    target = path
    if parts.path:
        base = site if parts.path.startswith("/") else path.parent
        target = (base / unquote(parts.path).lstrip("/")).resolve()
    if target.is_dir():
        return "leads to a folder" if parts.path not in (".", "./") else ""
    if not target.is_file():
        # The 404 page may be served at any path.
        return "" if path.name == "404.html" and parts.path.startswith("/") else "leads nowhere"
    anchor = unquote(parts.fragment)
    is_aside = tag != "a" or not anchor or anchor.startswith("__")
    if is_aside or target not in pages or anchor in pages[target].anchors:
        return ""
    return "leads to no such part"
