from __future__ import annotations

import ast
import asyncio
import errno
import re
import subprocess
import sys
from pathlib import Path

import pytest

import kafka_shim
from kafka_shim.dispatch import READY, RECEIVED
from kafka_shim.embedded import Broker
from kafka_shim.errors import ErrorCode, KafkaError
from kafka_shim.faults import HOLDS, POINTS, Faults, facts_of

GATE = "produce.verified"
POINT = "log.before_write"


def test_nothing_happens_at_a_point_that_is_not_armed():
    faults = Faults()
    assert not faults.armed
    faults.reach(POINT, topic="t")
    faults.arm("log.after_write", "kill")
    faults.reach(POINT)
    assert faults.reached(POINT) == 0


def test_a_point_that_is_armed_anew_still_knows_whom_it_holds():
    async def run() -> None:
        faults = Faults(f"{GATE}=hold")
        held = asyncio.ensure_future(faults.gate(GATE))
        await asyncio.sleep(0)
        faults.arm(GATE, "hold", nth=2)
        assert not held.done()
        assert faults.release(GATE) == 1
        await held

    asyncio.run(run())


def test_an_error_is_raised_at_the_nth_time_only():
    faults = Faults(f"{POINT}=error:NOT_ENOUGH_REPLICAS@2")
    faults.reach(POINT)
    with pytest.raises(KafkaError) as raised:
        faults.reach(POINT)
    assert raised.value.code is ErrorCode.NOT_ENOUGH_REPLICAS
    faults.reach(POINT)
    assert faults.reached(POINT) == 3


def test_an_os_error_has_the_number_asked_for():
    faults = Faults(f"{POINT}=oserror:EIO")
    for _ in range(2):
        with pytest.raises(OSError) as raised:
            faults.reach(POINT)
        assert raised.value.errno == errno.EIO


def test_a_function_gets_the_facts_and_may_raise():
    faults = Faults()
    seen = []
    faults.arm(POINT, lambda **facts: seen.append(facts))
    faults.reach(POINT, topic="t", partition=3)
    assert seen == [{"topic": "t", "partition": 3}]
    faults.disarm()
    assert not faults.armed


def test_a_held_caller_goes_on_when_it_is_released():
    async def main():
        faults = Faults(f"{GATE}=hold")
        faults.reach(GATE)  # only a caller that may wait is held
        held = asyncio.ensure_future(faults.gate(GATE))
        await asyncio.sleep(0)
        assert not held.done()
        assert faults.release(GATE) == 1
        await held
        held = asyncio.ensure_future(faults.gate(GATE))
        await asyncio.sleep(0)
        faults.disarm(GATE)
        await held

    asyncio.run(main())


def test_a_caller_is_held_for_a_time():
    async def main():
        faults = Faults(f"{GATE}=hold:1")
        held = asyncio.ensure_future(faults.gate(GATE))
        await asyncio.sleep(0)
        assert not held.done()
        await asyncio.wait_for(held, 60)

    asyncio.run(main())


def test_a_gate_does_every_other_action_too():
    async def main():
        faults = Faults(f"{POINT}=error")
        with pytest.raises(KafkaError):
            await faults.gate(POINT)

    asyncio.run(main())


@pytest.mark.parametrize(
    "text",
    ["nowhere=kill", f"{POINT}=explode", POINT, f"{POINT}=kill@soon", f"{POINT}=kill@²"],
    ids=["point", "action", "form", "count", "digit"],
)
def test_a_wrong_specification_is_refused(text):
    with pytest.raises(ValueError, match=r"unknown fault|expected point=action|not a number"):
        Faults(text)


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("log.before_wriet", "kill"), "'log.before_wriet', do you mean 'log.before_write'"),
        ((POINT, "explode"), "unknown fault action"),
        ((POINT, "error", "NOT_ENOUGH_REPLICA"), "do you mean 'NOT_ENOUGH_REPLICAS'"),
        ((POINT, "oserror", "ENOSUCH"), "name one of errno"),
        ((POINT, "hold"), "cannot be held"),
        ((GATE, "hold", "soon"), "takes a number"),
        ((GATE, "hold", 500), "is text"),
        ((POINT, "kill", "now"), "takes no argument"),
        ((POINT, print, "now"), "takes no argument"),
    ],
)
def test_what_could_never_act_is_refused_at_once(words, told):
    faults = Faults()
    with pytest.raises(ValueError, match=told):
        faults.arm(*words)
    assert not faults.armed


