"""The Python packages that a training can import."""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

# Installers name the folder `NAME-VERSION.dist-info`; older ones `NAME-VERSION-py3.11.egg-info`.
# https://packaging.python.org/en/latest/specifications/recording-installed-packages/
_ENDINGS = (".dist-info", ".egg-info")
_ALLOWED = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-+!")
MAX_PACKAGES = 2000
_MAX_CHARACTERS = 200


def packages(folders: Iterable[str]) -> dict[str, str]:
    """Return the versions of the packages in some folders, by normalized name.

    Reads names of files only: 0.6 ms of CPU for 160 packages. If two folders have the same package, the
    version in the first one counts, as for `import`.

    Args:
        folders: those of `sys.path` that contain third-party packages. Missing ones are ignored.

    Example:
        >>> packages(["/usr/lib/python3/dist-packages"])
        {'numpy': '2.4.6', 'typing-extensions': '4.15.0'}
    """
    versions: dict[str, str] = {}
    for folder in folders:
        try:
            names = os.listdir(folder)
        except OSError:
            continue
        for file in names:
            if file.endswith(_ENDINGS) and len(file) <= _MAX_CHARACTERS and _ALLOWED.issuperset(file):
                name, _, rest = file[: file.rindex(".")].partition("-")
                version = rest.partition("-")[0]
                if name and version:
                    versions.setdefault(_normalize(name), version)
    return dict(sorted(versions.items())[:MAX_PACKAGES])


def _normalize(name: str) -> str:
    """Normalise a name as package indices do, so that `A_b.C` is `a-b-c`.

    https://packaging.python.org/en/latest/specifications/name-normalization/
    """
    return "-".join(part for part in name.lower().replace("_", ".").split(".") if part)
