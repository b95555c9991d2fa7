"""Metrics of the network: interfaces, InfiniBand and RoCE ports, Amazon's EFA and ENA."""

from runvitals.model.metrics.metric import Metric, counter, rate

_MIB_PER_BYTE = 2.0**-20

# fmt: off
_INTERFACES = (
    counter("network.sent", "bytes", "Network", name="network.sent",
            mlflow=("network_transmit_megabytes", 1e-6),
            text="Data sent by the host over its physical interfaces since the first sample.",
            source="transmitted bytes in /proc/net/dev without loopback, bond members and bridges"),
    counter("network.recv", "bytes", "Network", name="network.received",
            mlflow=("network_receive_megabytes", 1e-6),
            text="Data received by the host over its physical interfaces since the first sample.",
            source="received bytes in /proc/net/dev without loopback, bond members and bridges"),
    rate("network.sentMBps", "MiB/s", "Network", of="network.sent", factor=_MIB_PER_BYTE,
         text="Send throughput of the host."),
    rate("network.recvMBps", "MiB/s", "Network", of="network.recv", factor=_MIB_PER_BYTE,
         text="Receive throughput of the host."),
    counter("network.{nic}.sent", "bytes", "Network per interface", name="network.interface.sent",
            scope="device",
            otel="system.network.io",
            attributes={"network.io.direction": "transmit", "network.interface.name": "{nic}"},
            text="Data sent through one interface.", source="transmitted bytes in /proc/net/dev"),
    counter("network.{nic}.recv", "bytes", "Network per interface", name="network.interface.received",
            scope="device",
            otel="system.network.io",
            attributes={"network.io.direction": "receive", "network.interface.name": "{nic}"},
            text="Data received through one interface.", source="received bytes in /proc/net/dev"),
    rate("network.{nic}.sentMBps", "MiB/s", "Network per interface", of="network.{nic}.sent",
         factor=_MIB_PER_BYTE, scope="device",
         text="Send throughput of one interface."),
    rate("network.{nic}.recvMBps", "MiB/s", "Network per interface", of="network.{nic}.recv",
         factor=_MIB_PER_BYTE, scope="device",
         text="Receive throughput of one interface."),
    counter("network.{nic}.errors", "1", "Network errors", name="network.interface.errors", scope="device",
            otel="system.network.errors", attributes={"network.interface.name": "{nic}"},
            text="Damaged packets of one interface.",
            source="errs in both directions in /proc/net/dev"),
    counter("network.{nic}.drops", "1", "Network errors", name="network.interface.drops", scope="device",
            otel="system.network.packet.dropped", attributes={"network.interface.name": "{nic}"},
            text="Packets of one interface that were dropped for lack of buffers.",
            source="drop in both directions in /proc/net/dev"),
    counter("network.tcpRetransmits", "1", "TCP retransmits", name="network.tcp.retransmits",
            text="TCP segments that were retransmitted.", source="RetransSegs in /proc/net/snmp"),
    rate("network.tcpRetransmitRate", "1/s", "TCP retransmits", of="network.tcpRetransmits",
         text="TCP segments retransmitted per second."),
)

_INFINIBAND = (
    counter("network.ib.{dev}.{port}.xmitBytes", "bytes", "InfiniBand", name="infiniband.sent",
            scope="device",
            text="Data sent through one InfiniBand or RoCE port, including RDMA.",
            source="port_xmit_data × 4 in /sys/class/infiniband/<dev>/ports/<port>/counters"),
    counter("network.ib.{dev}.{port}.recvBytes", "bytes", "InfiniBand", name="infiniband.received",
            scope="device",
            text="Data received through one InfiniBand or RoCE port, including RDMA.",
            source="port_rcv_data × 4"),
    rate("network.ib.{dev}.{port}.xmitMBps", "MiB/s", "InfiniBand", of="network.ib.{dev}.{port}.xmitBytes",
         factor=_MIB_PER_BYTE, scope="device",
         text="Send throughput of one port."),
    rate("network.ib.{dev}.{port}.recvMBps", "MiB/s", "InfiniBand", of="network.ib.{dev}.{port}.recvBytes",
         factor=_MIB_PER_BYTE, scope="device",
         text="Receive throughput of one port."),
    counter("network.ib.{dev}.{port}.xmitWait", "1", "InfiniBand congestion",
            name="infiniband.transmit_wait", scope="device",
            text="Ticks in which the port had data to send but could not: congestion.",
            source="port_xmit_wait"),
    counter("network.ib.{dev}.{port}.errors", "1", "InfiniBand errors", name="infiniband.errors",
            scope="device",
            otel="hw.errors", attributes={"hw.type": "network", "hw.name": "{dev}:{port}"},
            text="Damaged symbols and packets, link losses and discards of one port.",
            source="symbol_error + port_rcv_errors + port_xmit_discards + link_downed + link_error_recovery"),
)


def _efa(key: str, name: str, speed: str, field: str, text: str) -> tuple[Metric, Metric]:
    """Return a byte counter of an Elastic Fabric Adapter, and its rate."""
    template = f"network.efa.{{dev}}.{{port}}.{key}"
    source = f"{field} in /sys/class/infiniband/<dev>/ports/<port>/hw_counters"
    return (
        counter(template, "bytes", "EFA", name=f"efa.{name}", scope="device",
                text=f"{text}.", source=source),
        rate(f"network.efa.{{dev}}.{{port}}.{speed}", "MiB/s", "EFA", of=template, factor=_MIB_PER_BYTE,
             scope="device",
             text=f"{text}, per second."),
    )


_EFA = (
    *_efa("sent", "sent", "sentMBps", "tx_bytes", "Data sent through one Elastic Fabric Adapter"),
    *_efa("recv", "received", "recvMBps", "rx_bytes", "Data received through one Elastic Fabric Adapter"),
    *_efa("rdmaRead", "rdma_read", "rdmaReadMBps", "rdma_read_bytes", "Data read from others by RDMA"),
    *_efa("rdmaWrite", "rdma_write", "rdmaWriteMBps", "rdma_write_bytes", "Data written to others by RDMA"),
    *_efa("retransBytes", "retransmitted", "retransMBps", "retrans_bytes", "Data retransmitted after a loss"),
    counter("network.efa.{dev}.{port}.drops", "1", "EFA drops", name="efa.drops", scope="device",
            text="Received packets that one Elastic Fabric Adapter dropped.",
            source="rx_drops in /sys/class/infiniband/<dev>/ports/<port>/hw_counters"),
)


def _ena(key: str, name: str, allowance: str, what: str) -> Metric:
    """A counter of packets that an Elastic Network Adapter queued or dropped at an instance's allowance."""
    return counter(
        f"network.ena.{{nic}}.{key}", "1", "ENA allowance exceeded", name=f"ena.{name}_exceeded",
        scope="device", text=f"Packets queued or dropped because the allowance of {what} was exceeded.",
        source=f"{allowance}_allowance_exceeded of the driver's statistics (ethtool -S)",
    )


_ENA = (
    _ena("bwInExceeded", "bandwidth_in", "bw_in", "incoming bandwidth"),
    _ena("bwOutExceeded", "bandwidth_out", "bw_out", "outgoing bandwidth"),
    _ena("ppsExceeded", "packets", "pps", "packets per second"),
    _ena("conntrackExceeded", "connections", "conntrack", "tracked connections"),
    _ena("linklocalExceeded", "link_local", "linklocal", "traffic to local services such as DNS and time"),
)
# fmt: on

METRICS = (*_INTERFACES, *_INFINIBAND, *_EFA, *_ENA)
