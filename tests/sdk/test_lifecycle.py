"""How runs start and end, with real processes and signals."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from pathlib import Path

import pytest

from runvitals.journal import frames
from runvitals.readers.journals.run_handle import open_run
from runvitals.readers.journals.runs import RunList
from tests.patience import PATIENCE_S
from tests.processes import has_ended
from tests.sdk.runs import Journals, Start, eventually, finished, line, say, succeeded

TRAIN_FOREVER = """
    import runvitals, time
    run = runvitals.init(id="run1", settings={"sampling_interval": 0.1})
    run.log({"loss": 1.0})
    print("up", flush=True)
    while True:
        time.sleep(0.02)
"""


def sampled(journals: Journals) -> bool:
    return len(journals.samples()) >= 2


def kill_monitor(journals: Journals) -> None:
    """Kill the run's monitor after its first samples, and wait until it has ended."""
    (monitor,) = eventually(lambda: sampled(journals) and journals.monitors())
    os.kill(monitor, signal.SIGKILL)
    eventually(lambda: has_ended(monitor))


def log(process: subprocess.Popen[str]) -> None:
    say(process, "log")
    assert line(process) == "logged"


def log_until_replaced(process: subprocess.Popen[str], journals: Journals) -> None:
    """Log until there is a new monitor. A child that the old one had just forked may keep its socket open for
    a moment, so that only a later call notices the death.
    """

    def new_monitor() -> list[int]:
        log(process)
        return journals.monitors()

    eventually(new_monitor)


def test_successful_run(train: Start, journals: Journals) -> None:
    _, err = succeeded(
        train("""
            import runvitals
            run = runvitals.init(
                project="digits", name="first", config={"lr": 0.1}, tags=["a"], notes="n", group="g"
            )
            run.log({"loss": 0.5, "nested": {"acc": 0.9}})
            run.log({"loss": 0.25}, step=10)
            run.log({"loss": 0.125})
            run.summary["best"] = 0.125
            run.finish()
        """)
    )
    end = journals.end()
    assert (end["state"], end["exit_code"], end["signal"]) == ("finished", 0, None)
    assert [(row["step"], row["data"]) for row in journals.history()] == [
        (0, {"loss": 0.5, "nested.acc": 0.9}),
        (10, {"loss": 0.25}),
        (11, {"loss": 0.125}),
    ]
    assert "run" in err


def test_run_of_milliseconds_has_first_and_last_sample(train: Start, journals: Journals) -> None:
    succeeded(train("import runvitals\nwith runvitals.init(): pass"))
    assert len(journals.samples()) >= 2
    assert {"cpu", "memory_percent", "proc.memory.rssMB"} <= set(journals.samples()[0].keys)


def test_finish_waits_for_the_last_sample(train: Start, journals: Journals) -> None:
    process = train("""
        import runvitals
        run = runvitals.init()
        run.finish()
        print("finished", flush=True)
        input()
    """)
    assert line(process) == "finished"
    assert journals.lifecycle("end")


@pytest.mark.parametrize(
    ("ending", "state", "exit_code"),
    [
        ("sys.exit(0)", "finished", 0),
        ("sys.exit(3)", "failed", 3),
        ("raise ValueError('no')", "failed", 1),
        ("os._exit(0)", "finished", 0),
        ("os._exit(7)", "failed", 7),
        ("run.finish(exit_code=4)", "failed", 4),
        ("os.abort()", "crashed", None),
    ],
)
def test_state_follows_from_how_the_process_ended(
    train: Start, journals: Journals, ending: str, state: str, exit_code: int | None
) -> None:
    finished(train(f"import os, sys, runvitals\nrun = runvitals.init()\n{ending}"))
    end = journals.end()
    assert (end["state"], end["exit_code"]) == (state, exit_code)


def test_exception_in_the_context_manager_fails_the_run(train: Start, journals: Journals) -> None:
    finished(train("import runvitals\nwith runvitals.init():\n    1 / 0"))
    assert journals.end()["state"] == "failed"


