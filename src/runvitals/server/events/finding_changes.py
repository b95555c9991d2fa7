"""What changes in the findings about a run while it goes on: for alerts, automations and webhooks.

Who wants to hear of them is called in the transaction that keeps the findings, so that what they write is
kept with them or not at all.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from runvitals.findings.finding import Finding


@dataclass(frozen=True, slots=True)
class FindingChange:
    """A change of one finding about a run.

    Args:
        run_id: of the run, in the metadata store.
        number: of the finding, among all that the run ever had. It stays the same while the finding grows.
        finding: as it is now.
        opened_ms: up to when the run was judged when the finding was noticed, ms UTC.
        up_to_ms: up to when it was judged now.
        is_of_ended: whether the run has ended.
    """

    run_id: int
    number: int
    finding: Finding
    opened_ms: int
    up_to_ms: int
    is_of_ended: bool = False


class FindingOpened(FindingChange):
    """A finding is new, or goes on again after it had ended."""


class FindingGrew(FindingChange):
    """A finding goes on. There is one for each open finding each time that the run is judged."""


class FindingClosed(FindingChange):
    """A finding has ended, at `finding.to_ms`; or the rules, which know more now, find it no longer."""


FindingListener = Callable[[Sequence[FindingChange]], None]
