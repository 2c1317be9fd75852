"""Accessibility checks of a page: the rules of WCAG 2.1 that can be checked in HTML.

Alternative texts are checked with the links; contrast and keyboard control need a browser:
``tools/look_at_site.py``.
"""

from html.parser import HTMLParser

#: Void elements.
_VOID = {"area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "source",
         "track", "wbr"}  # fmt: skip
_HEADINGS = {f"h{level}": level for level in range(1, 7)}
#: Types of `input` that are not filled in, or that carry a name of their own.
_UNNAMED = {"hidden", "submit", "reset", "button"}
#: Class of the theme's toggles, which are never displayed.
_SWITCH = "md-toggle"
#: Attributes that name any element.
_NAMES = ("aria-label", "aria-labelledby", "title")


class _Reader(HTMLParser):
    """Parses a page once, and collects its faults."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []
        self.has_language = self.has_title = False
        self.ids: set[str] = set()
        #: Labels that refer to a control elsewhere, and controls that need a label.
        self.labelled: set[str] = set()
        self.controls: list[tuple[str, str]] = []
        #: Open elements, each with its attributes and whether it contains readable text.
        self.open: list[tuple[str, dict[str, str], list[bool]]] = []
        self.level = 0
        self.first_headings = 0
        self.tables: list[bool] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = {name: value or "" for name, value in attrs}
        self._identify(tag, found)
        if tag == "html":
            self.has_language = bool(found.get("lang"))
        if tag == "label" and "for" in found:
            self.labelled.add(found["for"])
        if tag in ("input", "select", "textarea") and found.get("type") not in _UNNAMED:
            self._control(tag, found)
        if tag in _HEADINGS and self._is_in("main"):
            self._heading(_HEADINGS[tag])
        if tag == "table":
            self.tables.append(False)
        if tag == "th" and self.tables:
            self.tables[-1] = True
        if tag == "svg" and found.get("role") == "img" and not _is_named(found):
            self.found.append("a drawing without words")
        if tag == "img" and found.get("alt"):
            self._read()
        if tag not in _VOID:
            self.open.append((tag, found, [False]))

    def _identify(self, tag: str, found: dict[str, str]) -> None:
        if name := found.get("id"):
            if name in self.ids:
                self.found.append(f"id {name} twice")
            self.ids.add(name)
        place = found.get("tabindex", "0")
        if place.lstrip("-").isdigit() and int(place) > 0:
            self.found.append(f"{tag}: an order of its own for the keyboard")

    def _control(self, tag: str, found: dict[str, str]) -> None:
        if _SWITCH in found.get("class", "").split():
            return
        if not (_is_named(found) or self._is_in("label")):
            self.controls.append((tag, found.get("id", "")))

    def _heading(self, level: int) -> None:
        self.first_headings += level == 1
        if level > self.level + 1:
            self.found.append(f"a heading of level {level} after one of level {self.level}")
        self.level = level

    def _is_in(self, tag: str) -> bool:
        return any(name == tag for name, _, _ in self.open)

    def _read(self) -> None:
        for _, _, is_read in self.open:
            is_read[0] = True

    def handle_data(self, data: str) -> None:
        if data.strip():
            self._read()

    def handle_endtag(self, tag: str) -> None:
        if not self._is_in(tag):
            return
        while self.open:
            name, found, (is_read,) = self.open.pop()
            self._closed(name, found, is_read)
            if name == tag:
                return

    def _closed(self, tag: str, found: dict[str, str], is_read: bool) -> None:
        if tag == "title" and not self._is_in("svg"):
            self.has_title |= is_read
        is_named = is_read or _is_named(found)
        if tag == "button" and not is_named:
            self.found.append("a button without a name")
        is_hidden = found.get("aria-hidden") == "true"
        if tag == "a" and "href" in found and not is_named and not is_hidden:
            self.found.append(f"{found['href']}: a link without a name")
        if tag in _HEADINGS and not is_read:
            self.found.append("an empty heading")
        if tag == "table" and self.tables and not self.tables.pop():
            self.found.append("a table without the names of its columns or rows")

    def close(self) -> None:
        super().close()
        for tag, name in self.controls:
            if not name or name not in self.labelled:
                self.found.append(f"{tag} {name}: a control without a name".replace("  ", " "))
        if not self.has_language:
            self.found.append("no language")
        if not self.has_title:
            self.found.append("no title")
        if self.first_headings != 1:
            self.found.append(f"{self.first_headings} headings of level 1: expected one")


def _is_named(found: dict[str, str]) -> bool:
    return any(found.get(name) for name in _NAMES)


def faults(page: str) -> list[str]:
    """Return the accessibility faults of an HTML page, in words.

    Examples
    --------
    >>> page = "<html lang=en><title>a</title><main><h1>a</h1><h3>b</h3></main>"
    >>> faults(page)
    ['a heading of level 3 after one of level 1']
    """
    reader = _Reader()
    reader.feed(page)
    reader.close()
    return reader.found
