"""The pages of the documentation as the package has them, to read them in a terminal."""

from __future__ import annotations

import os
from collections.abc import Iterator
from difflib import get_close_matches
from typing import NamedTuple

_PACKAGED = os.path.join(os.path.dirname(os.path.dirname(__file__)), "guides")
_OF_SOURCES = os.path.join(os.path.dirname(__file__), *[os.pardir] * 3, "docs")
_SIMILAR = 5
_EXCERPT_CHARACTERS = 160


class Guide(NamedTuple):
    """A page.

    Args:
        topic: its path without the ending: `guides/filters`.
        title: its heading.
    """

    topic: str
    title: str
    text: str


class FoundGuide(NamedTuple):
    """A page in which words were found, and the paragraph that has most of them."""

    guide: Guide
    excerpt: str


def guides() -> list[Guide]:
    """Return all pages, by topic.

    Raises:
        FileNotFoundError: the package was built without them.
    """
    folder = next((path for path in (_PACKAGED, _OF_SOURCES) if os.path.isdir(path)), None)
    if folder is None:
        raise FileNotFoundError("this installation of runvitals has no guides")
    return sorted(_read(folder))


def _read(folder: str) -> Iterator[Guide]:
    for parent, _, names in os.walk(folder):
        for name in names:
            if not name.endswith(".md"):
                continue
            path = os.path.join(parent, name)
            with open(path, encoding="utf-8") as file:
                text = file.read()
            topic = os.path.relpath(path, folder).removesuffix(".md").removesuffix("/README")
            yield Guide(topic.replace(os.sep, "/"), text.partition("\n")[0].lstrip("# "), text)


def guide(topic: str) -> Guide:
    """Return the page about a topic: its path, or the end of one.

    Raises:
        LookupError: there is none, or there are several.
    """
    pages = guides()
    topic_path = topic.lower().removesuffix(".md").strip("/")
    exact = [page for page in pages if page.topic.lower() == topic_path]
    matches = exact or [page for page in pages if page.topic.lower().endswith(f"/{topic_path}")]
    if len(matches) == 1:
        return matches[0]
    if matches:
        raise LookupError(f"{topic!r} is one of {', '.join(page.topic for page in matches)}")
    names = {page.topic: page.topic for page in pages} | {
        page.topic.rpartition("/")[2]: page.topic for page in pages
    }
    similar = dict.fromkeys(names[name] for name in get_close_matches(topic_path, names, _SIMILAR, 0.6))
    hint = f"; did you mean {', '.join(similar)}?" if similar else "; `runvitals docs` lists the topics"
    raise LookupError(f"there is no page {topic!r}{hint}")


def search(words: str) -> list[FoundGuide]:
    """Return the pages that have all words, with those that have them most often first."""
    terms = words.lower().split()
    matches = []
    for page in guides():
        text = page.text.lower()
        counts = [text.count(word) + 20 * (word in page.title.lower()) for word in terms]
        if terms and all(counts):
            matches.append((-sum(counts), FoundGuide(page, _excerpt(page.text, terms))))
    return [match for _, match in sorted(matches)]


def _excerpt(text: str, words: list[str]) -> str:
    paragraphs = [" ".join(paragraph.split()) for paragraph in text.split("\n\n")]
    best = max(paragraphs, key=lambda each: sum(word in each.lower() for word in words))
    first = min((position for word in words if (position := best.lower().find(word)) >= 0), default=0)
    start = max(0, first - _EXCERPT_CHARACTERS // 3)
    return best[start : start + _EXCERPT_CHARACTERS].strip()
