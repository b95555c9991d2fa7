"""Worker processes that a training starts with `spawn`, as PyTorch's data loaders and process pools do."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from runvitals.readers.journals.run_handle import open_run
from tests.sdk.runs import Journals, end_group, environment, eventually, finished, say, succeeded

RunScript = Callable[..., "subprocess.Popen[str]"]

POOL = """
    import multiprocessing, os, signal, subprocess, sys, time
    import runvitals

    SETTINGS = {"sampling_interval": 0.1, "quiet": True}

    def join(*_):
        runvitals.init(id="run1", settings=SETTINGS)

    def wait_for_test():
        print("up", flush=True)
        sys.stdin.readline()

    def end_workers(number=signal.SIGTERM):
        for worker in multiprocessing.active_children():
            os.kill(worker.pid, number)

    def work(number):
        runvitals.init(id="run1", settings=SETTINGS).log({"worker": number})
        time.sleep(0.3)

    def sleep():
        join()
        time.sleep(60)

    def log(number):
        run.log({"worker": number})
"""


@pytest.fixture
def run_script(tmp_path: Path, journals: Journals) -> Iterator[RunScript]:
    """Start a script from a file, which workers import; by `runvitals run` if it is asked for."""
    processes = []

    def start(body: str, *wrapper: str) -> subprocess.Popen[str]:
        script = tmp_path / "script.py"
        script.write_text(textwrap.dedent(POOL) + textwrap.dedent(body))
        processes.append(
            subprocess.Popen(
                [sys.executable, *wrapper, str(script)],
                env=environment(journals.directory),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
                start_new_session=True,
            )
        )
        return processes[-1]

    yield start
    for process in processes:
        end_group(process)


def go_on(process: subprocess.Popen[str], journals: Journals, attached: int, succeeds: bool = True) -> None:
    """Let a script go on when so many processes have attached, and wait for its end."""
    eventually(lambda: len(journals.lifecycle("attach")) == attached)
    say(process, "go on")
    code, _, err = finished(process)
    assert (code == 0) == succeeds, err


@pytest.mark.parametrize("method", ["spawn", "forkserver", "fork"])
def test_terminating_a_pool_after_the_end_does_not_stop_the_run(
    method: str, run_script: RunScript, journals: Journals
) -> None:
    process = run_script(f"""
        if __name__ == "__main__":
            run = runvitals.init(id="run1", settings=SETTINGS)
            pool = multiprocessing.get_context("{method}").Pool(4, join)
            pool.map(work, range(8))
            wait_for_test()
            run.finish()
            pool.terminate()
            pool.join()
    """)
    go_on(process, journals, attached=5)
    assert (journals.end()["state"], journals.end()["exit_code"]) == ("finished", 0)
    assert sorted(row["data"]["worker"] for row in journals.history()) == list(range(8))


def test_workers_of_a_command_that_starts_no_run_itself(run_script: RunScript, journals: Journals) -> None:
    process = run_script(
        """
        if __name__ == "__main__":
            with multiprocessing.get_context("spawn").Pool(2, join) as pool:
                pool.map(work, range(4))
                wait_for_test()
        """,
        "-m", "runvitals", "run", "--id", "run1", "--", sys.executable,
    )  # fmt: skip
    go_on(process, journals, attached=3)
    assert journals.end()["state"] == "finished"


@pytest.mark.parametrize("number", ["SIGTERM", "SIGKILL"])
def test_a_program_that_the_training_started_and_ended(
    number: str, run_script: RunScript, journals: Journals
) -> None:
    process = run_script(f"""
        if len(sys.argv) > 1:
            join()
            time.sleep(60)
        run = runvitals.init(id="run1", settings=SETTINGS)
        worker = subprocess.Popen([sys.executable, __file__, "worker"])
        wait_for_test()
        run.finish()
        worker.send_signal(signal.{number})
        worker.wait()
    """)
    go_on(process, journals, attached=2)
    assert journals.end()["state"] == "finished"


def test_a_worker_that_joins_after_the_end(run_script: RunScript, journals: Journals) -> None:
    """A pool's worker may take longer to start than the whole training."""
    process = run_script("""
        if __name__ == "__main__":
            runvitals.init(id="run1", settings=SETTINGS).finish()
            worker = multiprocessing.get_context("spawn").Process(target=sleep)
            worker.start()
            wait_for_test()
            worker.terminate()
            worker.join()
    """)
    go_on(process, journals, attached=2)
    eventually(lambda: len(journals.lifecycle("end")) == 2)
    assert open_run("run1", str(journals.directory)).state == "finished"


@pytest.mark.parametrize(
    ("end", "state", "signal"),
    [
        ("sys.exit(3)", "crashed", 9),
        ("os.kill(os.getpid(), signal.SIGTERM)", "stopped", 15),
        ("os._exit(0)", "finished", None),
    ],
)
def test_the_end_of_the_main_process_wins(
    end: str, state: str, signal: int | None, run_script: RunScript, journals: Journals
) -> None:
    """A worker that crashed explains why the training failed; without that it does not matter."""
    process = run_script(f"""
        if __name__ == "__main__":
            run = runvitals.init(id="run1", settings=SETTINGS)
            worker = multiprocessing.get_context("spawn").Process(target=sleep)
            worker.start()
            wait_for_test()
            end_workers(signal.SIGKILL)
            worker.join()
            {end}
    """)
    go_on(process, journals, attached=2, succeeds=state == "finished")
    assert (journals.end()["state"], journals.end()["signal"]) == (state, signal)


@pytest.mark.parametrize("method", ["spawn", "forkserver"])
@pytest.mark.parametrize("arguments", ["", 'id="run1", '])
def test_a_script_that_calls_init_in_its_workers_too(
    method: str, arguments: str, run_script: RunScript, journals: Journals
) -> None:
    """Workers import the script. Without a guard around `init()`, they log into the run of their parent."""
    process = run_script(f"""
        run = runvitals.init({arguments}settings=SETTINGS)
        run.config["lr"] = 0.1

        if __name__ == "__main__":
            with multiprocessing.get_context("{method}").Pool(3) as pool:
                pool.map(log, range(6))
            run.log({{"done": 1}})
            run.finish()
    """)
    succeeded(process)
    assert len(journals.folders()) == 1
    assert journals.end()["state"] == "finished"
    assert len(journals.lifecycle("attach")) == 1
    rows = [row["data"] for row in journals.history()]
    assert sorted(row["worker"] for row in rows if "worker" in row) == list(range(6))


def test_workers_that_record_runs_of_their_own(run_script: RunScript, journals: Journals) -> None:
    """A search of parameters, in which each task is a run."""
    process = run_script("""
        def task(number):
            with runvitals.init(config={"n": number}, settings=SETTINGS) as run:
                run.log({"n": number})

        if __name__ == "__main__":
            with multiprocessing.get_context("spawn").Pool(2) as pool:
                pool.map(task, range(3))
    """)
    succeeded(process)
    assert len(journals.folders()) == 3
    for folder in journals.folders():
        assert journals.end(folder.name)["state"] == "finished"