@pytest.mark.parametrize(
    ("number", "state"),
    [(signal.SIGKILL, "crashed"), (signal.SIGSEGV, "crashed"), (signal.SIGTERM, "stopped")],
)
def test_killed_training(train: Start, journals: Journals, number: signal.Signals, state: str) -> None:
    process = train(TRAIN_FOREVER)
    assert line(process) == "up"
    eventually(lambda: sampled(journals))
    process.send_signal(number)
    end = journals.end()
    assert (end["state"], end["signal"], end["out_of_memory"]) == (state, int(number), False)
    assert journals.lifecycle("exit")[0]["pid"] == process.pid
    assert eventually(lambda: not journals.monitors())


@pytest.mark.parametrize(
    "leak", ["", "os.set_inheritable(os.dup2(os.open('/dev/zero', os.O_RDONLY), 5), True)"]
)
def test_monitor_without_pidfd_open_detects_the_end(train: Start, journals: Journals, leak: str) -> None:
    """As on kernels before 5.3. The monitor must not mistake another descriptor for the process."""
    process = train(f"""
        import os, runvitals
        del os.pidfd_open
        {leak}
        run = runvitals.init(id="run1", settings={{"sampling_interval": 0.1}})
        print("up", flush=True)
        input()
    """)
    assert line(process) == "up"
    eventually(lambda: len(journals.samples()) > 5)
    assert not journals.lifecycle("end")
    process.kill()
    end = journals.end()
    assert (end["state"], end["signal"]) == ("crashed", 9)


def test_ctrl_c_ends_the_training_but_not_the_monitor(train: Start, journals: Journals) -> None:
    process = train(TRAIN_FOREVER)
    assert line(process) == "up"
    os.killpg(process.pid, signal.SIGINT)
    end = journals.end()
    assert (end["state"], end["signal"]) == ("stopped", int(signal.SIGINT))


def test_sigterm_to_the_process_group_is_recorded(train: Start, journals: Journals) -> None:
    process = train(TRAIN_FOREVER)
    assert line(process) == "up"
    eventually(lambda: sampled(journals))
    for pid in (*journals.monitors(), process.pid):
        os.kill(pid, signal.SIGTERM)
    assert journals.end()["signal"] == int(signal.SIGTERM)


def test_training_that_ends_before_its_monitor_started(train: Start, journals: Journals) -> None:
    finished(train("import os, runvitals\nrunvitals.init()\nos.kill(os.getpid(), 9)"))
    end = journals.end()
    assert (end["state"], end["signal"]) == ("crashed", 9)
    assert journals.samples()


def test_killed_monitor_is_restarted_and_the_gap_recorded(train: Start, journals: Journals) -> None:
    process = train("""
        import runvitals
        run = runvitals.init(id="run1", settings={"sampling_interval": 0.1})
        print("up", flush=True)
        while input() != "end":
            run.log({"loss": 1.0})
            print("logged", flush=True)
        run.finish()
    """)
    assert line(process) == "up"
    kill_monitor(journals)
    before = len(journals.samples())
    log_until_replaced(process, journals)
    eventually(lambda: len(journals.samples()) > before + 1)
    (gap,) = journals.lifecycle("gap")
    assert 0 <= gap["t"] - gap["since"] < 60_000
    say(process, "end")
    assert journals.end()["state"] == "finished"
    received = [dict(zip(r.keys, r.values, strict=True)).get("network.recv", 0.0) for r in journals.samples()]
    assert received == sorted(received), (
        "counters go on from the run's first sample, not from the new monitor's"
    )


