"""Rules of projects: kept with their project, and gone with it."""

from __future__ import annotations

import pytest

from runvitals.model.errors import UnknownProject
from runvitals.server.audit.storage.audit import CLI, AuditFilter
from runvitals.server.metadata_store import MetadataStore
from runvitals.server.projects.storage.projects import NOBODY
from runvitals.server.projects.storage.routing_rules import StoredRules

NOW = 1_800_000_000_000


def test_rules_are_kept_until_they_are_removed(metadata_store: MetadataStore) -> None:
    rules = metadata_store.routing_rules
    number = metadata_store.projects.ensure("digits", NOBODY, NOW)
    assert rules.get(number) == StoredRules({}, None)
    assert rules.set(number, {"run": ["{a}", "{b}"], "host": ("{c}",)}, CLI, NOW).changed_ms == NOW
    wanted = StoredRules({"run": ["{a}", "{b}"], "host": ["{c}"]}, NOW)
    assert rules.get(number) == rules.of_project(None, "digits") == wanted
    assert rules.of_project(None, "other") == rules.of_project(7, "digits") == StoredRules({}, None)
    assert rules.set(number, {}, CLI, NOW + 1) == rules.get(number) == StoredRules({}, None)
    events = metadata_store.accounts.audit.page(AuditFilter(), 10)
    assert [(event.action, event.project) for event in events] == [("project.routing_rules", "digits")] * 2
    with pytest.raises(UnknownProject):
        rules.set(number + 1, {"run": ["{a}"]}, CLI, NOW)
