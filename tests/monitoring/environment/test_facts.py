"""All facts about the environment of a run."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from runvitals.monitoring.collectors.base import Scope
from runvitals.monitoring.environment.facts import command_line, facts
from tests.isolated import printed
from tests.monitoring.collectors.trees import plant

linux_only = pytest.mark.skipif(sys.platform != "linux", reason="/proc is Linux's")


def test_an_empty_host_has_only_our_own_facts(tmp_path: Path) -> None:
    about = facts(plant(tmp_path, {}), 0, "/no/such/folder", {"USER": "me"})
    assert about["user"] == "me"
    assert about["cwd"] == "/no/such/folder"
    assert about.keys() <= {"hostname", "kernel", "architecture", "cpu", "user", "cwd"}


def test_facts_about_the_system(tmp_path: Path) -> None:
    tree = {
        "proc/sys/kernel/hostname": "node17\n",
        "proc/sys/kernel/osrelease": "6.8.0-51-generic\n",
        "proc/sys/kernel/random/boot_id": "6ed07a9a-91d5\n",
        "proc/uptime": "3821.64 7000.00\n",
        "etc/os-release": 'NAME="Ubuntu"\nPRETTY_NAME="Ubuntu 24.04.1 LTS"\n',
    }
    about = facts(plant(tmp_path, tree), 0, "/", {})
    assert about["hostname"] == "node17"
    assert about["os"] == "Ubuntu 24.04.1 LTS"
    assert about["kernel"] == "6.8.0-51-generic"
    assert about["boot_id"] == "6ed07a9a-91d5"
    assert about["uptime_s"] == 3821.64


def test_an_invalid_file_affects_only_its_section(tmp_path: Path) -> None:
    tree = {
        "proc/uptime": "soon\n",
        "proc/meminfo": "MemTotal: much kB\n",
        "proc/sys/kernel/hostname": "node17\n",
    }
    about = facts(plant(tmp_path, tree), 0, "/", {})
    assert about["hostname"] == "node17"
    assert "uptime_s" not in about
    assert about["unreadable"]["uptime_s"] == "ValueError: could not convert string to float: 'soon'"  # type: ignore[index]


def test_facts_are_json_without_secrets_of_the_environment() -> None:
    environ = {
        "HOME": "/root",
        "HF_TOKEN": "tr0ub4dor",
        "AWS_SECRET_ACCESS_KEY": "tr0ub4dor",
        "SLURM_JOB_ID": "7",
        "SLURM_JWT": "tr0ub4dor",
        "CUDA_VISIBLE_DEVICES": "0,1",
    }
    about = facts(Scope(pids=[os.getpid()]), os.getpid(), os.getcwd(), environ)
    written = json.dumps(about)
    assert "tr0ub4dor" not in written
    assert about["platforms"] == {"slurm": {"SLURM_JOB_ID": "7"}}
    assert about["visible_devices"] == {"CUDA_VISIBLE_DEVICES": "0,1"}
    assert "unreadable" not in about


@linux_only
def test_the_command_line_of_a_process_has_no_secrets() -> None:
    program = "import sys; print(flush=True); sys.stdin.read()"
    arguments = [sys.executable, "-c", program, "--token", "tr0ub4dor", "PASSWORD=tr0ub4dor", "", "--lr=0.1"]
    with subprocess.Popen(arguments, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        shown = command_line(process.pid, {})
        process.communicate()
    assert shown == [sys.executable, "-c", program, "--token", "***", "PASSWORD=***", "", "--lr=0.1"]


def test_a_process_that_has_ended_has_no_command_line() -> None:
    assert command_line(2**22 + 1, {}) is None


@linux_only
def test_it_imports_nothing_heavy() -> None:
    loaded = printed("import runvitals.monitoring.environment.facts; print(*sys.modules)").split()
    heavy = {
        "re",
        "json",
        "typing",
        "dataclasses",
        "collections",
        "subprocess",
        "socket",
        "pathlib",
        "enum",
        "logging",
    }
    assert not heavy.intersection(loaded)
