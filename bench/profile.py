"""Where the CPU of the broker goes in the rows of the bench: ``python -m bench.profile --json docs/profile.json``.

`perf record` samples the process of a shim while it does a step of a case of `make bench`, after one to warm up. Each
sample is of one kind, by the functions on its stack: what the kernel does for sockets, files and waiting, and the
interpreter, the extension modules and the rest in user space. The kernel delivers over loopback in the sender's time,
so that a write to a socket has what its receiver's side of TCP costs, and waking the client, in it.

It needs `perf`, and a kernel that lets it sample (`kernel.perf_event_paranoid`).
"""

from __future__ import annotations

import argparse
import json
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from contextlib import ExitStack, contextmanager
from pathlib import Path
from statistics import median

from bench import data, groups, machine, transactions
from bench.rounds import SHIM, Pace, Side
from kafka_shim.targets import make
from kafka_shim.targets.waiting import last_answer

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import Any

    from bench.rounds import Case, Figures

PACE = Pace(seconds=4.0)
SAMPLES_PER_S = 2000
# By name: what some frame on a sample's stack is called, from the kernel's boundary inwards; the first that fits.
KERNEL: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("sockets: write", ("sock_write_iter", "tcp_sendmsg", "__sys_sendto", "____sys_sendmsg")),
    ("sockets: read", ("sock_read_iter", "sock_recvmsg", "tcp_recvmsg")),
    ("sendfile", ("do_sendfile", "__do_splice", "splice_file_to_pipe")),
    ("files", ("ext4_file_write_iter", "ext4_buffered_write_iter", "vfs_writev", "vfs_write", "vfs_fsync_range")),
    ("epoll", ("do_epoll_wait", "do_epoll_ctl")),
    ("pages", ("asm_exc_page_fault", "exc_page_fault", "do_mmap", "__x64_sys_munmap", "do_madvise")),
)
OTHER_KERNEL = "kernel, other"
# By a part of the path of the file that has the function.
USER: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("extension modules", ("/cext/", "/kafka_shim/")),
    ("uvloop", ("/uvloop/",)),
    ("codecs", ("cramjam", "libzstd", "liblz4", "libz.so", "libsnappy")),
    ("interpreter", ("libpython", "/bin/python")),
)
OTHER_USER = "C library, other"
PARTS = (*(name for name, _ in KERNEL), OTHER_KERNEL, *(name for name, _ in USER), OTHER_USER)
KERNEL_PARTS = {OTHER_KERNEL, *(name for name, _ in KERNEL)}
# Cases of `make bench`, with what a CPU figure of theirs is multiplied by to be microseconds.
DATA = ("small, 1 clients", "small, 64 clients", "large, 16 clients", "batches, none", "batches, lz4", "batches, zstd")
FIGURES_US = {"cpu_us": 1.0, "cpu_ms": 1000.0}


def part_of(frames: list[tuple[str, str]]) -> str:
    """Returns one of PARTS for a stack of (function, file), the innermost first."""
    if not frames:
        return OTHER_USER
    if _is_kernel(frames[0][1]):
        functions = {function for function, file in frames if _is_kernel(file)}
        for name, wanted in KERNEL:
            if functions.intersection(wanted):
                return name
        return OTHER_KERNEL
    for name, wanted in USER:
        if any(word in frames[0][1] for word in wanted):
            return name
    return OTHER_USER


def _is_kernel(file: str) -> bool:
    """Whether perf means the kernel or a module of it, which it names in brackets too."""
    return file.startswith("[") and file not in ("[unknown]", "[vdso]")


def counted(lines: Iterable[str]) -> Counter[str]:
    """Returns how many samples are of each part. The lines are of ``perf script -F ip,sym,dso``: a stack a paragraph, a
    frame a line, as ``address function (file)``."""
    found: Counter[str] = Counter()
    frames: list[tuple[str, str]] = []
    for line in (*lines, ""):
        words = line.split(maxsplit=1)
        if len(words) == 2:
            function, _, file = words[1].rpartition(" (")
            frames.append((function, file.rstrip(")\n")))
        elif frames:
            found[part_of(frames)] += 1
            frames = []
    return found


