"""The mount table: which file system contains a path, and where the cgroup trees are mounted."""

from __future__ import annotations

from runvitals.monitoring.collectors.base import read_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from runvitals.monitoring.collectors.base import Scope

# Hosts of containers have thousands of mounts, with lines of up to a page.
MAX_BYTES = 16 << 20


class Mount:
    """One line of mountinfo: the folder ``root`` of a file system is mounted at ``point``."""

    __slots__ = ("kind", "options", "point", "root")

    def __init__(self, root: str, point: str, kind: str, options: str) -> None:
        self.root = root
        self.point = point
        self.kind = kind
        self.options = tuple(options.split(","))


def read_mounts(scope: Scope) -> list[Mount]:
    """Return the mounts visible to this process, oldest first; empty if /proc/self/mountinfo cannot be read.

    With a host root, ``DIR/proc/self`` is still this process; if the host's root is mounted at DIR in our
    namespace, the mount points are valid as they are. In a copied tree, as a test writes one, they are the
    host's and lie below DIR. Both are returned as paths that this process can open.
    """
    text = read_text(scope.path("/proc/self/mountinfo"), MAX_BYTES)
    mounts = [mount for line in (text or "").split("\n") if (mount := _parse(line)) is not None]
    ours = any(within(mount.point, scope.host_root) for mount in mounts) if scope.host_root else True
    if not ours:
        for mount in mounts:
            mount.point = (scope.host_root + mount.point).rstrip("/") or "/"
    return mounts


def mount_of(mounts: Sequence[Mount], path: str) -> Mount | None:
    """Find the mount that contains a path.

    The one with the longest matching mount point, and of several at the same point the latest.

    >>> mount_of([Mount("/", "/", "ext4", ""), Mount("/", "/home", "nfs4", "")], "/home2").kind
    'ext4'
    """
    best: Mount | None = None
    for mount in mounts:
        if within(path, mount.point) and (best is None or len(mount.point) >= len(best.point)):
            best = mount
    return best


def within(path: str, folder: str) -> bool:
    """Return whether a path is a folder or is inside of it, by whole names: /home2 is not within /home."""
    return path == folder or path.startswith(folder.rstrip("/") + "/")


def _parse(line: str) -> Mount | None:
    # "36 35 98:0 /root /point rw,noatime shared:1 - ext4 /dev/sda1 rw": optional fields, then " - ".
    left, dash, right = line.partition(" - ")
    before, after = left.split(" "), right.split(" ")
    if not dash or len(before) < 6 or len(after) < 3:
        return None
    return Mount(_unescape(before[3]), _unescape(before[4]), after[0], after[2])


def _unescape(name: str) -> str:
    """Replace each backslash and three octal digits by their byte: blanks, tabs, `#` … are written so."""
    if "\\" not in name:
        return name
    data, *others = name.encode().split(b"\\")
    for part in others:
        code = part[:3]
        is_octal = len(code) == 3 and code[:1] in b"0123" and all(digit in b"01234567" for digit in code)
        data += bytes((int(code, 8),)) + part[3:] if is_octal else b"\\" + part
    return data.decode("utf-8", "replace")
