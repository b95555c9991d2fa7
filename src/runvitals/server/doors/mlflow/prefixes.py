"""The beginnings that MLflow's paths have. It loads no framework: every request passes here."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from starlette.types import Scope

PREFIX: Final = "/api/2.0/mlflow"
_OTHER_PREFIXES: Final[Mapping[str, str]] = {
    "/ajax-api/2.0/mlflow": PREFIX,
    "/ajax-api/3.0/mlflow": PREFIX,
    "/api/3.0/mlflow": PREFIX,
}
"""Other beginnings of the same paths. Those that continue with `-artifacts` are included."""


def with_common_prefix(scope: Scope) -> Scope:
    """Return the request with the path that routes have, where MLflow has several for the same."""
    path: str = scope["path"]
    if not path.startswith(("/ajax-api/", "/api/3.0/")):
        return scope
    for theirs, ours in _OTHER_PREFIXES.items():
        if path.startswith(theirs):
            changed = ours + path[len(theirs) :]
            return {**scope, "path": changed, "raw_path": changed.encode("utf-8", "surrogatepass")}
    return scope
