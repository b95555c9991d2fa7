"""S3 on loopback: moto's, behind a check of each signature by botocore's own implementation of it."""

from __future__ import annotations

import base64
import hashlib
import io
import secrets
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from datetime import datetime, timezone
from typing import Any
from urllib.parse import parse_qsl, quote, urlsplit

from botocore.auth import S3SigV4Auth, S3SigV4QueryAuth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials
from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app
from werkzeug.serving import make_server

ACCESS_KEY, SECRET_KEY = "AKIAOFTHETEST", "secret-of-the-test"
_SKEW_S = 900
FOR_MOTO = "AWS4-HMAC-SHA256 Credential=x/20260101/us-east-1/s3/aws4_request, SignedHeaders=host, Signature=x"


def allowing(url: str) -> dict[str, list[str]]:
    """Return settings of an organisation that allow a service on this machine."""
    parts = urlsplit(url)
    return {"outbound_allow": [parts.netloc], "webhook_http": [str(parts.hostname)]}


class Refused(Exception):
    """A response of a service: a status and the code of the error."""

    def __init__(self, status: str, code: str) -> None:
        super().__init__(code)
        self.status, self.code = status, code


class ObjectService:
    """A service with objects, on a port of its own until it is closed.

    Attributes:
        bucket: the name of a new bucket.
        accepted: the access keys with their secrets.
        fault: what goes wrong with each request: `forbidden`, `full` (writes only), `slow`, `cut` (bodies end
            early), `short` (sizes are wrong), `no cors`; None: nothing. ETags say nothing, but
            those of parts.
        true_tags: let ETags be MD5s, as they are in lists.
        moved_to: a URL that reads are redirected to; None: they are answered.
        slow: what a slow service waits for, with `waiting` requests so far.
        signed_reads: how many objects were read at signed addresses.
        requests: method and path of those that were accepted.
    """

    def __init__(self) -> None:
        self.fault: str | None = None
        self.true_tags = False
        self.moved_to: str | None = None
        self.accepted = {ACCESS_KEY: SECRET_KEY}
        self.bucket = f"training-{secrets.token_hex(8)}"  # moto keeps it for the process
        self.slow = threading.Event()
        self.waiting = self.signed_reads = 0
        self._counting = threading.Lock()
        self.requests: list[tuple[str, str]] = []
        self._application = DomainDispatcherApplication(create_backend_app)
        self._server = make_server("127.0.0.1", 0, self._answer, threaded=True)
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)
        self._thread.start()
        self._inner("PUT", f"/{self.bucket}")

    def close(self) -> None:
        """End the service."""
        self.slow.set()
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    def keys(self) -> list[str]:
        """The keys of all objects, read past the check."""
        from xml.etree import ElementTree

        body = self._inner("GET", f"/{self.bucket}", "list-type=2&max-keys=1000")
        return [node.text or "" for node in ElementTree.fromstring(body).iter() if node.tag.endswith("Key")]

    def put(self, key: str, content: bytes) -> None:
        """Put an object past the check."""
        self._inner("PUT", f"/{self.bucket}/{key}", body=content)

    def keep_versions(self) -> None:
        """Keep the versions of each object from now on."""
        enabled = b"<VersioningConfiguration><Status>Enabled</Status></VersioningConfiguration>"
        self._inner("PUT", f"/{self.bucket}", "versioning", enabled)

    def _inner(self, method: str, path: str, query: str = "", body: bytes = b"") -> bytes:
        environ = {
            "REQUEST_METHOD": method,
            "PATH_INFO": path,
            "RAW_URI": path,
            "QUERY_STRING": query,
            "SERVER_NAME": "127.0.0.1",
            "SERVER_PORT": "80",
            "HTTP_HOST": "s3.amazonaws.com",
            "HTTP_AUTHORIZATION": FOR_MOTO,
            "SERVER_PROTOCOL": "HTTP/1.1",
            "CONTENT_LENGTH": str(len(body)),
            "wsgi.url_scheme": "http",
            "wsgi.input": io.BytesIO(body),
            "wsgi.errors": io.StringIO(),
            "wsgi.version": (1, 0),
            "wsgi.multithread": True,
            "wsgi.multiprocess": False,
            "wsgi.run_once": False,
        }
        return b"".join(self._application(environ, lambda *_: lambda _: None))

    def _answer(self, environ: dict[str, Any], start: Callable[..., Any]) -> Iterable[bytes]:
        method = environ["REQUEST_METHOD"]
        try:
            if method == "OPTIONS":
                return self._preflight(start)
            environ = self._checked(environ)
            self._fail(method)
        except Refused as error:
            body = f"<Error><Code>{error.code}</Code></Error>".encode()
            start(error.status, [("content-type", "application/xml"), ("content-length", str(len(body)))])
            return [] if method == "HEAD" else [body]
        self.requests.append((method, environ["PATH_INFO"]))
        if self.moved_to is not None and method == "GET":
            start("307 Temporary Redirect", [("location", self.moved_to), ("content-length", "0")])
            return []
        return self._forwarded(environ, start, method)

    def _forwarded(self, environ: dict[str, Any], start: Callable[..., Any], method: str) -> Iterable[bytes]:
        def start_response(status: str, headers: list[tuple[str, str]], *rest: Any) -> Any:
            # The request that joins parts names their ETags.
            if self.true_tags or "partNumber" in environ["QUERY_STRING"]:
                return start(status, headers, *rest)
            shown = [(name, value) for name, value in headers if name.lower() != "etag"]
            if self.fault == "short" and method == "HEAD":
                shown = [(name, "1" if name.lower() == "content-length" else value) for name, value in shown]
            return start(status, [*shown, ("etag", '"not-a-digest-of-anything"')], *rest)

        body = self._application(environ, start_response)
        if self.fault == "cut" and method == "GET" and environ["PATH_INFO"].count("/") > 1:
            return _half(body)
        return body

    def _preflight(self, start: Callable[..., Any]) -> Iterable[bytes]:
        if self.fault == "no cors":
            start("403 Forbidden", [("content-length", "0")])
        else:
            allowed = [("access-control-allow-origin", "*"), ("access-control-allow-methods", "GET, PUT")]
            start("200 OK", [*allowed, ("content-length", "0")])
        return []

    def _fail(self, method: str) -> None:
        if self.fault == "forbidden":
            raise Refused("403 Forbidden", "AccessDenied")
        if self.fault == "full" and method in ("PUT", "POST"):
            raise Refused("507 Insufficient Storage", "XMinioStorageFull")
        if self.fault == "slow":
            with self._counting:
                self.waiting += 1
            self.slow.wait()

    def _checked(self, environ: dict[str, Any]) -> dict[str, Any]:
        """Return the request as moto takes it, or raise Refused."""
        body = environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0))
        query = dict(parse_qsl(environ["QUERY_STRING"], keep_blank_values=True))
        if "X-Amz-Signature" in query:
            self._check_address(environ, query)
            self.signed_reads += environ["REQUEST_METHOD"] == "GET"
        else:
            self._check_headers(environ, body)
        self._check_sum(environ, body)
        return {**environ, "wsgi.input": io.BytesIO(body)}

    def _check_headers(self, environ: dict[str, Any], body: bytes) -> None:
        header = environ.get("HTTP_AUTHORIZATION", "")
        if not header.startswith("AWS4-HMAC-SHA256 "):
            raise Refused("403 Forbidden", "AccessDenied")
        fields = dict(part.strip().split("=", 1) for part in header.partition(" ")[2].split(","))
        sent = _headers(environ)
        payload = sent.get("x-amz-content-sha256", "")
        if payload not in ("UNSIGNED-PAYLOAD", hashlib.sha256(body).hexdigest()):
            raise Refused("400 Bad Request", "XAmzContentSHA256Mismatch")
        auth = S3SigV4Auth(self._credentials(fields["Credential"]), "s3", fields["Credential"].split("/")[2])
        request = _request(environ, sent, fields["SignedHeaders"].split(";"), environ["QUERY_STRING"])
        self._compare(auth, request, sent["x-amz-date"], fields["Signature"])

    def _check_address(self, environ: dict[str, Any], query: dict[str, str]) -> None:
        signature = query.pop("X-Amz-Signature")
        credentials = self._credentials(query["X-Amz-Credential"])
        auth = S3SigV4QueryAuth(credentials, "s3", query["X-Amz-Credential"].split("/")[2])
        signed = query["X-Amz-SignedHeaders"].split(";")
        request = _request(environ, _headers(environ), signed, _encoded(query))
        self._compare(auth, request, query["X-Amz-Date"], signature, float(query["X-Amz-Expires"]))

    def _credentials(self, scope: str) -> Credentials:
        key = scope.split("/")[0]
        if key not in self.accepted:
            raise Refused("403 Forbidden", "InvalidAccessKeyId")
        return Credentials(key, self.accepted[key])

    def _compare(
        self, auth: Any, request: AWSRequest, time_text: str, signature: str, expires_s: float = _SKEW_S
    ) -> None:
        made = datetime.strptime(time_text, "%Y%m%dT%H%M%SZ").replace(tzinfo=timezone.utc).timestamp()
        if not -_SKEW_S < time.time() - made < expires_s:
            raise Refused("403 Forbidden", "AccessDenied")
        request.context["timestamp"] = time_text
        text = auth.string_to_sign(request, auth.canonical_request(request))
        if auth.signature(text, request) != signature:
            raise Refused("403 Forbidden", "SignatureDoesNotMatch")

    def _check_sum(self, environ: dict[str, Any], body: bytes) -> None:
        announced = environ.get("HTTP_X_AMZ_CHECKSUM_SHA256")
        if announced is not None and base64.b64decode(announced) != hashlib.sha256(body).digest():
            raise Refused("400 Bad Request", "BadDigest")


