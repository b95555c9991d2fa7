"""OTLP over gRPC: a server in threads, which passes requests on to `/v1/metrics` of the server beside it.

So keys, limits and responses are those of OTLP over HTTP. There is no TLS: keys in the metadata of requests
are readable on the way, unless a proxy in front of this server encrypts.

https://opentelemetry.io/docs/specs/otlp/#otlpgrpc
"""

from __future__ import annotations

import http.client
from collections import deque
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final, NoReturn

import grpc

from runvitals.base.protobuf import Malformed, fields, text, uint
from runvitals.model.limits import REQUEST_BYTES
from runvitals.server.doors.otlp.paths import METRICS
from runvitals.server.doors.otlp.protobuf_decoding import CONTENT_TYPE
from runvitals.server.doors.otlp.responses import UNAVAILABLE, UNIMPLEMENTED, grpc_code

_SERVICE: Final = "/opentelemetry.proto.collector.{0}.v1.{1}Service/Export"
_EXPORT: Final = _SERVICE.format("metrics", "Metrics")
_REFUSED: Final = {_SERVICE.format("logs", "Logs"): "logs", _SERVICE.format("trace", "Trace"): "traces"}
_PASSED_ON: Final = ("authorization", "x-runvitals-project", "x-runvitals-entity")
_THREADS: Final = 8
_MAX_WAITING: Final = 256
_TIMEOUT_S: Final = 60.0
_RETRY_TYPE: Final = "type.googleapis.com/google.rpc.RetryInfo"
_CODES: Final = {code.value[0]: code for code in grpc.StatusCode}


class OtlpGrpcServer:
    """The server; it accepts requests from its creation until `close`.

    Args:
        address: `HOST:PORT` to listen on; port 0 means any free port.
        server: host and port of the HTTP server.

    Attributes:
        port: that it listens on.

    Raises:
        OSError: it cannot listen there.

    Example:
        >>> with OtlpGrpcServer("127.0.0.1:4317", ("127.0.0.1", 8900)):
        ...     serve(app, listener)
    """

    def __init__(self, address: str, server: tuple[str, int]) -> None:
        self._server = server
        self._threads = ThreadPoolExecutor(_THREADS, "otlp-grpc")
        self._idle: deque[http.client.HTTPConnection] = deque()
        options = (("grpc.max_receive_message_length", REQUEST_BYTES), ("grpc.so_reuseport", 0))
        self._grpc = grpc.server(
            self._threads, [_Handlers(self._export)], options=options, maximum_concurrent_rpcs=_MAX_WAITING
        )
        try:
            self.port: int = self._grpc.add_insecure_port(address)
        except RuntimeError as error:
            self._threads.shutdown()
            raise OSError(f"could not listen on {address}: {error}") from None
        self._grpc.start()

    def close(self) -> None:
        """Finish the requests in flight, and end."""
        self._grpc.stop(grace=3).wait()
        self._threads.shutdown()
        for connection in self._idle:
            connection.close()

    def __enter__(self) -> OtlpGrpcServer:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _export(self, body: bytes, context: Any) -> bytes:
        headers = {name: value for name, value in context.invocation_metadata() if name in _PASSED_ON}
        try:
            status, retry_after, response = self._post(body, headers)
        except (OSError, http.client.HTTPException) as error:
            _abort(context, UNAVAILABLE, f"the server does not answer: {type(error).__name__}", "1")
        if status != 200:
            code, message = _status(response)
            _abort(context, code or grpc_code(status), message, retry_after)
        return response

    def _post(self, body: bytes, headers: Mapping[str, str]) -> tuple[int, str | None, bytes]:
        """Return status, Retry-After and body of the server's response."""
        while True:
            idle_connection = self._idle.pop() if self._idle else None
            connection = idle_connection or http.client.HTTPConnection(*self._server, timeout=_TIMEOUT_S)
            try:
                connection.request("POST", METRICS[0], body, {"Content-Type": CONTENT_TYPE, **headers})
                response = connection.getresponse()
                result = response.status, response.headers.get("Retry-After"), response.read()
            except (OSError, http.client.HTTPException):
                connection.close()
                if idle_connection is None:  # the server closes connections that were idle for long
                    raise
            else:
                self._idle.append(connection)
                return result


class _Handlers(grpc.GenericRpcHandler):  # type: ignore[misc] # grpcio has no types
    """Finds the handler of a call: messages stay bytes."""

    def __init__(self, export: Callable[[bytes, Any], bytes]) -> None:
        self._export = grpc.unary_unary_rpc_method_handler(export)

    def service(self, details: Any) -> Any:
        if details.method == _EXPORT:
            return self._export
        signal = _REFUSED.get(details.method)
        return None if signal is None else grpc.unary_unary_rpc_method_handler(_refusing(signal))


def _refusing(signal: str) -> Callable[[bytes, Any], bytes]:
    def refuse(body: bytes, context: Any) -> bytes:
        _abort(context, UNIMPLEMENTED, f"{signal} are not stored: send metrics only")

    return refuse


def _abort(context: Any, code: int, message: str, retry_after: str | None = None) -> NoReturn:
    """End a call with an error. Senders retry if it says after how many seconds."""
    status = uint(1, code) + text(2, message)
    if retry_after is not None and retry_after.isdigit():
        delay = text(1, uint(1, int(retry_after)))
        status += text(3, text(1, _RETRY_TYPE) + text(2, delay))
    context.set_trailing_metadata((("grpc-status-details-bin", status),))
    context.abort(_CODES[code], message)
    raise AssertionError("abort() raises")


def _status(body: bytes) -> tuple[int, str]:
    """Return code and message of a google.rpc.Status; code 0 if it is none."""
    code, message = 0, body[:200].decode("utf-8", "replace")
    try:
        for number, _, value in fields(body):
            if number == 1 and isinstance(value, int):
                code = value
            elif number == 2 and isinstance(value, bytes):
                message = value.decode("utf-8", "replace")
    except Malformed:
        return 0, message
    return (code, message) if code in _CODES else (0, message)
