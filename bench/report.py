"""The tables of the bench, from its JSON alone: the terminal, README and docs/performance.md show the same.

A figure is the median of the rounds, a ratio the median of the rounds' ratios with the least and the greatest. Each row
has both states of the machine; the budget is for the quiet one.
"""

from __future__ import annotations

from dataclasses import dataclass

from bench.machine import AS_IS, QUIET
from bench.rounds import KAFKA, SHIM, YARDSTICK, Ratio, beside, median, paired, short

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from typing import Any

    Results = Mapping[str, Any]

ABSENT = ""


@dataclass(frozen=True)
class Row:
    """One figure of a case. `limit` is for the ratio to Kafka, a least value with `is_more` (more is better), else a
    greatest; `is_absolute` makes it one for the figure itself. No `limit`: the figure is there to be known. `nothing`
    is the case that the ratio is to, in place of Kafka."""

    case: str
    figure: str
    title: str
    limit: float | None = None
    is_more: bool = False
    is_absolute: bool = False
    nothing: str = ""


def _latency(case: str, title: str) -> tuple[Row, ...]:
    return (Row(case, "p50_us", f"{title}: p50 [us]"), *_tail(case))


def _tail(case: str) -> tuple[Row, ...]:
    return (
        Row(case, "p99_us", "p99 [us]"),
        Row(case, "p99.9_us", "p99.9 [us]"),
        Row(case, "cpu_us", "broker CPU each [us]"),
    )


def _clients(case: str, title: str, limit: float | None = None) -> tuple[Row, ...]:
    first = Row(case, "per_s", f"{title}: requests a second", limit, is_more=True)
    return (first, Row(case, "p50_us", "p50 [us]"), *_tail(case))


def _work(case: str, title: str, cost: str, unit: str, limit: float) -> tuple[Row, ...]:
    return (Row(case, "per_s", f"{title}: a second", limit, True), Row(case, cost, f"broker CPU each [{unit}]"))


def _by_count(prefix: str, title: str) -> Iterator[Row]:
    for count in CLIENT_COUNTS:
        people = "1 client" if count == 1 else f"{count} clients"
        limit = 3 if (prefix, count) == ("small", 64) else None
        yield from _clients(f"{prefix}, {count} clients", f"{title}, {people}", limit)


def _beside(work: str) -> Row:
    case, title = f"loop: {work}", f"{work}: p99.9 [us]"
    return Row(case, "p99.9_us", title, *((None,) if work == NOTHING else (3, False, False, f"loop: {NOTHING}")))


