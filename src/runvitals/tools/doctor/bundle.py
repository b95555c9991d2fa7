"""Writes a support bundle for remote diagnosis, with secrets redacted."""

from __future__ import annotations

import io
import json
import os
import tarfile
import time
import zipfile
from collections.abc import Callable, Mapping
from dataclasses import asdict
from importlib import metadata
from typing import Any

from runvitals.journal import paths
from runvitals.model.run_json import run_as_dict
from runvitals.monitoring.collectors.base import Scope, read_text
from runvitals.monitoring.environment import facts
from runvitals.monitoring.settings.settings import SETTINGS, trace
from runvitals.readers.journals.runs import RunList
from runvitals.relay.engine.cursor import find_cursors
from runvitals.tools.doctor.examination import Examination
from runvitals.tools.doctor.scrubber import Scrubber, kept_tokens

_ENDINGS = (".tar.gz", ".tgz", ".zip")
# Variables that describe the machine's setup. Not even the names of other variables are included.
_VARIABLES = (
    "RUNVITALS_", "CUDA_", "NVIDIA_", "NCCL_", "ROCR_", "HIP_", "ROCM_", "GPU_", "HSA_", "NEURON_", "TPU_",
    "HABANA_", "ASCEND_", "SLURM_", "PMI_", "OMPI_", "TORCHELASTIC_", "RAY_", "KUBERNETES_", "LC_", "XDG_",
    "PYTHON",
)  # fmt: skip
_SINGLE_VARIABLES = (
    "RANK", "LOCAL_RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT", "TERM", "LANG", "NO_COLOR", "COLUMNS",
    "LINES", "PATH", "LD_LIBRARY_PATH", "http_proxy", "https_proxy", "no_proxy", "HTTP_PROXY", "HTTPS_PROXY",
    "NO_PROXY",
)  # fmt: skip
_FILES = (
    "/proc/self/cgroup", "/proc/self/mountinfo", "/proc/self/status", "/proc/self/limits", "/proc/meminfo",
    "/proc/version", "/proc/driver/nvidia/version",
)  # fmt: skip
_RUNS = 10
_LOG_BYTES = 64 * 1024

_README = """\
A support bundle of runvitals, written by `runvitals doctor --bundle` at {time}.

doctor.json       results of all checks
reading.json      one reading of all sources, and the state of each
machine.json      facts about this machine: system, processors, memory, disks, container
settings.json     all settings and where they come from
environment.txt   variables of runvitals, accelerators, launchers and terminals; no others
packages.txt      installed Python packages
runs.json         state and problems of the {runs} newest runs; no configuration, command, notes or output
files/            {files}

Redacted (as ***): passwords, tokens and keys, recognised by name or by form, and all occurrences of the
values of secret variables and of tokens stored by `runvitals login`. The home folder is written as ~.
Not redacted: names of hosts, users, runs, folders and destinations. Review the bundle before you send it.
"""


def check_name(path: str) -> None:
    """Raise ValueError for an unsupported extension of a bundle, or FileExistsError."""
    if not path.endswith(_ENDINGS):
        raise ValueError(f"--bundle {path}: expected a file name ending in {', '.join(_ENDINGS)}")
    if os.path.exists(path):
        raise FileExistsError(f"--bundle {path}: the file already exists")


def write(
    path: str, report: Examination, values: Mapping[str, Any], directory: str, environ: Mapping[str, str]
) -> list[str]:
    """Write a bundle that only its owner can read; return the names of its files.

    Args:
        path: see `check_name`.
        report: the results to include.
        values: the settings of the examination.
        directory: the data folder.
        environ: the environment.
    """
    contents = _contents(report, values, directory, environ)
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(fd, "wb") as file:
        if path.endswith(".zip"):
            with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
                for name, text in contents.items():
                    archive.writestr(f"runvitals-doctor/{name}", text)
        else:
            with tarfile.open(fileobj=file, mode="w:gz") as tar:
                for name, text in contents.items():
                    _add(tar, f"runvitals-doctor/{name}", text.encode())
    return list(contents)


