"""Bytecode instructions of the event loop for one request of each kind, by module: ``python -m bench.bytecodes``.

What Python itself does for a request, and where: the share of the receiver, of dispatch, of the handler, of the log.
The counts do not depend on the machine, but on the version of Python. `python -m bench.instructions` counts what the
CPU executes for the same requests, with the C code and without the names of Python's modules.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from pathlib import Path

import uvloop

from bench import instructions
from kafka_shim import scheduler, turns
from kafka_shim.embedded import Broker
from kafka_shim.wire_client import Connection

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

WARM_UP, REQUESTS = 10, 20
SHIM = Path(__file__).resolve().parent.parent / "shim"


class Tracer:
    """Counts the bytecode instructions of one thread by file."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()

    def _trace(self, frame: Any, event: str, _: object) -> Any:
        frame.f_trace_opcodes, frame.f_trace_lines = True, False
        if event == "opcode":
            self.counts[frame.f_code.co_filename] += 1
        return self._trace

    def begin(self) -> None:
        self.counts.clear()
        sys.settrace(self._trace)

    def end(self) -> None:
        sys.settrace(None)


def by_module(kinds: list[str]) -> dict[str, dict[str, float]]:
    """Returns for each kind the bytecode instructions of one request by module, the most first."""
    found = {}
    # The tracer makes a request so slow that it would be over only some turns later, how many depends on the machine.
    turns.SHARE_US = scheduler.SLICE_US = 10**9
    with (
        Broker(loop_factory=uvloop.new_event_loop, **instructions.UNDISTURBED) as broker,
        Connection(broker.bootstrap_servers, timeout_s=60) as client,
        instructions.Workload(client, broker.bootstrap_servers) as workload,
    ):
        tracer = Tracer()
        for kind in kinds:
            for _ in range(WARM_UP):
                instructions.KINDS[kind](workload)
            for _ in range(2):  # Python 3.12 tells a thread's first tracer of no instruction
                broker.call(tracer.begin)
                for _ in range(REQUESTS):
                    instructions.KINDS[kind](workload)
                broker.call(tracer.end)
            found[kind] = {_name(file): count / REQUESTS for file, count in tracer.counts.most_common()}
    return found


def _name(file: str) -> str:
    path = Path(file).resolve()
    return str(path.relative_to(SHIM)) if path.is_relative_to(SHIM) else path.name


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.bytecodes", description=__doc__.splitlines()[0])
    parser.add_argument("--modules", type=int, default=12, help="print so many modules of each kind")
    parser.add_argument("kinds", nargs="*", help=f"of: {', '.join(instructions.KINDS)}")
    given = parser.parse_args()
    for kind, counts in by_module(given.kinds or list(instructions.KINDS)).items():
        print(f"{kind}: {sum(counts.values()):,.0f}")
        for name, count in list(counts.items())[: given.modules]:
            print(f"{count:>10,.0f}  {name}")


if __name__ == "__main__":
    main()