CLIENT_COUNTS = (1, 4, 16, 64)
CODECS = ("none", "lz4", "zstd")
NOTHING = "nothing"
LOOP_WORK = (
    NOTHING,
    "compaction",
    "retention of 10,000 segments",
    "metadata of 10,000 partitions",
    "rebalance of 1,000 members",
    "100 MB of cold fetch",
    "start of 5,000 connections",
    "DescribeLogDirs",
    "snapshot",
    "fsync on a slow disk",
)
TABLES: dict[str, tuple[str, tuple[Row, ...]]] = {
    "basics": (
        "what",
        (
            Row(
                "throughput",
                "produce_mb_s",
                "produce, 1 KB records, 4 partitions, idempotent, acks=all [MB/s]",
                2.5,
                True,
            ),
            Row("throughput", "produce_cpu_s_gb", "broker CPU [s/GB]", 0.35),
            Row("throughput", "consume_mb_s", "consume the same [MB/s]", 1.3, True),
            Row("throughput", "consume_cpu_s_gb", "broker CPU [s/GB]", 0.5),
            *_latency("single", "one record of 1 KB, acks=all, one at a time"),
            Row("start", "new_s", "start in a new directory to the first answer [s]", 0.08),
            Row("start", "again_s", "start after a default stop [s]", 0.08),
            Row("start, embedded", "ms", "start embedded, after import [ms]", 20, is_absolute=True),
            Row("start", "memory_mb", "anonymous memory after start [MB]", 50, is_absolute=True),
            Row("memory after", "memory_mb", "after the tables of produce and consume [MB]", 80, is_absolute=True),
        ),
    ),
    "clients": (
        "produce, acks=all, idempotent, each client one request at a time",
        (
            *_by_count("small", "100 B records"),
            *_by_count("large", "100 KB records"),
            *(
                row
                for codec in CODECS
                for row in _clients(f"batches, {codec}", f"100 records of 1 KB, 4 clients, compression {codec}")
            ),
        ),
    ),
    "equal": (
        "equal load, 16 clients; a latency begins when the request is due",
        (
            *_latency("equal load, small", "2,000 records of 100 B a second"),
            *_latency("equal load, large", "500 records of 100 KB a second"),
        ),
    ),
    "transactions": (
        "transactions of Java producers, `linger.ms=0`",
        tuple(
            row
            for name, limit in (
                ("1 record", 15),
                ("1,000 records", 4),
                ("20 records, 20 partitions", 4),
                ("1,000 records, 20 partitions", 4),
                ("1 record, 16 producers", 4),
                ("20 records, 20 partitions, 16 producers", 4),
            )
            for row in _work(f"transactions: {name}", name, "cpu_ms", "ms", limit)
        ),
    ),
    "groups": (
        "groups",
        tuple(
            row
            for name in ("offset commits", "classic heartbeats", "consumer heartbeats", "100 members at once")
            for row in _work(name, name, "cpu_us", "us", 3)
        ),
    ),
    "security": (
        "TLS and ACLs",
        (
            Row("tls throughput", "produce_mb_s", "TLS: produce, 1 KB records [MB/s]", is_more=True),
            Row("tls throughput", "produce_cpu_s_gb", "broker CPU [s/GB]"),
            Row("tls throughput", "consume_mb_s", "TLS: consume the same [MB/s]", is_more=True),
            Row("tls throughput", "consume_cpu_s_gb", "broker CPU [s/GB]"),
            *_latency("tls single", "TLS: one record, one at a time"),
            *_latency("one acl", "one ACL: one record, one at a time"),
            *_latency("many acls", "10,000 ACLs: the same"),
            *_latency("strangers", "10,000 ACLs, beside 5,000 connections that do not log in: the same"),
        ),
    ),
    "loop": (
        "a small produce beside other work, the shim alone",
        tuple(
            row
            for work in LOOP_WORK
            for row in (
                _beside(work),
                Row(f"loop: {work}", "turn_cpu_ms", "longest turn, CPU [ms]", 10, is_absolute=True),
                Row(f"loop: {work}", "turn_ms", "longest turn, time [ms]"),
            )
        ),
    ),
    "scale": (
        "at size, the shim alone",
        (
            Row("soak", "memory_mb", "anonymous memory after 4 GB written and read [MB]", 80, is_absolute=True),
            Row("idle partitions", "each_kb", "an idle partition, of 10,000 [KB]", 6, is_absolute=True),
            Row(
                "idle partitions",
                "p50_ratio",
                "p50 of one record, 10,000 partitions to 10 [ratio]",
                1.2,
                is_absolute=True,
            ),
            Row("crc", "ratio", "CRC-32C of 64 KiB, speed relative to the PyPI package [ratio]", 2, True, True),
        ),
    ),
}
YARDSTICK_TABLES = ("basics", "clients", "groups")
# Tables of the shim alone; the first in one state.
ALONE = ("scale", "loop")
SMALL_SIZES = {
    "scale": " and at a small part of the size: 0.2 GB, 1,000 partitions",
    "loop": ", a twentieth of the sizes that the names say, but for the partitions",
}


def table(name: str, figures: Mapping[str, Any]) -> str:
    """One of TABLES in Markdown, or nothing where the run did not have its part."""
    title, rows = TABLES[name]
    cases: Results = figures["cases"]
    known = [row for row in rows if row.case in cases]
    if not known:
        return ""
    kinds: Sequence[str] = (KAFKA, YARDSTICK, SHIM) if name in YARDSTICK_TABLES else (KAFKA, SHIM)
    if name in ALONE:
        kinds = (SHIM,)
        if figures["settings"]["is_small"]:
            title += SMALL_SIZES[name]
    states = (QUIET,) if name == "scale" else (QUIET, AS_IS)
    has_ratios = KAFKA in kinds or any(row.nothing for row in known)
    heads = [title]
    for state in states:
        heads += [f"{kind.capitalize()}, {state}" if kind == KAFKA else f"{kind}, {state}" for kind in kinds]
        heads += [f"ratio{'' if KAFKA in kinds else ' to nothing'}, {state}"] if has_ratios else []
    heads += ["budget", ""]
    return _markdown(heads, [_cells(row, cases, kinds, states, has_ratios) for row in known])


