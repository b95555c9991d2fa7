"""An OpenID Connect provider, as a web server on 127.0.0.1.

`Idp.authorize` plays the browser at the provider: it takes the address that we made and returns the query of
the redirect back to us.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import secrets
import urllib.parse
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from typing import Any

from joserfc import jwt
from joserfc.jwk import ECKey, Key, OKPKey, RSAKey

from tests.server.outbound.site import Answer, Site

CLIENT, SECRET = "runvitals", "s3cret/+ä"
RSA = RSAKey.generate_key(2048, {"kid": "rsa"})
EC = ECKey.generate_key("P-256", {"kid": "ec"})
ED = OKPKey.generate_key("Ed25519", {"kid": "ed"})


def answer(value: object, status: int = 200) -> Answer:
    return status, {"Content-Type": "application/json"}, json.dumps(value).encode()


@dataclass
class Idp:
    """A provider with one person at it.

    Attributes:
        claims: about that person.
        changes: what is different in the next ID tokens; None removes a claim.
        header: of the ID tokens; the key is found by `kid`.
        auth_method: the only way in which our client may show its secret.
    """

    site: Site
    host: str
    now_s: float
    claims: dict[str, Any] = field(default_factory=dict)
    changes: dict[str, Any] = field(default_factory=dict)
    header: dict[str, Any] = field(default_factory=lambda: {"alg": "RS256", "kid": "rsa"})
    keys: list[Key] = field(default_factory=lambda: [RSA, EC, ED])
    auth_method: str = "client_secret_basic"
    document: dict[str, Any] = field(default_factory=dict)
    userinfo: dict[str, Any] = field(default_factory=dict)
    codes: dict[str, dict[str, str]] = field(default_factory=dict)
    token_requests: list[dict[str, str]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.site.answers |= {
            "/.well-known/openid-configuration": lambda handler: answer(self._discovery() | self.document),
            "/keys": lambda handler: answer({"keys": [key.as_dict(private=False) for key in self.keys]}),
            "/token": self._token,
            "/userinfo": lambda handler: answer(self.userinfo),
        }

    @property
    def issuer(self) -> str:
        return f"https://{self.host}"

    def authorize(self, url: str, **changes: str) -> dict[str, str]:
        """Return the parameters that the browser brings back after the person agreed."""
        request = dict(urllib.parse.parse_qsl(urllib.parse.urlsplit(url).query))
        assert url.startswith(f"{self.issuer}/authorize?")
        assert request["response_type"] == "code"
        assert request["client_id"] == CLIENT
        assert request["code_challenge_method"] == "S256"
        code = secrets.token_hex(8)
        self.codes[code] = request
        return {"code": code, "state": request["state"], "iss": self.issuer, "session_state": "x"} | changes

    def id_token(self, nonce: str) -> str:
        claims = {
            "iss": self.issuer,
            "aud": CLIENT,
            "sub": "42",
            "exp": self.now_s + 300,
            "iat": self.now_s,
            "nonce": nonce,
            **self.claims,
            **self.changes,
        }
        claims = {name: value for name, value in claims.items() if value is not None}
        return sign(claims, self.header)

    def _discovery(self) -> dict[str, Any]:
        return {
            "issuer": self.issuer,
            "authorization_endpoint": f"{self.issuer}/authorize",
            "token_endpoint": f"{self.issuer}/token",
            "jwks_uri": f"{self.issuer}/keys",
            "authorization_response_iss_parameter_supported": True,
        }

    def _token(self, handler: BaseHTTPRequestHandler) -> Answer:
        form = dict(urllib.parse.parse_qsl(self.site.bodies[-1].decode()))
        self.token_requests.append(form)
        secret = urllib.parse.quote(SECRET, safe="")  # RFC 6749, 2.3.1
        basic = "Basic " + base64.b64encode(f"{CLIENT}:{secret}".encode()).decode()
        shown = handler.headers.get("Authorization"), form.get("client_secret")
        right = {"client_secret_basic": (basic, None), "client_secret_post": (None, SECRET)}
        if shown != right[self.auth_method]:
            return answer({"error": "invalid_client", "error_description": "ungültig"}, 401)
        request = self.codes.pop(form.get("code", ""), None)
        verifier = form.get("code_verifier", "")
        challenge = base64.urlsafe_b64encode(hashlib.sha256(verifier.encode()).digest()).rstrip(b"=").decode()
        if request is None or request["code_challenge"] != challenge:
            return answer({"error": "invalid_grant"}, 400)
        if form.get("redirect_uri") != request["redirect_uri"]:
            return answer({"error": "invalid_grant"}, 400)
        token = self.id_token(request["nonce"])
        return answer({"access_token": "opaque", "token_type": "Bearer", "id_token": token})


def sign(claims: dict[str, Any], header: dict[str, Any]) -> str:
    """A token; also with algorithms that nobody should accept."""
    if header["alg"] in ("none", "HS256"):
        return _unsafe(claims, header)
    key: Key = {"rsa": RSA, "ec": EC, "ed": ED}[header.get("kid", "rsa")]
    if header["alg"] == "PS256":
        return jwt.encode(header, claims, key, algorithms=["PS256"])
    return jwt.encode(header, claims, key, algorithms=["RS256", "ES256", "EdDSA", "Ed25519"])


def _unsafe(claims: dict[str, Any], header: dict[str, Any]) -> str:
    """Without a signature, or with the public key as the secret of HS256."""
    parts = [json.dumps(part).encode() for part in (header, claims)]
    body = b".".join(base64.urlsafe_b64encode(part).rstrip(b"=") for part in parts)
    signature = b""
    if header["alg"] == "HS256":
        signature = hmac.digest(RSA.as_pem(private=False), body, "sha256")
    return (body + b"." + base64.urlsafe_b64encode(signature).rstrip(b"=")).decode()
