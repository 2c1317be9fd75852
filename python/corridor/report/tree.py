"""The site's sources: pages of the repository, with links rewritten to the site."""

import os
import re
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

from corridor.study.experiment import ExperimentError

#: A Markdown link or image from the end of its text, which may be on an earlier line: its target,
#: and the part after the `#`.
_LINK = re.compile(r"\]\(([^)#\s]*)(#[^)\s]*)?\)")
#: Placeholder line for a section of another page, such as ``{{ README.md: Look after it }}``.
_SECTION = re.compile(r"^\{\{ (\S+): (.+) \}\}$", re.MULTILINE)
_FENCE = re.compile(r"^\s*(```+|~~~+)")
_OUTSIDE = re.compile(r"^[a-z]+:")
#: Larger files are copied as they are instead of shown on a page.
_SHOWN_MAX_BYTES = 200_000
_LANGUAGES = {".rs": "rust", ".py": "python", ".toml": "toml", ".json": "json", ".lua": "lua"}
_PICTURES = {".svg", ".png"}


@dataclass
class Tree:
    """Pages and files of a site under construction.

    Parameters
    ----------
    top
        Root of the checkout.
    source
        Output folder of the site's sources.
    places
        Places of pages in the site, by their places in the repository.
    """

    top: Path
    source: Path
    places: Mapping[str, str]
    #: Files included because pages link to them.
    _files: set[str] = field(default_factory=set)

    def write(self, site: str, text: str, path: str) -> None:
        """Write a page whose links are relative to this file of the repository."""
        target = self.source / site
        target.parent.mkdir(parents=True, exist_ok=True)
        with_sections = _SECTION.sub(lambda match: self._section(match, site), text)
        target.write_text(self.linked(with_sections, path, site), encoding="utf-8")

    def linked(self, text: str, path: str, site: str) -> str:
        """Return a text of the repository with its links rewritten for a page of the site."""

        def lead(match: re.Match[str]) -> str:
            to, part = match[1], match[2] or ""
            if not to or _OUTSIDE.match(to):
                return match[0]
            return f"]({self._to(to, path, site)}{part})"

        lines, fence = [], ""
        for line in text.split("\n"):
            mark = _FENCE.match(line)
            if mark and not fence:
                fence = mark[1]
            elif mark and line.strip() == fence:
                fence = ""
            # Pages of the site itself, including inserted sections, already have site links.
            lines.append(line if fence or "<!--linked-->" in line else _LINK.sub(lead, line))
        return "\n".join(lines)

    def _section(self, match: re.Match[str], site: str) -> str:
        """Return a section of another page, without its heading, and with links for this page."""
        path, heading = match[1], match[2]
        text = (self.top / path).read_text(encoding="utf-8")
        found = re.search(
            rf"^(#+) {re.escape(heading)}\n(.*?)(?=^#{{1,2}} |\Z)", text, re.MULTILINE | re.DOTALL
        )
        if found is None:
            raise ExperimentError(f"{site}: {path}: expected a section {heading!r}")
        lines = _raised(self.linked(found[2].strip(), path, site).split("\n"), len(found[1]) - 1)
        return "\n".join(f"{line}<!--linked-->" if _LINK.search(line) else line for line in lines)

    def _to(self, to: str, path: str, site: str) -> str:
        target = os.path.normpath(PurePosixPath(path).parent / to)
        if target in self.places:
            return _relative(self.places[target], site)
        if (self.source / _joined(site, to)).exists() and path.startswith("docs/site/"):
            return to
        if path.startswith("docs/site/") and not (self.top / target).exists():
            # A generated page: the generator complains if it is missing.
            return to
        if not (self.top / target).exists():
            raise ExperimentError(f"{path}: link to {to}: expected a file or folder")
        return _relative(self._file(target), site)

    def _file(self, path: str) -> str:
        """Include a file or folder that pages link to, and return its place."""
        source = self.top / path
        if source.is_dir():
            return self._folder(path)
        if source.suffix in _PICTURES or source.stat().st_size > _SHOWN_MAX_BYTES:
            site = f"files/{path}"
            if site not in self._files:
                self._files.add(site)
                (self.source / site).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(source, self.source / site)
            return site
        site = f"files/{path}.md"
        if site not in self._files:
            self._files.add(site)
            text = source.read_text(encoding="utf-8").rstrip("\n")
            language = _LANGUAGES.get(source.suffix, "text")
            shown = f"# {source.name}\n\n`{path}`\n\n~~~~~~ {language}\n{text}\n~~~~~~\n"
            self._write_aside(site, shown)
        return site

    def _folder(self, path: str) -> str:
        site = f"files/{path}/index.md"
        if site not in self._files:
            self._files.add(site)
            children = sorted(p for p in (self.top / path).iterdir() if _is_source(p))
            lines = [f"# {path}", ""]
            for child in children:
                name = str(child.relative_to(self.top))
                if child.is_dir():
                    lines.append(f"- {child.name}/")
                else:
                    place = self.places.get(name) or self._file(name)
                    lines.append(f"- [{child.name}]({_relative(place, site)})")
            self._write_aside(site, "\n".join(lines) + "\n")
        return site

    def _write_aside(self, site: str, text: str) -> None:
        """Write a page that only links lead to."""
        target = self.source / site
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(f"---\nsearch:\n  exclude: true\n---\n\n{text}", encoding="utf-8")


def _raised(lines: list[str], levels: int) -> list[str]:
    """Return Markdown lines with headings raised by a number of levels, to fit below another."""
    raised, fence = [], ""
    for line in lines:
        mark = _FENCE.match(line)
        if mark:
            fence = "" if fence == mark[1] else fence or mark[1]
        is_heading = not fence and line.startswith("##")
        raised.append(line[levels:] if is_heading else line)
    return raised


def _is_source(path: Path) -> bool:
    return path.name not in ("__pycache__", "target") and not path.name.startswith(".")


def _joined(site: str, to: str) -> str:
    return os.path.normpath(PurePosixPath(site).parent / to)


def _relative(place: str, site: str) -> str:
    return os.path.relpath(place, PurePosixPath(site).parent)
