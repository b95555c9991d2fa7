"""The beginnings that MLflow's paths have. It loads no framework: every request passes here."""

from __future__ import annotations

from typing import Final

from starlette.types import Scope

PREFIX: Final = "/api/2.0/mlflow"
_OTHER_PREFIXES: Final = ("/ajax-api/2.0/mlflow", "/ajax-api/3.0/mlflow", "/api/3.0/mlflow")
"""Other beginnings of the same paths. Those that continue with `-artifacts` are included."""


def with_common_prefix(scope: Scope) -> Scope:
    """Return the request with the path that routes have, where MLflow has several for the same."""
    path: str = scope["path"]
    for prefix in _OTHER_PREFIXES:
        if path.startswith(prefix):
            changed = PREFIX + path[len(prefix) :]
            return {**scope, "path": changed, "raw_path": changed.encode("utf-8", "surrogatepass")}
    return scope
