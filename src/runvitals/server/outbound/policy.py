"""Which addresses and ports the server may send requests to."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

IpAddress = ipaddress.IPv4Address | ipaddress.IPv6Address
IpNetwork = ipaddress.IPv4Network | ipaddress.IPv6Network

# The metadata services of AWS, Google, Azure, Oracle and Alibaba give credentials to every program that asks.
_METADATA: Final = frozenset(
    map(
        ipaddress.ip_address,
        (
            "169.254.169.254",
            "169.254.170.2",
            "169.254.169.123",
            "fd00:ec2::254",
            "fd20:ce::254",
            "168.63.129.16",
            "192.0.0.192",
            "100.100.100.200",
        ),
    )
)
# Global by `ipaddress` in some versions of Python, or through which private addresses are reached.
_NOT_PUBLIC: Final = tuple(
    map(
        ipaddress.ip_network,
        (
            "0.0.0.0/8",
            "100.64.0.0/10",
            "192.0.0.0/24",
            "192.88.99.0/24",
            "198.18.0.0/15",
            "224.0.0.0/4",
            "240.0.0.0/4",
            "::/96",
            "::ffff:0:0:0/96",
            "64:ff9b:1::/48",
            "100::/64",
            "2001::/23",
            "3fff::/20",
            "5f00::/16",
            "fec0::/10",
            "ff00::/8",
        ),
    )
)
_PROXY: Final = re.compile(r"http://(?P<host>[\w.-]+|\[[0-9a-fA-F:.]+\]):(?P<port>[0-9]{1,5})/?", re.ASCII)
_HTTP_PORT: Final = 80
_ALLOW: Final = "an administrator can allow it with the setting outbound_allow"
_NAT64: Final = ipaddress.ip_network("64:ff9b::/96")


class Blocked(Exception):
    """The server sends no request to this URL; the text says why."""


@dataclass(frozen=True, slots=True)
class OutboundPolicy:
    """Exceptions to the rule that only public addresses may be reached, by https.

    Attributes:
        networks: private networks that may be reached.
        endpoints: addresses with their ports that may be reached: the only way to allow loopback.
        http_hosts: hosts that may be asked without encryption.
        ports: of public addresses.
        proxy: host and port of the HTTP proxy that all requests go through.
    """

    networks: tuple[IpNetwork, ...] = ()
    endpoints: frozenset[tuple[IpAddress, int]] = frozenset()
    http_hosts: frozenset[str] = frozenset()
    ports: frozenset[int] = frozenset((443, 8443))
    proxy: tuple[str, int] | None = None

    def check(self, address: str, port: int) -> None:
        """Check an address that a name resolved to.

        Raises:
            Blocked: it must not be reached.
        """
        try:
            literal = ipaddress.ip_address(address.partition("%")[0])
        except ValueError:
            raise Blocked(f"{address!r} is no IP address") from None
        inside = (literal, *_embedded_addresses(literal))
        if not _METADATA.isdisjoint(inside):
            raise Blocked("the address is that of a metadata service")
        if any((ip, port) in self.endpoints for ip in inside):
            return
        if port not in (*self.ports, _HTTP_PORT):
            raise Blocked(f"the port {port} is not allowed at this address; {_ALLOW}")
        if any(ip.is_loopback or ip.is_unspecified for ip in inside):
            raise Blocked("the address is the server's own")
        if all(_is_public(ip) or self._is_allowed(ip) for ip in inside):
            return
        raise Blocked(f"the address is in a private network; {_ALLOW}")

    def check_port(self, port: int) -> None:
        """Raise Blocked for a port that no request goes to, whatever the address."""
        if port not in self.ports and all(port != allowed for _, allowed in self.endpoints):
            raise Blocked(f"the port {port} is not allowed; {_ALLOW}")

    def _is_allowed(self, ip: IpAddress) -> bool:
        return any(ip.version == network.version and ip in network for network in self.networks)


def outbound_policy(
    allowed: Iterable[str], http_hosts: Iterable[str] = (), proxy: str = ""
) -> OutboundPolicy:
    """The policy of the settings `outbound_allow`, `webhook_http` and `outbound_proxy`.

    Args:
        allowed: private networks (`10.1.0.0/16`), or addresses with a port (`127.0.0.1:9000`).
        http_hosts: hosts that may be asked without encryption, at port 80 or a port that is allowed.
        proxy: its URL; empty: none.

    Raises:
        ValueError: one of them is neither, or is a network with loopback addresses; or the proxy's URL is
            invalid.

    Example:
        >>> outbound_policy(["10.1.0.0/16"]).check("10.1.2.3", 443)
    """
    networks: list[IpNetwork] = []
    endpoints: set[tuple[IpAddress, int]] = set()
    for text in allowed:
        try:
            if "/" in text:
                networks.append(_network(text))
            else:
                host, _, port = text.rpartition(":")
                endpoints.add((ipaddress.ip_address(host.strip("[]")), int(port)))
        except ValueError:
            raise ValueError(
                f"invalid outbound_allow {text[:60]!r}; expected a private network such as 10.1.0.0/16, "
                "or an address and port such as 127.0.0.1:9000"
            ) from None
    return OutboundPolicy(
        tuple(networks),
        frozenset(endpoints),
        frozenset(map(str.lower, http_hosts)),
        proxy=proxy_address(proxy) if proxy else None,
    )


def proxy_address(url: str) -> tuple[str, int]:
    """The host and port of the setting `outbound_proxy`.

    Raises:
        ValueError: not `http://host:port`. A proxy that asks for a password cannot be used.

    Example:
        >>> proxy_address("http://proxy.example.org:3128")
        ('proxy.example.org', 3128)
    """
    matched = _PROXY.fullmatch(url)
    if matched is None or not 0 < int(matched["port"]) < 65_536:
        raise ValueError("expected the proxy as http://host:port, without a user")
    return matched["host"].strip("[]"), int(matched["port"])


def _network(text: str) -> IpNetwork:
    network = ipaddress.ip_network(text)
    own = ipaddress.ip_network("127.0.0.0/8" if network.version == 4 else "::/127")
    if network.overlaps(own):
        raise ValueError(text)
    return network


def _is_public(ip: IpAddress) -> bool:
    reserved = any(ip.version == network.version and ip in network for network in _NOT_PUBLIC)
    return ip.is_global and not ip.is_multicast and not reserved


def _embedded_addresses(ip: IpAddress) -> list[IpAddress]:
    """The IPv4 addresses that an IPv6 address leads to: mapped, 6to4, Teredo, NAT64."""
    if isinstance(ip, ipaddress.IPv4Address):
        return []
    embedded: list[IpAddress] = [inner for inner in (ip.ipv4_mapped, ip.sixtofour) if inner is not None]
    if ip.teredo is not None:
        embedded += ip.teredo
    if ip in _NAT64:
        embedded.append(ipaddress.IPv4Address(int(ip) & 0xFFFFFFFF))
    return embedded
