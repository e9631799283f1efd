"""The functions of these modules are left also where memory never comes back: they are on the way of an append, of an
fsync, of a large request and of a transaction. What they call elsewhere is not covered, nor are the lines that they
log: `logging` and `traceback` of the standard library have such handlers."""

from __future__ import annotations

import dis
from collections.abc import Iterator
from importlib import import_module
from inspect import getsource
from types import CodeType

import pytest

# CPython up to 3.13 notes the number of the instruction that raised as it enters such a handler as that of a `with`, a
# `finally` or what follows an `except`. From 257 on the number is a new object. Without memory for it the interpreter
# enters the handler again, for ever, with the GIL.
LAST_SMALL = 256
# Instructions that cannot raise.
QUIET = {"CACHE", "COPY", "JUMP_FORWARD", "LOAD_CONST", "LOAD_FAST", "NOP", "POP_EXCEPT", "POP_TOP", "PUSH_EXC_INFO"}
QUIET |= {"PUSH_NULL", "RESUME", "RETURN_CONST", "RETURN_VALUE", "STORE_FAST", "SWAP"}
# With functions that are not on that way, or are known to be too long.
MODULES = {
    "api.k00_produce": (),
    "api.k24_add_partitions_to_txn": (),
    "api.k26_end_txn": (),
    "api.k27_write_txn_markers": (),
    "api.k28_txn_offset_commit": ("_split",),
    "api.produce_append": (),
    "dispatch": (),
    "group.coordinator": ("GroupCoordinator.delete_group",),
    "group.offset_requests": tuple(
        f"OffsetRequests.{name}" for name in ("_delete", "commit_in_steps", "delete_in_steps")
    ),
    "group.runtime": ("CoordinatorRuntime._record", "CoordinatorRuntime.remove_offsets"),
    "group.timers": (),
    "storage.abort_markers": (),
    "storage.appends": ("Appends._advance",),
    "storage.commit_markers": (),
    "storage.flusher": (),
    "storage.index": (),
    "storage.plain_log": (),
    "storage.txn_index": (),
    "turns": (),
    "txn.admission": (),
    "txn.completion": (),
    "txn.coordinator": (),
    "txn.end_txn": (),
    "txn.ending": (),
    "txn.log": ("TransactionLog.load", "TransactionLog.load_rest", "TransactionLog._logs_with_records"),
    "txn.marking": (),
    "txn.quick_completion": (),
    "txn.retries": (),
}


def functions_of(code: CodeType) -> Iterator[CodeType]:
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield constant
            yield from functions_of(constant)


def far(code: CodeType) -> list[int]:
    """The instructions behind the 256th from which an exception enters such a handler."""
    instructions = list(dis.get_instructions(code))
    return [
        each.offset // 2
        for entry in dis._parse_exception_table(code)  # type: ignore[attr-defined]
        if entry.lasti
        for each in instructions
        if max(entry.start, 2 * LAST_SMALL + 2) <= each.offset < entry.end
        # RERAISE with an argument takes the number of the instruction that raised first.
        if each.opname not in QUIET and not (each.opname == "RERAISE" and each.arg)
    ]


@pytest.mark.parametrize("name", MODULES)
def test_no_handler_of_these_modules_is_far_from_the_beginning_of_its_function(name):
    code = compile(getsource(import_module(f"kafka_shim.{name}")), name, "exec")
    functions = list(functions_of(code))
    assert {each.co_qualname for each in functions}.issuperset(MODULES[name])
    found = {each.co_qualname: far(each) for each in functions if each.co_qualname not in MODULES[name]}
    assert {qualname: numbers for qualname, numbers in found.items() if numbers} == {}


def test_a_handler_is_far_behind_many_instructions():
    lines = ["def f(x):", *["  x = x + 1"] * 60, "  try:", "    x()", "  finally:", "    x()"]
    (long,) = functions_of(compile("\n".join(lines), "long", "exec"))
    (short,) = functions_of(compile("\n".join(lines[:1] + lines[-4:]), "short", "exec"))
    assert far(long)
    assert not far(short)
