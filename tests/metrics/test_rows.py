"""The rows agree with each other, with the units, and with the names they have elsewhere."""

from __future__ import annotations

import re
from collections import Counter
from typing import get_args

import pytest

from runvitals.metrics import DEFINITIONS, SUBJECTS
from runvitals.metrics.metric import Kind, Merge, Scope, placeholders
from runvitals.metrics.unit import UNITS

ROWS = DEFINITIONS.metrics
COUNTERS = [row for row in ROWS if row.kind == "counter"]
RATES = [row for row in ROWS if row.kind == "rate"]


def test_rows_are_filled_in_with_words_that_the_catalogue_knows() -> None:
    for row in ROWS:
        assert row.unit in UNITS, row.key
        assert row.kind in get_args(Kind), row.key
        assert row.scope in get_args(Scope), row.key
        assert row.merge in get_args(Merge), row.key
        assert row.source, row.key
        assert re.fullmatch(r"[A-Z].*\.", row.text), row.key
        assert re.match(r"[A-Z]", row.chart), row.key


def test_an_alias_says_all_that_its_key_says() -> None:
    for row in ROWS:
        for alias in row.aliases:
            assert set(placeholders(alias)) == set(placeholders(row.key))


def test_a_counter_keeps_its_last_sample_and_is_a_total_in_prometheus() -> None:
    for row in COUNTERS:
        assert row.merge == "last", row.key
        # Those of other exporters have names of their own.
        assert row.prometheus.endswith("_total") or row.key.startswith("openmetrics."), row.key


def test_a_rate_is_of_a_counter_with_the_same_places_and_chart() -> None:
    for row in RATES:
        counter = DEFINITIONS.by_template[row.of or ""]
        assert counter.kind == "counter"
        assert placeholders(counter.key) == placeholders(row.key)
        assert (counter.chart, counter.scope) == (row.chart, row.scope), row.key
        assert DEFINITIONS.rate_of[counter.key] is row
        assert row.prometheus == row.otel == ""


def test_a_rates_factor_follows_from_the_units() -> None:
    """Per second, in base units: what the counter gains equals what the rate shows."""
    for row in RATES:
        counter, shown = UNITS[DEFINITIONS.by_template[row.of or ""].unit], UNITS[row.unit]
        assert counter.to_base == pytest.approx(row.factor * shown.to_base), row.key


def test_no_counter_has_two_rates() -> None:
    assert [key for key, count in Counter(row.of for row in RATES).items() if count > 1] == []


def test_what_a_chart_draws_has_one_unit() -> None:
    mixed = {heading: {row.unit for row in rows} for heading, rows in DEFINITIONS.charts.items()}
    assert {heading: units for heading, units in mixed.items() if len(units) > 1} == {}


def test_a_counter_with_a_rate_is_drawn_by_it_and_one_without_is_drawn_itself() -> None:
    assert [row.key for row in DEFINITIONS.charts["Disk I/O"]] == ["disk.readMBps", "disk.writeMBps"]
    assert [row.key for row in DEFINITIONS.charts["Out-of-memory kills"]] == ["proc.memory.oomKills"]


def test_prometheus_names_are_legal_and_each_is_one_rows() -> None:
    names = [row.prometheus for row in ROWS if row.prometheus]
    assert [name for name, count in Counter(names).items() if count > 1] == []
    assert [name for name in names if not re.fullmatch(r"runvitals(_[a-z0-9]+)+", name)] == []


def test_prometheus_names_end_with_their_base_unit() -> None:
    for row in ROWS:
        if row.prometheus and (unit := UNITS[row.unit].prometheus):
            assert row.prometheus.removesuffix("_total").endswith(f"_{unit}"), row.key


def test_opentelemetry_names_are_one_rows_once_their_attributes_are_told() -> None:
    names = Counter((row.otel, *sorted(row.attributes.items())) for row in ROWS if row.otel)
    assert [name for name, count in names.items() if count > 1] == []


def test_rows_of_one_opentelemetry_name_agree_in_base_unit_and_kind() -> None:
    """Both systems refuse a name whose unit or kind changes from series to series."""
    meanings: dict[str, set[tuple[str, str]]] = {}
    for row in ROWS:
        if row.otel:
            meanings.setdefault(row.otel, set()).add((UNITS[row.unit].otel, row.kind))
    assert {name: found for name, found in meanings.items() if len(found) > 1} == {}


def test_attributes_and_mlflow_names_use_places_that_the_key_has() -> None:
    for row in ROWS:
        for text in (*row.attributes.values(), row.mlflow or ""):
            assert set(placeholders(text)) <= set(placeholders(row.key)), row.key


def test_every_row_is_in_one_subject() -> None:
    assert [row for rows in SUBJECTS.values() for row in rows] == list(ROWS)
