"""Metrics of other programs, from exporters that serve Prometheus or OpenMetrics text over HTTP.

The setting ``openmetrics_endpoints`` lists them; without it, only this module is imported.
"""

from __future__ import annotations

from runvitals.monitoring.collectors.base import Absent

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from runvitals.monitoring.collectors.base import Scope, Tick
    from runvitals.monitoring.collectors.openmetrics.endpoint import ExporterEndpoint


def probe(scope: Scope) -> OpenMetrics:
    """Return the configured endpoints, whether they respond or not: an exporter may start later.

    Raises:
        Absent: no endpoint is configured.
    """
    urls = scope.options.get("openmetrics_endpoints")
    if not urls:
        raise Absent("no endpoint is configured (RUNVITALS_OPENMETRICS_ENDPOINTS)")
    from runvitals.monitoring.collectors.openmetrics.endpoint import ExporterEndpoint, MetricFilters

    headers = scope.options.get("openmetrics_headers") or {}
    patterns = scope.options.get("openmetrics_filters")
    filters = MetricFilters(patterns) if patterns else None
    return OpenMetrics([ExporterEndpoint(name, url, headers, filters) for name, url in urls.items()])


class OpenMetrics:
    """All endpoints.

    Keys are ``openmetrics.{endpoint}.{metric}.{n}``. `facts` has the labels of the n-th series of each
    metric, `absent` the endpoints that fail, entirely or in part, and why.
    """

    name = "openmetrics"

    def __init__(self, endpoints: Sequence[ExporterEndpoint]) -> None:
        self._endpoints = endpoints
        self._endpoint_facts = [endpoint.facts for endpoint in endpoints]
        self.facts = self._facts()
        self.absent: dict[str, str] = {}

    @property
    def pending(self) -> bool:
        """Whether the first response of some endpoint has not arrived yet."""
        return any(endpoint.pending for endpoint in self._endpoints)

    def sample(self, tick: Tick) -> None:
        """Write the current values into the tick."""
        for endpoint in self._endpoints:
            endpoint.sample(tick)
        absent = {endpoint.name: endpoint.reason for endpoint in self._endpoints if endpoint.reason}
        if absent != self.absent:
            self.absent = absent
        facts = [endpoint.facts for endpoint in self._endpoints]
        if any(new is not old for new, old in zip(facts, self._endpoint_facts, strict=True)):
            self._endpoint_facts = facts
            self.facts = self._facts()

    def close(self) -> None:
        """Release what is open."""
        for endpoint in self._endpoints:
            endpoint.close()

    def _facts(self) -> dict[str, object]:
        names = [endpoint.name for endpoint in self._endpoints]
        return {"openmetrics": dict(zip(names, self._endpoint_facts, strict=True))}
