"""The metric service that libtpu serves in each program that uses TPUs, on a port of the host."""

from __future__ import annotations

from runvitals.base import protobuf
from runvitals.base.backoff import Backoff
from runvitals.monitoring.collectors.tpu import metric_response
from runvitals.monitoring.collectors.tpu.grpc import (
    NOT_FOUND,
    UNIMPLEMENTED,
    GrpcConnection,
    GrpcError,
    GrpcRejected,
    NotListening,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from runvitals.monitoring.collectors.tpu.metric_response import TpuReading

SERVICE = "/tpu.monitoring.runtime.RuntimeMetricService/"
FIRST_PORT = 8431
# Pauses before trying a closed port again, and one that hangs.
RETRY_S = 5.0
MAX_RETRY_S = 60.0
# The metrics on offer change while a program starts.
OFFER_S = 30.0


class TpuRuntime:
    """The service on one port.

    Args:
        connection: to the port.

    ``failure`` is the last error, "" while it works.
    """

    def __init__(self, connection: GrpcConnection) -> None:
        self.port = connection.port
        self.failure = ""
        self._connection = connection
        self._retry_at_s = float("-inf")
        self._backoff = Backoff(RETRY_S, MAX_RETRY_S)
        self._offered: frozenset[str] | None = None
        self._offer_at_s = float("-inf")

    def read(self, names: Iterable[str], mono_s: float) -> dict[str, list[TpuReading]]:
        """Return the readings of those metrics that the program offers; {} if it does not respond."""
        if mono_s < self._retry_at_s:
            return {}
        try:
            if mono_s >= self._offer_at_s:
                self._offered = self._supported_metrics()
                self._offer_at_s = mono_s + OFFER_S
            by_metric = {}
            for name in names:
                if self._offered is None or name in self._offered:
                    readings = self._read_metric(name)
                    if readings:
                        by_metric[name] = readings
        except (GrpcError, GrpcRejected, protobuf.Malformed) as error:
            self._fail(error, mono_s)
            return {}
        self._backoff.note_success()
        self.failure = ""
        return by_metric

    def _fail(self, error: Exception, mono_s: float) -> None:
        self._connection.close()
        self._offer_at_s = float("-inf")
        self.failure = str(error)
        if isinstance(error, NotListening):
            self._retry_at_s = mono_s + RETRY_S
        else:
            # A timeout delays the other programs' readings by two seconds.
            self._backoff.note_failure(mono_s)
            self._retry_at_s = self._backoff.until_s

    def close(self) -> None:
        """Release what is open."""
        self._connection.close()

    def _supported_metrics(self) -> frozenset[str] | None:
        """Return the names of its metrics; None if an older runtime does not list them."""
        try:
            return frozenset(
                metric_response.supported_metrics(
                    self._connection.call(SERVICE + "ListSupportedMetrics", b"")
                )
            )
        except GrpcRejected as refused:
            if refused.status in (UNIMPLEMENTED, NOT_FOUND):
                return None
            raise

    def _read_metric(self, name: str) -> list[TpuReading]:
        try:
            message = self._connection.call(SERVICE + "GetRuntimeMetric", protobuf.text(1, name))
        except GrpcRejected:  # only this metric: not in this release, or not yet
            return []
        return metric_response.readings(message)


def ports(environ: Mapping[str, str], chips: int) -> list[int]:
    """List the ports to read.

    Those in TPU_RUNTIME_METRICS_PORTS, else one for each chip from 8431 on, since there may be a program for
    each chip.

    Example:
        >>> ports({"TPU_RUNTIME_METRICS_PORTS": "8431,8432"}, 8), ports({}, 4)
        ([8431, 8432], [8431, 8432, 8433, 8434])
    """
    words = environ.get("TPU_RUNTIME_METRICS_PORTS", "").replace(",", " ").split()
    numbers = [int(word) for word in words if word.isdecimal() and 0 < int(word) < 65536]
    return list(dict.fromkeys(numbers)) or list(range(FIRST_PORT, FIRST_PORT + max(chips, 1)))
