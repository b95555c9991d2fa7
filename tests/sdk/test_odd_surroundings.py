"""Unusual environments: `init()` never ends the training, warns once, and records what it can."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from runvitals.journal import frames
from runvitals.journal.reader import read_run
from runvitals.readers.journals.run_handle import open_run
from tests.journal.test_full_disk import NAMESPACE, needs_mounts
from tests.patience import PATIENCE_S
from tests.sdk.runs import Journals, Start, environment, eventually, finished, say, succeeded

TRAINING = """
    import runvitals
    run = runvitals.init(id="run1", config={"lr": 0.1}, settings={"sampling_interval": 0.1})
    for n in range(3):
        run.log({"n": n})
    run.alert("title")
    run.finish()
"""

# What programs put there to have all that is said in a log file, too.
ODD_STDERR = "import io, sys\nclass Odd(io.TextIOBase):\n    write = lambda self, text: len(text)\n    "


def logged(journals: Journals) -> list[int]:
    return [r["data"]["n"] for r in journals.history("run1")]


@pytest.mark.parametrize(
    "before",
    [
        "import os; [os.close(fd) for fd in (0, 1, 2)]",
        "import os; os.close(2)",
        "import sys; sys.stdin.close(); sys.stdout.close(); sys.stderr.close()",
        "import sys; sys.stdin = sys.stdout = sys.stderr = None",
        "import os; os.mkdir('gone'); os.chdir('gone'); os.rmdir('../gone')",
        "import os; os.umask(0o777)",
        "import os, sys; os.environ.clear(); os.environ['RUNVITALS_DIR'] = sys.argv[1]",
        "import signal; signal.signal(signal.SIGCHLD, signal.SIG_IGN)",
        "import sys; sys.argv = sys.orig_argv = None",
        "import os, select; del select.poll; os.waitpid = None",  # as gevent and eventlet replace them
        "import pathlib, sys; sys.path += [pathlib.Path('/'), None, b'site-packages']",
        ODD_STDERR + "fileno = NotImplemented\nsys.stderr = Odd()",
        ODD_STDERR + "fileno = lambda self: None\nsys.stderr = Odd()",
        ODD_STDERR + "write = lambda self, text: {}[text]\nsys.stderr = Odd()",
    ],
)
def test_training_in_an_unusual_environment(before: str, journals: Journals, tmp_path: Path) -> None:
    work = tmp_path / "work"
    work.mkdir()
    script = f"{before}\n{textwrap.dedent(TRAINING)}"
    done = subprocess.run(
        [sys.executable, "-c", script, str(tmp_path)],
        cwd=work, env=environment(tmp_path), capture_output=True, text=True, timeout=PATIENCE_S,
    )  # fmt: skip
    assert (done.returncode, "Traceback" in done.stderr) == (0, False), done.stderr
    assert logged(journals) == [0, 1, 2]
    assert journals.end("run1")["state"] == "finished"
    assert len(journals.samples("run1")) >= 2
    assert "sh:" not in done.stderr


def test_sigpipe_in_the_training_is_recorded(train: Start, journals: Journals) -> None:
    process = train(
        """
        import signal, runvitals
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)
        run = runvitals.init(id="run1")
        input()
        run.finish()
        """
    )
    (monitor,) = eventually(lambda: len(journals.samples("run1")) and journals.monitors())
    os.kill(monitor, signal.SIGKILL)
    eventually(lambda: not Path(f"/proc/{monitor}").exists())
    say(process, "")
    succeeded(process)
    assert journals.end("run1")["state"] == "finished"


def test_data_folder_with_a_name_that_is_not_utf_8(tmp_path: Path) -> None:
    folder = os.fsencode(tmp_path) + b"/caf\xe9"
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(TRAINING)],
        env={**environment(tmp_path), "RUNVITALS_DIR": os.fsdecode(folder)},
        capture_output=True,
        timeout=PATIENCE_S,
    )
    assert done.returncode == 0, done.stderr
    records = list(read_run(os.fsdecode(folder) + "/runs/run1"))
    assert [r.value["what"] for r in records if r.type == frames.LIFECYCLE][-1] == "end"
    assert open_run("run1", os.fsdecode(folder)).state == "finished"


def test_delivery_from_a_folder_that_is_not_utf_8(tmp_path: Path) -> None:
    folder, out = os.fsencode(tmp_path) + b"/caf\xe9", tmp_path / "out"
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(TRAINING), b"caf\xe9"],
        env={
            **environment(tmp_path, RUNVITALS_DESTINATIONS=f"files:{out}"),
            "RUNVITALS_DIR": os.fsdecode(folder),
            **{f"RUNVITALS_{name}": os.fsdecode(b"caf\xe9") for name in ("NOTES", "NAME", "PROJECT", "TAGS")},
            "RUNVITALS_DELIVERY_TIMEOUT": "20",
        },
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
    )
    assert done.returncode == 0, done.stderr
    assert "delivered to files:" in done.stderr
    assert list(out.rglob("*run1*"))
    run = open_run("run1", os.fsdecode(folder))
    assert (run.facts.name, run.facts.project, run.facts.tags, run.problems) == ("caf�", "caf�", ["caf�"], [])


def test_command_in_a_deleted_working_folder(tmp_path: Path) -> None:
    script = 'mkdir gone && cd gone && rmdir ../gone && exec "$0" -m runvitals run --id run1 -- true'
    done = subprocess.run(
        ["sh", "-c", script, sys.executable],
        cwd=tmp_path, env=environment(tmp_path), capture_output=True, text=True, timeout=PATIENCE_S,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert open_run("run1", str(tmp_path)).state == "finished"


def test_relative_data_folder_in_a_deleted_working_folder(tmp_path: Path) -> None:
    (tmp_path / "tmp").mkdir()
    script = "import os; os.mkdir('gone'); os.chdir('gone'); os.rmdir('../gone')\n" + textwrap.dedent(
        TRAINING
    )
    done = subprocess.run(
        [sys.executable, "-c", script],
        cwd=tmp_path,
        env={**environment(tmp_path), "RUNVITALS_DIR": "data", "TMPDIR": str(tmp_path / "tmp")},
        capture_output=True, text=True, timeout=PATIENCE_S,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "is recorded in" in done.stderr
    [folder] = (tmp_path / "tmp").glob("runvitals-data-*")
    assert open_run("run1", str(folder)).state == "finished"


def test_symbolic_link_of_another_user_is_not_followed(
    train: Start, journals: Journals, tmp_path: Path
) -> None:
    temporary, victims = tmp_path / "tmp", tmp_path / "victims"
    temporary.mkdir()
    victims.mkdir()
    (temporary / f"runvitals-data-{os.getuid()}").symlink_to(victims)
    script = f"""
        import os
        os.environ["RUNVITALS_DIR"] = "/proc/nowhere"
        {textwrap.dedent(TRAINING).strip().replace(chr(10), chr(10) + " " * 8)}
    """
    _, err = succeeded(train(script, TMPDIR=str(temporary)))
    assert "this training is not recorded" in err
    assert not list(victims.iterdir())


def test_no_writable_folder(train: Start, journals: Journals) -> None:
    before = "import tempfile; tempfile.tempdir = '/proc/no'"
    script = f"{before}\n{textwrap.dedent(TRAINING)}\nprint('trained', run.disabled)"
    code, out, err = finished(train(script, RUNVITALS_DIR="/proc/no/such/place"))
    assert (code, out.strip()) == (0, "trained True"), err
    assert err.count("is not recorded") == 1


LIMITED = """
    import os, resource
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, ({limit}, {hard}))
    import runvitals
    run = runvitals.init(id="run1", settings={{"sampling_interval": 0.1}})
    mine = [os.open("/dev/null", os.O_RDONLY) for _ in range({limit} - 3)]
    for n in range(2):
        run.log({{"n": n}})
    for fd in mine:
        os.close(fd)
    run.log({{"n": 2}})
    run.finish()
