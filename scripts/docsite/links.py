"""Checks the links of a built site: missing files and anchors, and resources loaded from other sites."""

from __future__ import annotations

from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urljoin, urlsplit

_LOADED = {"script": "src", "img": "src", "link": "href", "iframe": "src", "source": "src", "video": "src"}
"""Elements whose target a browser loads, and the attribute with the URL."""
_NOT_LOADED = {"canonical", "next", "prev", "alternate"}
"""Values of `rel` for which a browser does not load the target of a `link`."""


class _Page(HTMLParser):
    def __init__(self, text: str) -> None:
        super().__init__()
        self.anchors: set[str] = set()
        self.links: list[str] = []
        self.loaded: list[str] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = {name: value or "" for name, value in attrs}
        self.anchors |= {values[name] for name in ("id", "name") if name in values}
        address = values.get(_LOADED.get(tag, ""))
        if address is not None and not _NOT_LOADED & set(values.get("rel", "").split()):
            self.loaded.append(address)
        elif tag == "a" and "href" in values:
            self.links.append(values["href"])


def problems(site: Path) -> list[str]:
    """One line per problem. A site without problems works from disk without a network."""
    pages = {
        path.relative_to(site).as_posix(): _Page(path.read_text("utf-8")) for path in site.rglob("*.html")
    }
    faults = [
        problem for name, page in sorted(pages.items()) for problem in _of_page(site, pages, name, page)
    ]
    for style in sorted(site.rglob("*.css")):
        text = style.read_text("utf-8")
        if "url(http" in text or "@import url(" in text or "url(//" in text:
            faults.append(f"{style.relative_to(site)}: loads from another site")
    return faults


def _of_page(site: Path, pages: dict[str, _Page], name: str, page: _Page) -> Iterator[str]:
    for address in page.loaded:
        if urlsplit(address).netloc:
            yield f"{name}: loads {address} from another site"
    if name == "404.html":  # its links are absolute, for the published site
        return
    for address in sorted({*page.links, *page.loaded}):
        parts = urlsplit(address)
        if parts.scheme or parts.netloc:
            continue
        target = unquote(urlsplit(urljoin(name, parts.path)).path) if parts.path else name
        if target.endswith("/") or target == "":
            target += "index.html"
        if not (site / target).is_file():
            yield f"{name}: link to {address}, which does not exist"
        elif parts.fragment and unquote(parts.fragment) not in pages[target].anchors:
            yield f"{name}: link to {address}, a page without that anchor"
