"""`/billing/statements`: what was charged for months, as JSON, HTML and PDF; issuing and cancelling it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Annotated, Any, Literal

from fastapi import HTTPException, Path, Query, Request, Response
from pydantic import Field

from runvitals.server.access.actions import Action
from runvitals.server.access.control import AccessControl
from runvitals.server.access.permission import needs
from runvitals.server.access.principals import User
from runvitals.server.access.requester import Requester
from runvitals.server.access.resources import Organisation
from runvitals.server.account_services import AccountServices
from runvitals.server.http.bodies import RequestBody, ResponseBody, page_body
from runvitals.server.http.errors import answering
from runvitals.server.http.listing import ThePage
from runvitals.server.http.router import Router
from runvitals.server.http.same_origin import INERT_POLICY
from runvitals.server.mail.message import Message, one_line
from runvitals.server.service_parameters import TheAccess, TheRequester, TheServices
from runvitals.server.services import shared_services_of
from runvitals.server.usage.charges import MICRO
from runvitals.server.usage.printed_statements import html_of, pdf_of
from runvitals.server.usage.routes.billing_text import PlainText
from runvitals.server.usage.statement_lines import money
from runvitals.server.usage.statements import Statements
from runvitals.server.usage.storage.statements import (
    State,
    Statement,
    StatementConflict,
    StatementTable,
    Wanted,
)

router = Router()
_READS = "filtered usage:read_team"
Number = Annotated[str, Path(max_length=40, description="Of a statement, or the id of a draft.")]
DraftId = Annotated[int, Path(ge=1, le=2**31 - 1)]
Period = Annotated[str | None, Query(pattern=r"^[0-9]{4}-[0-9]{2}$", description="A month such as 2026-11.")]


class Cancellation(RequestBody):
    """Why a statement is cancelled."""

    reason: PlainText = Field(min_length=1, max_length=500)


class StatementSchema(ResponseBody):
    """A statement, or a draft of one."""

    id: int
    number: str | None = Field(description="None: a draft.")
    period: str
    scope_kind: Literal["entity", "cost_centre"]
    scope: str
    state: State
    computed_ms: int
    issued_ms: int | None
    issued_by: str | None
    currency: str
    total: float
    reason: str
    replaces: str | None = Field(description="The number of the statement that this one cancels or corrects.")


StatementsPage = page_body(
    "StatementsPage", "A page of statements and drafts, the newest first.", statements=list[StatementSchema]
)


class StatementLineSchema(ResponseBody):
    """A line of a statement."""

    text: str
    project: str | None
    category: str
    model: str | None
    quantity: float
    unit: str
    included: float
    price: float
    amount: float


class StatementWithLines(StatementSchema):
    """A statement or draft, with a page of its lines."""

    lines: list[StatementLineSchema]
    total_lines: int
    next: str | None


def _statements(request: Request) -> Statements:
    return shared_services_of(request).statements


@router.get("/billing/statements", needs(_READS), response_model=StatementsPage)
def statements(
    access: TheAccess,
    requester: TheRequester,
    page: ThePage,
    period: Period = None,
    entity: Annotated[str | None, Query(description="Only of this team or user.", max_length=64)] = None,
) -> dict[str, Any]:
    """Statements and drafts, the newest first. Administrators of teams see those issued to their teams."""
    readable = _entity_ids(access, requester)
    if entity is not None:
        owner = access.directory.entity_named(entity)
        if owner is None or (readable is not None and owner.id not in readable):
            access.hide(requester, f"team or user {entity!r}")
        readable = [owner.id]
    selected = Wanted(period, readable)
    rows, total = _table(access).page(selected, page.limit + 1, page.after_id)
    part = rows[: page.limit]
    following = str(part[-1].id) if len(rows) > len(part) else None
    return {"statements": _to_rows(access, part), "total": total, "next": following}


@router.get("/billing/statements/{number}.pdf", needs(_READS), response_model=None)
def statement_pdf(number: Number, access: TheAccess, requester: TheRequester) -> Response:
    """A statement that was issued, as PDF: always the same bytes."""
    statement = _readable_statement(access, requester, number)
    if statement.number is None:
        raise HTTPException(409, "a draft has no PDF: issue it first")
    headers = {"content-disposition": f'attachment; filename="{statement.number}.pdf"'}
    try:
        pdf = pdf_of(_table(access), statement)
    except ModuleNotFoundError:
        text = "this server makes no PDF, which needs pip install 'runvitals[pdf]'; the page can be printed"
        raise HTTPException(501, text) from None
    return Response(pdf, media_type="application/pdf", headers=headers)


@router.get("/billing/statements/{number}.html", needs(_READS), response_model=None)
def statement_html(number: Number, access: TheAccess, requester: TheRequester) -> Response:
    """A statement or draft as a page of its own."""
    statement = _readable_statement(access, requester, number)
    text = html_of(_table(access), statement)
    return Response(
        text, media_type="text/html; charset=utf-8", headers={"content-security-policy": INERT_POLICY}
    )


@router.get("/billing/statements/{number}", needs(_READS), response_model=StatementWithLines)
def statement(number: Number, access: TheAccess, requester: TheRequester, page: ThePage) -> dict[str, Any]:
    """A statement or draft, with a page of its lines."""
    shown_statement = _readable_statement(access, requester, number)
    lines = _table(access).lines(shown_statement.id)
    first = page.after_id
    part = lines[first : first + page.limit]
    end = first + len(part)
    listed_lines = [
        {
            "text": line.text,
            "project": line.project,
            "category": line.category,
            "model": line.model,
            "quantity": line.quantity,
            "unit": line.unit,
            "included": line.included,
            "price": line.price_micro / MICRO,
            "amount": line.amount_micro / MICRO,
        }
        for line in part
    ]
    (about,) = _to_rows(access, [shown_statement])
    return {
        **about,
        "lines": listed_lines,
        "total_lines": len(lines),
        "next": str(end) if end < len(lines) else None,
    }


@router.post("/billing/statements/{draft}/issue", needs("billing:settle"), response_model=StatementSchema)
def issue(
    draft: DraftId, request: Request, access: TheAccess, requester: TheRequester, services: TheServices
) -> dict[str, Any]:
    """Issue a draft as it is now, under the next number. It never changes again."""
    with answering(409, StatementConflict):
        statement, tell = _table(access).find(str(draft)), _telling(access, services)
        issued = _statements(request).issue(statement, requester.actor, tell)
    return _to_rows(access, [issued])[0]


@router.post("/billing/statements/{number}/cancel", needs("billing:settle"), response_model=StatementSchema)
def cancel(
    number: Number,
    why: Cancellation,
    request: Request,
    access: TheAccess,
    requester: TheRequester,
    services: TheServices,
) -> dict[str, Any]:
    """Cancel a statement by another one with negative amounts, the response. The month has a draft again."""
    with answering(409, StatementConflict):
        tell = _telling(access, services)
        cancelling = _statements(request).cancel(number, why.reason, requester.actor, tell)
    return _to_rows(access, [cancelling])[0]


def _table(access: AccessControl) -> StatementTable:
    return access.metadata_store.usage.statements


def _entity_ids(access: AccessControl, requester: Requester) -> list[int] | None:
    """The teams whose statements the requester may read; None: all statements, with drafts."""
    if access.may(requester, Action.BILLING_READ, Organisation()):
        return None
    teams = requester.principal.teams if isinstance(requester.principal, User) else ()
    readable = [
        team for team in teams if access.may(requester, Action.USAGE_READ_TEAM, access.directory.entity(team))
    ]
    if not readable:
        access.require(requester, Action.BILLING_READ, Organisation(), "the organisation", changes=False)
    return readable


def _readable_statement(access: AccessControl, requester: Requester, number: str) -> Statement:
    mine = _entity_ids(access, requester)
    try:
        statement = _table(access).find(number)
    except LookupError:
        access.hide(requester, f"statement {number!r}")
    if mine is not None and (
        statement.number is None or statement.scope_kind != "entity" or statement.scope_id not in mine
    ):
        access.hide(requester, f"statement {number!r}")
    return statement


def _to_rows(access: AccessControl, statements: Sequence[Statement]) -> list[dict[str, Any]]:
    replaced = _table(access).numbers(
        [statement.replaces_id for statement in statements if statement.replaces_id is not None]
    )
    return [
        {
            "id": statement.id,
            "number": statement.number,
            "period": statement.period,
            "scope_kind": statement.scope_kind,
            "scope": statement.scope_name,
            "state": statement.state,
            "computed_ms": statement.created_ms,
            "issued_ms": statement.issued_ms,
            "issued_by": statement.issued_by,
            "currency": statement.currency,
            "total": statement.total_micro / MICRO,
            "reason": statement.reason,
            "replaces": None if statement.replaces_id is None else replaced[statement.replaces_id],
        }
        for statement in statements
    ]


def _telling(access: AccessControl, services: AccountServices) -> Callable[[Statement], None]:
    """Return a function that mails a statement to the contact of its cost centre, if it has one."""

    def tell(issued: Statement) -> None:
        contact = (issued.settlement.get("paid_by") or {}).get("contact")
        if contact:
            total = f"{money(issued.total_micro, issued.currency)} {issued.currency}"
            title = f"Statement {issued.number} of {issued.scope_name} for {issued.period}: {total}"
            contact_person = issued.settlement.get("contact")
            text = "The billing administrators have the statement as PDF."
            paragraphs = (title, f"{text} Questions: {contact_person}." if contact_person else text)
            message = Message("statement", one_line(title), paragraphs)
            services.mailer.send(message, contact, access.clock(), once_key=f"statement:{issued.number}")

    return tell
