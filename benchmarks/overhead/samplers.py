"""The tools as the training process uses them: import, start, log a row, stop.

This module is loaded into the measured process, so it imports very little.
"""

from __future__ import annotations

import os
import sys
import time

# nvitop takes the snapshots in a second thread, at about the time when the first one collects them.
_AROUND_NS = 5_000_000

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Protocol

    class Sampler(Protocol):
        """The interface to a tool."""

        def load(self) -> None:
            """Import the tool, including everything that its first use would import."""

        def start(self, interval_s: float, directory: str) -> None: ...

        def log(self, row: int) -> None: ...

        def samples(self) -> list[tuple[int, int, int]]:
            """(start, end, number of values) of each sample taken inside this process, in ns UTC."""

        def about(self) -> dict[str, str]:
            """Return what the benchmark needs to find the records."""

        def stop(self) -> None: ...


class Nothing:
    """The training process without a tool, the baseline."""

    def __init__(self) -> None:
        self.taken: list[tuple[int, int, int]] = []

    def load(self) -> None:
        return

    def start(self, interval_s: float, directory: str) -> None:
        return

    def log(self, row: int) -> None:
        return

    def samples(self) -> list[tuple[int, int, int]]:
        return self.taken

    def about(self) -> dict[str, str]:
        return {}

    def stop(self) -> None:
        return


class Runvitals(Nothing):
    def load(self) -> None:
        import runvitals

        self._init = runvitals.init

    def start(self, interval_s: float, directory: str) -> None:
        self._run = self._init(dir=directory, settings={"sampling_interval": interval_s, "quiet": True})

    def log(self, row: int) -> None:
        self._run.log({"row": row, "loss": 0.5}, step=row)

    def about(self) -> dict[str, str]:
        return {"folder": self._run.dir, "run": self._run.id}

    def stop(self) -> None:
        self._run.finish()


class Wandb(Nothing):
    tree = False

    def load(self) -> None:
        import wandb

        self._init, self._settings = wandb.init, wandb.Settings

    def start(self, interval_s: float, directory: str) -> None:
        settings = self._settings(
            x_stats_sampling_interval=interval_s, x_stats_track_process_tree=self.tree, silent=True
        )
        self._run = self._init(project="benchmark", dir=directory, mode="offline", settings=settings)

    def log(self, row: int) -> None:
        self._run.log({"row": row, "loss": 0.5}, step=row)

    def about(self) -> dict[str, str]:
        return {"folder": os.path.dirname(self._run.dir)}

    def stop(self) -> None:
        self._run.finish()


class WandbTree(Wandb):
    """Includes the children of the training process, which is off by default."""

    tree = True


class Mlflow(Nothing):
    store = "sqlite:///{}/mlflow.db"

    def load(self) -> None:
        import mlflow
        from mlflow.system_metrics.system_metrics_monitor import SystemMetricsMonitor

        self._mlflow, self._monitor_class = mlflow, SystemMetricsMonitor
        _ = mlflow.start_run, mlflow.log_metrics, mlflow.end_run

    def start(self, interval_s: float, directory: str) -> None:
        mlflow = self._mlflow
        mlflow.set_tracking_uri(self.store.format(directory))
        run = mlflow.start_run(log_system_metrics=False)
        # Like `start_run(log_system_metrics=True)`, except for the event, which also records the times.
        self._monitor = self._monitor_class(run.info.run_id, sampling_interval=interval_s)
        self._monitor._shutdown_event = self._pause()
        self._monitor.start()

    def _pause(self) -> Any:
        """The event on which MLflow's thread waits between samples. It samples between two waits."""
        import threading

        samples, monitors = self.taken, self._monitor.monitors

        class Pause(threading.Event):
            awake_ns = 0

            def wait(self, timeout: float | None = None) -> bool:
                if self.awake_ns:
                    values = sum(len(monitor._metrics) for monitor in monitors)
                    samples.append((self.awake_ns, time.time_ns(), values))
                stopped = super().wait(timeout)
                self.awake_ns = time.time_ns()
                return stopped

        return Pause()

    def log(self, row: int) -> None:
        self._mlflow.log_metrics({"row": row, "loss": 0.5}, step=row)

    def stop(self) -> None:
        self._monitor.finish()
        self._mlflow.end_run()


