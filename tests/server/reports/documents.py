"""Blocks of reports, and requests about them."""

from __future__ import annotations

from typing import Any

from tests.server.accounts_server import AccountsServer

REPORTS = "entities/vision/projects/digits/reports"
LOSS = {"source": "logged", "name": "loss"}


def text(block_id: str, markdown: str) -> dict[str, Any]:
    """A block of text."""
    return {"id": block_id, "kind": "text", "text": markdown}


def panels(block_id: str = "grid", **of_panel: Any) -> dict[str, Any]:
    """A block with one panel of `loss` over all runs of the project."""
    run_set = {"id": "runs", "entity": "vision", "project": "digits"}
    panel = {
        "id": f"{block_id}1",
        "kind": "line",
        "run_sets": ["runs"],
        "queries": [{"source": "logged", "name": "loss"}],
        **of_panel,
    }
    return {"id": block_id, "kind": "panels", "run_sets": [run_set], "panels": [panel]}


def create(server: AccountsServer, by: str = "bob", **new: Any) -> dict[str, Any]:
    """A new report."""
    body = {"title": "Rates", "blocks": [text("aaaa", "# One"), text("bbbb", "two")], **new}
    report: dict[str, Any] = server.ask(by, "POST", REPORTS, 201, json=body)
    return report


def run_set(**more: Any) -> dict[str, Any]:
    """All runs of the project."""
    return {"id": "runs", "entity": "vision", "project": "digits", "limit": 10, **more}


def panel(
    kind: str = "line", queries: Any = (LOSS,), panel_id: str = "panel1", **more: Any
) -> dict[str, Any]:
    """A panel of all run sets."""
    return {"id": panel_id, "kind": kind, "run_sets": ["runs"], "queries": list(queries), **more}


def publish(server: AccountsServer, *panels: dict[str, Any], run_sets: Any = None, by: str = "bob") -> str:
    """The path of a published report with these panels."""
    block = {"id": "grid", "kind": "panels", "run_sets": run_sets or [run_set()], "panels": list(panels)}
    body = {"title": "Rates", "blocks": [block], "publish": True}
    return f"reports/{server.ask(by, 'POST', REPORTS, 201, json=body)['id']}"
