"""An identity provider that sends what Okta and Entra send, as their documentation shows it."""

from __future__ import annotations

from typing import Any

import httpx

from tests.server.accounts_server import AccountsServer

USER = "urn:ietf:params:scim:schemas:core:2.0:User"
GROUP = "urn:ietf:params:scim:schemas:core:2.0:Group"
PATCH = "urn:ietf:params:scim:api:messages:2.0:PatchOp"


class Provider:
    """A client with the secret of the organisation."""

    def __init__(self, server: AccountsServer, secret: str, timeout_s: float) -> None:
        self.server = server
        self.secret = secret
        headers = {"authorization": f"Bearer {secret}", "content-type": "application/scim+json"}
        self.client = httpx.Client(base_url=f"{server.url}/scim/v2/", headers=headers, timeout=timeout_s)

    def __enter__(self) -> Provider:
        return self

    def __exit__(self, *_: object) -> None:
        self.client.close()

    def ask(self, method: str, path: str, status: int = 200, body: Any = None, **params: str) -> Any:
        response = self.client.request(method, path, json=body, params=params)
        assert response.status_code == status, f"{response.status_code}: {response.text}"
        if response.content:
            assert response.headers["content-type"] == "application/scim+json"
        return response.json() if response.content else None

    def patch(self, path: str, *operations: dict[str, Any], status: int = 200) -> Any:
        return self.ask("PATCH", path, status, {"schemas": [PATCH], "Operations": list(operations)})

    def create_user(self, name: str, **more: Any) -> Any:
        """As Okta creates a user."""
        address = f"{name}@example.org"
        body = {
            "schemas": [USER],
            "userName": address,
            "name": {"givenName": name.title(), "familyName": "Example"},
            "emails": [{"primary": True, "value": address, "type": "work"}],
            "displayName": f"{name.title()} Example",
            "locale": "en-US",
            "externalId": f"ext-{name}",
            "groups": [],
            "password": "1mz050nq",
            "active": True,
            **more,
        }
        return self.ask("POST", "Users", 201, body)
