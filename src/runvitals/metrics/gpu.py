"""Metrics of GPUs of any vendor, and their `gpu.process.*` counterparts for GPUs that the run uses."""

from dataclasses import replace

from runvitals.metrics.metric import Metric, counter, gauge

_GPU = {"hw.id": "{i}", "hw.type": "gpu"}

# fmt: off
_DEVICE = (
    gauge("gpu.{i}.gpu", "%", "GPU utilization", name="gpu.utilization", scope="device",
          mlflow=("gpu_{i}_utilization_percentage", 1.0),
          otel="hw.gpu.utilization", attributes={"hw.id": "{i}", "hw.gpu.task": "general"},
          text="Share of the time in which a kernel ran, however much of the chip it used.",
          source="NVIDIA: nvmlDeviceGetUtilizationRates; AMD: gpu_busy_percent; Apple: active residency, "
          "else ioreg's Device Utilization"),
    gauge("gpu.{i}.memory", "%", "GPU memory activity", name="gpu.memory.activity", scope="device",
          aliases=["gpu.{i}.memoryReadWriteActivity"],
          text="Share of the time in which the GPU's memory was read or written; not its used share.",
          source="NVIDIA: nvmlDeviceGetUtilizationRates; AMD: mem_busy_percent"),
    gauge("gpu.{i}.memoryAllocated", "%", "GPU memory", name="gpu.memory.utilization", scope="device",
          merge="max", mlflow=("gpu_{i}_memory_usage_percentage", 1.0),
          otel="hw.gpu.memory.utilization", attributes={"hw.id": "{i}"},
          text="Used share of the GPU's memory.",
          source="NVIDIA: nvmlDeviceGetMemoryInfo; AMD: mem_info_vram_*; Apple: in-use system memory ÷ all"),
    gauge("gpu.{i}.memoryAllocatedBytes", "bytes", "GPU memory used", name="gpu.memory.used", scope="device",
          merge="max", aliases=["gpu.{i}.memoryUsedBytes"], mlflow=("gpu_{i}_memory_usage_megabytes", 1e-6),
          otel="hw.gpu.memory.usage", attributes={"hw.id": "{i}"},
          text="Used memory of the GPU.", source="NVIDIA: nvmlDeviceGetMemoryInfo; AMD: mem_info_vram_used"),
    gauge("gpu.{i}.temp", "°C", "GPU temperature", name="gpu.temperature", scope="device", merge="max",
          otel="hw.temperature", attributes={**_GPU, "hw.sensor_location": "core"},
          text="Temperature of the GPU.",
          source="NVIDIA: nvmlDeviceGetTemperature; AMD: hwmon mem, junction or edge; Apple: SMC"),
    gauge("gpu.{i}.memoryTemp", "°C", "GPU temperature", name="gpu.memory.temperature", scope="device",
          merge="max",
          otel="hw.temperature", attributes={**_GPU, "hw.sensor_location": "memory"},
          text="Temperature of the GPU's memory.", source="NVIDIA: field MEMORY_TEMP; AMD: hwmon sensor mem"),
    gauge("gpu.{i}.powerWatts", "W", "GPU power", name="gpu.power", scope="device",
          mlflow=("gpu_{i}_power_usage_watts", 1.0),
          otel="hw.power", attributes=_GPU,
          text="Electrical power of the GPU.",
          source="NVIDIA: nvmlDeviceGetPowerUsage ÷ 1000; AMD: hwmon power1_average; Apple: IOReport"),
    gauge("gpu.{i}.powerPercent", "%", "GPU power, share of limit", name="gpu.power.utilization",
          scope="device", mlflow=("gpu_{i}_power_usage_percentage", 1.0),
          text="Electrical power of the GPU as a share of its limit.",
          source="powerWatts ÷ power limit; Apple: ÷ the chip's highest draw, 16.5 W if unknown"),
    gauge("gpu.{i}.enforcedPowerLimitWatts", "W", "GPU power limit", name="gpu.power.limit", scope="device",
          merge="last",
          otel="hw.power_limit", attributes=_GPU,
          text="Power limit of the GPU.",
          source="NVIDIA: nvmlDeviceGetEnforcedPowerLimit; AMD: power1_cap"),
    counter("gpu.{i}.energyJoules", "J", "GPU energy", name="gpu.energy", scope="device",
            otel="hw.energy", attributes={**_GPU, "hw.name": "gpu{i}"},
            text="Energy used by the GPU.",
            source="NVIDIA: nvmlDeviceGetTotalEnergyConsumption ÷ 1000; AMD: energy accumulator; "
            "Apple: power × time"),
    gauge("gpu.{i}.graphicsClock", "MHz", "GPU clocks", name="gpu.clock.graphics", scope="device",
          aliases=["gpu.{i}.freq"],
          text="Graphics clock of the GPU.",
          source="NVIDIA: nvmlDeviceGetClockInfo; AMD: pp_dpm_sclk; Apple: mean of the active frequencies"),
    gauge("gpu.{i}.smClock", "MHz", "GPU clocks", name="gpu.clock.sm", scope="device",
          text="Clock of the streaming multiprocessors.", source="NVIDIA: nvmlDeviceGetClockInfo"),
    gauge("gpu.{i}.memoryClock", "MHz", "GPU clocks", name="gpu.clock.memory", scope="device",
          text="Clock of the GPU's memory.", source="NVIDIA: nvmlDeviceGetClockInfo; AMD: pp_dpm_mclk"),
    counter("gpu.{i}.correctedMemoryErrors", "1", "GPU memory errors", name="gpu.memory.errors_corrected",
            scope="device",
            otel="hw.errors", attributes={**_GPU, "error.type": "corrected"},
            text="Memory errors that were corrected.",
            source="NVIDIA: nvmlDeviceGetMemoryErrorCounter (volatile, device memory); AMD: ECC counts"),
    counter("gpu.{i}.unCorrectedMemoryErrors", "1", "GPU memory errors",
            name="gpu.memory.errors_uncorrected", scope="device",
            aliases=["gpu.{i}.uncorrectedMemoryErrors"],
            otel="hw.errors", attributes={**_GPU, "error.type": "uncorrected"},
            text="Memory errors that could not be corrected: results may be wrong.",
            source="NVIDIA: nvmlDeviceGetMemoryErrorCounter (volatile, device memory); AMD: ECC counts"),
    gauge("gpu.{i}.encoderUtilization", "%", "GPU video engines", name="gpu.encoder.utilization",
          scope="device",
          otel="hw.gpu.utilization", attributes={"hw.id": "{i}", "hw.gpu.task": "encoder"},
          text="Share of the time in which the video encoder was busy.",
          source="NVIDIA: nvmlDeviceGetEncoderUtilization"),
    gauge("gpu.{i}.decoderUtilization", "%", "GPU video engines", name="gpu.decoder.utilization",
          scope="device",
          otel="hw.gpu.utilization", attributes={"hw.id": "{i}", "hw.gpu.task": "decoder"},
          text="Share of the time in which the video decoder was busy.",
          source="NVIDIA: nvmlDeviceGetDecoderUtilization"),
    gauge("gpu.{i}.fanSpeed", "%", "GPU fan", name="gpu.fan.speed", scope="device",
          otel="hw.fan.speed_ratio", attributes={"hw.id": "{i}"},
          text="Requested fan speed as a share of the maximum.",
          source="NVIDIA: nvmlDeviceGetFanSpeed; AMD: pwm1 ÷ 255"),
)
# Reported by few vendors, without `gpu.process.*` counterparts.
_OF_SOME = (
    gauge("gpu.{i}.memoryBandwidth", "%", "GPU memory bandwidth", name="gpu.memory.bandwidth.utilization",
          scope="device",
          text="Memory bandwidth used by the GPU as a share of the maximum.",
          source="Intel: xpu-smi, metric 17"),
    gauge("gpu.{i}.fanRpm", "rpm", "GPU fan, turns", name="gpu.fan.turns", scope="device",
          otel="hw.fan.speed", attributes={"hw.id": "{i}"},
          text="Measured speed of the GPU's fan in revolutions per minute.",
          source="AMD: fan1_input, Fan RPM; Tenstorrent: fan1_input, FAN_RPM"),
    gauge("gpu.{i}.voltage", "V", "GPU voltage", name="gpu.voltage", scope="device",
          otel="hw.voltage", attributes=_GPU,
          text="Voltage of the GPU's core.", source="Tenstorrent: telemetry.voltage, in0_input"),
    gauge("gpu.{i}.boardPowerWatts", "W", "GPU board power", name="gpu.board.power", scope="device",
          text="Electrical power of the whole board, including all other parts on it.",
          source="Tenstorrent: telemetry.board_power; Qualcomm: Board power"),
    gauge("gpu.{i}.gpuRailWatts", "W", "GPU power", name="gpu.rail.power", scope="device",
          text="Electrical power of the GPU's rail, where `powerWatts` is that of a whole module.",
          source="Jetson: rail VDD_GPU, VDD_GPU_SOC, VDD_CPU_GPU_CV, VDD_SYS_GPU, GPU or POM_5V_GPU"),
    gauge("gpu.{i}.healthy", "1", "GPU health", name="gpu.healthy", scope="device", merge="min",
          text="Whether the vendor's tool reports the device as healthy (1) or not (0).",
          source="Ascend, Enflame: Health; Furiosa: liveness; Qualcomm, Rebellions: status"),
)
# fmt: on


def _of_process(row: Metric) -> Metric:
    """The same metric of the whole GPU, recorded only while one of the run's processes uses that GPU."""
    return replace(
        row,
        key=row.key.replace("gpu.", "gpu.process.", 1),
        scope="process",
        chart=f"{row.chart}, GPUs used by the run",
        text=f"{row.text} Only while a process of the run uses the GPU.",
        name=row.name.replace("gpu.", "gpu.process.", 1),
        aliases=tuple(alias.replace("gpu.", "gpu.process.", 1) for alias in row.aliases),
        mlflow=None,
        mlflow_factor=1.0,
        convention=None,
        attributes={},
    )


METRICS = (*_DEVICE, *_OF_SOME, *(_of_process(row) for row in _DEVICE))
