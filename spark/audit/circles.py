"""Dependency cycles among operations: Spark computes the edges, the driver the strongly connected components.

Most edges go forward in the history. A cycle contains backward edges, and lies completely within the stretches of
history that they span. So only edges inside such stretches are collected on the driver. A clean history has very few.
"""

from __future__ import annotations

from kafka_shim.history import cycles

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from pyspark.sql import DataFrame

    from kafka_shim.spark.audit.evidence import Evidence

Found = tuple[str, str]
# Stretches beyond this number are merged into one. The driver then gets more edges, never fewer.
STRETCHES_AT_MOST = 10_000


def write_edges(evidence: Evidence) -> DataFrame:
    """Edges between two writers whose values follow each other in a key."""
    from pyspark.sql import Window, functions

    in_order = Window.partitionBy("key").orderBy("offset")
    writers = evidence.seen.where("writer is not null and not is_failed").withColumnRenamed("writer", "target")
    steps = writers.withColumn("source", functions.lag("target").over(in_order))
    return steps.where("source is not null and source != target").select("source", "target").distinct()


def read_edges(evidence: Evidence) -> DataFrame:
    """Edges from the writer of a value to the operation that read it."""
    writers = evidence.values.where("writer is not null").selectExpr("key", "value", "writer as source")
    reads = evidence.polls.where("outcome != 'fail' and index >= 0").selectExpr("key", "value", "index as target")
    return reads.join(writers, ["key", "value"]).where("source != target").select("source", "target").distinct()


def find(evidence: Evidence, *, with_writes: bool = False) -> list[Found]:
    """Returns (class, text) for each component. ``with_writes`` is `write_edges` of
    ``kafka_shim.history.cycles.find``.
    """
    writes, reads = _inside(write_edges(evidence)), None
    found = [
        (cycles.G0, f"operations {_some(component)} overwrite each other in a circle")
        for component in components(writes)
    ]
    both = read_edges(evidence)
    if with_writes:
        from pyspark.sql import functions

        marked = both.withColumn("is_read", functions.lit(True)).unionByName(
            write_edges(evidence).withColumn("is_read", functions.lit(False))
        )
        reads = _inside(marked)
        circles = components((row[0], row[1]) for row in reads)
        read_pairs = [(row[0], row[1]) for row in reads if row[2]]
        circles = [each for each in circles if any(a in each and b in each for a, b in read_pairs)]
    else:
        circles = components(_inside(both))
    found += [(cycles.G1C, f"operations {_some(component)} depend on each other in a circle") for component in circles]
    return found


def _some(component: set[int]) -> str:
    return ", ".join(map(str, sorted(component)[:10])) + (" ..." if len(component) > 10 else "")


def _inside(edges: DataFrame) -> list[tuple[int, ...]]:
    """Returns the edges that may be part of a cycle."""
    from pyspark import StorageLevel
    from pyspark.sql import functions

    edges = edges.persist(StorageLevel.DISK_ONLY)
    try:
        back = edges.where("source > target").groupBy("target").agg({"source": "max"}).orderBy("target")
        stretches = merged((row[0], row[1]) for row in back.toLocalIterator())
        if not stretches:
            return []
        spans = edges.sparkSession.createDataFrame(stretches, "first bigint, last bigint")
        inside = edges.join(functions.broadcast(spans), functions.expr("source between first and last"))
        return [tuple(row) for row in inside.where("target between first and last").drop("first", "last").collect()]
    finally:
        edges.unpersist()


def merged(spans: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """Merges overlapping stretches. Input and output are sorted."""
    found: list[tuple[int, int]] = []
    for first, last in spans:
        if found and first <= found[-1][1]:
            found[-1] = found[-1][0], max(last, found[-1][1])
        else:
            found.append((first, last))
    return found if len(found) <= STRETCHES_AT_MOST else [(found[0][0], found[-1][1])]


def components(edges: Iterable[tuple[int, ...]]) -> list[set[int]]:
    """Returns the strongly connected components with more than one node, ordered by their first node."""
    graph: dict[int, set[int]] = {}
    for source, target, *_ in edges:
        graph.setdefault(source, set()).add(target)
    return sorted(cycles.strong_components(graph), key=min)