def test_a_new_monitor_does_not_undo_a_later_description(train: Start, journals: Journals) -> None:
    process = train("""
        import runvitals
        run = runvitals.init(id="run1", name="first", settings={"sampling_interval": 0.1})
        print("up", flush=True)
        while input() != "end":
            run.log({"loss": 1.0})
            print("logged", flush=True)
        run.finish()
    """)
    assert line(process) == "up"
    eventually(lambda: sampled(journals))
    joined = 'import runvitals\nwith runvitals.init(id="run1", name="second", project="vision"): pass'
    assert finished(train(joined))[0] == 0
    kill_monitor(journals)
    log_until_replaced(process, journals)
    eventually(lambda: journals.lifecycle("gap"))
    say(process, "end")
    end = journals.end()
    run = RunList(str(journals.directory)).run("run1", end["t"])
    assert (run.name, run.project) == ("second", "vision")


def test_a_vendor_tool_that_hangs_does_not_stand_in_for_a_killed_monitor(
    train: Start, journals: Journals, tmp_path: Path
) -> None:
    """It would if it had a copy of the socket that the run's processes connect to."""
    tool = tmp_path / "bin/neuron-monitor"
    tool.parent.mkdir()
    tool.write_text(f"#!/bin/sh\necho $$ > {tmp_path}/pid\nexec sleep 600\n")
    tool.chmod(0o755)
    script = """
        import runvitals
        run = runvitals.init(id="run1", settings={"sampling_interval": 0.1})
        print("up", flush=True)
        while input() != "end":
            run.log({"loss": 1.0})
            print("logged", flush=True)
    """
    process = train(script, PATH=f"{tool.parent}:{os.environ['PATH']}")
    assert line(process) == "up"
    hanging = int(eventually((tmp_path / "pid").read_text))
    try:
        kill_monitor(journals)
        log_until_replaced(process, journals)
        assert not has_ended(hanging)
    finally:
        os.kill(hanging, signal.SIGKILL)


def test_run_finishes_although_its_monitor_is_killed_repeatedly(train: Start, journals: Journals) -> None:
    process = train("""
        import runvitals
        run = runvitals.init(id="run1", settings={"sampling_interval": 0.1})
        print("up", flush=True)
        while input() != "end":
            run.log({"loss": 1.0})
            print("logged", flush=True)
        run.log({"loss": 0.0})   # the monitor is not replaced yet: too many have died
        run.finish()
        print("finished", flush=True)
    """)
    assert line(process) == "up"

    kill_monitor(journals)
    log_until_replaced(process, journals)
    kill_monitor(journals)
    log(process)
    say(process, "end")
    assert line(process) == "finished"
    end = journals.end()
    assert (end["state"], end["exit_code"]) == ("finished", 0)
    assert RunList(str(journals.directory)).run("run1", end["t"]).state == "finished"


def test_exit_of_forked_workers_does_not_end_the_run(train: Start, journals: Journals) -> None:
    succeeded(
        train("""
            import os, sys, multiprocessing, runvitals
            run = runvitals.init(id="run1", settings={"sampling_interval": 0.1})
            def work(i):
                run.log({"worker": i})
                sys.exit(0)
            workers = [multiprocessing.get_context("fork").Process(target=work, args=(i,)) for i in range(3)]
            [w.start() for w in workers]
            [w.join() for w in workers]
            if os.fork() == 0:
                sys.exit(5)      # runs the interpreter's exit handlers in the child
            os.wait()
            run.log({"after": 1})
            run.finish()
        """)
    )
    assert journals.end()["state"] == "finished"
    assert len(journals.lifecycle("attach")) == 1
    rows = [row["data"] for row in journals.history()]
    assert {"after": 1} in rows
    assert sorted(row["worker"] for row in rows if "worker" in row) == [0, 1, 2]


DAEMON = """
    import os, sys, runvitals
    run = runvitals.init(id="run1", settings={{"sampling_interval": 0.1}})
    if os.fork():
        {leave}
    os.setsid()
    if os.fork():
        os._exit(0)
    print("up", flush=True)
    while sys.stdin.readline():
        run.log({{"n": run.step}})
        print("logged", flush=True)
    sys.exit(4)
"""