"""


@pytest.mark.parametrize("limit", [4, 8, 16, 32])
def test_few_descriptors_below_the_hard_limit(limit: int, train: Start, journals: Journals) -> None:
    succeeded(train(LIMITED.format(limit=limit, hard="hard")))
    assert logged(journals) == [0, 1, 2], "ours take none of the program's"
    assert journals.end("run1")["state"] == "finished"
    assert len(journals.samples("run1")) >= 2


@pytest.mark.parametrize("limit", [4, 8, 16, 32])
def test_few_descriptors_at_the_hard_limit(limit: int, train: Start, journals: Journals) -> None:
    _, err = succeeded(train(LIMITED.format(limit=limit, hard=limit)))
    assert logged(journals) == [2], "the program had all of them before, and we kept none"
    assert open_run("run1", str(journals.directory)).state == "finished"
    assert err.count("no system metrics") == 1
    events = [r.value for r in journals.records("run1") if r.type == frames.EVENT]
    assert [(e["name"], e["count"]) for e in events] == [("records_lost", 2)]


@pytest.mark.parametrize("event", ["socket.connect", "socket.bind", "os.posix_spawn"])
def test_sandbox_that_raises_on_system_calls(event: str, train: Start, journals: Journals) -> None:
    script = f"""
        import sys
        def hook(event, arguments):
            if event == {event!r}:
                raise RuntimeError("forbidden here")
        sys.addaudithook(hook)
        {textwrap.dedent(TRAINING).strip().replace(chr(10), chr(10) + " " * 8)}
    """
    _, err = succeeded(train(script))
    assert "no system metrics for run run1 yet, will retry: could not connect to the monitor" in err
    assert logged(journals) == [0, 1, 2]
    assert journals.end("run1")["state"] == "finished"


@pytest.mark.parametrize(
    ("ending", "state", "exit_code", "by_signal"),
    [("exit 3", "failed", 3, None), ("kill -9 $$", "crashed", None, 9), ("true", "finished", 0, None)],
)
def test_command_without_a_monitor(
    ending: str, state: str, exit_code: int | None, by_signal: int | None, journals: Journals, tmp_path: Path
) -> None:
    done = subprocess.run(
        ["sh", "-c", 'ulimit -n 12; exec "$0" -m runvitals run --id run1 --name one -- sh -c "$1"',
         sys.executable, ending],
        env=environment(tmp_path), capture_output=True, text=True, timeout=PATIENCE_S,
    )  # fmt: skip
    assert done.returncode == (128 + by_signal if by_signal else exit_code), done.stderr
    assert "no system metrics" in done.stderr
    run = open_run("run1", str(tmp_path))
    assert (run.state, run.facts.name) == (state, "one")
    end = journals.end("run1")
    assert (end["exit_code"], end["signal"]) == (exit_code, by_signal)


def test_every_file_of_a_run_without_a_monitor_names_its_team(journals: Journals, tmp_path: Path) -> None:
    done = subprocess.run(
        ["sh", "-c", 'ulimit -n 12; exec "$0" -m runvitals run --id run1 -- echo done', sys.executable],
        env=environment(tmp_path) | {"RUNVITALS_ENTITY": "vision"},
        capture_output=True, text=True, timeout=PATIENCE_S,
    )  # fmt: skip
    assert "no system metrics" in done.stderr
    starts = [record.value for record in journals.records("run1") if record.type == frames.START]
    assert starts
    assert not any(start["role"] == "monitor" for start in starts)
    assert {start["entity"] for start in starts} == {"vision"}


def test_failing_run_without_a_monitor(train: Start, journals: Journals) -> None:
    script = """
        import resource, runvitals
        resource.setrlimit(resource.RLIMIT_NOFILE, (16, 16))
        with runvitals.init(id="run1") as run:
            raise ValueError
    """
    assert finished(train(script))[0] == 1
    run = open_run("run1", str(journals.directory))
    assert (run.state, run.facts.exit_code) == ("failed", 1)


FIRST_PROCESS = ["unshare", "--user", "--map-root-user", "--pid", "--fork", "--mount-proc"]


@needs_mounts
@pytest.mark.parametrize("ending", ["", "raise ValueError"])
@pytest.mark.parametrize(
    "shell", [(), ("sh", "-c", '"$@"; exit $?', "sh")], ids=["first", "started by the first"]
)
def test_container_that_ends_with_the_training(
    shell: tuple[str, ...], ending: str, journals: Journals, tmp_path: Path
) -> None:
    script = f"import os, runvitals; runvitals.init(id='run1').log({{'pid': os.getpid()}}); {ending}"
    done = subprocess.run(
        [*FIRST_PROCESS, *shell, sys.executable, "-c", script],
        env=environment(tmp_path), capture_output=True, text=True, timeout=PATIENCE_S,
    )  # fmt: skip
    code = 1 if ending else 0
    assert done.returncode == code, done.stderr
    assert [row["data"]["pid"] == 1 for row in journals.history("run1")] == [not shell]
    expected, *observed = journals.lifecycle("end", "run1")
    assert (expected["state"], expected["expected"]) == ("failed" if code else "finished", True)
    assert [end["exit_code"] for end in observed] in ([], [code])


ON_A_FULL_DISK = """
    import os, sys
    disk = sys.argv[1]
    os.environ["RUNVITALS_DIR"] = disk + "/data"
    ballast = os.open(disk + "/ballast", os.O_WRONLY | os.O_CREAT)
    try:
        while True:
            os.write(ballast, bytes(1024))
    except OSError:
        pass
    import runvitals
    run = runvitals.init(id="run1", config={"lr": 0.1}, settings={"sampling_interval": 0.1})
    run.log({"n": 0})
    print("trains", flush=True)
    os.ftruncate(ballast, 0)
    run.log({"n": 1})
    run.finish()
