"""Renders Markdown and cleans the HTML. Only `markdown` imports it, when the first text is rendered."""

from __future__ import annotations

import html
import re
from collections.abc import Collection, MutableMapping, Sequence
from html.parser import HTMLParser
from typing import Any, Final, cast

import nh3
from markdown_it import MarkdownIt
from markdown_it.renderer import RendererHTML
from markdown_it.rules_core import StateCore
from markdown_it.token import Token
from markdown_it.utils import OptionsDict
from mdit_py_plugins.dollarmath import dollarmath_plugin

from runvitals.server.user_content import image_links
from runvitals.server.user_content.image_links import ImageLinks

_BLOCKS: Final = ("p", "br", "hr", "h2", "h3", "h4", "h5", "h6", "ul", "ol", "li", "blockquote", "pre")
_TABLES: Final = ("table", "thead", "tbody", "tr", "th", "td")
_TAGS: Final = frozenset((*_BLOCKS, *_TABLES, "code", "em", "strong", "s", "a", "img"))
_ATTRIBUTES: Final = {
    "a": {"href", "title"},
    "img": {"src", "alt", "title", "width", "height"},
    "code": {"class"},
    "ol": {"start"},
    "blockquote": {"class"},
}
_REL: Final = "nofollow noopener noreferrer ugc"
_IMG: Final = re.compile(r"<img[\s/>]", re.IGNORECASE)
_BREAK: Final = re.compile(r"<br\s*/?>", re.IGNORECASE)
_LANGUAGE: Final = re.compile(r"language-[\w+#.-]{1,40}")
_MATH: Final = ("math inline", "math block")
_CALLOUT: Final = re.compile(r"\[!(NOTE|TIP|IMPORTANT|WARNING|CAUTION)\][ \n]*")
_CALLOUTS: Final = frozenset(f"callout {name}" for name in ("note", "tip", "important", "warning", "caution"))
_PIXELS: Final = re.compile(r"([0-9]{1,4})(?:px)?")
_PERCENT: Final = re.compile(r"([0-9]{1,3})%")
_MAX_PIXELS: Final = 2000
_SOURCES: Final = (f"{image_links.PATH}/", "/-/picture/")
_TASK: Final = re.compile(r"\[([ xX])\] ")
MENTION: Final = re.compile(r"(?<![\w@/.+-])@([a-z0-9](?:[a-z0-9]|[-_](?=[a-z0-9])){0,63})(?![\w@])")
"""`@name` in texts of users."""


def render(markdown: str, images: ImageLinks, mentions: Collection[str]) -> str:
    """Return the clean HTML of a text: see `markdown.html_of`."""
    environment = {"images": images, "mentions": frozenset(mentions)}
    return nh3.clean(
        _PARSER.render(markdown, environment),
        tags=set(_TAGS),
        attributes={tag: set(names) for tag, names in _ATTRIBUTES.items()},
        attribute_filter=_checked_attribute,
        link_rel=_REL,
        url_schemes={"http", "https", "mailto"},
    )


def _checked_attribute(tag: str, name: str, value: str) -> str | None:
    if name == "class" and tag == "blockquote":
        return value if value in _CALLOUTS else None
    if name == "class":
        return value if value in _MATH or _LANGUAGE.fullmatch(value) else None
    if name in ("width", "height"):
        return _length(value, percent=name == "width")
    if name == "start":
        return value if re.fullmatch(r"[0-9]{1,9}", value) else None
    if tag == "img" and name == "src":
        return value if value.startswith(_SOURCES) else None
    return value


def _length(value: str, *, percent: bool) -> str | None:
    """Return a width or height: 1 to 2000 pixels, or a width of 1 to 100 %; None for anything else."""
    pixels = _PIXELS.fullmatch(value.strip())
    if pixels is not None and 1 <= int(pixels[1]) <= _MAX_PIXELS:
        return str(int(pixels[1]))
    share = _PERCENT.fullmatch(value.strip()) if percent else None
    return f"{int(share[1])}%" if share is not None and 1 <= int(share[1]) <= 100 else None


class _Renderer(RendererHTML):
    """Renders images by our own addresses, and raw HTML as text."""

    def image(
        self,
        tokens: Sequence[Token],
        index: int,
        options: OptionsDict,
        environment: MutableMapping[str, Any],
    ) -> str:
        token = tokens[index]
        alternative = self.renderInlineAsText(token.children, options, environment) if token.children else ""
        attributes = {name: str(value) for name, value in token.attrs.items()}
        attributes["alt"] = alternative
        return _image(attributes, environment["images"], in_link="in_link" in tokens[index].meta)

    def html_inline(
        self,
        tokens: Sequence[Token],
        index: int,
        options: OptionsDict,
        environment: MutableMapping[str, Any],
    ) -> str:
        raw = tokens[index].content
        if _BREAK.fullmatch(raw):  # editors write it in cells of tables, and for empty lines
            return "<br>"
        if not _IMG.match(raw):
            return html.escape(raw)
        return _image(_attributes(raw), environment["images"], in_link="in_link" in tokens[index].meta)

    def math_inline(
        self,
        tokens: Sequence[Token],
        index: int,
        options: OptionsDict,
        environment: MutableMapping[str, Any],
    ) -> str:
        """Return the TeX of a formula, which the page draws."""
        return f'<code class="math inline">{html.escape(tokens[index].content)}</code>'

    math_inline_double = math_inline

    def math_block(
        self,
        tokens: Sequence[Token],
        index: int,
        options: OptionsDict,
        environment: MutableMapping[str, Any],
    ) -> str:
        """As `math_inline`, of a formula with lines of its own."""
        return f'<pre><code class="math block">{html.escape(tokens[index].content.strip())}</code></pre>\n'