@pytest.mark.parametrize("leave", ["os._exit(0)", "sys.exit(0)"])
def test_a_run_goes_on_in_a_daemon(leave: str, train: Start, journals: Journals) -> None:
    process = train(DAEMON.format(leave=leave))
    assert line(process) == "up"

    def attached() -> bool:
        say(process, "log")
        assert line(process) == "logged"
        return len(journals.lifecycle("attach")) == 2

    eventually(attached)
    samples = len(journals.samples())
    eventually(lambda: len(journals.samples()) > samples + 2)
    assert open_run("run1", str(journals.directory)).state == "running"
    process.communicate(timeout=PATIENCE_S)
    eventually(lambda: open_run("run1", str(journals.directory)).state == "failed")
    assert journals.end()["exit_code"] == 4


@pytest.mark.parametrize(
    ("leave", "state"),
    [
        ("os.kill(os.getpid(), 9)", "crashed"),
        ("os._exit(3)", "failed"),
        ("run.finish(); sys.exit()", "finished"),
    ],
)
def test_a_run_that_has_crashed_failed_or_been_finished_is_not_continued_by_a_worker(
    leave: str, state: str, train: Start, journals: Journals
) -> None:
    process = train(DAEMON.format(leave=leave))
    assert line(process) == "up"
    process.wait(timeout=PATIENCE_S)
    assert journals.end()["state"] == state
    say(process, "log")
    assert line(process) == "logged"
    process.communicate(timeout=PATIENCE_S)
    assert len(journals.lifecycle("attach")) == 1
    assert open_run("run1", str(journals.directory)).state == state


def test_training_gets_no_thread_and_no_child_process(train: Start) -> None:
    _, out, err = finished(
        train("""
            import os, threading, runvitals
            run = runvitals.init()
            children = open(f"/proc/self/task/{os.getpid()}/children").read()
            print(len(os.listdir("/proc/self/task")), threading.active_count(), repr(children))
            run.finish()
        """)
    )
    assert out.strip() == "1 1 ''", err


def test_ranks_of_a_job_share_run_and_monitor(train: Start, journals: Journals) -> None:
    script = """
        import runvitals
        run = runvitals.init(settings={"sampling_interval": 0.1})
        run.log({"rank": run.rank})
        print(run.id, flush=True)
        input()
        run.finish()
    """
    job = {"TORCHELASTIC_RUN_ID": "job-7", "WORLD_SIZE": "8", "LOCAL_WORLD_SIZE": "8"}
    ranks = [train(script, **job, RANK=str(i), LOCAL_RANK=str(i)) for i in range(8)]
    assert len({line(rank) for rank in ranks}) == 1
    eventually(lambda: len(journals.lifecycle("attach")) == 8)
    for rank in ranks:
        say(rank, "finish")
    ends = [finished(rank) for rank in ranks]
    assert [code for code, _, _ in ends] == [0] * 8, ends
    assert journals.end()["state"] == "finished"
    writers = {r.writer for r in journals.records()}
    assert len([w for w in writers if w.startswith("monitor.")]) == 1
    assert sorted(a["rank"] for a in journals.lifecycle("attach")) == list(range(8))


def test_monitor_outlives_the_rank_that_started_it(train: Start, journals: Journals) -> None:
    first = train(TRAIN_FOREVER)
    assert line(first) == "up"
    second = train(TRAIN_FOREVER)
    assert line(second) == "up"
    eventually(lambda: len(journals.lifecycle("attach")) == 2)
    first.kill()
    eventually(lambda: journals.lifecycle("exit"))
    before = len(journals.samples())
    eventually(lambda: len(journals.samples()) > before + 1)
    assert not journals.lifecycle("end")
    second.terminate()
    end = journals.end()
    assert (end["state"], end["signal"]) == ("crashed", 9)


