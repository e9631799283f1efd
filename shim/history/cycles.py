"""Finds dependency cycles among committed operations: G0 (write-write only) and G1c (with write-read dependencies)."""

from __future__ import annotations

from kafka_shim.history.operations import FAIL, POLL

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from kafka_shim.history.evidence import Evidence
    from kafka_shim.history.operations import Operation

    Graph = dict[int, set[int]]

G0 = "G0"
G1C = "G1c"


def find(history: Sequence[Operation], evidence: Evidence, write_edges: bool = False) -> Iterator[tuple[str, str]]:
    """Yields (class, details) for each cycle.

    G0 is a cycle of operations whose writes follow each other, over all keys. G1c is a cycle of operations that read
    each other's writes. With `write_edges` a G1c cycle may also contain write-write edges, which Kafka allows.
    """
    writes = _write_edges(evidence)
    for component in strong_components(writes):
        yield G0, f"lines {sorted(component)!r} overwrite each other in a circle"
    reads = _read_edges(history, evidence)
    both: Graph = {node: set(targets) for node, targets in reads.items()}
    if write_edges:
        for node, targets in writes.items():
            both.setdefault(node, set()).update(targets)
    for component in strong_components(both):
        if any(target in component for node in component for target in reads.get(node, ())):
            yield G1C, f"lines {sorted(component)!r} depend on each other in a circle"


def _write_edges(evidence: Evidence) -> Graph:
    edges: Graph = {}
    for key in evidence.keys.values():
        previous = None
        for offset in sorted(key.values):
            for value in key.values[offset]:
                writer = key.writers.get(value)
                if writer is None or writer.outcome == FAIL:
                    continue
                if previous is not None and previous is not writer:
                    edges.setdefault(previous.index, set()).add(writer.index)
                previous = writer
    return edges


def _read_edges(history: Sequence[Operation], evidence: Evidence) -> Graph:
    edges: Graph = {}
    for operation in history:
        if operation.outcome == FAIL:
            continue
        for op in operation.ops:
            if op[0] != POLL:
                continue
            for name, records in op[1].items():
                writers = evidence.keys[name].writers
                for _, value in records:
                    writer = writers.get(value)
                    if writer is not None and writer is not operation:
                        edges.setdefault(writer.index, set()).add(operation.index)
    return edges


def strong_components(graph: Graph) -> Iterator[set[int]]:
    """Yields the strongly connected components with more than one node (Tarjan's algorithm, iterative)."""
    order: dict[int, int] = {}
    low: dict[int, int] = {}
    on_stack: set[int] = set()
    stack: list[int] = []
    for root in graph:
        if root in order:
            continue
        order[root] = low[root] = len(order)
        stack.append(root)
        on_stack.add(root)
        work = [(root, iter(graph.get(root, ())))]
        while work:
            node, targets = work[-1]
            for target in targets:
                if target not in order:
                    order[target] = low[target] = len(order)
                    stack.append(target)
                    on_stack.add(target)
                    work.append((target, iter(graph.get(target, ()))))
                    break
                if target in on_stack:
                    low[node] = min(low[node], order[target])
            else:
                work.pop()
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[node])
                if low[node] == order[node]:
                    component = _pop_component(stack, on_stack, node)
                    if len(component) > 1:
                        yield component


def _pop_component(stack: list[int], on_stack: set[int], node: int) -> set[int]:
    component: set[int] = set()
    while True:
        top = stack.pop()
        on_stack.discard(top)
        component.add(top)
        if top == node:
            return component
