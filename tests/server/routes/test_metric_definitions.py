"""Metric definitions."""

from __future__ import annotations

from tests.server.client import Client


def test_metric_definitions(client: Client) -> None:
    rows = {row["key"]: row for row in client.ask("catalogue")}
    assert rows["disk.readMBps"]["of"] == "disk.in"
    assert rows["memory_percent"]["aliases"] == ["memory"]