@contextmanager
def sampled(pid: int) -> Iterator[Counter[str]]:
    """Samples a process. The counter is filled at the end. Raises RuntimeError if perf cannot sample."""
    found: Counter[str] = Counter()
    with tempfile.TemporaryDirectory(prefix="bench-") as folder:
        samples = Path(folder) / "perf.data"
        line = ["perf", "record", "-q", "-g", "-F", str(SAMPLES_PER_S), "-o", str(samples), "-p", str(pid)]
        with subprocess.Popen(line, stderr=subprocess.PIPE, text=True) as perf:
            assert perf.stderr is not None
            last_answer(lambda: samples.exists() or perf.poll() is not None, bool)
            if perf.poll() is not None:
                raise RuntimeError(f"perf cannot sample: {perf.stderr.read().strip()}")
            try:
                yield found
            finally:
                perf.send_signal(signal.SIGINT)
                perf.wait()
        line = ["perf", "script", "-i", str(samples), "-F", "ip,sym,dso"]
        with subprocess.Popen(line, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as script:
            assert script.stdout is not None
            found.update(counted(script.stdout))


def profile(case: Case, side: Side) -> dict[str, Any]:
    """Returns the broker's CPU of one piece of work in microseconds, and the share of each part in it."""
    print(f"{case.name} ...", file=sys.stderr, flush=True)
    case.work(side, PACE)
    found = []
    with sampled(side.target.pid or 0) as parts:
        # A step of the members is over in some 50 ms, in which perf may not have begun.
        until_s = time.monotonic() + PACE.seconds
        while time.monotonic() < until_s:
            found.append(_cpu_us(case.work(side, PACE)))
    total = parts.total()
    return {"cpu_us": median(found), "samples": total, "parts": {name: parts[name] / total for name in PARTS}}


def _cpu_us(figures: Figures) -> float:
    name = next(name for name in FIGURES_US if name in figures)
    return figures[name] * FIGURES_US[name]


def run() -> dict[str, Any]:
    """Profiles the cases, each part of the bench on a broker of its own."""
    found = {}
    with ExitStack() as stack:
        side = Side(SHIM, stack.enter_context(make("shim", is_measured=True)))
        for case in data.cases(PACE.megabytes):
            if case.name in DATA:
                found[case.name] = profile(case, side)
    with ExitStack() as stack:
        side = Side(SHIM, stack.enter_context(make("shim", is_measured=True)))
        transactions.prepare(stack, side)
        for case in transactions.CASES:
            found[case.name] = profile(case, side)
    with ExitStack() as stack:
        side = Side(SHIM, stack.enter_context(make("shim", is_measured=True)))
        groups.prepare(side)
        for case in groups.CASES:
            found[case.name] = profile(case, side)
    return found


def table(found: dict[str, Any]) -> str:
    """The table of docs/performance.md, from the JSON."""
    lines = [
        f"| broker CPU of one [us] | all | kernel | {' | '.join(PARTS)} |",
        f"| --- | {' | '.join(['---:'] * (len(PARTS) + 2))} |",
    ]
    for name, row in found["cases"].items():
        cells = [row["cpu_us"], row["cpu_us"] * sum(row["parts"][part] for part in KERNEL_PARTS)]
        cells += [row["cpu_us"] * row["parts"][part] for part in PARTS]
        lines.append(f"| {name} | {' | '.join(_shown(cell) for cell in cells)} |")
    return "\n".join(lines)


def _shown(microseconds: float) -> str:
    return f"{microseconds:,.0f}" if microseconds >= 10 else f"{microseconds:.1f}"


def conditions(found: dict[str, Any]) -> str:
    """One sentence: when, and on what machine."""
    described = found["machine"]
    return f"{found['began']}, {described['cpus']} CPUs ({described['cpu']}), the machine as it is."


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.profile", description=__doc__.splitlines()[0])
    parser.add_argument("--json", type=Path, help="where the figures go")
    options = parser.parse_args()
    if shutil.which("perf") is None:
        sys.stderr.write("bench.profile needs perf (Debian: apt-get install linux-perf)\n")
        return 1
    found = {"began": time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime()), "machine": machine.description()}
    found["cases"] = run()
    if options.json:
        options.json.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    print(table(found))
    return 0


if __name__ == "__main__":
    sys.exit(main())
