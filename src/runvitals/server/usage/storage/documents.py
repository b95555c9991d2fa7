"""Settings of billing administrators: the usage alerts, the settlement data, payments."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Literal, NewType

from sqlalchemy import Connection, select

from runvitals.server.audit.storage.audit import Actor, record
from runvitals.server.database.database import StoredTable, in_transaction, put_rows
from runvitals.server.database.tables.usage import billing_document

Name = Literal["alerts", "settlement"]
PaymentName = NewType("PaymentName", str)
_ACTIONS = {"alerts": "billing.alert", "settlement": "billing.settlement", "payment": "billing.payment"}


def payment_name(number: str) -> PaymentName:
    """The document about the payment of a statement."""
    return PaymentName(f"payment:{number}")


class BillingDocumentTable(StoredTable):
    """The documents, each a JSON object."""

    def get(self, name: Name | PaymentName) -> dict[str, Any]:
        """A document; empty if it was never set."""
        with self._database.read() as connection:
            return _read(connection, name)

    @in_transaction
    def put(
        self,
        connection: Connection,
        name: Name | PaymentName,
        body: Mapping[str, Any],
        by: Actor,
        now_ms: int,
    ) -> None:
        """Replace a document."""
        before = _read(connection, name)
        row = {"name": name, "body": json.dumps(body), "changed_ms": now_ms}
        put_rows(connection, billing_document, [row])
        kind, _, number = name.partition(":")
        record(connection, now_ms, by, _ACTIONS[kind], target=number or None, before=before, after=body)


def _read(connection: Connection, name: Name | PaymentName) -> dict[str, Any]:
    body = select(billing_document.c.body).where(billing_document.c.name == name)
    text = connection.execute(body).scalar()
    document: dict[str, Any] = {} if text is None else json.loads(text)
    return document
