"""Checks the destinations: whether they respond and accept our token."""

from __future__ import annotations

import os
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from email.utils import parsedate_to_datetime
from typing import Any

from runvitals.base import stored_keys
from runvitals.base.http_client import HttpClient, ServerResponse
from runvitals.monitoring.environment import redaction
from runvitals.monitoring.monitor import relay_connection
from runvitals.relay.destination import Context, Rejected
from runvitals.relay.engine.destination_spec import DestinationSpec
from runvitals.sdk.delivery import destinations
from runvitals.tools.doctor.finding import Check
from runvitals.tools.doctor.remedies import remedy_of

# Timeout for connecting and for each read; deadline for all of a destination, including name resolution.
TIMEOUT_S = 5.0
DEADLINE_S = 12.0
_RELAY_TIMEOUT_S = 2.0
_SKEW_S = 5.0


def findings(values: Mapping[str, Any], directory: str, environ: Mapping[str, str]) -> Iterator[Check]:
    """Yield a finding for each destination of the settings, and one for the relay.

    Args:
        values: resolved settings.
        directory: the data folder, whose relay is contacted.
        environ: where the token comes from, or the file that holds it.
    """
    addresses = destinations(values)
    if not addresses:
        why = "`mode` is not online" if values["mode"] != "online" else "no server or destination is set"
        yield Check("delivery", "destinations", "ABSENT", f"{why}: runs stay on this machine")
        return
    for text in addresses:
        yield _in_time(redaction.text(text), lambda text=text: _destination(text, environ))  # type: ignore[misc]
    response = relay_connection.ask(directory, {"op": "hello"}, _RELAY_TIMEOUT_S)
    if response is None:
        yield Check("delivery", "relay", "PASS", "not running; it starts with the next run")
    else:
        yield Check("delivery", "relay", "PASS", f"running, process {response['pid']}")


def _in_time(name: str, check: Callable[[], Check]) -> Check:
    """Return the finding of a check, or that it timed out: name resolution has no timeout."""
    results: list[Check] = []
    thread = threading.Thread(target=lambda: results.append(check()), daemon=True)
    thread.start()
    thread.join(DEADLINE_S)
    if results:
        return results[0]
    text = f"no response within {DEADLINE_S:g} s"
    return Check("delivery", name, "FAIL", text, "check the network, the proxy settings and the resolver")


def _destination(text: str, environ: Mapping[str, str]) -> Check:
    spec = DestinationSpec(text)
    text = spec.shown
    try:
        if spec.name in ("http", "https"):
            return _server(spec.text, environ)
        with tempfile.TemporaryDirectory(prefix="runvitals-doctor-") as folder:
            context = Context("doctor", folder, os.getcwd(), {}, lambda: None, lambda text: None)
            spec.create(context).close()
    except ModuleNotFoundError as error:
        package = error.name or "a package"
        why = f"requires {package}, which is not installed"
        return Check("delivery", text, "FAIL", why, spec.installation(package))
    except (ValueError, ImportError, Rejected, OSError) as error:
        why = str(error) or type(error).__name__
        return Check("delivery", text, "FAIL", why, remedy_of(error))
    return Check("delivery", text, "PASS", "valid; not contacted before the first delivery")


def _server(url: str, environ: Mapping[str, str]) -> Check:
    """Check a runvitals server: reachable, ready, accepts our token, clocks in sync.

    Raises:
        OSError: unreachable. Rejected: TLS verification failed. ValueError: invalid URL, or the stored tokens
            cannot be read.
    """
    web = HttpClient(url, TIMEOUT_S)
    try:
        began_s = time.monotonic()
        health = web.request("GET", "/healthz", None, {})
        took_ms = (time.monotonic() - began_s) * 1e3
        if health.status != 200:
            text = f"/healthz returned {health.status}: {health.text()}"
            return Check("delivery", url, "FAIL", text, "check that this is the URL of a runvitals server")
        secret = stored_keys.token(url, environ)
        headers = {} if secret is None else {"Authorization": f"Bearer {secret}"}
        response = web.request("GET", "/api/v1/runs?limit=1", None, headers)
    finally:
        web.close()
    return _judge(url, response, secret is not None, f"responds in {took_ms:.0f} ms")


def _judge(url: str, response: ServerResponse, has_token: bool, text: str) -> Check:
    if response.status in (401, 403):
        why = "rejects our token" if has_token else "requires a token, and none is stored"
        return Check("delivery", url, "FAIL", f"{text}, {why} ({response.status})", f"runvitals login {url}")
    if response.status != 200:
        text += f", but returned {response.status}: {response.text()}"
        return Check("delivery", url, "FAIL", text)
    skew_s = _skew_s(response)
    if skew_s is not None and abs(skew_s) > _SKEW_S:
        text += f"; its clock is off by {skew_s:+.0f} s"
        return Check("delivery", url, "PARTIAL", text, "synchronise both clocks (NTP)")
    return Check("delivery", url, "PASS", f"{text}, accepts our token" if has_token else text)


def _skew_s(response: ServerResponse) -> float | None:
    """Return how far the server's clock is ahead of ours, by its `Date` header, which has whole seconds."""
    date = response.headers.get("Date")
    if not date:
        return None
    try:
        return parsedate_to_datetime(date).timestamp() - time.time()
    except ValueError:
        return None
