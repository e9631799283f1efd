"""The errors in a response, as Kafka counts them (AbstractResponse.errorCounts): each error code of it, NONE too.

What a class of responses has is found once; a response is then walked along the fields that lead to error codes.
"""

from __future__ import annotations

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from kafka_shim.protocol.message import Message
    from kafka_shim.turns import Steps

    # The fields that are error codes, and those that lead to more, with what is there.
    Plan = tuple[tuple[str, ...], tuple[tuple[str, "Plan"], ...]]

ENTRIES_PER_STEP = 32

_plans: dict[type[Message], Plan] = {}


def count_errors(response: Message, counts: dict[int, int]) -> None:
    """Add the error codes of a response to `counts`."""
    _count(response, _plan(response), counts)


def count_errors_in_steps(response: Message, counts: dict[int, int]) -> Steps[None]:
    """As `count_errors`, of a response with very many entries."""
    yield from _count_in_steps(response, _plan(response), counts)


def _plan(response: Message) -> Plan:
    kind = type(response)
    plan = _plans.get(kind)
    if plan is None:
        plan = _plans[kind] = _plan_of(kind)
    return plan


def _count(one: Any, plan: Plan, counts: dict[int, int]) -> None:
    codes, nested = plan
    for name in codes:
        code = getattr(one, name)
        counts[code] = counts.get(code, 0) + 1
    for name, inner in nested:
        value = getattr(one, name)
        if value is None:
            continue
        for each in _each(value):
            _count(each, inner, counts)


def _count_in_steps(one: Any, plan: Plan, counts: dict[int, int]) -> Steps[None]:
    codes, nested = plan
    _count(one, (codes, ()), counts)
    for name, inner in nested:
        value = getattr(one, name)
        if value is None:
            continue
        has_more = bool(inner[1])
        for number, each in enumerate(_each(value)):
            if has_more:
                yield from _count_in_steps(each, inner, counts)
            else:
                _count(each, inner, counts)
            if has_more or number % ENTRIES_PER_STEP == ENTRIES_PER_STEP - 1:
                yield


def _each(value: Any) -> Iterable[Any]:
    return value if isinstance(value, (list, tuple)) else (value,)


def _plan_of(kind: type[Message]) -> Plan:
    module = sys.modules[kind.__module__]
    codes, nested = [], []
    for row in kind.FIELDS:
        name, shape = row[0], row[1]
        if shape == "int16" and (name == "error_code" or name.endswith("_error_code")):
            codes.append(name)
            continue
        inner = getattr(module, shape.removeprefix("[]"), None)
        if isinstance(inner, type) and hasattr(inner, "FIELDS"):
            plan = _plan_of(inner)
            if plan != ((), ()):
                nested.append((name, plan))
    return tuple(codes), tuple(nested)
