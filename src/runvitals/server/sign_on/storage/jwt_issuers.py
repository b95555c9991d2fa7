"""Services whose tokens (JWT) are accepted instead of keys, and who service accounts are there."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from typing import Any

from sqlalchemy import Connection, delete, insert, or_, select, update

from runvitals.model.names import plain_text
from runvitals.server.audit.storage.audit import Actor, record
from runvitals.server.database.database import StoredTable, in_transaction, put_rows
from runvitals.server.database.rights_generation import rights_changed
from runvitals.server.database.tables.accounts import entity, service_account
from runvitals.server.database.tables.sign_on import external_identity, jwt_issuer
from runvitals.server.database.text import checked_name
from runvitals.store.errors import NameTaken, NotFound

MAX_NAME = 64
MAX_URL = 500
MAX_SUBJECT = 500
MAX_WILDCARDS = 4


@dataclass(frozen=True, slots=True)
class JwtIssuerRow:
    """A service that issues tokens.

    Attributes:
        audience: what its tokens for this server are issued for.
        pasted_keys: a JWKS document with its keys, in JSON; None: the server asks the issuer.
    """

    id: int
    name: str
    url: str
    audience: str
    enabled: bool
    created_ms: int
    pasted_keys: str | None = None


@dataclass(frozen=True, slots=True)
class ExternalIdentity:
    """An identity of a service account at an issuer. `subject`: `*` in it stands for any characters."""

    service_account_id: int
    issuer_id: int
    subject: str

    def fits(self, subject: str) -> bool:
        """Return whether the subject of a token is this one.

        Example:
            >>> ExternalIdentity(1, 1, "repo:lab/vision:ref:*").fits("repo:lab/vision:ref:refs/heads/main")
            True
        """
        first, *rest = self.subject.split("*")
        if not rest:
            return subject == first
        *middle, last = rest
        position, end = len(first), len(subject) - len(last)
        if position > end or not (subject.startswith(first) and subject.endswith(last)):
            return False
        # No regular expression: whoever names a branch could keep one busy for hours.
        for text in middle:
            start = subject.find(text, position, end)
            if start < 0:
                return False
            position = start + len(text)
        return True


_ISSUERS = select(*[jwt_issuer.c[name] for name in JwtIssuerRow.__dataclass_fields__])


class JwtIssuerTable(StoredTable):
    """The tables of issuers and of identities there."""

    def all(self) -> list[JwtIssuerRow]:
        """Return all issuers."""
        with self._database.read() as connection:
            return [
                JwtIssuerRow(**row._asdict())
                for row in connection.execute(_ISSUERS.order_by(jwt_issuer.c.id))
            ]

    def by_url(self, url: str) -> JwtIssuerRow | None:
        """Return the enabled issuer with this URL, which is compared exactly; None if there is none."""
        with self._database.read() as connection:
            row = connection.execute(_ISSUERS.where(jwt_issuer.c.url == url, jwt_issuer.c.enabled)).first()
        return None if row is None else JwtIssuerRow(**row._asdict())

    @in_transaction
    def create(
        self,
        connection: Connection,
        name: str,
        url: str,
        audience: str,
        by: Actor,
        now_ms: int,
        *,
        pasted_keys: str | None = None,
    ) -> JwtIssuerRow:
        """Accept the tokens of an issuer. The caller has checked that the URL may be fetched, or the keys.

        Raises:
            ValueError: an invalid name or audience.
            NameTaken: there is an issuer with this URL.
        """
        values = {
            "name": checked_name("issuer", name.strip(), MAX_NAME),
            "url": checked_name("URL of an issuer", url, MAX_URL),
            "audience": checked_name("audience", audience.strip(), MAX_URL),
            "enabled": True,
            "created_ms": now_ms,
            "pasted_keys": pasted_keys,
        }
        mine = _ISSUERS.where(jwt_issuer.c.url == url)
        if connection.execute(mine).first() is not None:
            raise NameTaken("there is already an issuer with this URL")
        connection.execute(insert(jwt_issuer).values(values))
        about = {"audience": values["audience"], "pasted_keys": pasted_keys is not None}
        record(connection, now_ms, by, "issuer.create", target=url, after=about)
        return JwtIssuerRow(**connection.execute(mine).one()._asdict())

    @in_transaction
    def update(
        self,
        connection: Connection,
        issuer_id: int,
        by: Actor,
        now_ms: int,
        *,
        name: str | None = None,
        audience: str | None = None,
        enabled: bool | None = None,
        pasted_keys: str | None = None,
    ) -> JwtIssuerRow:
        """Change an issuer; what is None stays. The URL stays: it is whose the subjects are.

        Args:
            pasted_keys: as checked by the caller; empty: the server asks the issuer from now on.

        Raises:
            ValueError: an invalid name or audience.
            NotFound: there is no such issuer.
        """
        changes: dict[str, Any] = {}
        if name is not None:
            changes["name"] = checked_name("issuer", name.strip(), MAX_NAME)
        if audience is not None:
            changes["audience"] = checked_name("audience", audience.strip(), MAX_URL)
        if enabled is not None:
            changes["enabled"] = enabled
        if pasted_keys is not None:
            changes["pasted_keys"] = pasted_keys or None
        row = _issuer(connection, issuer_id)
        before = {field: getattr(row, field) for field in changes}
        if before == changes:
            return row
        connection.execute(update(jwt_issuer).where(jwt_issuer.c.id == issuer_id).values(changes))
        old, new = _to_audit(before), _to_audit(changes)
        record(connection, now_ms, by, "issuer.update", target=row.url, before=old, after=new)
        rights_changed(connection)
        return replace(row, **changes)

    @in_transaction
    def delete(self, connection: Connection, issuer_id: int, by: Actor, now_ms: int) -> None:
        """Remove an issuer.

        Raises:
            ValueError: service accounts sign in with it.
            NotFound: there is no such issuer.
        """
        row = _issuer(connection, issuer_id)
        used = select(external_identity.c.issuer_id).where(external_identity.c.issuer_id == issuer_id)
        if connection.execute(used).first() is not None:
            raise ValueError("service accounts use this issuer; delete them first, or disable the issuer")
        connection.execute(delete(jwt_issuer).where(jwt_issuer.c.id == issuer_id))
        record(connection, now_ms, by, "issuer.delete", target=row.url)
        rights_changed(connection)

    @in_transaction
    def assign(
        self,
        connection: Connection,
        service_account_id: int,
        issuer_id: int,
        subject: str,
        by: Actor,
        now_ms: int,
    ) -> None:
        """Let the holder of this subject at an issuer act as a service account.

        Args:
            subject: may have `*` for any characters, after a text that all subjects begin with.

        Raises:
            ValueError: an invalid subject.
            NameTaken: another service account has it.
            NotFound: there is no such issuer.
        """
        subject = _checked_subject(subject)
        values = {"service_account_id": service_account_id, "issuer_id": issuer_id, "subject": subject}
        row = _issuer(connection, issuer_id)
        theirs = (external_identity.c.issuer_id == issuer_id, external_identity.c.subject == subject)
        owner = connection.execute(select(external_identity.c.service_account_id).where(*theirs)).scalar()
        if owner not in (None, service_account_id):
            raise NameTaken("another service account has this subject")
        put_rows(connection, external_identity, [values])
        about = {"issuer": row.url, "subject": subject}
        _record(connection, service_account_id, by, now_ms, after=about)
        rights_changed(connection)

    @in_transaction
    def unassign(self, connection: Connection, issuer_id: int, subject: str, by: Actor, now_ms: int) -> None:
        """Let no service account have a subject any more.

        Raises:
            NotFound: none has it, or there is no such issuer.
        """
        plain = plain_text(subject)
        mine = (external_identity.c.issuer_id == issuer_id, external_identity.c.subject == plain)
        row = _issuer(connection, issuer_id)
        owner = connection.execute(select(external_identity.c.service_account_id).where(*mine)).scalar()
        if owner is None:
            raise NotFound("no service account has this subject")
        connection.execute(delete(external_identity).where(*mine))
        about = {"issuer": row.url, "subject": subject}
        _record(connection, owner, by, now_ms, before=about)
        rights_changed(connection)

    def identities(self, issuer_id: int) -> list[ExternalIdentity]:
        """Return who living service accounts are at an issuer."""
        columns = [external_identity.c[name] for name in ExternalIdentity.__dataclass_fields__]
        living = (external_identity.c.issuer_id == issuer_id, service_account.c.deleted_ms.is_(None))
        mine = select(*columns).join(
            service_account, service_account.c.id == external_identity.c.service_account_id
        )
        with self._database.read() as connection:
            rows = connection.execute(mine.where(*living).order_by(external_identity.c.subject))
            return [ExternalIdentity(**row._asdict()) for row in rows]

    def service_account(self, issuer_id: int, subject: str) -> int | None:
        """Return the id of the enabled service account with a subject at an issuer, or None.

        Of several that fit, the one that says the most of it: without `*`, or else with the longest text. A
        disabled one does not leave its subject to the next.
        """
        if plain_text(subject) != subject:
            return None  # no database stores it, so nobody has it
        may_fit = or_(external_identity.c.subject == subject, external_identity.c.subject.contains("*"))
        living = (external_identity.c.issuer_id == issuer_id, service_account.c.deleted_ms.is_(None), may_fit)
        columns = [external_identity.c[name] for name in ExternalIdentity.__dataclass_fields__]
        identities = select(*columns, service_account.c.disabled_ms).join(
            service_account, service_account.c.id == external_identity.c.service_account_id
        )
        fitting = []
        with self._database.read() as connection:
            for *identity, disabled_ms in connection.execute(identities.where(*living)):
                row = ExternalIdentity(*identity)
                if row.subject == subject or row.fits(subject):
                    fitting.append((row.subject == subject, len(row.subject), row, disabled_ms))
        if not fitting:
            return None
        *_, best, disabled_ms = max(fitting, key=lambda fit: (*fit[:2], fit[2].subject))
        return best.service_account_id if disabled_ms is None else None


def _checked_subject(subject: str) -> str:
    subject = checked_name("subject", subject, MAX_SUBJECT)
    if subject.startswith("*"):
        raise ValueError("the subject begins with *, so that everybody at the issuer could use it")
    if subject.count("*") > MAX_WILDCARDS:
        raise ValueError(f"the subject has too many *; expected at most {MAX_WILDCARDS}")
    return subject


def _to_audit(values: dict[str, Any]) -> dict[str, Any]:
    """Values in the audit log: of keys only which they are."""
    keys = values.get("pasted_keys")
    return values if keys is None else {**values, "pasted_keys": hashlib.sha256(keys.encode()).hexdigest()}


def _issuer(connection: Connection, issuer_id: int) -> JwtIssuerRow:
    row = connection.execute(_ISSUERS.where(jwt_issuer.c.id == issuer_id)).first()
    if row is None:
        raise NotFound("there is no such issuer")
    return JwtIssuerRow(**row._asdict())


def _record(
    connection: Connection,
    service_account_id: int,
    by: Actor,
    now_ms: int,
    *,
    before: dict[str, str] | None = None,
    after: dict[str, str] | None = None,
) -> None:
    """Note in the audit log who a service account is at an issuer."""
    columns = (service_account.c.name, service_account.c.team_id, entity.c.name.label("team"))
    accounts = select(*columns).outerjoin(entity, entity.c.id == service_account.c.team_id)
    row = connection.execute(accounts.where(service_account.c.id == service_account_id)).one()
    team = None if row.team_id is None else (row.team_id, row.team)
    action = "service_account.update"
    record(connection, now_ms, by, action, entity=team, target=row.name, before=before, after=after)
