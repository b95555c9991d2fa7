"""Definitions of scraped metrics. Their meaning is defined by the endpoint."""

from runvitals.model.metrics.metric import counter, gauge, rate

# Only the key is known when a run is read. Counters without these suffixes are stored from 0 as well, but
# shown as gauges.
# fmt: off
METRICS = (
    gauge("openmetrics.{endpoint}.{metric}.{n}", "1", "OpenMetrics", name="",
          text="A gauge of an endpoint in the settings; the facts of the run map n to its labels.",
          source="the endpoint's text: gauges, sums and counts, and metrics without a type"),
    counter("openmetrics.{endpoint}.{metric}_total.{n}", "1", "OpenMetrics rates", name="",
            text="A counter of an endpoint in the settings.",
            source="the endpoint's text: counters"),
    # With a dot, which names of exporters cannot contain: `jobs_per_second` may be a metric itself.
    rate("openmetrics.{endpoint}.{metric}.perSecond.{n}", "1/s", "OpenMetrics rates",
         of="openmetrics.{endpoint}.{metric}_total.{n}",
         text="Rate of a counter of an endpoint."),
    counter("openmetrics.{endpoint}.{metric}_bucket.{n}", "1", "OpenMetrics buckets", name="",
            text="Observations that were at most the label `le` of series n.",
            source="the endpoint's text: histograms"),
)
# fmt: on