def _half(body: Iterable[bytes]) -> Iterator[bytes]:
    whole = b"".join(body)
    yield whole[: len(whole) // 2]


def _headers(environ: dict[str, Any]) -> dict[str, str]:
    headers = {
        name[5:].replace("_", "-").lower(): value
        for name, value in environ.items()
        if name.startswith("HTTP_")
    }
    for name in ("CONTENT_TYPE", "CONTENT_LENGTH"):
        if environ.get(name):
            headers[name.replace("_", "-").lower()] = environ[name]
    return headers


def _request(environ: dict[str, Any], headers: dict[str, str], signed: list[str], query: str) -> AWSRequest:
    """The request as it was signed: with the signed headers only."""
    url = f"http://{headers['host']}{quote(environ['PATH_INFO'], safe='/-_.~')}"
    names = {*signed, *({"x-amz-content-sha256"} & headers.keys())}
    request = AWSRequest(environ["REQUEST_METHOD"], url + (f"?{query}" if query else ""))
    for name in names:
        if name != "host" and name in headers:
            request.headers[name] = headers[name]
    return request


def _encoded(query: dict[str, str]) -> str:
    return "&".join(
        f"{quote(name, safe='-_.~')}={quote(value, safe='-_.~')}" for name, value in query.items()
    )
