"""The probe for Graphcore IPUs: a cheap check that imports nothing else on machines without one."""

from __future__ import annotations

import os
import sys

from runvitals.monitoring.collectors.base import Absent
from runvitals.monitoring.collectors.plumbing import pci

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from runvitals.monitoring.collectors.base import Scope
    from runvitals.monitoring.collectors.graphcore.collector import Ipus

VENDOR = "1d95"
NODE = "/dev/ipu0"
# IPU-Machines are reached over the network: the host only has the configuration of the partition.
VARIABLES = ("IPUOF_CONFIG_PATH", "IPUOF_VIPU_API_HOST", "IPUOF_VIPU_API_PARTITION_ID")
FOLDERS = ("/etc/ipuof.conf.d", "~/.ipuof.conf.d")
NONE = (
    f"no Graphcore IPU: no PCI device of vendor {VENDOR}, no {NODE}, and neither {', '.join(VARIABLES)} "
    f"nor a file in {' or '.join(FOLDERS)} configures a partition"
)
NO_MODULE = (
    "Graphcore IPUs found, but not the Python module gcipuinfo: source the Poplar SDK's enable.sh before the "
    "training, or put its folder `python` on PYTHONPATH"
)


def probe(scope: Scope) -> Ipus:
    """Return the IPUs of this host's partition.

    Raises:
        Absent: there are none, or the library is missing; the message says what to do.
    """
    if not is_here(scope, os.environ):
        raise Absent(NONE)
    # The monitor's Python ignores PYTHONPATH.
    folders = (*sys.path, *scope.site_folders, *os.environ.get("PYTHONPATH", "").split(os.pathsep))
    folder = find_module(folders)
    if folder is None:
        raise Absent(NO_MODULE)
    from runvitals.monitoring.collectors.graphcore.collector import Ipus

    return Ipus(scope, folder)


def is_here(scope: Scope, environ: Mapping[str, str]) -> bool:
    """Return whether there are IPUs on PCI, or a partition of an IPU-Machine is configured."""
    if pci.cards(scope).get(VENDOR) or os.path.exists(scope.path(NODE)):
        return True
    home = environ.get("HOME", "")
    folders = [folder.replace("~", home) if home else folder for folder in FOLDERS]
    return any(environ.get(name) for name in VARIABLES) or any(map(_has_files, folders))


def find_module(folders: Iterable[str]) -> str | None:
    """Return the first absolute folder that contains the module `gcipuinfo`, or None.

    Relative ones depend on the current directory, where a cloned repository may have a module of this name.
    """
    for folder in folders:
        if os.path.isabs(folder) and any(name.partition(".")[0] == "gcipuinfo" for name in _names(folder)):
            return folder
    return None


def _has_files(folder: str) -> bool:
    return any(name.endswith((".conf", ".json")) for name in _names(folder))


def _names(folder: str) -> list[str]:
    try:
        return os.listdir(folder)
    except OSError:  # no such folder, or a zip file
        return []
