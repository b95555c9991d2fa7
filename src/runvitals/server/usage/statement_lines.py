"""Lines of statements: what was used at a price, rounded to the smallest unit of the currency."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction
from typing import Final

from runvitals.server.usage.charges import DEVICE_HOURS, ENERGY, MICRO, TRACKED_HOURS, UNITS, in_units
from runvitals.server.usage.days import Month

_WHOLE: Final = "BIF CLP DJF GNF ISK JPY KMF KRW PYG RWF UGX UYI VND VUV XAF XOF XPF"
_THOUSANDTHS: Final = "BHD IQD JOD KWD LYD OMR TND"
_DIGITS: Final = {**dict.fromkeys(_WHOLE.split(), 0), **dict.fromkeys(_THOUSANDTHS.split(), 3)}
"""Decimal digits of currencies that do not have 2 (ISO 4217)."""
_LATE: Final = (TRACKED_HOURS, DEVICE_HOURS, ENERGY)
"""What late samples change. Ingestion counts when it arrives; storage is as it was on the day."""
_SAME: Final = 1e-6
Key = tuple[int | None, str, str]
"""The id of a project, a category and a device model."""


@dataclass(frozen=True, slots=True)
class StatementLine:
    """A project's use of a category at one price, in units such as hours.

    Args:
        text: what it is besides usage of the statement's month, such as `late data of 2026-10`; or "".
        included: the part of the quantity that the plan includes.
        price_micro, amount_micro: micro-units of the currency.
    """

    text: str
    project: str
    category: str
    model: str
    quantity: float
    unit: str
    included: float
    price_micro: int
    amount_micro: int


@dataclass(frozen=True, slots=True)
class PricedUse:
    """A part of usage that has a price. Quantities as of `charges.UsedAmount`."""

    key: Key
    quantity: int
    included: int
    price_micro: int
    amount_micro: int


@dataclass(frozen=True, slots=True)
class KeyedLine:
    """A line, and what it is about when projects have other names."""

    key: Key
    line: StatementLine


def digits(currency: str) -> int:
    """How many decimal digits the smallest unit of a currency has."""
    return _DIGITS.get(currency, 2)


def round_amount(amount_micro: int, currency: str) -> int:
    """An amount rounded half to even to the currency's smallest unit, in micro-units.

    Example:
        >>> round_amount(1_005_000, "EUR"), round_amount(1_015_000, "EUR"), round_amount(1_500_000, "JPY")
        (1000000, 1020000, 2000000)
    """
    unit: int = MICRO // 10 ** digits(currency)
    return round(Fraction(amount_micro, unit)) * unit


def money(amount_micro: int, currency: str) -> str:
    """An amount that was rounded, as text.

    Example:
        >>> money(-1_020_000, "EUR"), money(2_000_000, "JPY")
        ('-1.02', '2')
    """
    return f"{Decimal(amount_micro) / MICRO:.{digits(currency)}f}"


def number_text(year: int, number: int) -> str:
    """The number of a statement.

    Example:
        >>> number_text(2026, 7)
        'RV-2026-000007'
    """
    return f"RV-{year:04}-{number:06}"


def late_text(period: str) -> str:
    """The text of lines about samples of a month that arrived after its statement was issued."""
    return f"late data of {period}"


def total(lines: Iterable[StatementLine]) -> int:
    """The sum of lines that were rounded, in micro-units."""
    return sum(line.amount_micro for line in lines)


def statement_lines(uses: Iterable[PricedUse], month: Month, currency: str) -> list[KeyedLine]:
    """One line for each project, category, model and price. `project` is still empty.

    Each amount is the sum of the exact ones, rounded.
    """
    groups: dict[tuple[Key, int], list[PricedUse]] = defaultdict(list)
    for use in uses:
        groups[use.key, use.price_micro].append(use)
    lines = []
    for (key, price), parts in groups.items():
        _, category, model = key
        quantity = in_units(category, sum(use.quantity for use in parts), month)
        included = in_units(category, sum(use.included for use in parts), month)
        amount = round_amount(sum(use.amount_micro for use in parts), currency)
        line = StatementLine("", "", category, model, quantity, UNITS[category], included, price, amount)
        lines.append(KeyedLine(key, line))
    return lines


def late_lines(now: Iterable[KeyedLine], billed: Iterable[KeyedLine], period: str) -> list[KeyedLine]:
    """Return lines for the changes of a month since its statement was issued.

    Args:
        now: its lines as they would be now.
        billed: those that were issued, and the lines about its late data since.
    """
    before = _sums(billed)
    after = _sums(now)
    lines = []
    for key in sorted(before.keys() | after.keys(), key=repr):
        if key[1] not in _LATE:
            continue
        old, new = before.get(key), after.get(key)
        line = new or old
        assert line is not None
        quantity = (new.quantity if new else 0.0) - (old.quantity if old else 0.0)
        amount = (new.amount_micro if new else 0) - (old.amount_micro if old else 0)
        if abs(quantity) > _SAME and amount:
            changed = replace(line, quantity=quantity, included=0.0, amount_micro=amount)
            lines.append(KeyedLine(key, replace(changed, text=late_text(period))))
    return lines


def negate(lines: Sequence[StatementLine], number: str) -> list[StatementLine]:
    """The lines that cancel those of a statement."""
    return [
        replace(
            line,
            text=f"{line.text}, cancels {number}" if line.text else f"cancels {number}",
            quantity=-line.quantity,
            included=-line.included,
            amount_micro=-line.amount_micro,
        )
        for line in lines
    ]


def _sums(lines: Iterable[KeyedLine]) -> dict[Key, StatementLine]:
    sums: dict[Key, StatementLine] = {}
    for line in lines:
        sum_so_far = sums.get(line.key)
        sums[line.key] = (
            line.line
            if sum_so_far is None
            else replace(
                sum_so_far,
                quantity=sum_so_far.quantity + line.line.quantity,
                amount_micro=sum_so_far.amount_micro + line.line.amount_micro,
            )
        )
    return sums
