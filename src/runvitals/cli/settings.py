"""`runvitals settings`: every setting, its value here and now, and where it comes from."""

from __future__ import annotations

import argparse
import json
import os
from typing import Any

from runvitals.sdk.settings import SETTINGS, trace


def add(subparsers: Any) -> None:
    parser = subparsers.add_parser("settings", help="every setting, its value here, and where it comes from")
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="as JSON")
    form.add_argument(
        "--markdown", action="store_true", help="the reference, without values: docs/reference/settings.md"
    )


def run(arguments: argparse.Namespace) -> int:
    if arguments.markdown:
        print(reference(), end="")
        return 0
    traced = trace({}, os.environ, os.getcwd())
    if arguments.json:
        rows = {
            name: {"value": SETTINGS[name].shown(value), "from": place}
            for name, (value, place) in traced.items()
        }
        print(json.dumps(rows, indent=1))
        return 0
    width = max(map(len, SETTINGS))
    for name, (value, place) in traced.items():
        print(f"{name:<{width}}  {json.dumps(SETTINGS[name].shown(value))}  ({place})")
    return 0


def reference() -> str:
    """The page docs/reference/settings.md."""
    rows = [
        "<!-- made by `runvitals settings --markdown` -->",
        "# Settings",
        "",
        "A setting is taken from the first of these places that names it:",
        "",
        "1. an argument: `runvitals.init(...)`, `runvitals.Settings(...)`,",
        "   `runvitals run --sampling-interval 0.5`",
        "2. the environment variable",
        "3. the project file: `runvitals.toml` in the working directory or the nearest folder above it",
        "4. the user file: `~/.config/runvitals/settings.toml` (`XDG_CONFIG_HOME` is respected)",
        "5. the default",
        "",
        "A wrong value is an error that names the setting, the place, the value and what is allowed; so is a",
        "setting that does not exist. `runvitals settings` shows what is in force here, and from where.",
        "",
        "A project file comes with whatever was cloned, and its author is not you. By itself it may set what",
        "is harmless (below: “of a project”). The others are ignored, with a word about it, until you",
        "have read the file and said `runvitals trust`. The trust is in its content and ends with any change",
        "of it; `runvitals trust --list` shows what is trusted, `--remove` takes it back.",
        "",
        "| setting | environment variable | default | of a project | allowed | meaning |",
        "|---|---|---|---|---|---|",
    ]
    for setting in SETTINGS.values():
        default = "" if setting.default is None else f"`{json.dumps(setting.default)}`"
        of_project = "yes" if setting.is_harmless(None) else "once trusted"
        if setting.name == "mode":
            of_project = "`offline`, `disabled`"
        names = (f"`{setting.name}`", f"`{setting.variable}`")
        cells = (*names, default, of_project, setting.allowed, setting.text)
        rows.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
    rows += ["", 'The files hold the same names: `sampling_interval = 0.5`, `disk_paths = ["/", "/data"]`.']
    return "\n".join(rows) + "\n"