class _ImageTag(HTMLParser):
    """Reads the attributes of one `<img>`."""

    def __init__(self) -> None:
        super().__init__()
        self.attributes: dict[str, str] = {}

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        for name, value in attributes:
            self.attributes.setdefault(name, value or "")


def _attributes(raw: str) -> dict[str, str]:
    parser = _ImageTag()
    parser.feed(raw)
    parser.close()
    return parser.attributes


def _image(attributes: dict[str, str], images: ImageLinks, *, in_link: bool) -> str:
    """Return an `<img>`; where the image is not shown, a link to it, or its text within another link."""
    source = attributes.get("src", "").strip()
    address = images.address(source)
    if address is not None:
        image_attributes = {name: value for name, value in attributes.items() if name in _ATTRIBUTES["img"]}
        image_attributes["src"] = address
        return f"<img {' '.join(f'{name}={_quote(value)}' for name, value in image_attributes.items())}>"
    text = html.escape(attributes.get("alt") or "image")
    is_linked = source.startswith(("https://", "http://")) and not in_link
    return f"<a href={_quote(source)}>{text}</a>" if is_linked else text


def _quote(value: str) -> str:
    return f'"{html.escape(value)}"'


def _mark_images_in_links(state: StateCore) -> None:
    for inline in state.tokens:
        depth = 0
        for token in inline.children or ():
            depth += (token.type == "link_open") - (token.type == "link_close")
            if depth and token.type in ("image", "html_inline"):
                token.meta["in_link"] = True


def _lower_headings(state: StateCore) -> None:
    """The page has a heading of its own, so those of texts begin one level below."""
    for token in state.tokens:
        if token.type in ("heading_open", "heading_close"):
            token.tag = f"h{min(int(token.tag[1:]) + 1, 6)}"


def _show_tasks(state: StateCore) -> None:
    """`[ ]` and `[x]` at the beginning of a list item as boxes."""
    for before, paragraph, inline in zip(state.tokens, state.tokens[1:], state.tokens[2:], strict=False):
        starts_item = before.type == "list_item_open" and paragraph.type == "paragraph_open"
        if not starts_item or not inline.children or inline.children[0].type != "text":
            continue
        text = inline.children[0]
        task = _TASK.match(text.content)
        if task is not None:
            text.content = ("☐ " if task[1] == " " else "☑ ") + text.content[task.end() :]


def _mark_callouts(state: StateCore) -> None:
    """`[!NOTE]` at the beginning of a quote makes it a callout."""
    for quote, paragraph, inline in zip(state.tokens, state.tokens[1:], state.tokens[2:], strict=False):
        starts_quote = quote.type == "blockquote_open" and paragraph.type == "paragraph_open"
        if not starts_quote or not inline.children or inline.children[0].type != "text":
            continue
        first = inline.children[0]
        callout = _CALLOUT.match(first.content)
        if callout is not None:
            quote.attrs["class"] = f"callout {callout[1].lower()}"
            first.content = first.content[callout.end() :]
            if not first.content and len(inline.children) > 1 and inline.children[1].type == "softbreak":
                del inline.children[:2]


def _link_mentions(state: StateCore) -> None:
    for inline in state.tokens:
        if inline.type == "inline" and inline.children:
            inline.children = _with_mentions(inline.children, state.env["mentions"])


def _with_mentions(tokens: list[Token], names: Collection[str]) -> list[Token]:
    linked: list[Token] = []
    depth = 0
    for token in tokens:
        depth += (token.type == "link_open") - (token.type == "link_close")
        if token.type != "text" or depth or not names:
            linked.append(token)
            continue
        position = 0
        for mention in MENTION.finditer(token.content):
            if mention[1] in names:
                linked += [_text(token.content[position : mention.start()]), *_link(mention[1])]
                position = mention.end()
        linked.append(_text(token.content[position:]))
    return linked


def _link(name: str) -> list[Token]:
    opening = Token("link_open", "a", 1, attrs={"href": f"/{name}"})
    return [opening, _text(f"@{name}"), Token("link_close", "a", -1)]


def _text(content: str) -> Token:
    return Token("text", "", 0, content=content)


def _parser() -> MarkdownIt:
    parser = MarkdownIt("commonmark", {"html": True}, renderer_cls=_Renderer)
    parser.enable(["table", "strikethrough"])
    parser.disable("html_block")  # so that all raw HTML goes through `html_inline`
    parser.use(
        dollarmath_plugin, allow_labels=False, allow_space=False, allow_digits=False, double_inline=True
    )
    # Ours instead of those of the plugin, which are functions without clean HTML.
    renderer = cast(_Renderer, parser.renderer)
    for name in ("math_inline", "math_inline_double", "math_block"):
        renderer.rules[name] = getattr(renderer, name)
    parser.core.ruler.push("lower_headings", _lower_headings)
    parser.core.ruler.push("show_tasks", _show_tasks)
    parser.core.ruler.push("mark_callouts", _mark_callouts)
    parser.core.ruler.push("mark_images_in_links", _mark_images_in_links)
    parser.core.ruler.push("link_mentions", _link_mentions)
    return parser


_PARSER: Final = _parser()
