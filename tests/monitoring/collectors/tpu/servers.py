"""A gRPC server that responds like libtpu's, based on grpcio."""

from __future__ import annotations

from collections.abc import Callable
from concurrent import futures

import grpc

from runvitals.base.protobuf import fields
from tests.monitoring.collectors.tpu import messages


class FakeRuntime:
    """The metric service of a program that uses TPUs.

    Args:
        readings: metric -> its readings; may be changed while it runs.
        lists: whether it lists its metrics.
        address: where it listens.
    """

    def __init__(
        self,
        readings: dict[str, list[bytes]] | None = None,
        lists: bool = True,
        address: str = "127.0.0.1:0",
    ) -> None:
        self.readings = readings or {}
        self.lists = lists
        self.requested: list[str] = []
        self.before: Callable[[], None] = lambda: None
        self.status: grpc.StatusCode | None = None  # of every response to GetRuntimeMetric
        self._server = grpc.server(futures.ThreadPoolExecutor(2))
        methods = {
            name: grpc.unary_unary_rpc_method_handler(method)
            for name, method in (("GetRuntimeMetric", self._get), ("ListSupportedMetrics", self._list))
        }
        handler = grpc.method_handlers_generic_handler("tpu.monitoring.runtime.RuntimeMetricService", methods)
        self._server.add_generic_rpc_handlers((handler,))
        self.port = self._server.add_insecure_port(address)
        self._server.start()

    def stop(self) -> None:
        self._server.stop(0).wait()

    def _get(self, request: bytes, context: grpc.ServicerContext) -> bytes:
        self.before()
        if self.status is not None:
            context.abort(self.status, "")
        ((_, _, name),) = list(fields(request))
        assert isinstance(name, bytes)
        text = name.decode()
        self.requested.append(text)
        if text not in self.readings:
            context.abort(grpc.StatusCode.NOT_FOUND, f"no métric {text}")
        return messages.metric(text, self.readings[text])

    def _list(self, request: bytes, context: grpc.ServicerContext) -> bytes:
        if not self.lists:
            context.abort(grpc.StatusCode.UNIMPLEMENTED, "")
        return messages.supported(self.readings)
