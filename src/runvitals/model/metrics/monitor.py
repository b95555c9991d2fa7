"""Metrics of the monitor itself: its cost, and its failures."""

from runvitals.model.metrics.metric import counter, gauge

# fmt: off
METRICS = (
    gauge("monitor.sampleMs", "ms", "Monitor", name="monitor.sample", scope="monitor",
          text="CPU time of one sample.", source="CPU clock of the monitor around a sample"),
    gauge("monitor.{source}.ms", "ms", "Monitor", name="monitor.source", scope="monitor",
          text="Time taken to read one source.",
          source="monotonic clock around the source's sample()"),
    gauge("monitor.cpuPercent", "%", "Monitor CPU", name="monitor.cpu.utilization", scope="monitor",
          text="CPU time of the monitor as a share of one core.",
          source="CPU clock of the monitor ÷ elapsed time"),
    gauge("monitor.rssMB", "MiB", "Monitor memory", name="monitor.memory.rss", scope="monitor", merge="max",
          text="Resident memory of the monitor.", source="resident pages in /proc/self/statm × page size"),
    counter("monitor.{source}.failures", "1", "Monitor faults", name="monitor.source.failures",
            scope="monitor",
            text="Samples in which one source failed; its keys are missing there.",
            source="counted by the monitor"),
    counter("monitor.{source}.impossible", "1", "Monitor faults", name="monitor.source.impossible",
            scope="monitor",
            text="Values of one source that were left out because they are impossible.",
            source="counted by the monitor, by the ranges of the metrics"),
    counter("monitor.missedTicks", "1", "Monitor faults", name="monitor.missed_ticks", scope="monitor",
            text="Samples that were skipped because the monitor could not run in time.",
            source="counted by the monitor"),
    gauge("wandb.cpu", "%", "W&B client CPU", name="wandb.cpu.utilization", scope="monitor",
          text="CPU time of the W&B client's processes, in imported W&B runs.", source="W&B client"),
    gauge("wandb.memory.rssMB", "MiB", "W&B client memory", name="wandb.memory.rss", scope="monitor",
          merge="max",
          text="Resident memory of the W&B client's processes, in imported W&B runs.",
          source="W&B client"),
)
# fmt: on
