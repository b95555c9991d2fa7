"""Which readings an exporter lacks, and why."""

from __future__ import annotations

from runvitals.collectors.dcgm.fields import ENDS, ends_of
from runvitals.collectors.plumbing.missing_readings import ExpectedReadings, explain

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Mapping

    from runvitals.collectors.dcgm.fields import DcgmSeries
    from runvitals.collectors.nvidia.throttling import ThrottledTime

NOT_EXPORTED = "not among the exporter's metrics (dcgm-exporter -f FILE selects them)"
BLANK = "the exporter has no value for it"


class ExporterGaps:
    """The readings that each GPU lacks. A slice lacks those that another slice of the host has."""

    __slots__ = ("_boards", "_slices")

    def __init__(self) -> None:
        self._boards = ExpectedReadings((*ENDS, "powerPercent"))
        self._slices: dict[str, None] = {}  # the ends of the keys that any of them has, in order

    def explain(
        self,
        series: Iterable[DcgmSeries],
        written: Container[str],
        others: Container[str],
        throttled: Mapping[int, ThrottledTime],
        mono_s: float,
    ) -> dict[str, str]:
        """Reading -> why it is missing, for the collector's `absent`.

        Args:
            series: all that the exporter reports, also those without a value.
            written: the keys with a value.
            others: the keys that other sources write.
        """
        blank: set[str] = set()
        slices: dict[int, dict[str, None]] = {}
        for each in series:
            if each.index is None:
                continue
            slices.setdefault(each.index, {})
            ends = ends_of(each.name) if each.is_of_slice or not each.slice else ()
            if each.slice and ends:
                slices[each.index][each.slice] = None
                self._slices.update(dict.fromkeys(ends))
            blank.update(f"gpu.{each.index}.{each.slice}{end}" for end in ends)
        missing: dict[int, dict[str, str]] = {}
        for index in slices:
            prefix = f"gpu.{index}."
            self._boards.note(index, (end for end in ENDS if prefix + end in written), mono_s)
            lacking = [end for end in self._boards.missing(index, mono_s) if prefix + end not in written]
            lacking += [
                each + end
                for each in slices[index]
                for end in self._slices
                if prefix + each + end not in written
            ]
            sampled = throttled[index].explain(None) if index in throttled else {}
            reasons = {end: BLANK if prefix + end in blank else NOT_EXPORTED for end in lacking}
            missing[index] = {
                end: why for end, why in {**reasons, **sampled}.items() if prefix + end not in others
            }
        return explain(missing)
