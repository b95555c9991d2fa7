"""The destination `cloudwatch:REGION/NAMESPACE?include=…`: a run's metrics in CloudWatch."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from urllib.parse import parse_qsl

from runvitals.relay.batch import Batch
from runvitals.relay.destination import Context, Destination, Rejected, Retry
from runvitals.relay.destinations.cloudwatch import limits
from runvitals.relay.destinations.cloudwatch.client import CloudWatchClient
from runvitals.relay.destinations.cloudwatch.datum import Datum, Dimensions
from runvitals.relay.destinations.cloudwatch.dimensions import DimensionLookup, of_run, parse, resolve
from runvitals.relay.destinations.cloudwatch.metric_selection import MetricGlobs
from runvitals.relay.destinations.cloudwatch.minute_aggregation import MinuteAggregation
from runvitals.relay.destinations.cloudwatch.run_metrics import Last, readings
from runvitals.relay.destinations.cloudwatch.split_request import (
    RefusedReadings,
    ServiceUnavailable,
    SplitRequest,
)

NAMESPACE = "runvitals"

# Writers are kept apart, as in the journal, unless the user chooses other dimensions.
DIMENSIONS = ("Run", "Host")

# Only some runs or writers have these; the others are sent without the dimension.
_OPTIONAL = frozenset({"RunName", "Project", "Group", "JobType", "Tags", "Rank"})


@dataclass(frozen=True)
class CloudWatchAddress:
    """A parsed address.

    Raises:
        ValueError: invalid address; the text says what is allowed.

    Example:
        >>> CloudWatchAddress.read("eu-west-1/Training?include=gpu.*&dimension=Team=vision").namespace
        'Training'
    """

    region: str | None
    namespace: str
    selection: MetricGlobs
    dimensions: dict[str, str | None]
    resolution_s: int

    @classmethod
    def read(cls, text: str) -> CloudWatchAddress:
        """Parse `REGION/NAMESPACE?include=…&exclude=…&dimension=…&resolution=…`."""
        path, _, query = text.partition("?")
        region, _, namespace = path.partition("/")
        options: dict[str, list[str]] = {"include": [], "exclude": [], "dimension": [], "resolution": []}
        for name, value in parse_qsl(query, keep_blank_values=True):
            if name not in options:
                raise ValueError(f"cloudwatch: unknown option {name!r}; expected one of {', '.join(options)}")
            options[name].append(value)
        if not options["include"]:
            raise ValueError(
                "cloudwatch: missing option 'include', which selects the metrics (each is billed): "
                "cloudwatch:REGION/NAMESPACE?include=gpu.*&include=cpu; include=* selects all"
            )
        resolution = options["resolution"][-1:] or ["60"]
        if resolution[0] not in ("1", "60"):
            raise ValueError(f"cloudwatch: invalid resolution {resolution[0]!r}; expected 60 or 1 (seconds)")
        return cls(
            region or None,
            limits.check_namespace(namespace or NAMESPACE),
            MetricGlobs(options["include"], options["exclude"]),
            parse(options["dimension"] or DIMENSIONS),
            int(resolution[0]),
        )


class CloudWatchDestination(Destination):
    """Sends a run's samples, aggregated by the minute, with the credentials that boto3 finds.

    Counters are sent as rates. A batch that was interrupted is resumed: `context.state` holds how many of its
    requests have arrived, what was refused of them, and the last value of each counter.

    Args:
        address: `REGION/NAMESPACE?include=GLOB&exclude=GLOB&dimension=NAME=VALUE&dimension=NAME`, and
            `&resolution=1`. Only `include` is required. All but `resolution` may be repeated.
    """

    name = "cloudwatch"
    interval_s = 60.0

    def __init__(self, address: str, context: Context, clock: Callable[[], float] = time.time) -> None:
        self._address = CloudWatchAddress.read(address)
        self._client = CloudWatchClient(self._address.namespace, self._address.region)
        self._lookup = DimensionLookup()
        self._dimension_values: dict[str, str] = {}
        self._clock = clock
        self._state = context.state
        self._request: SplitRequest | None = None

    def deliver(self, batch: Batch) -> None:
        """Deliver a batch.

        Raises:
            Retry: throttled, no network, no credentials, or a dimension that is unavailable now.
            Rejected: readings of the batch were refused permanently; the others were sent.
        """
        counters: dict[str, Last] = self._state.setdefault("counters", {})
        last: Last = {key: (int(t), float(v)) for key, (t, v) in counters.get(batch.writer.name, {}).items()}
        key = [batch.run.id, batch.writer.name, batch.first_seq]
        if self._state.get("sending") != key:
            self._state.update(sending=key, arrived=0, refused={})
            self._request = None
        requests, unacceptable = self._requests(batch, last)
        for request in requests[self._state["arrived"] :]:
            self._send(request)
            self._state["arrived"] += 1
        counters[batch.writer.name] = last
        refusals = RefusedReadings(dict(self._state["refused"]))
        refusals.add("not finite or too large", unacceptable)
        if refusals.readings:
            raise Rejected("; ".join(refusals.texts()), refusals.readings)

    def _requests(self, batch: Batch, last: Last) -> tuple[list[Sequence[Datum]], int]:
        """Return the requests for a batch, the same at each attempt, and how many values were not finite."""
        aggregation = MinuteAggregation(self._address.resolution_s)
        dimensions: Dimensions | None = None
        for time_ms, reading in readings(batch, last):
            if self._address.selection.wants(reading):
                if dimensions is None:
                    dimensions = self._dimensions(batch)
                aggregation.add(reading.series._replace(dimensions=dimensions), time_ms, reading.value)
        return list(limits.pack_requests(aggregation.take(), self._client.protocol)), aggregation.rejected

    def _dimensions(self, batch: Batch) -> Dimensions:
        run_values = of_run(batch)
        dimensions = {
            name: value
            for name, value in self._address.dimensions.items()
            if value is not None or name in run_values or not (name in _OPTIONAL or name.startswith("label."))
        }

        def find(name: str) -> str:
            if name in run_values:
                return run_values[name]
            if name not in self._dimension_values:
                self._dimension_values[name] = self._lookup.find(name)
            return self._dimension_values[name]

        try:
            return resolve(dimensions, find)
        except LookupError as error:
            raise Retry(str(error.args[0])) from None

    def _send(self, data: Sequence[Datum]) -> None:
        """Send a request; parts of it that have arrived before are not sent again."""
        if self._request is None:
            refusals = RefusedReadings(self._state["refused"])
            self._request = SplitRequest(
                limits.timely(data, self._clock(), refusals), self._client.put, refusals
            )
        while self._request:
            try:
                self._request.send_part()
            except ServiceUnavailable as error:
                raise Retry(str(error)) from None
        self._request = None

    def close(self) -> None:
        """Close the connections."""
        self._client.close()
