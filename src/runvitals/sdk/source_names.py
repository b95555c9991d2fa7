"""Checks the names of sources in the setting `collectors`. Loaded only where that is not its default."""

from __future__ import annotations

from collections.abc import Mapping
from difflib import get_close_matches
from typing import Any

from runvitals.base.terminal_text import inert
from runvitals.monitoring.collectors import sources
from runvitals.monitoring.collectors.selection import Selection
from runvitals.monitoring.settings.setting_definition import SettingError
from runvitals.sdk.attachment import site_folders


def check_collectors(values: Mapping[str, Any], origin: str) -> None:
    """Check that the selected sources exist, on some system or in an installed package.

    Args:
        values: the resolved settings.
        origin: where the setting `collectors` was set.

    Raises:
        SettingError: an unknown name; the text lists the known ones.
    """
    names = {*sources.LINUX, *sources.PORTABLE}
    unknown = Selection(values["collectors"]).unknown(names)
    if unknown:
        names.update(sources.third_party(site_folders())[0])
        unknown = Selection(values["collectors"]).unknown(names)
    for word in unknown:
        close = get_close_matches(word, names, 1)
        hint = f"did you mean {close[0]}? " if close else ""
        raise SettingError(
            f"invalid setting collectors ({inert(origin)}): unknown source {word[:60]!r}; {hint}"
            f"expected `all` or some of {', '.join(sorted(names))}, or one with - before it to exclude it"
        )
