"""Lines of statements: rounding, what is included, and what arrives late."""

from __future__ import annotations

import pytest

from runvitals.server.usage.days import Month
from runvitals.server.usage.statement_lines import (
    Key,
    PricedUse,
    late_lines,
    late_text,
    money,
    statement_lines,
    total,
)

HOUR_MS = 3_600_000
NOVEMBER = Month(2026, 11)
DEVICES: Key = (1, "device_hours", "H100")
ENERGY: Key = (1, "energy", "")
STORAGE: Key = (1, "storage", "")


def used(key: Key = DEVICES, hours: int = 1, price: int = 2_000_000, amount: int = 2_000_000) -> PricedUse:
    return PricedUse(key, hours * HOUR_MS, 0, price, amount)


def test_each_line_is_rounded_and_the_total_is_their_sum() -> None:
    lines = statement_lines(
        [used(amount=3_333), used(amount=3_333), used(price=1_000_000, amount=7_500)], NOVEMBER, "EUR"
    )
    assert [(line.line.quantity, line.line.price_micro, line.line.amount_micro) for line in lines] == [
        (2.0, 2_000_000, 10_000),  # 0.006666, not twice 0.00
        (1.0, 1_000_000, 10_000),
    ]
    assert money(total(line.line for line in lines), "EUR") == "0.02"


@pytest.mark.parametrize(("currency", "amount"), [("EUR", 1_240_000), ("JPY", 1_000_000), ("KWD", 1_236_000)])
def test_currencies_have_their_smallest_unit(currency: str, amount: int) -> None:
    (line,) = statement_lines([used(amount=1_236_000)], NOVEMBER, currency)
    assert line.line.amount_micro == amount


def test_late_samples_are_charged_and_credited_and_storage_is_not() -> None:
    billed = statement_lines([used(hours=3, amount=6_000_000), used(ENERGY, 1, 1, 500_000)], NOVEMBER, "EUR")
    stored = PricedUse(STORAGE, 10**9, 0, 1_000_000, 40_000)
    now = [used(hours=5, amount=10_000_000), stored]  # the energy was somebody else's
    lines = late_lines(statement_lines(now, NOVEMBER, "EUR"), billed, "2026-11")
    assert [(line.key, line.line.amount_micro, line.line.text) for line in lines] == [
        (DEVICES, 4_000_000, late_text("2026-11")),
        (ENERGY, -500_000, late_text("2026-11")),
    ]
    assert lines[0].line.quantity == 2.0
    assert late_lines(statement_lines(now, NOVEMBER, "EUR"), [*billed, *lines], "2026-11") == []


def test_what_a_plan_includes_now_does_not_change_what_was_billed() -> None:
    billed = statement_lines([used()], NOVEMBER, "EUR")
    now = PricedUse(DEVICES, HOUR_MS, HOUR_MS, 2_000_000, 0)
    assert late_lines(statement_lines([now], NOVEMBER, "EUR"), billed, "2026-11") == []
