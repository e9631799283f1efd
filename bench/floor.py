"""What the kernel alone takes, beside the shim and Apache Kafka: ``python -m bench.floor``.

The floor (`floor.c`) is a program in C, of one thread, that receives a request, writes a Produce to the end of one file
as it came, and sends an answer that it was given before. It checks and decodes nothing and knows no topic, no group and
no offset. No broker on this machine, with the same clients beside it, does the same work with less, so a goal beside
Kafka that the floor misses is one that the machine does not have. The clients, the cases and the rounds are those of
``make bench``. The table of docs/performance.md is made of ``--json``.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from contextlib import ExitStack
from dataclasses import asdict, replace
from pathlib import Path
from struct import Struct

from bench import data, groups, machine, rounds
from bench.__main__ import FULL, rounded
from bench.compiled import program
from bench.rounds import FLOOR, KAFKA, SHIM, Case, Side
from bench.yardstick import MEMBERS
from kafka_shim.cext.messages import encode_response_frame
from kafka_shim.client.requests import struct
from kafka_shim.errors import ErrorCode
from kafka_shim.protocol.headers import response_class
from kafka_shim.targets import make
from kafka_shim.targets.base import ProcessTarget, free_ports

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import IO, Any, Self

_GIVEN = Struct("=III")  # API key, size from which a request gets this answer, length
HEAD_BYTES = 8  # of a response: length, correlation id
# The one topic of each step of `bench.data.many`.
TOPIC = "many"
# A JoinGroup of the members of `members.c` with their id is longer than this, one without is not.
JOIN_WITH_ID_BYTES = 120
MEMBER = "m" * 50
# Rows of these names, and the goal of each beside Kafka where there is one (`bench.report`).
CASES: dict[str, float | None] = {
    "small, 1 clients": None,
    "small, 4 clients": None,
    "small, 16 clients": None,
    "small, 64 clients": 3,
    "large, 16 clients": None,
    "large, 64 clients": None,
    "offset commits": 3,
    "classic heartbeats": 3,
    "consumer heartbeats": 3,
    f"{MEMBERS} members at once": 3,
}


def answers() -> bytes:
    """What `floor.c` reads."""
    produced = {"name": TOPIC, "partition_responses": [{"index": 0, "base_offset": 0}]}
    committed = {"name": groups.TOPIC, "partitions": [{"partition_index": 0}]}
    joined = {"generation_id": 1, "protocol_name": "range", "leader": "another", "members": []}
    told: Sequence[tuple[int, int, int, Mapping[str, Any]]] = (
        (0, 8, 0, {"responses": [produced]}),
        (8, 9, 0, {"topics": [committed]}),
        (11, 5, 0, {**joined, "error_code": ErrorCode.MEMBER_ID_REQUIRED, "member_id": MEMBER}),
        (11, 5, JOIN_WITH_ID_BYTES, {**joined, "member_id": MEMBER}),
        (12, 3, 0, {}),
        (13, 3, 0, {"members": []}),
        (14, 3, 0, {"assignment": b"assigned"}),
        (18, 0, 0, {}),
        (22, 1, 0, {"producer_id": 1}),
        (68, 1, 0, {"member_id": "bench", "member_epoch": 1, "heartbeat_interval_ms": 5000}),
    )
    made = []
    for key, version, from_bytes, fields in told:
        made_of = response_class(key)
        response = struct(sys.modules[made_of.__module__], made_of, fields)
        frame = b"".join(encode_response_frame(0, response, version))
        made += [_GIVEN.pack(key, from_bytes, len(frame) - HEAD_BYTES), frame[HEAD_BYTES:]]
    return b"".join(made)


class Floor(ProcessTarget):
    kind = FLOOR

    def start(self) -> Self:
        self.bootstrap = self.bootstrap or f"127.0.0.1:{free_ports(1)[0]}"
        given = self.data_dir / "answers"
        given.write_bytes(answers())
        line = [str(program("floor", ["bench/floor.c"])), str(self.port), str(self.data_dir / "kept")]
        with given.open("rb") as stdin:
            self._begin(line, stdin)
        self.wait_until_it_answers()
        return self

    def _begin(self, line: list[str], stdin: IO[bytes]) -> None:
        self._log_file = self.log_path.open("ab")
        self.process = subprocess.Popen(line, stdin=stdin, stdout=self._log_file, stderr=self._log_file)
        self.pid = self.process.pid


class FloorSide(Side):
    """The topic of an answer is in it, so all steps have one name."""

    def next_name(self, word: str) -> str:
        return word


def cases() -> list[Case]:
    known = {case.name: case for case in (*data.cases(FULL.megabytes), *groups.CASES)}
    return [replace(known[name], kinds=(SHIM, KAFKA, FLOOR)) for name in CASES]


def run(pace: rounds.Pace) -> dict[str, Any]:
    found: dict[str, Any] = {}
    with ExitStack() as stack:
        sides: dict[str, Side] = {FLOOR: FloorSide(FLOOR, stack.enter_context(Floor()))}
        for kind, target in ((SHIM, "shim"), (KAFKA, "kafka-native")):
            sides[kind] = Side(kind, stack.enter_context(make(target, is_measured=True)))
            groups.prepare(sides[kind])
        rounds.run(cases(), sides, pace, found.__setitem__)
    return found


def conditions(found: Mapping[str, Any]) -> str:
    settings, on = found["settings"], found["machine"]
    return (
        f"{found['began']}, {on['cpus']} CPUs ({on['cpu']}), TCP congestion control {on['tcp']}; "
        f"{settings['rounds']} rounds; steps of {settings['seconds']:g} s, after at least {settings['warm_up_s']:g} s "
        "of warm-up of each side."
    )


def table(found: Mapping[str, Any]) -> str:
    """The rates as a table in Markdown: the floor and the shim by Kafka, and the goal."""
    heads = ["what, a second"]
    for state in machine.STATES:
        heads += [f"{kind}, {state}" for kind in ("Kafka", FLOOR, SHIM)]
        heads += [f"floor to Kafka, {state}", f"shim to Kafka, {state}", f"CPU each [us]: Kafka, floor, shim, {state}"]
    heads += ["goal", "the floor"]
    rows = [heads, ["---", *["---:"] * (len(heads) - 2), "---"]]
    for name, goal in CASES.items():
        result = found["cases"][name]
        cells = [name]
        for state in machine.STATES:
            cells += [_shown(result, state, kind, "per_s") for kind in (KAFKA, FLOOR, SHIM)]
            cells += [str(rounds.paired(result, state, "per_s", kind, KAFKA)) for kind in (FLOOR, SHIM)]
            cells.append(", ".join(_shown(result, state, kind, "cpu_us") for kind in (KAFKA, FLOOR, SHIM)))
        ratio = rounds.paired(result, machine.QUIET, "per_s", FLOOR, KAFKA)
        reaches = "" if goal is None or ratio is None else "reaches it" if ratio.median >= goal else "misses it"
        rows.append([*cells, f">= {goal:g}x" if goal else "", reaches])
    return "\n".join("| " + " | ".join(cells) + " |" for cells in rows)


def _shown(result: Mapping[str, Any], state: str, kind: str, figure: str) -> str:
    value = rounds.median(result, state, kind, figure)
    return "" if value is None else rounds.short(value)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.floor", description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=FULL.rounds)
    parser.add_argument("--seconds", type=float, default=FULL.seconds)
    parser.add_argument("--json", type=Path, help="every round")
    given = parser.parse_args()
    pace = replace(FULL, rounds=given.rounds, seconds=given.seconds)
    began = time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime())
    told = {"began": began, "machine": machine.description(), "settings": asdict(pace), "cases": run(pace)}
    if given.json:
        given.json.write_text(json.dumps(rounded(told), indent=1) + "\n")
    print(table(rounded(told)))


if __name__ == "__main__":
    main()
