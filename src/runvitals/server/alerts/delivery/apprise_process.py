"""Sends one message by Apprise, in a process of its own that can reach nothing but our proxy.

Apprise makes its own requests to whatever its URL says. So it runs here, where Python refuses each connection
but those to the proxy, each file but those of Python's libraries, and each further process. The proxy checks
where connections lead to. Run by `apprise.py`, with the message as JSON on stdin. It imports nothing of
runvitals, which would take longer than the message.
"""

from __future__ import annotations

import json
import logging
import os
import resource
import sys
from typing import Any, Final

_MAX_MEMORY: Final = 1 << 30
_MAX_ERROR: Final = 300
_UNKNOWN: Final = "Apprise knows no service with this URL; expected one such as ntfys://ntfy.sh/our-runs"
_SYSTEM: Final = (
    "subprocess.Popen",
    "os.exec",
    "os.fork",
    "os.forkpty",
    "os.posix_spawn",
    "os.system",
    "os.spawn",
    "syslog.openlog",
    "syslog.syslog",
)
_SOCKETS: Final = ("socket.bind", "socket.sendto", "socket.sendmsg")
_NAMES: Final = ("socket.getaddrinfo", "socket.gethostbyname", "socket.gethostbyaddr")
_CHANGES: Final = (
    "os.remove",
    "os.rename",
    "os.mkdir",
    "os.rmdir",
    "os.link",
    "os.symlink",
    "os.truncate",
    "os.chmod",
)
_WRITING: Final = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND


class NotPermitted(PermissionError):
    """Something that no message needs."""


def main() -> None:
    """Read the message, send it, print what came of it."""
    message = json.loads(sys.stdin.read())
    resource.setrlimit(resource.RLIMIT_AS, (_MAX_MEMORY, _MAX_MEMORY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    os.environ.update(
        dict.fromkeys(("HTTPS_PROXY", "https_proxy", "HTTP_PROXY", "http_proxy"), message["proxy"])
    )
    load()
    confine(message["port"])
    print(json.dumps(send(message)))


def load() -> None:
    """Load Apprise with all its services, so that Python may keep their bytecode for the next message."""
    import apprise

    apprise.Apprise.instantiate("json://127.0.0.1", asset=_asset())


def confine(port: int) -> None:
    """Refuse everything but connections to the proxy and reading Python's libraries. It cannot be undone."""
    folders = {sys.prefix, sys.base_prefix, *sys.path, os.environ.get("REQUESTS_CA_BUNDLE", sys.prefix)}
    readable = (
        *(os.path.realpath(folder) for folder in folders if folder),
        *filter(None, folders),
        "/usr/share/zoneinfo",
    )

    def check(event: str, values: tuple[Any, ...]) -> None:
        if event == "socket.connect":
            if values[1][:2] != ("127.0.0.1", port):
                raise NotPermitted("a connection that does not lead through https")
        elif event in _NAMES:
            if values[0] not in ("127.0.0.1", b"127.0.0.1"):
                raise NotPermitted("a look-up of a name that does not lead through https")
        elif event == "open":
            name, _, flags = values
            if isinstance(name, int):
                return
            path = os.path.abspath(os.fsdecode(name))
            if (flags or 0) & _WRITING or not path.startswith(readable):
                raise NotPermitted(f"the file {path}")
        elif event in _SYSTEM or event in _SOCKETS or event in _CHANGES:
            raise NotPermitted(event)

    sys.addaudithook(check)


def send(message: dict[str, Any]) -> dict[str, Any]:
    """Send it. `service`: what the URL leads to; `error`: what Apprise says, without parts of the URL."""
    import apprise
    import requests

    # A redirect would lead elsewhere than the team chose.
    requests.sessions.SessionRedirectMixin.get_redirect_target = _nowhere  # type: ignore[method-assign]
    problems: list[str] = []
    log = logging.getLogger("apprise")
    log.addHandler(_Problems(problems))
    log.setLevel(logging.WARNING)
    url = message["url"]
    service = apprise.Apprise.instantiate(url, asset=_asset(), suppress_exceptions=True)
    if service is None:
        texts = [problem for problem in problems if not problem.startswith("Unparseable URL")]
        return {
            "service": None,
            "sent": False,
            "error": _safe("; ".join(texts) or _UNKNOWN, url),
        }
    result = {"service": str(service.service_name or ""), "sent": False, "error": None}
    schemes = service.secure_protocol or ()
    if url.partition("://")[0].lower() not in ((schemes,) if isinstance(schemes, str) else schemes):
        name = result["service"] or "the service"
        return {**result, "service": None, "error": f"{name} is not reached by https with this URL"}
    if message["check"]:
        return result
    kinds = {"error": apprise.NotifyType.FAILURE, "warning": apprise.NotifyType.WARNING}
    kind = kinds.get(message["level"], apprise.NotifyType.INFO)
    try:
        sent = service.notify(
            body=message["text"] or message["title"],
            title=message["title"] if message["text"] else "",
            notify_type=kind,
            body_format=apprise.NotifyFormat.TEXT,
        )
    except OSError as error:
        return {**result, "error": _safe(str(error), url)}
    return {
        **result,
        "sent": bool(sent),
        "error": None if sent else _safe("; ".join(problems) or "not accepted", url),
    }


def _asset() -> Any:
    """Return how Apprise names the sender: without images, which services would fetch from elsewhere."""
    import apprise

    return apprise.AppriseAsset(
        app_id="runvitals",
        app_desc="runvitals",
        app_url="",
        image_url_mask="",
        image_url_logo="",
        secure_logging=True,
        async_mode=False,
    )


def _nowhere(self: object, resp: object) -> str | None:
    """Return where a redirect leads."""
    return None


class _Problems(logging.Handler):
    def __init__(self, texts: list[str]) -> None:
        super().__init__()
        self._texts = texts

    def emit(self, record: logging.LogRecord) -> None:
        self._texts.append(record.getMessage())


def _safe(text: str, url: str) -> str:
    """Return the text without what of the URL may be a secret: its longer parts."""
    parts = url
    for mark in ":/@?&=#,%+":
        parts = parts.replace(mark, " ")
    for part in sorted(parts.split(), key=len, reverse=True):
        if len(part) >= 6:
            text = text.replace(part, "…")
    return " ".join(text.split())[:_MAX_ERROR]


if __name__ == "__main__":
    main()
