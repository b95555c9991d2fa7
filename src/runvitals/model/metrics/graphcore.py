"""Metrics of Graphcore IPUs.

Keys contain the attribute names of the vendor's library, including spaces and units. Samples are merged by
their mean, as W&B does.
"""

from runvitals.model.metrics.metric import gauge

# fmt: off
METRICS = (
    gauge("ipu.{device_id}.average board temp (C)", "°C", "IPU board temperature",
          name="ipu.board.temperature",
          scope="device", aliases=["ipu.{device_id}.average board temp"],
          text="Temperature of the board.", source="gcipuinfo: average board temp"),
    gauge("ipu.{device_id}.average die temp (C)", "°C", "IPU temperature", name="ipu.die.temperature",
          scope="device", aliases=["ipu.{device_id}.average die temp"],
          text="Temperature of the die.", source="gcipuinfo: average die temp"),
    gauge("ipu.{device_id}.clock (MHz)", "MHz", "IPU clock", name="ipu.clock", scope="device",
          aliases=["ipu.{device_id}.clock"],
          text="Clock of the IPU.", source="gcipuinfo: clock"),
    gauge("ipu.{device_id}.ipu power (W)", "W", "IPU power", name="ipu.power", scope="device",
          aliases=["ipu.{device_id}.ipu power"],
          text="Electrical power of the IPU.", source="gcipuinfo: ipu power"),
    gauge("ipu.{device_id}.total board power (W)", "W", "IPU board power",
          name="ipu.board.power", scope="device",
          text="Electrical power of the board; cards such as the C600 report no other.",
          source="gcipuinfo: total board power"),
    gauge("ipu.{device_id}.ipu utilisation (%)", "%", "IPU utilization", name="ipu.utilization",
          scope="device", aliases=["ipu.{device_id}.ipu utilisation"],
          text="Share of the time in which the IPU was busy.", source="gcipuinfo: ipu utilisation"),
    gauge("ipu.{device_id}.ipu utilisation (session) (%)", "%", "IPU utilization",
          name="ipu.session.utilization", scope="device",
          aliases=["ipu.{device_id}.ipu utilisation (session)"],
          text="Share of the time in which the IPU was busy since the start of the session.",
          source="gcipuinfo: ipu utilisation (session)"),
    gauge("ipu.{device_id}.speed (GT/s)", "GT/s", "IPU link speed", name="ipu.link.speed", scope="device",
          aliases=["ipu.{device_id}.link speed (GT/s)"],
          text="Speed of the link to the host.", source="gcipuinfo: link speed"),
)
# fmt: on
