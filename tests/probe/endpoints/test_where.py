"""Where a container may serve metrics: its ports, its addresses, its label."""

import pytest

from dltools.engine.docker.answers import network_of
from dltools.engine.interface import Network
from dltools.probe.endpoints.where import candidates


def inspected(**changes: object) -> Network:
    networks = {"bridge": {"IPAddress": "172.17.0.5"}}
    return network_of(
        {
            "Config": {"ExposedPorts": {"8000/tcp": {}, "22/tcp": {}, "8002/udp": {}}},
            "NetworkSettings": {
                "Networks": networks,
                "Ports": {"8000/tcp": [{"HostPort": "18000"}]},
            },
            "HostConfig": {},
        }
        | changes
    )


def test_only_exposed_ports_of_serving_programs_are_tried() -> None:
    assert list(candidates(inspected(), None)) == [
        "http://172.17.0.5:8000/metrics",
        "http://127.0.0.1:18000/metrics",
    ]
    assert list(candidates(inspected(Config={}), None)) == []
    assert list(candidates(network_of({}), None)) == []


@pytest.mark.parametrize(
    ("label", "expected"),
    [
        ("9000", ["http://172.17.0.5:9000/metrics"]),
        ("9000/stats?x=1", ["http://172.17.0.5:9000/stats?x=1"]),
        ("http://10.0.0.9:1/m", ["http://10.0.0.9:1/m"]),
        ("file:///etc/passwd", []),
        *((label, []) for label in ("nonsense", "²", "http://[::1", "99999", "0", " ")),
        ("https://10.0.0.9/m", []),
    ],
)
def test_a_label_names_the_endpoint(label, expected) -> None:
    assert list(candidates(inspected(), label)) == expected


def test_a_container_on_the_hosts_network_is_local() -> None:
    network = inspected(HostConfig={"NetworkMode": "host"})
    assert "http://127.0.0.1:8000/metrics" in list(candidates(network, None))


@pytest.mark.parametrize(
    ("ip", "expected"),
    [
        ("", "127.0.0.1"),
        ("0.0.0.0", "127.0.0.1"),
        ("::", "127.0.0.1"),
        ("192.0.2.7", "192.0.2.7"),
        ("fd00::7", "[fd00::7]"),
    ],
)
def test_a_published_port_is_reached_where_it_is_bound(ip, expected) -> None:
    bound = {"8000/tcp": [{"HostIp": ip, "HostPort": "18000"}]}
    network = inspected(NetworkSettings={"Networks": {}, "Ports": bound})
    assert list(candidates(network, None)) == [f"http://{expected}:18000/metrics"]