"""


def train_on_a_full_disk(tmp_path: Path, options: str, script: str) -> subprocess.CompletedProcess[str]:
    disk, kept = tmp_path / "disk", tmp_path / "kept"
    disk.mkdir()
    command = f'mount -t tmpfs -o {options} none "$2" && "$0" -c "$1" "$2" && cp -r "$2" "$3"'
    return subprocess.run(
        [*NAMESPACE, "sh", "-c", command, sys.executable, textwrap.dedent(script), str(disk), str(kept)],
        env=environment(tmp_path), capture_output=True, text=True, timeout=PATIENCE_S,
    )  # fmt: skip


@needs_mounts
def test_disk_full_at_the_start(tmp_path: Path) -> None:
    done = train_on_a_full_disk(tmp_path, "size=256k", ON_A_FULL_DISK)
    assert (done.returncode, done.stdout) == (0, "trains\n"), done.stderr
    assert done.stderr.count("the training continues") == 1
    assert "Traceback" not in done.stderr
    run = open_run("run1", str(tmp_path / "kept" / "data"))
    assert [row.data["n"] for row in run.history()] == [1], "written since there is room"
    assert sum(event.data["count"] for event in run.events if event.name == "records_lost") >= 2
    assert run.state == "finished"


FILLS_ITS_DISK = """
    import os, sys, time
    disk = sys.argv[1]
    os.environ["RUNVITALS_DIR"] = disk + "/data"
    import runvitals
    run = runvitals.init(id="run1", settings={"sampling_interval": 0.1})
    while not any(name.endswith(".reserve") for name in os.listdir(disk + "/data/runs/run1")):
        time.sleep(0.01)
    ballast = os.open(disk + "/ballast", os.O_WRONLY | os.O_CREAT)
    try:
        while True:
            os.write(ballast, bytes(64))
    except OSError:
        pass
    for n in range(1000):
        run.log({"n": n})
    run.finish(exit_code=3)
"""


@needs_mounts
def test_disk_that_fills_up(tmp_path: Path) -> None:
    done = train_on_a_full_disk(tmp_path, "size=512k", FILLS_ITS_DISK)
    assert done.returncode == 0, done.stderr
    run = open_run("run1", str(tmp_path / "kept" / "data"))
    assert (run.state, run.facts.exit_code) == ("failed", 3)


@needs_mounts
def test_disk_without_free_inodes(tmp_path: Path) -> None:
    script = ON_A_FULL_DISK.replace("import os, sys\n", "import os, sys; open(sys.argv[1] + '/more', 'w')\n")
    done = train_on_a_full_disk(tmp_path, "size=256k,nr_inodes=3", script)
    assert (done.returncode, done.stdout) == (0, "trains\n"), done.stderr
    assert done.stderr.count("the training continues") == 1
    assert "Traceback" not in done.stderr
