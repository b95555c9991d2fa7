"""Metrics of Apple silicon only."""

from runvitals.model.metrics.metric import counter, gauge

# fmt: off
METRICS = (
    gauge("cpu.ecpu_percent", "%", "CPU by cluster", name="cpu.efficiency.utilization",
          text="Utilization of the efficiency cores (on an M5, the smaller cores).",
          source="IOReport CPU Stats: active residency; macmon-lib, and macmon before 0.8: × clock ÷ highest "
          "clock"),
    gauge("cpu.pcpu_percent", "%", "CPU by cluster", name="cpu.performance.utilization",
          text="Utilization of the performance cores.",
          source="IOReport CPU Stats: active residency; macmon-lib, and macmon before 0.8: × clock ÷ highest "
          "clock"),
    gauge("cpu.active_percent", "%", "CPU by cluster", name="cpu.active",
          text="Share of the time in which the cores were active, mean over all cores.",
          source="macmon 0.8 and newer: cpu_active_ratio"),
    gauge("fan.{i}.rpm", "rpm", "Fans", name="fan.turns",
          otel="hw.fan.speed", attributes={"hw.id": "fan{i}"},
          text="Speed of a fan in revolutions per minute.", source="macmon 0.8 and newer: fans"),
    gauge("fan.{i}.percent", "%", "Fans, share of the highest speed", name="fan.speed", most=200.0,
          otel="hw.fan.speed_ratio", attributes={"hw.id": "fan{i}"},
          text="Speed of a fan as a share of its maximum.",
          source="macmon 0.8 and newer: rpm ÷ max_rpm"),
    gauge("cpu.ecpu_freq", "MHz", "CPU frequency", name="cpu.efficiency.frequency",
          text="Clock of the efficiency cores.", source="IOReport CPU Stats: mean of the active frequencies"),
    gauge("cpu.pcpu_freq", "MHz", "CPU frequency", name="cpu.performance.frequency",
          text="Clock of the performance cores.",
          source="IOReport CPU Stats: mean of the active frequencies"),
    gauge("ane.power", "W", "Power", name="ane.power",
          otel="hw.power", attributes={"hw.type": "ane"},
          text="Electrical power of the Neural Engine.", source="IOReport energy model: ANE"),
    gauge("system.powerWatts", "W", "Power", name="system.power", most=100_000.0,
          otel="hw.power", attributes={"hw.type": "enclosure"},
          text="Electrical power of the whole machine.",
          source="SMC key PSTR, at least CPU + GPU + Neural Engine"),
    gauge("memory.powerWatts", "W", "Power", name="memory.power",
          otel="hw.power", attributes={"hw.type": "memory"},
          text="Electrical power of the memory chips.", source="IOReport energy model: DRAM"),
    gauge("memory.used", "bytes", "Memory in use (macOS)", name="memory.macos.used", merge="max",
          share="memory.used_percent",
          text="Used memory, as reported by macOS.",
          source="host_statistics64: active + inactive + wired + compressed …"),
    gauge("memory.used_percent", "%", "Memory", name="memory.macos.utilization", merge="max",
          text="Used memory as a share of the total, as reported by macOS.",
          source="memory.used ÷ hw.memsize"),
    counter("gpu.{i}.recoveryCount", "1", "GPU recoveries", name="gpu.recoveries", scope="device",
            text="Times the GPU was restarted after a fault.", source="IOAccelerator recoveryCount"),
)
# fmt: on