def test_init_in_a_notebook_finishes_the_previous_run(train: Start, tmp_path: Path) -> None:
    kernel = train(TRAIN_FOREVER)
    assert line(kernel) == "up"
    kernel.kill()  # what Jupyter does to a kernel that does not answer
    restarted = train(TRAIN_FOREVER.replace("run1", "run2"))
    assert line(restarted) == "up"
    journals = Journals(tmp_path)
    assert journals.end("run1")["state"] == "crashed"
    assert not journals.lifecycle("end", "run2")


def test_two_consecutive_runs_in_one_process(train: Start, tmp_path: Path) -> None:
    succeeded(
        train("""
            import runvitals
            for i in range(2):
                run = runvitals.init(id=f"run{i}")
                assert runvitals.run is run
                runvitals.log({"i": i})
                runvitals.finish()
            assert runvitals.run is None
        """)
    )
    journals = Journals(tmp_path)
    assert [journals.end(f"run{i}")["state"] for i in range(2)] == ["finished", "finished"]


def test_second_init_in_a_script_returns_the_open_run(train: Start, journals: Journals) -> None:
    succeeded(train("import runvitals\na = runvitals.init()\nassert runvitals.init() is a\na.finish()"))
    assert journals.end()["state"] == "finished"


def test_the_package_can_be_listed_and_asked_while_no_run_is_open(train: Start) -> None:
    succeeded(
        train("""
        import runvitals
        assert not hasattr(runvitals, "config") and not hasattr(runvitals, "summary")
        try:
            runvitals.config.lr
        except RuntimeError as error:
            assert "no run is open" in str(error)
        names = set(dir(runvitals))
        assert {"init", "Settings", "Image", "Api", "config", "errors", "termlog", "mlflow"} <= names
        for name in names - {"config", "summary"}:
            getattr(runvitals, name)
        with runvitals.init():
            assert hasattr(runvitals, "config")
        """)
    )


def test_second_init_says_which_arguments_it_ignores(train: Start) -> None:
    _, err = succeeded(
        train("""
        import runvitals
        a = runvitals.init(project="digits", tags=["x"], config={"lr": 1})
        runvitals.init(project="digits", tags=["x"])
        print("now", flush=True, file=__import__("sys").stderr)
        runvitals.init(project="letters", tags=["y"], config={"lr": 2}, settings={"sampling_interval": 5})
        assert a.project == "digits" and dict(a.config) == {"lr": 1}
        """)
    )
    before, _, after = err.partition("now")
    assert "already open" not in before
    assert "is already open, so project, tags, config, settings had no effect" in after
    assert "init(reinit=True) finishes it" in after


@pytest.mark.parametrize("names", ["nvidea", "cpu,-netwrok"])
def test_an_unknown_source_is_an_error(train: Start, names: str) -> None:
    code, _, err = finished(train("import runvitals\nrunvitals.init()", RUNVITALS_COLLECTORS=names))
    assert code == 1
    assert "invalid setting collectors" in err
    assert f"did you mean {'nvidia' if 'nvidea' in names else 'network'}?" in err


def test_disabled_mode_writes_and_starts_nothing(train: Start, journals: Journals) -> None:
    code, out, err = finished(
        train("""
            import os, runvitals
            run = runvitals.init(mode="disabled", config={"lr": 1})
            run.log({"loss": 1})
            run.alert("title")
            run.summary["x"] = 1
            run.finish()
            run.log({"loss": 2})
            again = runvitals.init(mode="disabled")
            print(again is run, runvitals.run is again)
        """)
    )
    assert (code, out, err) == (0, "False True\n", "")
    assert journals.folders() == []


def test_resumed_run_continues_the_steps(train: Start, journals: Journals) -> None:
    script = (
        'import runvitals\nrun = runvitals.init(id="run1", resume={!r})\nrun.log({{"x": 1}})\nrun.finish()'
    )
    assert finished(train(script.format("allow")))[0] == 0
    assert finished(train(script.format("must")))[0] == 0
    assert [row["step"] for row in journals.history()] == [0, 1]
    code, _, err = finished(train(script.format("never")))
    assert code == 1
    assert "run1 already exists" in err


