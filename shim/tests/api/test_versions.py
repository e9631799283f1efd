"""The versions of each API, as Apache Kafka 4.3.1 answers ApiVersions on a broker's and on a controller's listener."""

from __future__ import annotations

from importlib import import_module

import pytest

from kafka_shim.api import TABLE, Api
from kafka_shim.api.controller import CONTROLLER_TABLE

# fmt: off
BROKER = {
    0: (0, 13), 1: (4, 18), 2: (1, 11), 3: (0, 13), 8: (2, 10), 9: (1, 10), 10: (0, 6), 11: (0, 9), 12: (0, 4), 13:
    (0, 5), 14: (0, 5), 15: (0, 6), 16: (0, 5), 17: (0, 1), 18: (0, 4), 19: (2, 7), 20: (1, 6), 21: (0, 2), 22: (0,
    5), 23: (2, 4), 24: (0, 5), 25: (0, 4), 26: (0, 5), 27: (1, 2), 28: (0, 5), 29: (1, 3), 30: (1, 3), 31: (1, 3),
    32: (1, 4), 33: (0, 2), 34: (1, 2), 35: (1, 5), 36: (0, 2), 37: (0, 3), 38: (1, 3), 39: (1, 2), 40: (1, 2), 41:
    (1, 3), 42: (0, 2), 43: (0, 2), 44: (0, 1), 45: (0, 1), 46: (0, 0), 47: (0, 0), 48: (0, 1), 49: (0, 1), 50: (0,
    0), 51: (0, 0), 55: (0, 2), 57: (0, 2), 60: (0, 2), 61: (0, 0), 64: (0, 0), 65: (0, 0), 66: (0, 2), 68: (0, 1),
    69: (0, 1), 71: (0, 0), 72: (0, 0), 74: (0, 1), 75: (0, 0), 76: (1, 1), 77: (1, 1), 78: (1, 2), 79: (1, 2), 80:
    (0, 1), 81: (0, 0), 83: (0, 0), 84: (0, 0), 85: (0, 1), 86: (0, 0), 87: (0, 1), 88: (0, 0), 89: (0, 0), 90: (0,
    1), 91: (0, 0), 92: (0, 0),
}
CONTROLLER = {
    1: (4, 18), 17: (0, 1), 18: (0, 4), 19: (2, 7), 20: (1, 6), 29: (1, 3), 30: (1, 3), 31: (1, 3), 32: (1, 4), 33:
    (0, 2), 36: (0, 2), 37: (0, 3), 38: (1, 3), 39: (1, 2), 40: (1, 2), 41: (1, 3), 43: (0, 2), 44: (0, 1), 45: (0,
    1), 46: (0, 0), 49: (0, 1), 50: (0, 0), 51: (0, 0), 52: (0, 2), 53: (0, 1), 54: (0, 1), 55: (0, 2), 56: (2, 3),
    57: (0, 2), 58: (0, 0), 59: (0, 1), 60: (0, 2), 62: (0, 4), 63: (0, 2), 64: (0, 0), 67: (0, 0), 70: (0, 0), 73:
    (0, 0), 80: (0, 1), 81: (0, 0), 82: (0, 0),
}
# fmt: on


@pytest.mark.parametrize(("table", "expected"), [(TABLE, BROKER), (CONTROLLER_TABLE, CONTROLLER)])
def test_each_api_has_kafkas_versions(table: dict[int, Api], expected: dict[int, tuple[int, int]]) -> None:
    assert {key: (api.advertised_min, api.last) for key, api in table.items()} == expected


@pytest.mark.parametrize("api", [*TABLE.values(), *CONTROLLER_TABLE.values()], ids=lambda api: api.module_name)
def test_the_module_of_an_api_says_the_same(api: Api) -> None:
    module = import_module(api.module_name)
    assert (api.key, api.first, api.last) == (module.KEY, module.MIN, module.MAX)
