"""The built-in destinations, as name -> "module:factory". See `relay/destination.py`."""

from __future__ import annotations

BUILT_IN: dict[str, str] = {
    "cloudwatch": "runvitals.relay.cloudwatch.destination:CloudWatchDestination",
    "files": "runvitals.relay.files.destination:FilesDestination",
    "http": "runvitals.relay.destinations.runvitals_server:RunvitalsDestination",
    "https": "runvitals.relay.destinations.runvitals_server:RunvitalsDestination",
    "otel": "runvitals.relay.otel.destination:OtelDestination",
    "prometheus": "runvitals.relay.prometheus.exporter:PrometheusDestination",
    "mlflow": "runvitals.relay.mlflow.destination:MlflowDestination",
    "remote_write": "runvitals.relay.prometheus.remote_write:RemoteWriteDestination",
    "tensorboard": "runvitals.relay.tensorboard.destination:TensorBoardDestination",
    "wandb": "runvitals.relay.wandb.destination:WandbDestination",
}
