"""The probe for a DCGM exporter, which a setting names; nothing is searched for."""

from __future__ import annotations

from runvitals.monitoring.collectors.base import Absent

TYPE_CHECKING = False
if TYPE_CHECKING:
    from runvitals.monitoring.collectors.base import Scope
    from runvitals.monitoring.collectors.dcgm.collector import Dcgm


def probe(scope: Scope) -> Dcgm:
    """Return the configured exporter, whether it responds or not: it may start later.

    Raises:
        Absent: no exporter is configured.
    """
    url = scope.options.get("dcgm_exporter")
    if not url:
        raise Absent("no exporter is configured (RUNVITALS_DCGM_EXPORTER)")
    from runvitals.monitoring.collectors.dcgm.collector import Dcgm

    return Dcgm(url, scope.options.get("openmetrics_headers") or {})
