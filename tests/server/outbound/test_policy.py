"""Which addresses the server sends requests to."""

from __future__ import annotations

import pytest

from runvitals.server.outbound.policy import Blocked, OutboundPolicy, outbound_policy

REFUSED = [
    "127.0.0.1",
    "127.255.255.254",
    "0.0.0.0",
    "0.1.2.3",
    "10.0.0.1",
    "172.16.0.1",
    "172.31.255.255",
    "192.168.1.1",
    "100.64.0.1",
    "100.127.255.255",
    "169.254.0.1",
    "169.254.169.254",
    "169.254.170.2",
    "168.63.129.16",
    "100.100.100.200",
    "192.0.0.192",
    "192.0.0.8",
    "192.0.2.1",
    "192.88.99.1",
    "198.18.0.1",
    "198.51.100.1",
    "203.0.113.1",
    "224.0.0.1",
    "239.255.255.255",
    "240.0.0.1",
    "255.255.255.255",
    "::1",
    "::",
    "::127.0.0.1",
    "::a00:1",
    "::ffff:127.0.0.1",
    "::ffff:10.0.0.1",
    "::ffff:169.254.169.254",
    "::ffff:0:127.0.0.1",
    "64:ff9b::7f00:1",
    "64:ff9b::a9fe:a9fe",
    "64:ff9b::a00:1",
    "64:ff9b:1::1",
    "2002:7f00:1::",
    "2002:a9fe:a9fe::",
    "2002:a00:1::1",
    "2002:c0a8:101::",
    "2001:0:4136:e378:8000:63bf:3fff:fdd2",
    "2001:db8::1",
    "2001:10::1",
    "100::1",
    "3fff::1",
    "5f00::1",
    "fc00::1",
    "fd00::1",
    "fd00:ec2::254",
    "fe80::1",
    "fe80::1%eth0",
    "fec0::1",
    "ff02::1",
    "ff0e::1",
]
# As names in URLs: what `getaddrinfo` accepts as an address.
WRITTEN = [
    "127.1",
    "127.0.1",
    "2130706433",
    "0x7f000001",
    "0x7f.1",
    "0177.0.0.1",
    "017700000001",
    "0",
    "0x0",
    "0xa9fea9fe",
    "2852039166",
    "169.254.43518",
    "0300.0250.1.1",
    "10.1",
    "[::1]",
    "[::]",
    "[::ffff:7f00:1]",
    "[0:0:0:0:0:ffff:127.0.0.1]",
    "[fe80::1]",
    "[64:ff9b::127.0.0.1]",
]


@pytest.mark.parametrize("address", REFUSED)
def test_addresses_inside_the_network_are_refused(address: str) -> None:
    with pytest.raises(Blocked):
        OutboundPolicy().check(address, 443)


@pytest.mark.parametrize(
    "address",
    [
        "93.184.215.14",
        "1.1.1.1",
        "2606:4700:4700::1111",
        "2001:4860:4860::8888",
        "64:ff9b::101:101",
        "2002:101:101::",
    ],
)
def test_public_addresses_are_reached(address: str) -> None:
    OutboundPolicy().check(address, 443)


def test_a_network_that_is_allowed_is_reached() -> None:
    policy = outbound_policy(["10.1.0.0/16", "fd12::/32", "127.0.0.1:9000", "[::1]:9001"])
    policy.check("10.1.255.1", 443)
    policy.check("::ffff:127.0.0.1", 9000)
    policy.check("fd12::1", 443)
    policy.check("::1", 9001)
    policy.check_port(9000)
    for address, port in (
        ("10.2.0.1", 443),
        ("127.0.0.1", 443),
        ("127.0.0.2", 9000),
        ("::1", 9000),
        ("8.8.8.8", 9000),
        ("10.1.2.3", 9000),
    ):
        with pytest.raises(Blocked):
            policy.check(address, port)
    for port in (22, 25, 80, 6379):
        with pytest.raises(Blocked, match=f"port {port}"):
            policy.check_port(port)


def test_a_metadata_service_is_never_reached() -> None:
    policy = outbound_policy(["169.254.0.0/16", "fd00::/8", "169.254.169.254:443"])
    policy.check("169.254.1.1", 443)
    for address in ("169.254.169.254", "fd00:ec2::254", "::ffff:169.254.169.254", "168.63.129.16"):
        with pytest.raises(Blocked, match="metadata"):
            policy.check(address, 443)


@pytest.mark.parametrize(
    "text",
    ["0.0.0.0/0", "127.0.0.0/8", "::/0", "::1/128", "10.0.0.1", "10.0.0.1/16", "host:80", "10.0.0.0/33"],
)
def test_invalid_settings(text: str) -> None:
    with pytest.raises(ValueError, match="invalid outbound_allow"):
        outbound_policy([text])
