"""Start-up: from the start of the process to the first answer to ApiVersions, in a new directory and after a stop. The
shim has its modules as bytecode, which an installation by pip has compiled, as Kafka's jars are.
"""

from __future__ import annotations

import subprocess
import sys
from functools import cache
from tempfile import TemporaryDirectory

from bench.client_process import ROOT, anonymous_mb
from bench.data import answer_s
from bench.rounds import SHIM, Case, Side
from kafka_shim.targets import make
from kafka_shim.targets.kafka_native import KafkaNative
from kafka_shim.targets.shim_process import ShimProcess

TYPE_CHECKING = False
if TYPE_CHECKING:
    from bench.rounds import Figures, Pace

TARGETS = {"shim": "shim", "kafka": "kafka-native"}
_EMBEDDED = (
    "import time, asyncio, uvloop, kafka_shim.embedded, kafka_shim.server\nfrom kafka_shim import Broker\n"
    "began = time.perf_counter()\n"
    "with Broker() as broker:\n    print((time.perf_counter() - began) * 1000)\n"
)


def start(side: Side, pace: Pace) -> Figures:
    """The first start in a new directory, which Kafka's tool has formatted before the clock runs; then a stop as the
    broker does it by default, and the next start."""
    target = make(TARGETS[side.kind], is_measured=True)
    try:
        if isinstance(target, KafkaNative):
            target.prepare()
        if isinstance(target, ShimProcess):
            target.environment = _with_bytecode(_bytecode())
        new_s = answer_s(target)
        target.stop()
        again_s = answer_s(target)
        return {"new_s": new_s, "again_s": again_s, "memory_mb": anonymous_mb(target)}
    finally:
        target.close()


def _with_bytecode(folder: TemporaryDirectory[str]) -> dict[str, str]:
    return {"PYTHONPYCACHEPREFIX": folder.name, "PYTHONDONTWRITEBYTECODE": ""}


@cache
def _bytecode() -> TemporaryDirectory[str]:
    """The folder to which a first start has written the bytecode of what it imports. It ends with this process."""
    folder = TemporaryDirectory(prefix="kafka-shim-bytecode-")
    target = ShimProcess()
    target.environment = _with_bytecode(folder)
    try:
        answer_s(target)
    finally:
        target.close()
    return folder


def embedded(side: Side, pace: Pace) -> Figures:
    """Milliseconds from `Broker()` to the first answer, without the import, in a process of its own."""
    command = [sys.executable, "-c", _EMBEDDED]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=ROOT)
    return {"ms": float(done.stdout.split()[-1])}


CASES = (Case("start", start), Case("start, embedded", embedded, kinds=(SHIM,)))