def test_unwritable_data_folder_is_replaced_with_a_warning(train: Start, tmp_path: Path) -> None:
    elsewhere = tmp_path / "tmp"
    elsewhere.mkdir()
    process = train(
        "import runvitals\nrun = runvitals.init()\nrun.finish()\nprint(run.dir)",
        RUNVITALS_DIR="/proc/no/such/place",
        TMPDIR=str(elsewhere),
    )
    out, err = succeeded(process)
    assert out.startswith(str(elsewhere))
    assert "/proc/no/such/place is not writable" in err
    assert "RUNVITALS_DIR" in err


def test_rows_of_threads_and_signal_handlers_are_all_recorded(train: Start, journals: Journals) -> None:
    succeeded(
        train("""
            import signal, threading, runvitals
            run = runvitals.init()
            handled = []
            def handler(number, frame):
                run.log({"signal": len(handled)})
                handled.append(1)
            signal.signal(signal.SIGALRM, handler)
            signal.setitimer(signal.ITIMER_REAL, 0.001, 0.001)
            def work(i):
                for j in range(500):
                    run.log({"thread": i, "row": j})
            threads = [threading.Thread(target=work, args=(i,)) for i in range(3)]
            [t.start() for t in threads]
            for j in range(500):
                run.log({"thread": 3, "row": j})
            [t.join() for t in threads]
            signal.setitimer(signal.ITIMER_REAL, 0)
            print(len(handled))
            run.finish()
        """)
    )
    rows = [row["data"] for row in journals.history()]
    assert sorted((r["thread"], r["row"]) for r in rows if "row" in r) == [
        (i, j) for i in range(4) for j in range(500)
    ]


def test_steps_may_be_any_integer_type(train: Start, journals: Journals) -> None:
    succeeded(
        train("""
            import numpy, runvitals
            run = runvitals.init()
            run.log({"x": numpy.float32(0.5)}, step=numpy.int64(7))
            for wrong in (1.5, "3", True):
                try:
                    run.log({"x": 1}, step=wrong)
                except TypeError as error:
                    assert repr(wrong) in str(error)
                else:
                    raise AssertionError(wrong)
            run.finish()
        """)
    )
    assert [(row["step"], row["data"]) for row in journals.history()] == [(7, {"x": 0.5})]


def test_connection_lasts_until_the_process_ends(train: Start, journals: Journals) -> None:
    code, out, err = finished(
        train("""
            import atexit, os, sys
            def sockets():
                return sum(os.readlink(f"/proc/self/fd/{fd}").startswith("socket:")
                           for fd in os.listdir("/proc/self/fd") if os.path.exists(f"/proc/self/fd/{fd}"))
            before = sockets()
            atexit.register(lambda: print(sockets() - before))
            import runvitals
            runvitals.init(id="run1")
            sys.exit(3)
        """)
    )
    assert (code, out.strip()) == (3, "1"), err
    assert (journals.end("run1")["state"], journals.end("run1")["exit_code"]) == ("failed", 3)