def test_a_broker_in_a_thread_ends_nobodys_process():
    for action in ("kill", "exit"):
        with pytest.raises(ValueError, match=f"{action} at {POINT} would end this process: .*process=True"):
            Broker(faults=f"{POINT}={action}@1")
        with Broker() as broker, pytest.raises(ValueError, match="process=True"):
            broker.faults.arm(POINT, action)
    Broker(process=True, faults=f"{POINT}=kill@1")


@pytest.mark.parametrize(
    ("point", "where"),
    [
        ("log.before_write", {"partition": "0"}),
        ("log.before_write", {"topic": 0}),
        ("request.received", {"api_key": "Produce"}),
        ("log.before_fsync", {"path": Path("t-0")}),
    ],
)
def test_a_value_of_a_kind_that_never_matches_is_refused(point: str, where: dict[str, object]) -> None:
    faults = Faults()
    with pytest.raises(ValueError, match="would never match"):
        faults.arm(point, "error", "UNKNOWN_SERVER_ERROR", where=where)
    assert not faults.armed


def test_a_fact_that_a_point_does_not_tell_is_refused():
    with pytest.raises(ValueError, match="has these facts: topic, partition; `where` cannot name topik"):
        Faults().arm("log.before_write", "error", where={"topik": "t"})
    with pytest.raises(ValueError, match="has these facts: nothing"):
        Faults().arm("server.stopping", "error", where={"topic": "t"})
    with pytest.raises(ValueError, match="counts from 1"):
        Faults().arm("server.stopping", "error", nth=0)


def test_facts_are_those_that_the_code_tells():
    source = Path(kafka_shim.__file__).parent
    told: dict[str, set[str]] = {}
    for path in source.rglob("*.py"):
        if {"tests", "faults.py"} & set(path.parts):
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            is_call = isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and bool(node.args)
            if not is_call or node.func.attr not in ("reach", "gate") or any(one.arg is None for one in node.keywords):
                continue
            for point in points_of(node.args[0]):
                told.setdefault(point, set()).update(one.arg for one in node.keywords)
                if node.func.attr == "gate":
                    assert point in HOLDS, point
    assert told.keys() | ENDINGS == POINTS.keys()
    assert {point: set(facts_of(point)) for point in told} == told


# Their points and facts are values of `txn/ending.py`; test_ending.py sees each.
ENDINGS = {point for point in POINTS if point.startswith("txn.") and not point.endswith("_begin")}


def points_of(node):
    if isinstance(node, ast.Constant):
        return [node.value]
    # Those of `dispatch`, which are reached in more than one place.
    named = {"RECEIVED": RECEIVED, "READY": READY}
    return [named[node.id]] if isinstance(node, ast.Name) and node.id in named else []


def test_kill_and_exit_end_the_process():
    for action, status in (("kill", -9), ("exit:7", 7)):
        code = f"from kafka_shim.faults import Faults; Faults('{POINT}={action}').reach('{POINT}')"
        assert subprocess.run([sys.executable, "-c", code], check=False).returncode == status


def test_every_point_has_a_sentence_and_a_name_of_two_words():
    for point, meaning in POINTS.items():
        assert point.count(".") == 1
        assert meaning


def test_points_and_the_places_that_reach_them_agree():
    source = Path(kafka_shim.__file__).parent
    texts = [path.read_text() for path in source.rglob("*.py") if not {"tests", "faults.py"} & set(path.parts)]
    reached = {name for text in texts for name in re.findall(r'\.(?:reach|gate)\(\s*"([^"]+)"', text)}
    assert reached <= POINTS.keys()
    everything = "\n".join(texts)
    assert [point for point in POINTS if f'"{point}"' not in everything] == []


def test_a_point_may_be_armed_for_some_facts_only():
    faults = Faults()
    faults.arm("request.received", "error", where={"api_key": 26})
    faults.reach("request.received", api_key=0)
    assert faults.reached("request.received") == 0
    with pytest.raises(KafkaError):
        faults.reach("request.received", api_key=26)
