"""Google Cloud Storage on loopback: its XML interface, which moto's S3 answers, behind a check of signatures.

Both kinds are checked with the public key of the service account: tokens that it signed itself
(`Authorization: Bearer`), and signed addresses (`GOOG4-RSA-SHA256`).
"""

from __future__ import annotations

import hashlib
import json
import time
from datetime import datetime, timezone
from functools import cache
from typing import Any
from urllib.parse import parse_qsl, quote

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import padding, rsa
from joserfc import jwt
from joserfc.errors import JoseError
from joserfc.jwk import RSAKey

from tests.buckets.s3_service import FOR_MOTO, ObjectService, Refused

EMAIL = "training@project.iam.gserviceaccount.com"


@cache
def _key() -> rsa.RSAPrivateKey:
    return rsa.generate_private_key(public_exponent=65537, key_size=2048)


def service_account() -> str:
    """The key file of the service account, as JSON."""
    pem = _key().private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    account = {"type": "service_account", "client_email": EMAIL, "private_key_id": "1"}
    return json.dumps({**account, "private_key": pem.decode()})


class GoogleService(ObjectService):
    """Objects that only the service account can read and write."""

    def _checked(self, environ: dict[str, Any]) -> dict[str, Any]:
        query = dict(parse_qsl(environ["QUERY_STRING"], keep_blank_values=True))
        if "X-Goog-Signature" in query:
            _check_address(environ, query)
            kept = {name: value for name, value in query.items() if not name.startswith("X-Goog-")}
            environ = {**environ, "QUERY_STRING": "&".join(f"{name}={value}" for name, value in kept.items())}
        else:
            _check_token(environ.get("HTTP_AUTHORIZATION", ""))
        path = quote(environ["PATH_INFO"], safe="/-_.~")  # obstore encodes `-`, moto does not decode it
        return {**environ, "HTTP_AUTHORIZATION": FOR_MOTO, "RAW_URI": path, "REQUEST_URI": path}


def _check_token(header: str) -> None:
    public = RSAKey.import_key(_key().public_key().public_bytes(*_PUBLIC))
    try:
        claims = jwt.decode(header.removeprefix("Bearer "), public, algorithms=["RS256"]).claims
    except (JoseError, ValueError):
        raise Refused("401 Unauthorized", "AuthenticationRequired") from None
    if claims["iss"] != EMAIL or claims["exp"] < time.time():
        raise Refused("401 Unauthorized", "AuthenticationRequired")


_PUBLIC = (serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)


def _check_address(environ: dict[str, Any], query: dict[str, str]) -> None:
    signature = bytes.fromhex(query.pop("X-Goog-Signature"))
    made = datetime.strptime(query["X-Goog-Date"], "%Y%m%dT%H%M%SZ").replace(tzinfo=timezone.utc)
    if time.time() - made.timestamp() > float(query["X-Goog-Expires"]):
        raise Refused("400 Bad Request", "ExpiredToken")
    request = "\n".join(
        (
            environ["REQUEST_METHOD"],
            quote(environ["PATH_INFO"], safe="/-_.~"),
            "&".join(f"{quote(k, safe='')}={quote(v, safe='')}" for k, v in sorted(query.items())),
            "host:storage.googleapis.com\n",  # whatever the address is, obstore signs for this
            "host",
            "UNSIGNED-PAYLOAD",
        )
    )
    scope = query["X-Goog-Credential"].partition("/")[2]
    digest = hashlib.sha256(request.encode()).hexdigest()
    text = f"GOOG4-RSA-SHA256\n{query['X-Goog-Date']}\n{scope}\n{digest}"
    try:
        _key().public_key().verify(signature, text.encode(), padding.PKCS1v15(), hashes.SHA256())
    except InvalidSignature:
        raise Refused("403 Forbidden", "SignatureDoesNotMatch") from None