@pytest.mark.parametrize(
    ("code", "kept"), [("True", 1), ("10**30", 255), ("-(10**30)", 255), ("numpy.int64(3)", 3), ("None", 0)]
)
def test_exit_codes_of_any_integer_type(train: Start, journals: Journals, code: str, kept: int) -> None:
    status, _, err = finished(train(f"import numpy, runvitals; runvitals.init().finish({code})"))
    assert (status, "did not confirm" in err) == (0, False)
    assert journals.end()["exit_code"] == kept
    assert RunList(str(journals.directory)).runs(time.time_ns() // 1_000_000)[0].problems == []


def test_an_exit_code_that_is_no_integer_raises(train: Start, journals: Journals) -> None:
    succeeded(
        train("""
            import runvitals
            run = runvitals.init()
            for wrong in ("0", 1.5):
                try:
                    run.finish(wrong)
                except TypeError as error:
                    assert repr(wrong) in str(error)
                else:
                    raise AssertionError(wrong)
            run.log({"loss": 1})
        """)
    )


def test_threads_and_exit_handlers_log_while_the_interpreter_ends(train: Start, journals: Journals) -> None:
    code, _, err = finished(
        train("""
            import atexit, threading, runvitals
            def late():  # runs after ours, because it was registered before
                ended.set()
                run.log({"late": 1})
                run.config["late"] = 1
                run.log({"report": runvitals.Text("late")})
                logged.wait()
            atexit.register(late)
            run = runvitals.init()
            run.log({"loss": 1})
            ended, logged = threading.Event(), threading.Event()
            def work():
                ended.wait()
                run.log({"thread": 1})
                logged.set()
                threading.Event().wait()
            threading.Thread(target=work, daemon=True).start()
        """)
    )
    assert (code, "Traceback" in err) == (0, False), err
    assert journals.end()["state"] == "finished"
    rows = [name for row in journals.history() for name in row["data"]]
    assert sorted(rows) == ["late", "loss", "thread"]
    records = journals.records()
    assert [record.value["key"] for record in records if record.type == frames.MEDIA] == ["report"]
    assert any(record.type == frames.INFO and "config" in record.value for record in records)


def test_threads_that_start_a_run_at_once_share_it(train: Start, journals: Journals) -> None:
    code, out, err = finished(
        train("""
            import os, threading, runvitals
            start = threading.Barrier(6)
            def work():
                start.wait()
                ids.add(runvitals.init().id)
            ids = set()
            threads = [threading.Thread(target=work) for _ in range(6)]
            [thread.start() for thread in threads]
            [thread.join() for thread in threads]
            print(len(ids))
        """)
    )
    assert (code, out.strip()) == (0, "1"), err
    assert len(journals.folders()) == 1


def test_a_run_that_is_passed_to_another_process_says_what_to_do(train: Start) -> None:
    out, _ = succeeded(
        train("""
            import copy, pickle, runvitals
            run = runvitals.init(id="run1")
            for attempt in (pickle.dumps, copy.deepcopy):
                try:
                    attempt(run)
                except TypeError as error:
                    print(error)
        """)
    )
    assert out.count("call runvitals.init(id='run1') there") == 2


def test_a_run_whose_folder_and_working_directory_are_deleted(train: Start, tmp_path: Path) -> None:
    out, _ = succeeded(
        train(f"""
            import os, shutil, tempfile, runvitals
            here = tempfile.mkdtemp(dir={str(tmp_path)!r})
            os.chdir(here)
            os.rmdir(here)
            run = runvitals.init()
            with open({str(tmp_path / "kept.txt")!r}, "w") as file:
                file.write("kept")
            print(run.save({str(tmp_path / "kept.txt")!r}))
            print([file.name for file in run.files()])
            shutil.rmtree(run.dir)
            open(run.dir, "w").close()
            print(run.files())
            run.log({{"loss": 1}})
        """)
    )
    assert out.splitlines() == ["['kept.txt']", "['kept.txt']", "[]"]


def test_alerts_that_wait_for_any_time(train: Start, journals: Journals) -> None:
    succeeded(
        train("""
            import numpy, runvitals
            from datetime import timedelta
            run = runvitals.init()
            waits = [float("nan"), -1, 10**400, float("inf"), numpy.int64(5), timedelta(minutes=1), None]
            for number, wait in enumerate(waits):
                run.alert(f"title {number}", wait_duration=wait)
            for wrong in ("5", object()):
                try:
                    run.alert("title", wait_duration=wrong)
                except TypeError as error:
                    assert "wait_duration must be seconds or a timedelta" in str(error)
                else:
                    raise AssertionError(wrong)
        """)
    )
    alerts = [r.value for r in journals.records() if r.type == frames.EVENT and r.value["name"] == "alert"]
    longest = 366 * 86_400.0
    assert [alert.get("wait_s") for alert in alerts] == [0.0, 0.0, longest, longest, 5.0, 60.0, None]
