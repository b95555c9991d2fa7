"""Numbers of other programs: exporters that tell them by HTTP as Prometheus or OpenMetrics text.

Which ones is a setting, ``openmetrics_endpoints``; without it nothing but this file is imported.
"""

from __future__ import annotations

from runvitals.collectors.base import Absent

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from runvitals.collectors.base import Scope, Tick
    from runvitals.collectors.openmetrics.endpoint import ExporterEndpoint


def probe(scope: Scope) -> OpenMetrics:
    """The endpoints that the settings name, whether they answer or not: they may begin to later.

    Raises:
        Absent: the settings name none.
    """
    urls = scope.options.get("openmetrics_endpoints")
    if not urls:
        raise Absent("no endpoint is set: RUNVITALS_OPENMETRICS_ENDPOINTS")
    from runvitals.collectors.openmetrics.endpoint import ExporterEndpoint, MetricFilters

    headers = scope.options.get("openmetrics_headers") or {}
    wanted = scope.options.get("openmetrics_filters")
    filters = MetricFilters(wanted) if wanted else None
    return OpenMetrics([ExporterEndpoint(name, url, headers, filters) for name, url in urls.items()])


class OpenMetrics:
    """All endpoints. Keys are ``openmetrics.{endpoint}.{metric}.{n}``; `facts` tells which labels the n-th
    series of a metric has, `absent` which endpoints do not answer, or not in full, and why.
    """

    name = "openmetrics"

    def __init__(self, endpoints: Sequence[ExporterEndpoint]) -> None:
        self._endpoints = endpoints
        self._told = [endpoint.told for endpoint in endpoints]
        self.facts = self._facts()
        self.absent: dict[str, str] = {}

    @property
    def pending(self) -> bool:
        """Whether some endpoint has been asked for the first time and not answered yet."""
        return any(endpoint.pending for endpoint in self._endpoints)

    def sample(self, tick: Tick) -> None:
        for endpoint in self._endpoints:
            endpoint.sample(tick)
        absent = {endpoint.name: endpoint.reason for endpoint in self._endpoints if endpoint.reason}
        if absent != self.absent:
            self.absent = absent
        told = [endpoint.told for endpoint in self._endpoints]
        if any(new is not old for new, old in zip(told, self._told, strict=True)):
            self._told = told
            self.facts = self._facts()

    def close(self) -> None:
        for endpoint in self._endpoints:
            endpoint.close()

    def _facts(self) -> dict[str, object]:
        told = {endpoint.name: facts for endpoint, facts in zip(self._endpoints, self._told, strict=True)}
        return {"openmetrics": told}
