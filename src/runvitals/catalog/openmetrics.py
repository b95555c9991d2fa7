"""Rows for what a scraped endpoint offers: the endpoint, not this catalogue, says what it means."""

from runvitals.catalog.metric import gauge

# fmt: off
METRICS = (
    gauge("openmetrics.{endpoint}.{metric}", "1", "OpenMetrics", name="",
          text="A metric of an endpoint named in the settings that has one series.",
          source="the endpoint's exposition, gauge or counter"),
    gauge("openmetrics.{endpoint}.{metric}.{n}", "1", "OpenMetrics", name="",
          text="The n-th series of a metric of an endpoint; the run keeps which labels n stands for.",
          source="the endpoint's exposition, gauge or counter"),
)
# fmt: on
