"""The authorization code flow with PKCE: Authlib writes the requests, our guarded fetcher sends them."""

from __future__ import annotations

import base64
import json
import re
import urllib.parse
from collections.abc import Mapping
from typing import Any, Final

from authlib.common.errors import AuthlibBaseError
from authlib.oauth2 import OAuth2Error
from authlib.oauth2.auth import ClientAuth
from authlib.oauth2.client import OAuth2Client

from runvitals.server.outbound.fetcher import FetchedResponse, Fetcher, FetchFailed, FetchLimits
from runvitals.server.outbound.policy import Blocked
from runvitals.server.sign_on.discovery import ProviderFailed
from runvitals.server.sign_on.providers import Provider

_LIMITS: Final = FetchLimits(total_s=10.0, body_bytes=256 * 1024)
_WRONG_CLIENT: Final = ("invalid_client", "unauthorized_client")
"""Errors when the secret is shown in another way than the client was registered for, or is wrong."""
_NOT_IN_DESCRIPTIONS: Final = re.compile(r'[^ -~]|["\\]')


class CodeFlow:
    """The two requests of a sign-in at one provider.

    Args:
        auth_methods: how the provider's token endpoint lets clients show their secret: those of all its
            clients, of which ours may be registered for another one than the first.
    """

    def __init__(
        self,
        provider: Provider,
        fetcher: Fetcher,
        redirect_uri: str,
        authorization_endpoint: str,
        token_endpoint: str,
        auth_methods: tuple[str, ...],
    ) -> None:
        self._fetcher = fetcher
        self._authorization_endpoint = authorization_endpoint
        self._token_endpoint = token_endpoint
        self._auth_methods = _auth_methods(provider, auth_methods)
        self._client = OAuth2Client(
            _Session(fetcher),
            provider.client_id,
            provider.client_secret,
            scope=" ".join(provider.scopes),
            redirect_uri=redirect_uri,
            code_challenge_method="S256",
        )
        self._client.register_client_auth_method(("client_secret_basic", _basic))

    def address(self, state: str, nonce: str, verifier: str, *, again: bool = False) -> str:
        """Return where the browser is sent.

        Args:
            again: the provider is to ask users to sign in though they are signed in there.

        Raises:
            ProviderFailed: the provider's address is not allowed.
        """
        try:
            self._fetcher.check(self._authorization_endpoint)
        except Blocked as error:
            raise ProviderFailed(f"the authorization endpoint: {error}") from error
        prompts = {"prompt": "login", "max_age": "0"} if again else {}
        address, _ = self._client.create_authorization_url(
            self._authorization_endpoint, state=state, nonce=nonce, code_verifier=verifier, **prompts
        )
        return str(address)

    def tokens(self, code: str, verifier: str) -> Mapping[str, Any]:
        """Return the tokens for a code.

        Raises:
            ProviderFailed: the provider refuses the code or cannot be reached.
        """
        *others, last = self._auth_methods
        try:
            for method in others:
                try:
                    return self._tokens(code, verifier, method)
                except OAuth2Error as error:
                    if error.error not in _WRONG_CLIENT:
                        raise
            return self._tokens(code, verifier, last)
        except (AuthlibBaseError, Blocked, FetchFailed, ValueError) as error:
            raise ProviderFailed(f"the token endpoint: {error}") from error

    def _tokens(self, code: str, verifier: str, auth_method: str) -> Mapping[str, Any]:
        self._client.token_endpoint_auth_method = auth_method
        return dict(
            self._client.fetch_token(
                self._token_endpoint, grant_type="authorization_code", code=code, code_verifier=verifier
            )
        )


class _Session:
    """The part of an HTTP library that Authlib's client needs."""

    def __init__(self, fetcher: Fetcher) -> None:
        self._fetcher = fetcher

    def post(
        self, url: str, data: Mapping[str, str], headers: Mapping[str, str], auth: ClientAuth
    ) -> _Response:
        form = urllib.parse.urlencode(data)
        url, sent, form = auth.prepare("POST", url, dict(headers), form)
        return _Response(self._fetcher.post(url, form.encode(), sent, _LIMITS))


class _Response:
    """The part of a response that Authlib's client needs."""

    def __init__(self, response: FetchedResponse) -> None:
        self.status_code = response.status
        self._body = response.body

    def json(self) -> object:
        value = json.loads(self._body)
        if isinstance(value, dict) and isinstance(value.get("error_description"), str):
            # Authlib takes no other characters, but some providers write in the language of their users.
            value["error_description"] = _NOT_IN_DESCRIPTIONS.sub("?", value["error_description"])
        return value

    def raise_for_status(self) -> None:
        if self.status_code >= 400:
            raise ProviderFailed(f"the token endpoint answered with status {self.status_code}")


def _auth_methods(provider: Provider, supported: tuple[str, ...]) -> list[str]:
    if not provider.client_secret:
        return ["none"]
    both = ["client_secret_basic", "client_secret_post"]
    return [method for method in both if method in supported] or both


def _basic(
    client: ClientAuth, method: str, uri: str, headers: dict[str, str], body: str
) -> tuple[str, dict[str, str], str]:
    """Show the secret in a header, in the encoding of RFC 6749 (2.3.1), which Authlib leaves out."""
    pair = ":".join(urllib.parse.quote(text, safe="") for text in (client.client_id, client.client_secret))
    headers["Authorization"] = "Basic " + base64.b64encode(pair.encode()).decode()
    return uri, headers, body
