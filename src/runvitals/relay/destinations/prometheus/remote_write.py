"""The destination `remote_write:URL`: Prometheus, VictoriaMetrics, Mimir, Thanos, and other receivers.

Sending data twice does no harm in Prometheus, which rejects requests with samples it has. VictoriaMetrics
stores the same samples twice if a response was lost, unless deduplication is configured.
"""

from __future__ import annotations

from collections.abc import Sequence

from runvitals.base.http_client import ServerResponse
from runvitals.relay.batch import Batch
from runvitals.relay.destination import Context
from runvitals.relay.destinations.prometheus.snappy import compress
from runvitals.relay.destinations.prometheus.write_request import Version1, Version2
from runvitals.relay.engine.credentials import credentials_are_for, headers
from runvitals.relay.engine.url_address import UrlAddress
from runvitals.relay.timeseries.batch_series import SeriesPoints
from runvitals.relay.timeseries.naming import Namer
from runvitals.relay.timeseries.push_destination import PushingDestination

VARIABLES = "REMOTE_WRITE"
PATH = "/api/v1/write"
_UNKNOWN_MESSAGE = 415
_WRITTEN = "X-Prometheus-Remote-Write-Samples-Written"


class RemoteWriteDestination(PushingDestination):
    """Sends samples, gaps, ends of series, and logged values.

    Args:
        address: a URL, by default with the path /api/v1/write; after `#` `version=1` (default) or 2, and
            `headers=FILE`. A server that does not support 2.0 gets 1.0.

    Raises:
        ValueError: invalid address.
    """

    name = "remote_write"

    def __init__(self, address: str, context: Context) -> None:
        parsed = UrlAddress(self.name, address, ("version", "headers"), PATH)
        credentials = (
            f"set {VARIABLES}_TOKEN, _USER and _PASSWORD, or _HEADERS, which are sent to the server of "
            f"{VARIABLES}_URL or else to the only one; or use the file of #headers="
        )
        super().__init__(context, parsed.http, parsed.path, Namer, credentials)
        version = parsed.options.get("version", "1")
        if version not in ("1", "2"):
            raise ValueError(f"remote_write: invalid version={version!r}; expected 1 or 2")
        self._message: Version1 | Version2 = Version2() if version == "2" else Version1()
        self._headers_file = parsed.options.get("headers")
        self._environ = context.environ

    def post(self, batch: Batch, lines: Sequence[SeriesPoints]) -> ServerResponse:
        """Send series; as version 1.0 from the first server on that does not know 2.0."""
        response = self._post(self._message, lines)
        if isinstance(self._message, Version2) and not _supports_version_2(response):
            self._message = Version1()
            response = self._post(self._message, lines)
        return response

    def was_stored(self, batch: Batch, error: str) -> bool:
        """Return whether a request was stored.

        Prometheus stores a request completely or not at all, and no samples older than the newest.
        """
        text = error.casefold()
        return batch.repeated and ("out of order" in text or "duplicate sample" in text)

    def _post(self, message: Version1 | Version2, lines: Sequence[SeriesPoints]) -> ServerResponse:
        body = compress(message.message(lines))
        is_known = credentials_are_for(self.http.url, self.name, self._environ)
        all_headers = {
            **headers(VARIABLES, self._headers_file, self._environ if is_known else {}),
            **message.headers,
            "Content-Encoding": "snappy",
        }
        try:
            response = self.http.post(self.path, body, all_headers)
        except OSError:
            message.forget()
            raise
        if not 200 <= response.status < 300:
            message.forget()
        return response


def _supports_version_2(response: ServerResponse) -> bool:
    """Return whether the server supports 2.0: it then states in each response how much it wrote.

    Others may even respond 200 without having read anything.
    """
    ok = 200 <= response.status < 300
    return response.status != _UNKNOWN_MESSAGE and not (ok and _WRITTEN not in response.headers)