def _add(tar: tarfile.TarFile, name: str, data: bytes) -> None:
    about = tarfile.TarInfo(name)
    about.size, about.mtime, about.mode = len(data), int(time.time()), 0o600
    tar.addfile(about, io.BytesIO(data))


def _contents(
    report: Examination, values: Mapping[str, Any], directory: str, environ: Mapping[str, str]
) -> dict[str, str]:
    """Return the text of each file by name, scrubbed."""
    headers = [str(text) for text in (values.get("openmetrics_headers") or {}).values()]
    scrub = Scrubber(environ, [*kept_tokens(environ), *headers])
    sections: dict[str, Callable[[], Any]] = {
        "doctor.json": lambda: {"findings": [asdict(finding) for finding in report.findings]},
        "reading.json": lambda: asdict(report.reading),
        "machine.json": lambda: facts.facts(
            Scope(values["host_root"], [os.getpid()]), os.getpid(), os.getcwd(), environ
        ),
        "settings.json": lambda: _settings(environ),
        "runs.json": lambda: _runs(directory),
    }
    contents = {name: _json(ask, scrub) for name, ask in sections.items()}
    contents["environment.txt"] = _environment(environ, scrub)
    contents["packages.txt"] = scrub.text(_packages())
    for name in _FILES:
        text = read_text(name)
        if text is not None:
            contents[f"files/{name.strip('/').replace('/', '_')}"] = scrub.text(text)
    log = _tail(os.path.join(directory, "relay.log"))
    if log:
        contents["files/relay.log"] = scrub.text(log)
    files = ", ".join(name[6:] for name in contents if name.startswith("files/"))
    written_at = time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime())
    return {"README.txt": _README.format(time=written_at, runs=_RUNS, files=files), **contents}


def _json(ask: Callable[[], Any], scrub: Scrubber) -> str:
    try:
        value = ask()
    except (OSError, ValueError) as error:
        value = {"error": f"{type(error).__name__}: {error}"}
    # Once more over the whole text: a secret may be the name of a field, or a number.
    return scrub.hide_known(json.dumps(scrub.value(value), indent=1, ensure_ascii=False, default=str)) + "\n"


def _settings(environ: Mapping[str, str]) -> dict[str, Any]:
    traced = trace({}, environ, os.getcwd())
    return {
        name: {"value": SETTINGS[name].redact(value), "origin": origin}
        for name, (value, origin) in traced.items()
    }


def _environment(environ: Mapping[str, str], scrub: Scrubber) -> str:
    lines = [
        f"{name}={scrub.value(value, name)}"
        for name, value in sorted(environ.items())
        if name.startswith(_VARIABLES) or name in _SINGLE_VARIABLES
    ]
    return "\n".join([*lines, f"# and {len(environ) - len(lines)} others", ""])


def _packages() -> str:
    names = {
        f"{distribution.metadata['Name']}=={distribution.version}"
        for distribution in metadata.distributions()
    }
    return "\n".join(sorted(names, key=str.lower)) + "\n"


def _runs(directory: str) -> list[dict[str, Any]]:
    runs = RunList(directory).runs(time.time_ns() // 1_000_000)[:_RUNS]
    return [
        {
            "id": run.id,
            "state": run.state,
            "started_ms": run.started_ms,
            "ended_ms": run.ended_ms,
            "hosts": run_as_dict(run)["hosts"],
            "sources": run.sources,
            "lost_records": run.lost_records,
            "problems": run.problems,
            # Alerts contain the user's own text.
            "events": [
                {"t": event.time_ms, "name": event.name, "text": event.text}
                for event in run.events
                if event.level != "info" and event.name != "alert"
            ],
            "deliveries": [
                {
                    "to": cursor.spec.shown,
                    "closed": cursor.closed,
                    "error": cursor.error,
                    "counts": cursor.counts,
                }
                for cursor in find_cursors(paths.run_dir(run.id, directory))
            ],
        }
        for run in runs
    ]


def _tail(path: str) -> str:
    try:
        with open(path, "rb") as file:
            file.seek(max(os.path.getsize(path) - _LOG_BYTES, 0))
            return file.read().decode("utf-8", "replace")
    except OSError:  # no relay has ever logged an error
        return ""
