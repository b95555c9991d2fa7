"""Statements as HTML, and as PDF, which is made once and kept, with the fonts that every PDF reader has."""

from __future__ import annotations

import hashlib
import io
from typing import Any, Final
from xml.sax.saxutils import escape

from runvitals.server.usage.statement_document import StatementDocument, as_html, statement_document
from runvitals.server.usage.storage.statements import Statement, StatementTable

_MARGIN: Final = 54  # points
_WIDTHS: Final = (115, 115, 68, 62, 55, 72)
_SMALL: Final = 8


def html_of(table: StatementTable, statement: Statement) -> str:
    """A statement or draft as a page."""
    return as_html(_document(table, statement))


def pdf_of(table: StatementTable, statement: Statement) -> bytes:
    """The PDF of a statement that was issued; made at the first request."""
    stored_pdf = table.pdf(statement.id)
    if stored_pdf is None:
        pdf = as_pdf(_document(table, statement))
        table.put_pdf(statement.id, pdf, hashlib.sha256(pdf).hexdigest())
        stored_pdf = table.pdf(statement.id)  # of another request, if that was first
        assert stored_pdf is not None
    return stored_pdf


def _document(table: StatementTable, statement: Statement) -> StatementDocument:
    replaces = None
    if statement.replaces_id is not None:
        replaces = table.numbers([statement.replaces_id])[statement.replaces_id]
    return statement_document(statement, table.lines(statement.id), replaces)


def as_pdf(document: StatementDocument) -> bytes:
    """The same document gives the same bytes. Characters that its fonts do not have become `?`.

    Raises:
        ModuleNotFoundError: reportlab is not installed.
    """
    from reportlab.lib.pagesizes import A4
    from reportlab.lib.styles import ParagraphStyle, getSampleStyleSheet
    from reportlab.platypus import LongTable, Paragraph, SimpleDocTemplate, Spacer, TableStyle

    styles = getSampleStyleSheet()
    small = ParagraphStyle("small", styles["Normal"], fontSize=_SMALL, leading=_SMALL + 2)
    right_aligned = ParagraphStyle("right", small, alignment=2)

    def paragraph(text: str, style: Any = small) -> Any:
        return Paragraph(escape(_printable(text)).replace("\n", "<br/>"), style)

    rows = [document.columns, *document.rows, ("Total", "", "", "", "", document.total)]
    cells = [
        [paragraph(text, small if column < 2 else right_aligned) for column, text in enumerate(row)]
        for row in rows
    ]
    lines = LongTable(cells, colWidths=_WIDTHS, repeatRows=1)
    ruled = ("LINEBELOW", (0, 0), (-1, 0), 0.8, "#000000"), ("LINEABOVE", (0, -1), (-1, -1), 0.8, "#000000")
    lines.setStyle(TableStyle([*ruled, ("VALIGN", (0, 0), (-1, -1), "TOP")]))
    facts = LongTable(
        [[paragraph(name), paragraph(value)] for name, value in document.facts], colWidths=(90, 397)
    )
    facts.setStyle(TableStyle([("VALIGN", (0, 0), (-1, -1), "TOP"), ("LEFTPADDING", (0, 0), (0, -1), 0)]))
    story = [
        paragraph(document.title, styles["Title"]),
        paragraph(document.heading, styles["Normal"]),
        Spacer(1, 12),
        facts,
        Spacer(1, 12),
        lines,
        Spacer(1, 12),
        paragraph(document.figures),
    ]
    file = io.BytesIO()
    margins = dict.fromkeys(("leftMargin", "rightMargin", "topMargin", "bottomMargin"), _MARGIN)
    pages = SimpleDocTemplate(file, pagesize=A4, title=_printable(document.title), invariant=1, **margins)
    pages.build(story, onFirstPage=_page_number, onLaterPages=_page_number)
    return file.getvalue()


def _page_number(canvas: Any, pages: Any) -> None:
    canvas.setFont("Helvetica", _SMALL)
    canvas.drawRightString(pages.pagesize[0] - _MARGIN, _MARGIN / 2, f"Page {canvas.getPageNumber()}")


def _printable(text: str) -> str:
    return text.replace("⁹", "^9").encode("cp1252", "replace").decode("cp1252")
