"""The destination `otel` or `otel:http://collector:4318`: metrics by OTLP over HTTP.

Supports the environment variables of OpenTelemetry's specification:
https://opentelemetry.io/docs/specs/otel/protocol/exporter/
"""

from __future__ import annotations

import gzip
from collections.abc import Mapping, Sequence

from runvitals.base.http_client import ServerResponse
from runvitals.relay.batch import Batch
from runvitals.relay.destination import Context
from runvitals.relay.destinations.otel.message import Json, Protobuf
from runvitals.relay.destinations.otel.naming import OtelNamer, resource
from runvitals.relay.engine.credentials import credentials_are_for, headers, parse_headers
from runvitals.relay.engine.url_address import UrlAddress
from runvitals.relay.timeseries.batch_series import SeriesPoints
from runvitals.relay.timeseries.push_destination import PushingDestination, RejectedPoints

ENDPOINT = "http://localhost:4318"
PATH = "/v1/metrics"
_CREDENTIALS = (
    "set OTEL_EXPORTER_OTLP_HEADERS, which is sent to the server of OTEL_EXPORTER_OTLP_ENDPOINT or else to "
    "the only one; or use the file of #headers="
)


class OtelDestination(PushingDestination):
    """Sends samples, gaps, ends of series, and logged values.

    Args:
        address: a URL, by default with the path /v1/metrics; "": OTEL_EXPORTER_OTLP_ENDPOINT, or
            http://localhost:4318. After `#` `encoding=json` or `protobuf`, and `headers=FILE`.

    Raises:
        ValueError: invalid address or environment variable.
    """

    name = "otel"

    def __init__(self, address: str, context: Context) -> None:
        self._environ = context.environ
        url, sign, options = address.partition("#")
        parsed = UrlAddress(self.name, f"{url or endpoint(self._environ)}{sign}{options}", _OPTIONS, PATH)
        super().__init__(context, parsed.http, parsed.path, OtelNamer, _CREDENTIALS)
        self._headers_file = parsed.options.get("headers")
        self._message = _message(parsed.options.get("encoding"), self._environ)
        self._compress = compresses(self._environ)

    def post(self, batch: Batch, lines: Sequence[SeriesPoints]) -> ServerResponse:
        """Send the series of a batch as one request."""
        body = self._message.message(resource(batch, self._environ), lines)
        sent = {**self._credentials_now(), "Content-Type": self._message.content_type}
        if self._compress:
            body = gzip.compress(body, 1, mtime=0)
            sent["Content-Encoding"] = "gzip"
        return self.http.post(self.path, body, sent)

    def partial_rejections(self, response: ServerResponse) -> list[RejectedPoints]:
        """Return the points of a request that the server rejected, though it accepted the request."""
        rejected, reason = self._message.partial_success(response.body)
        return [RejectedPoints(rejected, f"{rejected} points were rejected: {reason}")] if rejected else []

    def _credentials_now(self) -> dict[str, str]:
        name = "OTEL_EXPORTER_OTLP_METRICS_HEADERS"
        if name not in self._environ:
            name = "OTEL_EXPORTER_OTLP_HEADERS"
        is_known = credentials_are_for(self.http.url, self.name, self._environ)
        own = parse_headers(self._environ.get(name, ""), name) if is_known else {}
        return {**own, **headers("", self._headers_file, {})}


_OPTIONS = ("encoding", "headers")


def setting(name: str, environ: Mapping[str, str]) -> str:
    """Return OTEL_EXPORTER_OTLP_METRICS_<name>, else OTEL_EXPORTER_OTLP_<name>, else ""."""
    own = environ.get(f"OTEL_EXPORTER_OTLP_METRICS_{name}", "")
    return (own or environ.get(f"OTEL_EXPORTER_OTLP_{name}", "")).strip()


def endpoint(environ: Mapping[str, str]) -> str:
    """Return the metrics endpoint set by the environment.

    Example:
        >>> endpoint({"OTEL_EXPORTER_OTLP_ENDPOINT": "https://collector:4318/team/"})
        'https://collector:4318/team/v1/metrics'
        >>> endpoint({"OTEL_EXPORTER_OTLP_METRICS_ENDPOINT": "https://collector:4318/exactly"})
        'https://collector:4318/exactly'
    """
    own = environ.get("OTEL_EXPORTER_OTLP_METRICS_ENDPOINT", "").strip()
    if own:
        return own
    general = environ.get("OTEL_EXPORTER_OTLP_ENDPOINT", "").strip() or ENDPOINT
    return general.rstrip("/") + PATH


def _message(option: str | None, environ: Mapping[str, str]) -> Protobuf | Json:
    protocol = setting("PROTOCOL", environ) or "http/protobuf"
    encoding = option or {"http/protobuf": "protobuf", "http/json": "json"}.get(protocol, protocol)
    if encoding not in ("protobuf", "json"):
        raise ValueError(f"otel: unsupported encoding {encoding!r}; expected protobuf or json over HTTP")
    return Json() if encoding == "json" else Protobuf()


def compresses(environ: Mapping[str, str]) -> bool:
    """Return whether to compress requests: unless OTEL_EXPORTER_OTLP_COMPRESSION is `none`."""
    compression = setting("COMPRESSION", environ) or "gzip"
    if compression not in ("gzip", "none"):
        raise ValueError(f"otel: unsupported compression {compression!r}; expected gzip or none")
    return compression == "gzip"
