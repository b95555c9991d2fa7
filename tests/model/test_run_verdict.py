"""The ids that filters accept are those of the rules."""

from runvitals.findings.rules import RULES
from runvitals.model.run_verdict import FINDING_IDS, VERDICT_IDS, finding_field


def test_filters_know_all_rules() -> None:
    assert sorted(rule.id for rule in RULES) == list(FINDING_IDS)
    assert VERDICT_IDS[-2:] == ("healthy", "unknown")


def test_names_of_fields() -> None:
    assert finding_field("lost_hours") == finding_field("findings.lost_hours") == "findings.lost_hours"
    assert finding_field("verdict") == "findings.severity"
    assert finding_field("config.lr") is None
