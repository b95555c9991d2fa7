"""`POST /account/export`: a copy of what the server keeps about a user, as JSON files in a ZIP.

The file is small (no samples), so it is the response itself, not a link in a mail: nothing is kept, and no
link can leak.
"""

from __future__ import annotations

import io
import json
import zipfile
from dataclasses import asdict
from typing import Any, Final

from fastapi.responses import Response

from runvitals.server.access.control import AccessControl
from runvitals.server.access.permission import needs
from runvitals.server.accounts.routes.account_schema import account_of
from runvitals.server.accounts.routes.key_rules import key_schemas
from runvitals.server.accounts.routes.own_account import Owner, SignedInOwner
from runvitals.server.accounts.routes.profile import profile_schema
from runvitals.server.audit.storage.audit import MAX_ROWS, AuditFilter
from runvitals.server.http.router import Router
from runvitals.server.service_parameters import TheAccess, TheServices

MAX_EVENTS: Final = 100_000
MAX_RUNS: Final = 100_000
_EVENT_FIELDS: Final = ("time_ms", "action", "outcome", "via", "ip", "entity", "target")

router = Router()


@router.post("/account/export", needs("account:delete"))
def export(access: TheAccess, services: TheServices, owner: SignedInOwner) -> Response:
    """A ZIP of the user's data: account, profile, addresses, sessions, logins, keys' names, events, runs."""
    services.limit("export", str(owner.id))
    body = io.BytesIO()
    with zipfile.ZipFile(body, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in _contents(access, owner).items():
            archive.writestr(f"{name}.json", json.dumps(content, indent=1))
        picture = _picture(access, owner)
        if picture is not None:
            archive.writestr("picture.webp", picture)
    access.accounts.audit.record(access.clock(), owner.actor, "user.export", target=owner.name)
    disposition = f'attachment; filename="runvitals-{owner.name}.zip"'
    headers = {"content-disposition": disposition, "cache-control": "no-store"}
    return Response(body.getvalue(), media_type="application/zip", headers=headers)


def _contents(access: AccessControl, owner: Owner) -> dict[str, Any]:
    accounts, now_ms = access.accounts, access.clock()
    emails = accounts.emails.of_user(owner.id)
    sessions = accounts.sessions.of_user(owner.id, now_ms)
    keys = accounts.keys.all(user_id=owner.id, revoked=True)
    return {
        "account": account_of(access, owner.id).model_dump(),
        "profile": profile_schema(access, accounts.profiles.get(owner.id)).model_dump(),
        "emails": [
            {
                "address": email.address,
                "verified_ms": email.verified_ms,
                "primary": email.is_primary,
                "created_ms": email.created_ms,
            }
            for email in emails
        ],
        "sessions": [
            {name: getattr(row, name) for name in ("created_ms", "seen_ms", "method", "ip", "agent")}
            for row in sessions
        ],
        "logins": [asdict(login) for login in accounts.logins.of_user(owner.id)],
        "invitations": [
            {"team": row.team, "role": row.custom_role or row.role, "created_ms": row.created_ms}
            for row in accounts.invitations.of_user(owner.id, now_ms)
        ],
        "api_keys": [key.model_dump() for key in key_schemas(accounts, keys)],
        "events": _events(access, owner.id),
        "runs": [asdict(run) for run in accounts.runs_of_user(owner.id, MAX_RUNS)],
    }


def _picture(access: AccessControl, owner: Owner) -> bytes | None:
    pictures = access.accounts.pictures
    digest = pictures.digests_of_users([owner.id]).get(owner.id)
    return None if digest is None else pictures.body(digest, 512)


def _events(access: AccessControl, user_id: int) -> list[dict[str, Any]]:
    """Return what the user did, the newest first."""
    rows: list[dict[str, Any]] = []
    before_id = None
    while len(rows) < MAX_EVENTS:
        by_user = AuditFilter(actor_id=user_id, before_id=before_id)
        page = access.accounts.audit.page(by_user, MAX_ROWS)
        rows += [{name: getattr(event, name) for name in _EVENT_FIELDS} for event in page]
        if len(page) < MAX_ROWS:
            break
        before_id = page[-1].id
    return rows
