"""The readings that an exporter lacks, with the reasons."""

from __future__ import annotations

from runvitals.monitoring.collectors.dcgm.fields import ENDS, ends_of
from runvitals.monitoring.collectors.plumbing.missing_readings import ExpectedReadings, explain

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Mapping, Set

    from runvitals.monitoring.collectors.dcgm.fields import DcgmSeries
    from runvitals.monitoring.collectors.nvidia.throttling import ThrottledTime

NOT_EXPORTED = "not among the exporter's metrics (dcgm-exporter -f FILE selects them)"
GONE = "no longer reported by the exporter"
BLANK = "the exporter has no value for it"


class ExporterGaps:
    """The readings that each GPU lacks. A slice lacks those that another slice of the host has."""

    __slots__ = ("_expected", "_seen_slices", "_slices")

    def __init__(self) -> None:
        self._expected = ExpectedReadings((*ENDS, "powerPercent"))
        self._seen_slices: set[int] = set()
        self._slices: dict[str, None] = {}  # the ends of the keys that any of them has, in order

    def explain(
        self,
        series: Iterable[DcgmSeries],
        written: Set[str],
        others: Container[str],
        throttled: Mapping[int, ThrottledTime],
        mono_s: float,
    ) -> dict[str, str]:
        """Reading -> why it is missing, for the collector's `absent`.

        Args:
            series: all that the exporter reports, also those without a value.
            written: the keys with a value.
            others: the keys that other sources write.
            throttled: the throttled time of each GPU.
            mono_s: the time of the tick.
        """
        exported, slices = self._list_exported(series)
        self._seen_slices.update(slices)
        missing: dict[int, dict[str, str]] = {}
        for index in slices:
            prefix = f"gpu.{index}."
            self._expected.note(
                index, [key.removeprefix(prefix) for key in written if key.startswith(prefix)], mono_s
            )
            of_slices = (each + end for each in slices[index] for end in self._slices)
            lacking = self._expected.missing(index)
            lacking += [end for end in of_slices if self._expected.lacks(index, end)]
            reasons = {end: BLANK if prefix + end in exported else NOT_EXPORTED for end in lacking}
            reasons |= throttled[index].explain(None) if index in throttled else {}
            missing[index] = {end: why for end, why in reasons.items() if prefix + end not in others}
        gone = {f"gpu.{index}": GONE for index in sorted(self._seen_slices - slices.keys())}
        return {**explain(missing), **gone}

    def _list_exported(self, series: Iterable[DcgmSeries]) -> tuple[set[str], dict[int, dict[str, None]]]:
        """(the keys of these series, the slices of each GPU)."""
        exported: set[str] = set()
        slices: dict[int, dict[str, None]] = {}
        for each in series:
            if each.index is None:
                continue
            of_gpu = slices.setdefault(each.index, {})
            ends = ends_of(each.name) if each.is_of_slice or not each.slice else ()
            exported.update(f"gpu.{each.index}.{each.slice}{end}" for end in ends)
            if each.slice and ends:
                of_gpu[each.slice] = None
                self._slices.update(dict.fromkeys(ends))
        return exported, slices
