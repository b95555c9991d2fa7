"""A report as PDF, with the fonts that every reader has."""

from __future__ import annotations

import io
from collections.abc import Iterator, Mapping, Sequence
from html import escape
from html.parser import HTMLParser
from typing import Any, Final

from runvitals.readers.servers.reports.drawings import WIDTH, Dot, Drawing, PlacedText, Shape, Stroke
from runvitals.readers.servers.reports.exported_report import ExportedReport
from runvitals.readers.servers.reports.html_page import as_of
from runvitals.readers.servers.reports.panel_drawings import drawings_of
from runvitals.readers.servers.reports.panel_tables import (
    pictures_of,
    problem_of,
    tables_of,
    texts_of,
    title_of,
)

_MARGIN: Final = 54  # points
_WIDTH: Final = 487
_SCALE: Final = _WIDTH / WIDTH
_BLOCKS: Final = frozenset(("p", "li", "pre", "h2", "h3", "h4", "h5", "h6", "tr", "blockquote"))
_MAX_IMAGE_HEIGHT: Final = 600
_MAX_COLUMNS: Final = 8
_SHOWN_NAMES: Final = 12


class PlainBlocks(HTMLParser):
    """Reads rendered Markdown as blocks of text: tag and text of each.

    Example:
        >>> blocks = PlainBlocks()
        >>> blocks.feed("<h2>Rates</h2><ul><li>one</li></ul>")
        >>> blocks.tagged_texts
        [('h2', 'Rates'), ('li', 'one')]
    """

    def __init__(self) -> None:
        super().__init__()
        self.tagged_texts: list[tuple[str, str]] = []
        self._open: list[str] = []

    def handle_starttag(self, tag: str, attrs: Sequence[tuple[str, str | None]]) -> None:
        """Begin a block."""
        if tag in _BLOCKS:
            self.tagged_texts.append((tag, ""))
        elif tag == "br":
            self.handle_data(" ")
        elif tag in ("td", "th") and self.tagged_texts:
            self.tagged_texts[-1] = self.tagged_texts[-1][0], self.tagged_texts[-1][1] + "   "

    def handle_data(self, data: str) -> None:
        """Add text to the block."""
        if self.tagged_texts:
            tag, text = self.tagged_texts[-1]
            self.tagged_texts[-1] = tag, text + (data if tag == "pre" else " ".join(data.split("\n")))


def pdf_of(exported: ExportedReport) -> bytes:
    """Return a report as PDF. Characters that its fonts do not have become `?`.

    Raises:
        ModuleNotFoundError: reportlab is not installed.
    """
    try:
        from reportlab.lib.pagesizes import A4
        from reportlab.platypus import SimpleDocTemplate
    except ModuleNotFoundError as error:
        text = "PDF needs reportlab: pip install 'runvitals[pdf]'; html and md need nothing"
        raise ModuleNotFoundError(text, name=error.name) from None

    file = io.BytesIO()
    margins = dict.fromkeys(("leftMargin", "rightMargin", "topMargin", "bottomMargin"), _MARGIN)
    title = printable(exported.report["title"])
    pages = SimpleDocTemplate(file, pagesize=A4, title=title, invariant=1, **margins)
    pages.build(list(_story(exported)))
    return file.getvalue()


def _story(exported: ExportedReport) -> Iterator[Any]:
    report = exported.report
    yield _paragraph(report["title"], "Title")
    if report["description"]:
        yield _paragraph(report["description"], "Normal")
    yield _paragraph(f"{report['entity']}/{report['project']} · {exported.address}", "Italic")
    for block in report["blocks"]:
        if block["kind"] == "text":
            yield from _text(report["html"].get(block["id"], ""))
        elif block["kind"] == "image":
            yield from _image(exported, block["file"], block["caption"] or block["alt"])
        else:
            for panel, answer in exported.panels(block):
                yield from _panel(exported, panel, answer)


def _text(markup: str) -> Iterator[Any]:
    blocks = PlainBlocks()
    blocks.feed(markup)
    styles = {"h2": "Heading2", "h3": "Heading3", "pre": "Code"}
    for tag, text in blocks.tagged_texts:
        if text.strip():
            usual = "Heading4" if tag in ("h4", "h5", "h6") else "Normal"
            yield _paragraph(f"• {text.strip()}" if tag == "li" else text.strip("\n"), styles.get(tag, usual))


