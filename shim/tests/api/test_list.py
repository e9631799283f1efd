"""The one list of APIs against the modules and the message tables."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import kafka_shim.api
from kafka_shim.api import APIS, TABLE, Api
from kafka_shim.protocol.api_keys import API_KEYS

FOLDER = Path(kafka_shim.api.__file__).parent


def test_every_handler_file_is_in_the_list_and_every_row_has_its_file():
    files = {
        int(found[1]): found[2] for path in FOLDER.glob("k*.py") if (found := re.match(r"k(\d+)_(\w+)", path.stem))
    }
    assert {api.key: api.name for api in APIS} == files


def test_rows_are_in_the_order_of_their_keys_without_repeats():
    keys = [api.key for api in APIS]
    assert keys == sorted(set(keys))


@pytest.mark.parametrize("api", APIS, ids=lambda api: api.name)
def test_a_row_agrees_with_its_module_and_its_messages(api: Api):
    api.load()
    module = __import__(api.module_name, fromlist=["KEY"])
    assert (api.key, api.first, api.last) == (module.KEY, module.MIN, module.MAX)
    assert api.request.API_KEY == api.response.API_KEY == api.key
    assert api.first >= api.request.MIN_VERSION
    assert api.last <= api.request.MAX_VERSION
    assert module.__doc__
    assert f"(key {api.key})" in module.__doc__


@pytest.mark.parametrize("api", APIS, ids=lambda api: api.name)
def test_a_row_has_exactly_the_range_of_kafka(api: Api):
    _, first, last, _, unstable, listeners = API_KEYS[api.key][:6]
    assert "broker" in listeners
    assert api.last == (last - 1 if unstable else last)
    assert api.first == first
    # Produce is advertised lower than it is served.
    assert api.advertised_min == (0 if api.key == 0 else first)


def test_the_table_finds_a_row_by_its_key():
    assert TABLE[18].name == "api_versions"
    assert 7 not in TABLE
