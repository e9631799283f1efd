"""What is a port where people write one."""

from __future__ import annotations

import pytest

from kafka_shim.ports import HIGHEST_PORT, parse_port
from kafka_shim.tools.metadata_quorum import _listeners
from kafka_shim.tools.subcommands import ToolError


@pytest.mark.parametrize(
    ("text", "port"),
    [
        ("0", 0),
        ("9092", 9092),
        ("65535", HIGHEST_PORT),
        ("65536", HIGHEST_PORT + 1),
        ("9" * 10, HIGHEST_PORT + 1),
        ("9" * 5000, HIGHEST_PORT + 1),
        ("", None),
        ("-1", None),
        ("+1", None),
        (" 1", None),
        ("1_0", None),
        ("٣", None),
        ("x", None),
    ],
)
def test_a_port_is_digits(text: str, port: int | None) -> None:
    assert parse_port(text) == port


@pytest.mark.parametrize("port", ["", "x", "65536", "9" * 5000])
def test_a_tool_names_the_listener_whose_port_is_none(port: str) -> None:
    entry = f"CONTROLLER://localhost:{port}"
    with pytest.raises(ToolError, match="Unable to parse"):
        _listeners({"listeners": entry, "controller.listener.names": "CONTROLLER"})
