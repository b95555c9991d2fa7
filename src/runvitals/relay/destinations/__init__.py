"""The built-in destinations, as name -> "module:factory". See `relay/destination.py`."""

from __future__ import annotations

BUILT_IN: dict[str, str] = {
    "cloudwatch": "runvitals.relay.destinations.cloudwatch.destination:CloudWatchDestination",
    "files": "runvitals.relay.destinations.files.destination:FilesDestination",
    "http": "runvitals.relay.destinations.runvitals.destination:RunvitalsDestination",
    "https": "runvitals.relay.destinations.runvitals.destination:RunvitalsDestination",
    "otel": "runvitals.relay.destinations.otel.destination:OtelDestination",
    "prometheus": "runvitals.relay.destinations.prometheus.destination:PrometheusDestination",
    "mlflow": "runvitals.relay.destinations.mlflow.destination:MlflowDestination",
    "remote_write": "runvitals.relay.destinations.prometheus.remote_write:RemoteWriteDestination",
    "tensorboard": "runvitals.relay.destinations.tensorboard.destination:TensorBoardDestination",
    "wandb": "runvitals.relay.destinations.wandb.destination:WandbDestination",
}

# The extra that installs the packages of a destination, if it needs any.
EXTRAS = {"cloudwatch": "cloudwatch", "files": "parquet", "mlflow": "mlflow"}
