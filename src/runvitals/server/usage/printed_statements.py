"""Statements of the store as HTML, and as PDF, which is made once and kept."""

from __future__ import annotations

import hashlib

from runvitals.server.usage.statement_document import StatementDocument, as_html, statement_document
from runvitals.server.usage.storage.statements import Statement, StatementTable


def html_of(table: StatementTable, statement: Statement) -> str:
    """A statement or draft as a page."""
    return as_html(_document(table, statement))


def pdf_of(table: StatementTable, statement: Statement) -> bytes:
    """The PDF of a statement that was issued; made at the first request."""
    stored = table.pdf(statement.id)
    if stored is None:
        from runvitals.server.usage.statement_pdf import as_pdf

        made = as_pdf(_document(table, statement))
        table.put_pdf(statement.id, made, hashlib.sha256(made).hexdigest())
        stored = table.pdf(statement.id)  # of another request, if that was first
        assert stored is not None
    return stored


def _document(table: StatementTable, statement: Statement) -> StatementDocument:
    replaces = None
    if statement.replaces_id is not None:
        replaces = table.numbers([statement.replaces_id])[statement.replaces_id]
    return statement_document(statement, table.lines(statement.id), replaces)