class MlflowFiles(Mlflow):
    store = "file://{}/mlruns"


class Nvitop(Nothing):
    def load(self) -> None:
        import nvitop

        self._nvitop = nvitop

    def start(self, interval_s: float, directory: str) -> None:
        samples = self.taken

        class Collector(self._nvitop.ResourceMetricCollector):  # type: ignore[name-defined, misc]
            def collect(self) -> Any:
                begin = time.time_ns()
                reading = super().collect()
                values = sum(key.endswith("/mean") for key in reading)
                samples.append((begin - _AROUND_NS, time.time_ns() + _AROUND_NS, values))
                return reading

        def keep(metrics: dict[str, float]) -> bool:
            return not self._stopped

        self._stopped = False
        self._collector = Collector(devices=[], root_pids={os.getpid()}, interval=interval_s)
        self._thread = self._collector.daemonize(keep)

    def stop(self) -> None:
        self._stopped = True
        self._thread.join()


class Psutil(Nothing):
    """A typical sampling thread in a training script: host, disk, network, and the process tree."""

    def load(self) -> None:
        import psutil

        self._psutil = psutil

    def start(self, interval_s: float, directory: str) -> None:
        import threading

        self._stop = threading.Event()
        self._rows: list[dict[str, float]] = []
        self._known: dict[int, Any] = {}
        self._thread = threading.Thread(target=self._sample_forever, args=(interval_s,), daemon=True)
        self._thread.start()

    def _sample_forever(self, interval_s: float) -> None:
        due_s = time.monotonic()
        while not self._stop.wait(max(0.0, due_s - time.monotonic())):
            due_s += interval_s
            begin = time.time_ns()
            row = self._sample()
            self._rows = [*self._rows[-9:], row]
            self.taken.append((begin, time.time_ns(), len(row)))

    def _sample(self) -> dict[str, float]:
        psutil = self._psutil
        row: dict[str, float] = {"cpu": psutil.cpu_percent()}
        for i, percent in enumerate(psutil.cpu_percent(percpu=True)):
            row[f"cpu.{i}"] = percent
        for name, reading in (
            ("cpu.times", psutil.cpu_times_percent()),
            ("memory", psutil.virtual_memory()),
            ("swap", psutil.swap_memory()),
            ("disk", psutil.disk_io_counters()),
            ("network", psutil.net_io_counters()),
            ("disk./", psutil.disk_usage("/")),
        ):
            for field, value in reading._asdict().items():
                row[f"{name}.{field}"] = value
        row["load1"], row["load5"], row["load15"] = psutil.getloadavg()
        self._add_tree(row)
        return row

    def _add_tree(self, row: dict[str, float]) -> None:
        psutil = self._psutil
        me = self._known.setdefault(os.getpid(), psutil.Process())
        members = [me, *(self._known.setdefault(p.pid, p) for p in me.children(recursive=True))]
        totals = dict.fromkeys(("cpu", "rss", "threads", "read", "written"), 0.0)
        for member in members:
            try:
                with member.oneshot():
                    totals["cpu"] += member.cpu_percent()
                    totals["rss"] += member.memory_info().rss
                    totals["threads"] += member.num_threads()
                    traffic = member.io_counters()
            except psutil.NoSuchProcess:
                self._known.pop(member.pid, None)
                continue
            totals["read"] += traffic.read_bytes
            totals["written"] += traffic.write_bytes
        row.update({f"tree.{name}": value for name, value in totals.items()})
        row["tree.count"] = len(members)

    def stop(self) -> None:
        self._stop.set()
        self._thread.join()


SAMPLERS: dict[str, type[Nothing]] = {
    "nothing": Nothing,
    "runvitals": Runvitals,
    "wandb": Wandb,
    "wandb-tree": WandbTree,
    "mlflow-sqlite": Mlflow,
    "mlflow-files": MlflowFiles,
    "nvitop": Nvitop,
    "psutil": Psutil,
}


def sampler(name: str) -> Sampler:
    """The interface to a tool.

    Raises:
        SystemExit: unknown tool.
    """
    if name not in SAMPLERS:
        sys.exit(f"unknown tool {name!r}; expected one of {', '.join(SAMPLERS)}")
    return SAMPLERS[name]()
