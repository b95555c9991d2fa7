"""All series that one sender has sent, with the run, host and key of each."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from math import inf
from typing import Final

import numpy as np
from numpy.typing import NDArray

from runvitals.base.buckets import Floats, Integers
from runvitals.base.protobuf import Malformed
from runvitals.server.doors.exporters import translate
from runvitals.server.doors.exporters.translation import Input, Translation
from runvitals.server.doors.remote_write.rivals import Rivals, ToldApart, Whose
from runvitals.server.doors.remote_write.series_numbers import InvalidSeries, Labels, SeriesNumbers
from runvitals.server.doors.remote_write.targets import Target
from runvitals.server.doors.routing import NamedPlace, Route, RoutingRules, address_of, device, route_of
from runvitals.server.runs.storage.metrics import MAX_KEY

MAX_OTHER_KEYS: Final = 5000
"""Series of one host of a run that are no metrics of ours. Further ones are not stored."""
MAX_SERIES: Final = 200_000
"""The most series of one sender, about 1 kB each. Those with long labels count as several."""
_USUAL_CHARACTERS: Final = 1000
NOT_STORED: Final = -1
_NAME: Final = "__name__"


class SeriesTable:
    """The series of one sender.

    Args:
        rules: of the sender's project.
        address: the project that the sender names.
        home: the owner of runs of which no series names one.
        told_apart: the series that were told apart before.

    Attributes:
        newly_told_apart: numbers of the targets with series that were told apart since this was emptied.
        numbers: finds the number of a series by its labels.
        targets: runs and hosts.
        target, column, factor, highest, least, most, has_blanks, has_inputs: by the number of a series; the
            column is `NOT_STORED` for series that are only inputs, or too many. Values below the least and
            above the most stand for no value.
        inputs: the derived metrics of a series, by its number.
        skipped: the number of series that were too many.
    """

    def __init__(
        self,
        rules: RoutingRules,
        address: NamedPlace,
        home: int | None = None,
        told_apart: ToldApart | None = None,
    ) -> None:
        self._rules = rules
        self._address = address
        self._home = home
        self.told_apart = told_apart or ToldApart()
        self.newly_told_apart: set[int] = set()
        self.numbers = SeriesNumbers(self._add)
        self.targets: list[Target] = []
        self._by_route: dict[Route, int] = {}
        self._by_labels: dict[tuple[tuple[str, str], ...], int] = {}
        self._others: dict[int, int] = {}
        self.inputs: dict[int, tuple[Input, ...]] = {}
        self.skipped = 0
        self._count = self._weight = 0
        self.target = np.zeros(1024, np.int64)
        self.column = np.zeros(1024, np.int64)
        self.factor = np.ones(1024)
        self.highest = np.full(1024, inf)
        self.least = np.full(1024, -inf)
        self.most = np.full(1024, inf)
        self.has_blanks = np.zeros(1024, np.bool_)
        self.has_inputs = np.zeros(1024, np.bool_)
        self.is_skipped = np.zeros(1024, np.bool_)
        self._rivals = Rivals()

    def __len__(self) -> int:
        return self._weight

    def _add(self, pairs: Labels) -> int:
        """Number a new series, and decide where it belongs."""
        if self._weight >= MAX_SERIES:
            raise Malformed(f"more than {MAX_SERIES // 2} series, or too many with long labels")
        labels = dict(zip(pairs[::2], pairs[1::2], strict=True))
        if not labels.get(_NAME):
            raise InvalidSeries(f"a series without the label {_NAME}")
        relevant = self._rules.of_route
        of_route = tuple([pair for pair in labels.items() if pair[0] in relevant])
        number_of_target = self._by_labels.get(of_route)
        if number_of_target is None:
            number_of_target = self._by_labels[of_route] = self._target_of(labels)
        target = self.targets[number_of_target]
        ours = translate(labels.get(_NAME, ""), labels, device(labels, self._rules))
        if ours is not None and self.told_apart.has(*self.of(target), self._key(labels, target.route)):
            ours = None
        mapping = ours or self._other(labels, number_of_target)
        number = self._count
        self._count += 1
        self._weight += 1 + sum(map(len, pairs)) // _USUAL_CHARACTERS
        if number == len(self.target):
            self._grow()
        self.target[number] = number_of_target
        self.column[number] = (
            NOT_STORED if mapping is None or mapping.key is None else target.column(mapping.key)
        )
        self.is_skipped[number] = mapping is None
        if mapping is not None:
            self.factor[number], self.highest[number] = mapping.factor, mapping.highest
            self.least[number], self.most[number] = (-inf, inf) if ours is None else ours.possible
            self.has_blanks[number], self.has_inputs[number] = (
                mapping.has_blanks,
                bool(mapping.inputs),
            )
            if mapping.inputs:
                self.inputs[number] = mapping.inputs
        if ours is not None:
            self._rivals.add(number, number_of_target, ours, labels)
        return number

    def separate(self, series: NDArray[np.int64], t: Integers, values: Floats) -> None:
        """Give series keys of their own that are sent beside others of the same key: of a second exporter."""
        for number, labels in self._rivals.of_samples(series, t, values):
            number_of_target = int(self.target[number])
            mapping = self._other(labels, number_of_target)
            route = self.targets[number_of_target].route
            self.told_apart.add(*self.of(self.targets[number_of_target]), self._key(labels, route))
            self.newly_told_apart.add(number_of_target)
            self.is_skipped[number] = mapping is None
            target = self.targets[self.target[number]]
            self.column[number] = NOT_STORED if mapping is None else target.column(str(mapping.key))
            self.factor[number], self.highest[number] = 1.0, inf
            self.least[number], self.most[number] = -inf, inf
            self.has_blanks[number] = self.has_inputs[number] = False
            self.inputs.pop(number, None)

    def of(self, target: Target) -> tuple[Whose, str, str]:
        """Return the owner, the run and the host of a target."""
        return target.route.entity or self._home, target.route.run, target.route.host

    def _target_of(self, labels: Mapping[str, str]) -> int:
        """Return the number of the run and host that labels name, a new one if need be."""
        route = route_of(labels, self._rules, address_of(labels, self._address))
        number = self._by_route.get(route)
        if number is None:
            number = self._by_route[route] = len(self.targets)
            self.targets.append(Target(route))
        return number

    def _other(self, labels: Mapping[str, str], number_of_target: int) -> Translation | None:
        """Return the key of a series that is no metric of ours; None if the host has too many of them."""
        target = self.targets[number_of_target]
        key = _shorten(self._key(labels, target.route))
        if not target.has(key):
            others = self._others.get(number_of_target, 0)
            if others >= MAX_OTHER_KEYS:
                self.skipped += 1
                return None
            self._others[number_of_target] = others + 1
        return Translation(key)

    def _key(self, labels: Mapping[str, str], route: Route) -> str:
        """Return the key of a series: its name, and the labels that do not say which run or host it is of.

        `instance="node1:9100"` stays: of two exporters on one host, only the port tells series apart.
        """
        names = {route.run, route.run_name, route.host, route.project}
        label_texts = [
            f'{name}="{_escape(value)}"'
            for name, value in sorted(labels.items())
            if name != _NAME and not (name in self._rules.attributes and value in names)
        ]
        return labels.get(_NAME, "") + (f"{{{','.join(label_texts)}}}" if label_texts else "")

    def _grow(self) -> None:
        limits = ("highest", "least", "most")
        for name in ("target", "column", "factor", *limits, "has_blanks", "has_inputs", "is_skipped"):
            before = getattr(self, name)
            setattr(self, name, np.concatenate((before, np.zeros_like(before))))


def _shorten(key: str) -> str:
    """Return the key, with a part of its SHA-256 instead of what is too long."""
    if len(key) <= MAX_KEY:
        return key
    return f"{key[: MAX_KEY - 9]}-{hashlib.sha256(key.encode()).hexdigest()[:8]}"


def _escape(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
