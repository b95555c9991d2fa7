"""The definitions are consistent with each other, with the units, and with names in other systems."""

from __future__ import annotations

import re
from collections import Counter
from typing import get_args

import pytest

from runvitals.model.metrics import DEFINITIONS, SUBJECTS
from runvitals.model.metrics.metric import Kind, Merge, Scope, placeholders
from runvitals.model.metrics.unit import UNITS

ROWS = DEFINITIONS.metrics
COUNTERS = [row for row in ROWS if row.kind == "counter"]
RATES = [row for row in ROWS if row.kind == "rate"]


def test_fields_have_valid_values() -> None:
    for row in ROWS:
        assert row.unit in UNITS, row.key
        assert row.kind in get_args(Kind), row.key
        assert row.scope in get_args(Scope), row.key
        assert row.merge in get_args(Merge), row.key
        assert row.source, row.key
        assert re.fullmatch(r"[A-Z].*\.", row.text), row.key
        assert re.match(r"[A-Z]", row.chart), row.key


def test_aliases_have_the_placeholders_of_their_key() -> None:
    for row in ROWS:
        for alias in row.aliases:
            assert set(placeholders(alias)) == set(placeholders(row.key))


def test_counters_are_merged_by_last_and_named_total_in_prometheus() -> None:
    for row in COUNTERS:
        assert row.merge == "last", row.key
        # Scraped metrics keep their own names.
        assert row.prometheus.endswith("_total") or row.key.startswith("openmetrics."), row.key


def test_rates_have_the_placeholders_and_chart_of_their_counter() -> None:
    for row in RATES:
        counter = DEFINITIONS.by_template[row.of or ""]
        assert counter.kind == "counter"
        assert placeholders(counter.key) == placeholders(row.key)
        assert (counter.chart, counter.scope) == (row.chart, row.scope), row.key
        assert DEFINITIONS.rate_of[counter.key] is row
        assert row.prometheus == row.otel == ""


def test_factors_of_rates_match_the_units() -> None:
    """In base units, the rate equals the counter's increase per second."""
    for row in RATES:
        counter, shown = UNITS[DEFINITIONS.by_template[row.of or ""].unit], UNITS[row.unit]
        assert counter.to_base == pytest.approx(row.factor * shown.to_base), row.key


def test_no_counter_has_two_rates() -> None:
    assert [key for key, count in Counter(row.of for row in RATES).items() if count > 1] == []


def test_metrics_of_a_chart_have_one_unit() -> None:
    mixed = {heading: {row.unit for row in rows} for heading, rows in DEFINITIONS.charts.items()}
    assert {heading: units for heading, units in mixed.items() if len(units) > 1} == {}


def test_charts_show_rates_instead_of_their_counters() -> None:
    assert [row.key for row in DEFINITIONS.charts["Disk I/O"]] == ["disk.readMBps", "disk.writeMBps"]
    assert [row.key for row in DEFINITIONS.charts["Out-of-memory kills"]] == ["proc.memory.oomKills"]


def test_prometheus_names_are_valid_and_unique() -> None:
    names = [row.prometheus for row in ROWS if row.prometheus]
    assert [name for name, count in Counter(names).items() if count > 1] == []
    assert [name for name in names if not re.fullmatch(r"runvitals(_[a-z0-9]+)+", name)] == []


def test_prometheus_names_end_with_their_base_unit() -> None:
    for row in ROWS:
        if row.prometheus and (unit := UNITS[row.unit].prometheus):
            assert row.prometheus.removesuffix("_total").endswith(f"_{unit}"), row.key


def test_opentelemetry_names_with_attributes_are_unique() -> None:
    names = Counter((row.otel, *sorted(row.attributes.items())) for row in ROWS if row.otel)
    assert [name for name, count in names.items() if count > 1] == []


def test_definitions_with_the_same_opentelemetry_name_agree_in_base_unit_and_kind() -> None:
    """Prometheus and OpenTelemetry reject a name whose unit or kind differs between series."""
    meanings: dict[str, set[tuple[str, str]]] = {}
    for row in ROWS:
        if row.otel:
            meanings.setdefault(row.otel, set()).add((UNITS[row.unit].otel, row.kind))
    assert {name: meaning for name, meaning in meanings.items() if len(meaning) > 1} == {}


def test_attributes_and_mlflow_names_use_placeholders_of_the_key() -> None:
    for row in ROWS:
        for text in (*row.attributes.values(), row.mlflow or ""):
            assert set(placeholders(text)) <= set(placeholders(row.key)), row.key


def test_every_definition_is_in_one_subject() -> None:
    assert [row for rows in SUBJECTS.values() for row in rows] == list(ROWS)
