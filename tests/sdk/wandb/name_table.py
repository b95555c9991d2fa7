"""Tries each public name of W&B's installed package; writes the table of docs/reference/wandb-names.md.

.venv/bin/python -m tests.sdk.wandb.name_table [FILE]

Run it as a process of its own: which names W&B's package has depends on its modules that were imported.
"""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import pkgutil
import re
import sys
from pathlib import Path
from typing import Any

import runvitals
from runvitals.sdk.wandb_names import INTEGRATIONS as INTEGRATIONS_ABSENT

PAGE = Path(__file__).parents[3] / "docs" / "reference" / "wandb-names.md"
WORKS, IGNORED, ABSENT = "works", "accepted, does nothing", "error"
INTERNAL = frozenset(
    [
        "Config",
        "annotations",
        "analytics",
        "attach",
        "agents",
        "api",
        "ensure_configured",
        "env",
        "helper",
        "patched",
        "profiler",
        "proto",
        "sdk",
        "termsetup",
        "trigger",
        "wandb",
        "wandb_agent",
        "wandb_lib",
        "wandb_sdk",
        "wandb_torch",
    ]
)
"""Modules and functions with which W&B's package is built, not for users."""
SERIALIZATION = frozenset(
    [
        "EXTS",
        "MAX_ARTIFACT_ROWS",
        "MAX_DIMENSION",
        "MAX_ITEMS",
        "MAX_LENGTH",
        "MAX_ROWS",
        "SUPPORTED_POINT_CLOUD_TYPES",
        "SUPPORTED_RDKIT_TYPES",
        "SUPPORTED_TYPES",
        "all_boxes",
        "all_captions",
        "all_masks",
        "bind_to_run",
        "captions",
        "durations",
        "encode",
        "from_json",
        "get_added_local_path_name",
        "get_media_subdir",
        "guess_mode",
        "has_been_logged",
        "image",
        "index_ref",
        "inject_head",
        "json_encode",
        "resolve_ref",
        "sample_rates",
        "seq_to_json",
        "set_fk",
        "set_pk",
        "to_data_array",
        "to_json",
    ]
)
"""Members with which W&B's classes write files."""
CLASSES = ("Artifact", "Audio", "Histogram", "Html", "Image", "Molecule", "Object3D", "Run", "Table", "Video")
MODULES = ("plot", "sklearn")
INTEGRATIONS = "integration"


class Row:
    """A name, what comes of it, and the arguments of W&B's that are not accepted."""

    def __init__(self, name: str, status: str, note: str) -> None:
        self.name, self.status, self.note = name, status, note

    def __str__(self) -> str:
        return f"| `{self.name}` | {self.status} | {self.note} |"


def rows() -> list[Row]:
    """Return a row for each public name, of the package, of its classes, and of its modules."""
    wandb = importlib.import_module("wandb")
    found = [
        _row("", name, wandb, runvitals) for name in dir(wandb) if _public(name) and name not in INTERNAL
    ]
    objects = {
        "Artifact": runvitals.Artifact("name", "model"),
        "Run": runvitals.init(mode="disabled", reinit="create_new"),
    }
    for name in CLASSES:
        theirs, ours = getattr(wandb, name), objects.get(name, getattr(runvitals, name))
        members = [member for member in vars(theirs) if _public(member) and member not in SERIALIZATION]
        found += [_row(f"{name}.", member, theirs, ours) for member in members]
    for name in MODULES:
        theirs, ours = importlib.import_module(f"wandb.{name}"), getattr(runvitals, name)
        found += [_row(f"{name}.", member, theirs, ours) for member in theirs.__all__]
    for module in pkgutil.iter_modules(importlib.import_module("wandb.integration").__path__):
        found.append(_integration(module.name))
    return sorted(found, key=lambda row: row.name)


def _integration(name: str) -> Row:
    if name not in INTEGRATIONS_ABSENT and importlib.util.find_spec(f"runvitals.integration.{name}"):
        return Row(f"integration.{name}", WORKS, "")
    return _row("integration.", name, None, runvitals.integration)


def _public(name: str) -> bool:
    return not name.startswith(("_", "model_"))


def _row(prefix: str, name: str, theirs: Any, ours: Any) -> Row:
    """Return what comes of a name of an object of W&B's on ours."""
    try:
        found = getattr(ours, name)
    except RuntimeError:
        return Row(prefix + name, WORKS, "")  # of the open run, or of an artifact that was logged
    except AttributeError as error:
        instead = re.sub(r"^.*; instead: ", "", str(error)) if "; instead: " in str(error) else ""
        return Row(prefix + name, ABSENT, instead.replace("|", "\\|"))
    nothing = (inspect.getdoc(found) or "").startswith("Do nothing")
    missing = ", ".join(f"`{argument}`" for argument in _missing(getattr(theirs, name), found))
    return Row(prefix + name, IGNORED if nothing else WORKS, f"without {missing}" if missing else "")


def _missing(theirs: Any, ours: Any) -> list[str]:
    """Return the named arguments of W&B's function that ours does not accept."""
    try:
        accepted = inspect.signature(ours).parameters
        wanted = inspect.signature(theirs).parameters
    except (TypeError, ValueError):
        return []
    if any(parameter.kind is parameter.VAR_KEYWORD for parameter in accepted.values()):
        return []
    variadic = (inspect.Parameter.VAR_KEYWORD, inspect.Parameter.VAR_POSITIONAL)
    return [
        name
        for name, parameter in wanted.items()
        if name not in accepted
        and name not in ("self", "split_table")
        and _public(name)
        and parameter.kind not in variadic
    ]


def version() -> str:
    """Return the version of W&B's package that is installed."""
    return str(importlib.import_module("wandb").__version__)


def page() -> str:
    """Return the page."""
    table = "\n".join(map(str, rows()))
    return f"""# W&B's names, one by one

Each public name of version {version()} of W&B's package, tried with `import runvitals as wandb`. What differs
where a name works is told in [`import runvitals as wandb`](wandb-compatibility.md). A program that the tests
use writes this page.

| name | | |
|---|---|---|
{table}
"""


if __name__ == "__main__":
    Path(sys.argv[1] if len(sys.argv) > 1 else PAGE).write_text(page())
