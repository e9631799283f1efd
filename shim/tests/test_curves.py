"""Curves that were taken again (`bench.curves`): they say when, and only on the same machine."""

from __future__ import annotations

from typing import Any

import pytest

from bench.curves import conditions, merged

MACHINE = {"cpus": 2, "cpu": "any", "memory_gb": 1, "system": "Linux 1"}
SETTINGS = {"rounds": 3, "seconds": 0.4, "first_warm_up_s": 10, "warm_up_s": 1}


def run(began: str, *names: str, **machine: Any) -> dict[str, Any]:
    curves = {name: {"title": f"{name} of {began}"} for name in names}
    return {"began": began, "machine": MACHINE | machine, "settings": SETTINGS, "load": 0.5, "curves": curves}


def test_curves_of_a_later_run_take_the_place_of_the_former_ones():
    found = merged(run("Monday", "log", "acls"), run("Tuesday", "log", "sparse", system="Linux 2"))
    found = merged(found, run("Friday", "sparse"))
    titles = {name: curve["title"] for name, curve in found["curves"].items()}
    assert titles == {"log": "log of Tuesday", "acls": "acls of Monday", "sparse": "sparse of Friday"}
    told = conditions(found)
    assert told.startswith("Monday, 2 CPUs (any)")
    assert told.endswith("Taken Tuesday: log of Tuesday, sparse of Tuesday. Taken Friday: sparse of Friday.")
    assert "Taken" not in conditions(run("Monday", "log"))


def test_curves_of_another_machine_or_other_settings_are_not_put_in():
    slower = run("Tuesday", "log") | {"settings": SETTINGS | {"rounds": 1}}
    for later in (run("Tuesday", "log", cpus=4), slower):
        with pytest.raises(ValueError, match="other settings or on another machine"):
            merged(run("Monday", "log"), later)