def _cells(row: Row, cases: Results, kinds: Sequence[str], states: Sequence[str], has_ratios: bool = True) -> list[str]:
    cells = [row.title]
    for state in states:
        found = [median(cases[row.case], state, kind, row.figure) for kind in kinds]
        cells += [ABSENT if value is None else short(value) for value in found]
        if has_ratios:
            cells.append(str(_ratio(row, cases, state) or ABSENT))
    return [*cells, *_verdict(row, cases)]


def _ratio(row: Row, cases: Results, state: str) -> Ratio | None:
    result = cases[row.case]
    if row.nothing:
        return beside(result, cases[row.nothing], state, row.figure) if row.nothing in cases else None
    return paired(result, state, row.figure)


def _verdict(row: Row, cases: Results) -> tuple[str, str]:
    """(the budget, whether the quiet figure is inside)."""
    if row.limit is None:
        return ABSENT, ABSENT
    value: float | None
    if row.is_absolute:
        value = median(cases[row.case], QUIET, SHIM, row.figure)
    else:
        ratio = _ratio(row, cases, QUIET)
        value = ratio.median if ratio else None
    budget = f"{'>=' if row.is_more else '<='} {row.limit:g}{'' if row.is_absolute else 'x'}"
    if value is None:
        return budget, ABSENT
    is_inside = value >= row.limit if row.is_more else value <= row.limit
    return budget, "inside" if is_inside else "outside"


def _markdown(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [heads, ["---", *("---:" for _ in heads[1:-1]), "---"], *rows]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in lines)


# The bench's own clients, brokers and spinners stay below; above, the machine did other work as well.
MOST_LOAD_OF_CPU = 4


def _first(settings: Mapping[str, Any]) -> str:
    seconds = settings.get("first_s", 0)
    return f", after {seconds:g} s of every case of a part before its first one" if seconds else ""


def _loads(figures: Mapping[str, Any]) -> list[float]:
    return [result["load"] for result in figures["cases"].values() if "load" in result]


def warning(figures: Mapping[str, Any]) -> str:
    """A sentence about a machine that was not the bench's alone, or nothing."""
    # The load is that of all of the machine's CPUs.
    machine = figures["machine"]
    most, cpus = max(_loads(figures), default=0), machine.get("cpus_of_machine") or machine["cpus"]
    if most <= MOST_LOAD_OF_CPU * cpus:
        return ""
    return (
        f"**The machine did other work during this run (load up to {most:g} on {cpus} CPUs): these figures show what "
        "is measured, and are no measure of either broker.**"
    )


def _cpus(machine: Mapping[str, Any]) -> str:
    """The CPUs that broker and client were bound to, and of how many."""
    given, every = machine["cpus"], machine.get("cpus_of_machine") or machine["cpus"]
    return f"{given} CPUs" if given == every else f"{given} of {every} CPUs"


def conditions(figures: Mapping[str, Any]) -> str:
    """One paragraph: the machine, the settings, and what a doubting reader asks first."""
    machine, settings, cases = figures["machine"], figures["settings"], figures["cases"]
    loads = _loads(figures)
    unstable = sorted(
        f"{name} ({', '.join(kind for kind, warm in result['warm_up'].items() if not warm['is_stable'])})"
        for name, result in cases.items()
        if not all(warm["is_stable"] for warm in result.get("warm_up", {}).values())
    )
    flags = " ".join(figures.get("jvm", []))
    lines = [
        f"{figures['began']}, {_cpus(machine)} ({machine['cpu']}), {machine['memory_gb']} GB, "
        f"{machine['system']}, Python {machine['python']}, {machine['java']}; shared by broker and client.",
        f"{settings['rounds']} rounds; steps of {settings['seconds']:g} s, {settings['megabytes']} MB for throughput; "
        f"at least {settings['warm_up_s']:g} s of warm-up of each side, the same for both{_first(settings)}.",
        f"Load of the machine when a case began: {min(loads, default=0):g} to {max(loads, default=0):g}.",
        f"Not stable after the warm-up: {'; '.join(unstable) or 'none'}.",
    ]
    if "tcp" in machine:
        flatters = ", whose pacing the shim's listeners on loopback do without and Kafka's cannot"
        lines.append(
            f"TCP congestion control of the system: {machine['tcp']}{flatters if machine['tcp'] == 'bbr' else ''}."
        )
    for began, parts in figures.get("later", {}).items():
        lines.append(f"Taken in a run of these parts alone, {began}: {', '.join(parts)}.")
    if figures.get("failed"):
        lines.append(f"Failed parts: {'; '.join(f'{part} ({why})' for part, why in figures['failed'].items())}.")
    if flags:
        lines.append(f"Kafka's JVM: `{flags}`.")
    return "\n".join([*filter(None, [warning(figures)]), *lines])


