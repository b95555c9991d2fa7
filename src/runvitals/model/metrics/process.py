"""Metrics of the run's processes: the training process and, by default, everything it started."""

from runvitals.model.metrics.metric import counter, gauge, rate

# Processes may use more CPUs than the first one may, and each counts the pages that they share.
_BEYOND = 1e6

# fmt: off
METRICS = (
    gauge("cpu", "%", "CPU", name="process.cpu.utilization", scope="process", most=_BEYOND,
          otel="process.cpu.utilization",
          text="CPU time of the run's processes as a share of the CPUs available to them.",
          source="growth of utime + stime in /proc/<pid>/stat ÷ seconds ÷ CPUs by affinity, cpuset, quota"),
    gauge("proc.count", "1", "Processes", name="processes", scope="process", merge="max",
          text="Number of the run's processes.", source="walk of the process tree"),
    gauge("proc.cpu.threads", "1", "Processes", name="process.threads", scope="process", merge="max",
          otel="process.thread.count",
          text="Number of threads of the run's processes.", source="num_threads in /proc/<pid>/stat"),
    gauge("proc.memory.rssMB", "MiB", "Process memory", name="process.memory.rss", scope="process",
          merge="max",
          otel="process.memory.usage",
          text="Resident memory of the run's processes; pages shared by several of them count for each.",
          source="resident pages in /proc/<pid>/statm × page size"),
    gauge("proc.memory.percent", "%", "Memory", name="process.memory.utilization", scope="process",
          merge="max", most=_BEYOND,
          otel="process.memory.utilization",
          text="Resident memory of the run's processes as a share of the memory available to them.",
          source="proc.memory.rssMB ÷ the smallest cgroup limit, else the host's memory"),
    gauge("proc.memory.availableMB", "MiB", "Memory used", name="memory.available", merge="min",
          otel="system.memory.linux.available",
          text="Memory that is available without swapping.",
          source="the smaller of MemAvailable in /proc/meminfo and cgroup limit − working set"),
    counter("proc.io.readMB", "MiB", "Process I/O", name="process.io.read", scope="process",
            otel="process.disk.io", attributes={"disk.io.direction": "read"},
            text="Data read from storage by the run's processes, without reads from the page cache.",
            source="read_bytes in /proc/<pid>/io"),
    counter("proc.io.writeMB", "MiB", "Process I/O", name="process.io.write", scope="process",
            otel="process.disk.io", attributes={"disk.io.direction": "write"},
            text="Data written to storage by the run's processes.", source="write_bytes in /proc/<pid>/io"),
    rate("proc.io.readMBps", "MiB/s", "Process I/O", of="proc.io.readMB", scope="process",
         text="Read throughput of the run's processes."),
    rate("proc.io.writeMBps", "MiB/s", "Process I/O", of="proc.io.writeMB", scope="process",
         text="Write throughput of the run's processes."),
    gauge("proc.cpu.throttledPercent", "%", "CPU throttling", name="cgroup.cpu.throttled_periods",
          scope="cgroup",
          text="Share of the scheduler's periods in which the CPU quota was exhausted.",
          source="growth of nr_throttled ÷ growth of nr_periods in cpu.stat of the cgroup"),
    counter("proc.cpu.throttledSeconds", "s", "CPU throttled time", name="cgroup.cpu.throttled",
            scope="cgroup",
            text="Time for which the cgroup's threads were throttled because the CPU quota was exhausted.",
            source="throttled_usec (v1: throttled_time) in cpu.stat of the cgroup"),
    counter("proc.memory.oomKills", "1", "Out-of-memory kills", name="cgroup.oom_kills", scope="cgroup",
            text="Processes of the cgroup that the kernel killed for lack of memory.",
            source="oom_kill in memory.events (v1: memory.oom_control)"),
)
# fmt: on
