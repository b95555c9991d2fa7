"""Calls PutMetricData through boto3, which is imported when the first client is created."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from runvitals.relay.destinations.cloudwatch import limits
from runvitals.relay.destinations.cloudwatch.datum import Datum
from runvitals.relay.destinations.cloudwatch.split_request import RequestRejected, ServiceUnavailable

MISSING = "CloudWatch needs boto3: pip install 'runvitals[cloudwatch]'"

# Error codes that concern the service or the credentials, not the data: retried.
_TEMPORARY = frozenset(
    {
        "Throttling",
        "ThrottlingException",
        "ThrottledException",
        "RequestThrottled",
        "RequestThrottledException",
        "RequestLimitExceeded",
        "TooManyRequestsException",
        "LimitExceeded",
        "SlowDown",
        "AccessDenied",
        "AccessDeniedException",
        "ExpiredToken",
        "ExpiredTokenException",
        "IncompleteSignature",
        "InvalidClientTokenId",
        "MissingAuthenticationToken",
        "NotAuthorized",
        "OptInRequired",
        "RequestExpired",
        "SignatureDoesNotMatch",
        "UnrecognizedClientException",
    }
)


class CloudWatchClient:
    """Sends data to one namespace in one Region, with the credentials that boto3 finds.

    Args:
        namespace: where the metrics appear.
        region: None: the Region in the environment or the user's AWS configuration.

    Raises:
        ModuleNotFoundError: boto3 is not installed; `MISSING` says what to do.
        ValueError: invalid namespace, or no Region.

    Example:
        >>> CloudWatchClient("Neuron", "us-west-2").put([Datum(MetricSeries("cpu"), 60, (50.0,), (12,))])
    """

    def __init__(self, namespace: str, region: str | None = None) -> None:
        self.namespace = limits.check_namespace(namespace)
        import boto3
        from botocore.config import Config
        from botocore.exceptions import BotoCoreError

        # One attempt: the relay and `CloudWatchSender` do the backoff, and must be able to stop meanwhile.
        config = Config(
            connect_timeout=5,
            read_timeout=15,
            retries={"total_max_attempts": 1},
            user_agent_extra="runvitals",
        )
        try:
            self._client: Any = boto3.session.Session().client(
                "cloudwatch", region_name=region, config=config
            )
        except (BotoCoreError, ValueError) as error:
            raise ValueError(f"invalid region {region!r}: {error}") from None
        model = self._client.meta.service_model
        self.protocol: str = getattr(model, "resolved_protocol", model.metadata["protocol"])
        """The encoding of requests, which determines their size: `json`, or `query` with older versions of
        boto3.
        """

    def put(self, request: Sequence[Datum]) -> None:
        """Send one request, as returned by `limits.pack_requests`.

        Raises:
            ServiceUnavailable: throttled, no network, or no valid credentials: retry later.
            RequestRejected: CloudWatch rejected the data.
        """
        from botocore.exceptions import BotoCoreError, ClientError, ParamValidationError

        try:
            self._client.put_metric_data(
                Namespace=self.namespace, MetricData=[entry(datum) for datum in request]
            )
        except ParamValidationError as error:
            raise RequestRejected(str(error)) from None
        except ClientError as error:
            status = error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0)
            code = error.response.get("Error", {}).get("Code", "")
            if code in _TEMPORARY or status >= 500 or status in (401, 403, 408, 429):
                raise ServiceUnavailable(str(error)) from None
            raise RequestRejected(str(error)) from None
        except (BotoCoreError, OSError) as error:
            raise ServiceUnavailable(str(error)) from None

    def close(self) -> None:
        """Close the connections."""
        self._client.close()


def entry(datum: Datum) -> dict[str, Any]:
    """Return a datum as an element of PutMetricData's MetricData."""
    fields: dict[str, Any] = {
        "MetricName": datum.series.name,
        "Timestamp": datum.time_s,
        "Values": list(datum.values),
        "Unit": datum.series.unit,
        "StorageResolution": datum.resolution_s,
    }
    if datum.series.dimensions:
        fields["Dimensions"] = [{"Name": name, "Value": value} for name, value in datum.series.dimensions]
    if any(count != 1 for count in datum.counts):
        fields["Counts"] = [float(count) for count in datum.counts]
    return fields