def _times(figures: Mapping[str, Any]) -> list[str]:
    """When a run began, and when its parts beside Kafka were taken that were run again."""
    later = {began: [part for part in parts if part not in ALONE] for began, parts in figures.get("later", {}).items()}
    return [figures["began"], *(f"{' and '.join(parts)} {began}" for began, parts in later.items() if parts)]


def machines(runs: Sequence[Mapping[str, Any]]) -> str:
    """The rows that have a budget beside Kafka, in some runs, the first of which the page shows."""
    rows = [row for name, (_, rows) in TABLES.items() if name not in ALONE for row in rows]
    budgeted = [row for row in rows if row.limit is not None and not row.is_absolute]
    titles = [row.title for row in budgeted]
    heads = ["ratio to Kafka"]
    for number, _ in enumerate(runs, 1):
        heads += [f"{number}: {state}" for state in (QUIET, AS_IS)] + ["budget"]
    lines = []
    for row in budgeted:
        # Several are "broker CPU": whose it is begins the name of the figure.
        is_unclear = titles.count(row.title) > 1
        cells = [f"{row.title}: {row.figure.partition('_')[0]}" if is_unclear else row.title]
        for figures in runs:
            result = figures["cases"].get(row.case)
            ratios = [paired(result, state, row.figure) if result else None for state in (QUIET, AS_IS)]
            cells += [str(ratio or ABSENT) for ratio in ratios]
            cells.append(" ".join(filter(None, reversed(_verdict(row, figures["cases"])))) if result else ABSENT)
        lines.append(cells)
    told = [f"{n}: {run['machine']['cpu']}, {', '.join(_times(run))}" for n, run in enumerate(runs, 1)]
    return f"{'; '.join(told)}, each by the shim of that time.\n\n{_markdown(heads, lines)}"


def page(figures: Mapping[str, Any]) -> str:
    """All tables, for the terminal."""
    tables = [table(name, figures) for name in TABLES]
    return "\n\n".join([*filter(None, tables), conditions(figures)])


HEADLINES = (
    Row("throughput", "produce_mb_s", "produce, 1 KB records [MB/s]"),
    Row("throughput", "consume_mb_s", "consume [MB/s]"),
    Row("single", "p50_us", "one record, acks=all: p50 [us]"),
    Row("single", "p99_us", "one record, acks=all: p99 [us]"),
    Row("single", "cpu_us", "broker CPU of one record [us]"),
    Row("small, 64 clients", "per_s", "64 clients, one record at a time each [a second]"),
    Row("transactions: 1 record", "per_s", "transactions of one record, one Java producer [a second]"),
    Row(
        "transactions: 20 records, 20 partitions, 16 producers",
        "per_s",
        "transactions of 20 partitions, 16 Java producers [a second]",
    ),
    Row("tls throughput", "produce_mb_s", "produce with TLS [MB/s]"),
    Row("start", "new_s", "start to the first answer [s]"),
    Row("memory after", "memory_mb", "memory of the process after produce and consume [MB]"),
)


def headlines(figures: Mapping[str, Any]) -> str:
    """README's table: both states, the ratio with its spread."""
    cases = figures["cases"]
    heads = ["", "Kafka, quiet", "shim, quiet", "ratio", "Kafka, as it is", "shim, as it is", "ratio"]
    rows = [_cells(row, cases, (KAFKA, SHIM), (QUIET, AS_IS))[:-2] for row in HEADLINES if row.case in cases]
    lines = [heads, ["---", *("---:" for _ in heads[1:])], *rows]
    table = "\n".join("| " + " | ".join(cells) + " |" for cells in lines)
    return "\n\n".join(filter(None, [warning(figures), table]))
