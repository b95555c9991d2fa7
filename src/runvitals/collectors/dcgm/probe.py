"""Whether a DCGM exporter is to be asked: a setting says so, nothing is looked for."""

from __future__ import annotations

from runvitals.collectors.base import Absent

TYPE_CHECKING = False
if TYPE_CHECKING:
    from runvitals.collectors.base import Scope
    from runvitals.collectors.dcgm.collector import Dcgm


def probe(scope: Scope) -> Dcgm:
    """The exporter that the settings name, whether it answers or not: it may begin to later.

    Raises:
        Absent: the settings name none.
    """
    url = scope.options.get("dcgm_exporter")
    if not url:
        raise Absent("no exporter is set: RUNVITALS_DCGM_EXPORTER")
    from runvitals.collectors.dcgm.collector import Dcgm

    return Dcgm(url, scope.options.get("openmetrics_headers") or {})
