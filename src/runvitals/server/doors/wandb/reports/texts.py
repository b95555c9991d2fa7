"""Blocks of text: those of W&B's reports as Markdown, and the other way."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final

_SPECIAL: Final = re.compile(r"([\\`*_\[\]<>$~|])")
_LINE_START: Final = re.compile(r"(?m)^(\s*)([#>+-]|\d+[.)])(?=\s|$)")
_MAX_DEPTH: Final = 20
_FENCE: Final = re.compile(r"^(`{3,})([\w+-]*)\n(.*?)\n?\1\s*$", re.DOTALL)
_HEADING: Final = re.compile(r"^(#{1,6}) (.+)$")
_MATH: Final = re.compile(r"^\$\$\n?(.*?)\n?\$\$$", re.DOTALL)
_IMAGE: Final = re.compile(r'^!\[([^\]]*)\]\((\S+?)(?: "[^"]*")?\)$')
_MARKS: Final = (("bold", "**"), ("italic", "*"), ("strikethrough", "~~"))
_LINKED: Final = {"video": "url", "twitter": "html", "soundcloud": "html", "spotify": "spotifyID"}
_EMPTY: Final = [{"text": ""}]


def markdown_of(block: Mapping[str, Any]) -> str | None:
    """Return a block of a W&B report as Markdown; None for an empty paragraph.

    A block that has no counterpart becomes a note that names it.

    Example:
        >>> markdown_of({"type": "heading", "level": 2, "children": [{"text": "Result"}]})
        '## Result'
    """
    kind = block.get("type")
    converter = _CONVERTERS.get(str(kind))
    if converter is not None:
        return converter(block)
    if isinstance(kind, str) and isinstance(block.get(_LINKED.get(kind, "")), str):
        return f"> [!NOTE]\n> {kind}: {_escaped(str(block[_LINKED[kind]])[:500])}"
    return f"> [!NOTE]\n> A block of W&B ({_escaped(str(kind)[:40])}) is not shown here."


def block_of(markdown: str) -> dict[str, Any]:
    """Return Markdown as a block of a W&B report: as typed ones where nothing is lost, else as Markdown.

    Example:
        >>> block_of("# Result")
        {'type': 'heading', 'children': [{'text': 'Result'}], 'level': 1}
    """
    text = markdown.strip()
    heading, fence = _HEADING.match(text), _FENCE.match(text)
    math, image = _MATH.match(text), _IMAGE.match(text)
    if heading and _is_plain(heading[2]):
        return {"type": "heading", "children": [{"text": _unescaped(heading[2])}], "level": len(heading[1])}
    if fence:
        line = {"type": "code-line", "children": [{"text": fence[3]}], "language": fence[2] or "python"}
        return {"type": "code-block", "children": [line], "language": fence[2] or "python"}
    if math:
        return {"type": "latex", "children": _EMPTY, "content": math[1], "block": True}
    if image:
        return {
            "type": "image",
            "children": [{"text": image[1]}],
            "url": image[2],
            "hasCaption": bool(image[1]),
        }
    if text in ("---", "***", "___"):
        return {"type": "horizontal-rule", "children": _EMPTY}
    if text and "\n" not in text and _is_plain(text) and not _LINE_START.match(text):
        return {"type": "paragraph", "children": [{"text": _unescaped(text)}]}
    return {"type": "markdown-block", "children": _EMPTY, "content": markdown}


def _is_plain(text: str) -> bool:
    """Whether nothing in the text is Markdown, apart from escapes."""
    return not _SPECIAL.search(re.sub(r"\\[\\`*_\[\]<>$~|#>+.)-]", "", text))


def _unescaped(text: str) -> str:
    return re.sub(r"\\([\\`*_\[\]<>$~|#>+.)-])", r"\1", text)


def _escaped(text: str) -> str:
    return _LINE_START.sub(r"\1\\\2", _SPECIAL.sub(r"\\\1", text))


def _inline(children: Iterable[Any], depth: int = 0) -> str:
    """The Markdown of the text in a block. Deeper parts than any client writes are left out."""
    if depth > _MAX_DEPTH:
        return ""
    return "".join(_piece(child, depth) for child in children if isinstance(child, dict))


def _piece(child: Mapping[str, Any], depth: int) -> str:
    if child.get("type") == "link":
        return f"[{_inline(child.get('children') or (), depth + 1)}]({_address(child.get('url'))})"
    if child.get("type") == "latex":
        return f"${child.get('content') or ''}$"
    if "children" in child:
        return _inline(child["children"] or (), depth + 1)
    text = str(child.get("text") or "")
    if not text:
        return ""
    if child.get("inlineCode"):
        ticks = "`" * (1 + max((len(run) for run in re.findall("`+", text)), default=0))
        return f"{ticks}{text}{ticks}"
    text = _escaped(text)
    for name, mark in _MARKS:
        text = f"{mark}{text}{mark}" if child.get(name) else text
    return text


def _address(url: object) -> str:
    text = str(url or "").replace("\n", "")
    return f"<{text.replace('<', '%3C').replace('>', '%3E')}>" if re.search(r"[\s()]", text) else text


def _paragraph(block: Mapping[str, Any]) -> str | None:
    return _inline(block.get("children") or ()) or None


def _heading(block: Mapping[str, Any]) -> str | None:
    level = block.get("level")
    level = level if isinstance(level, int) and 1 <= level <= 6 else 1
    text = _inline(block.get("children") or ()).replace("\n", " ")
    return f"{'#' * level} {text}" if text else None


def _quote(block: Mapping[str, Any]) -> str:
    return _prefixed(_inline(block.get("children") or ()), "> ")


def _prefixed(text: str, prefix: str) -> str:
    return "\n".join(f"{prefix}{line}".rstrip() for line in text.split("\n"))


def _list(block: Mapping[str, Any]) -> str:
    return "\n".join(_items(block, "", 0))


def _items(block: Mapping[str, Any], indent: str, depth: int) -> list[str]:
    lines: list[str] = []
    items = [item for item in block.get("children") or () if isinstance(item, dict)]
    for number, item in enumerate(items, 1):
        ordered = item.get("ordered") or block.get("ordered")
        bullet = f"{number}." if ordered else "-"
        if item.get("checked") is not None:
            bullet += " [x]" if item["checked"] else " [ ]"
        children = [child for child in item.get("children") or () if isinstance(child, dict)]
        lists = [child for child in children if child.get("type") == "list"]
        text = _inline(child for child in children if child.get("type") != "list").replace("\n", " ")
        lines.append(f"{indent}{bullet} {text}")
        if depth < _MAX_DEPTH:
            for inner in lists:
                lines += _items(inner, indent + " " * (len(bullet) + 1), depth + 1)
    return lines


def _code(block: Mapping[str, Any]) -> str:
    lines = [child for child in block.get("children") or () if isinstance(child, dict)]
    text = "\n".join(_plain(line.get("children") or ()) for line in lines)
    fence = "`" * max(3, 1 + max((len(run) for run in re.findall("`+", text)), default=0))
    language = re.sub(r"[^\w+-]", "", str(block.get("language") or ""))
    return f"{fence}{language}\n{text}\n{fence}"


def _plain(children: Iterable[Any]) -> str:
    return "".join(str(child.get("text") or "") for child in children if isinstance(child, dict))


def _markdown(block: Mapping[str, Any]) -> str | None:
    return str(block.get("content") or "") or None


def _latex(block: Mapping[str, Any]) -> str:
    return f"$$\n{block.get('content') or ''}\n$$"


def _image(block: Mapping[str, Any]) -> str:
    caption = _inline(block.get("children") or ()).replace("\n", " ")
    return f"![{caption}]({_address(block.get('url'))})"


def _callout(block: Mapping[str, Any]) -> str:
    lines = [child for child in block.get("children") or () if isinstance(child, dict)]
    text = "\n".join(_inline(line.get("children") or ()) for line in lines)
    return f"> [!NOTE]\n{_prefixed(text, '> ')}"


def _gallery(block: Mapping[str, Any]) -> str | None:
    links: Sequence[Any] = block.get("links") or ()
    rows = [
        f"- [{_escaped(str(link.get('title') or link['url']))}]({_address(link['url'])})"
        for link in links
        if isinstance(link, dict) and link.get("url")
    ]
    return "\n".join(rows) or None


def _rule(_: Mapping[str, Any]) -> str:
    return "---"


def _nothing(_: Mapping[str, Any]) -> None:
    return None


_CONVERTERS: Final[Mapping[str, Callable[[Mapping[str, Any]], str | None]]] = {
    "paragraph": _paragraph,
    "default": _paragraph,
    "heading": _heading,
    "block-quote": _quote,
    "list": _list,
    "code-block": _code,
    "markdown-block": _markdown,
    "latex": _latex,
    "image": _image,
    "callout-block": _callout,
    "horizontal-rule": _rule,
    "gallery": _gallery,
    "table-of-contents": _nothing,
}