def _panel(exported: ExportedReport, panel: Mapping[str, Any], answer: Mapping[str, Any]) -> Iterator[Any]:
    yield _paragraph(title_of(panel), "Heading3")
    if problem := problem_of(panel, answer):
        yield _paragraph(problem, "Normal")
    elif drawings := drawings_of(panel, answer):
        for drawing in drawings:
            yield from _drawn(drawing)
    else:
        for table in tables_of(panel, answer):
            yield _table([table.head, *table.rows])
    for digest, about in pictures_of(answer):
        yield from _image(exported, digest, about)
    for name, text in texts_of(panel, answer):
        if name:
            yield _paragraph(name, "Heading4")
        yield _paragraph(text, "Code")
    yield _paragraph(as_of(answer), "Italic")


def _drawn(drawing: Drawing) -> Iterator[Any]:
    from reportlab.graphics.shapes import Drawing as Page
    from reportlab.graphics.shapes import Group

    shapes = Group(*(_shape(shape, drawing.height) for shape in drawing.shapes))
    shapes.scale(_SCALE, _SCALE)
    page = Page(_WIDTH, drawing.height * _SCALE)
    page.add(shapes)
    yield page
    names = [f'<font color="{color}">—</font> {_safe(name)}' for name, color in drawing.names[:_SHOWN_NAMES]]
    if len(drawing.names) > _SHOWN_NAMES:
        names.append(f"and {len(drawing.names) - _SHOWN_NAMES} more")
    if names:
        yield _marked("   ".join(names))
    if drawing.note:
        yield _paragraph(drawing.note, "Normal")


def _shape(shape: Shape, height: float) -> Any:
    """Return a shape where y grows upwards."""
    from reportlab.graphics import shapes
    from reportlab.lib.colors import HexColor

    if isinstance(shape, PlacedText):
        text = printable(shape.text)
        return shapes.String(shape.x, height - shape.y, text, fontSize=10, textAnchor=shape.anchor)
    color = HexColor(shape.color)
    if isinstance(shape, Stroke):
        points = [part for x, y in shape.points for part in (x, height - y)]
        return shapes.PolyLine(points, strokeColor=color, strokeWidth=shape.width)
    filled = {"fillColor": color, "strokeColor": None}
    if isinstance(shape, Dot):
        return shapes.Circle(shape.x, height - shape.y, 4, **filled)
    return shapes.Rect(shape.x, height - shape.y - shape.height, shape.width, shape.height, **filled)


def _table(rows: Sequence[Sequence[str]]) -> Any:
    from reportlab.platypus import LongTable

    cells = [[_paragraph(text, "Normal") for text in row[:_MAX_COLUMNS]] for row in rows]
    return LongTable(cells, repeatRows=1)


def _image(exported: ExportedReport, digest: str, about: str) -> Iterator[Any]:
    from reportlab.platypus import Image

    content = exported.images.get(digest)
    if content is not None:
        image = Image(io.BytesIO(content))
        ratio = min(1.0, _WIDTH / image.imageWidth, _MAX_IMAGE_HEIGHT / image.imageHeight)
        image.drawWidth, image.drawHeight = image.imageWidth * ratio, image.imageHeight * ratio
        image.hAlign = "LEFT"
        yield image
    yield _paragraph(about, "Italic")


def _paragraph(text: str, style: str) -> Any:
    return _marked(_safe(text), style)


def _marked(markup: str, style: str = "Normal") -> Any:
    from reportlab.lib.styles import getSampleStyleSheet
    from reportlab.platypus import Paragraph

    chosen = getSampleStyleSheet()[style]
    chosen.keepWithNext = int(style.startswith("Heading"))  # no heading ends a page
    return Paragraph(markup, chosen)


def _safe(text: str) -> str:
    return escape(printable(text)).replace("\n", "<br/>")


def printable(text: str) -> str:
    """Return a text with `?` for what the fonts do not have."""
    return text.encode("cp1252", "replace").decode("cp1252")
