"""Imports go one way: docs/DESIGN.md, "Layers". An upward arrow or a cycle of files fails here, for types too."""

from __future__ import annotations

import ast
import functools
import re
from collections.abc import Collection
from importlib import import_module
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent
SHIM = ROOT / "shim"

# Each layer may import itself and what stands before it; parts of one layer do not import each other.
LAYERS: tuple[tuple[str, ...], ...] = (
    (
        "errors",
        "durations",
        "java_address",
        "java_hash",
        "java_order",
        "uuids",
        "randomness",
        "internal_topics",
        "own_tags",
        "places",
        "plurals",
        "ports",
        "threads",
        "timer_failures",
    ),
    (
        "clock",
        "config",
        "faults",
        "host_names",
        "http",
        "line_limit",
        "login_turns",
        "memory_files",
        "metrics",
        "outcome",
        "patterns",
        "periodic",
        "scheduler",
        "tls_handshakes",
        "turns",
        "waiters",
    ),
    ("workers",),
    ("large_requests",),
    ("protocol",),
    ("storage",),
    ("metadata",),
    ("group", "share", "txn", "security", "quota"),
    ("session",),
    ("broker",),
    ("context",),
    ("authorization",),
    ("telemetry",),
    ("api",),
    ("dispatch",),
    ("monitoring",),
    ("closing", "memory_pool", "network_send"),
    ("registry",),
    ("frame_receiver",),
    ("response_sender",),
    ("connection",),
    ("tls_transport",),
    ("listeners",),
    ("acceptor",),
    ("dynamic_listeners",),
    ("socket_server",),
    ("embedded_security",),
    ("client_tickets", "client_tokens"),
    ("client_security",),
    ("client",),
    ("console",),
    ("server",),
    (
        "serve",
        "first_uses",
        "garbage",
        "log_format",
        "memory_dir",
        "embedded",
        "embedded_client",
        "embedded_control",
        "embedded_ports",
        "embedded_process",
        "embedded_records",
        "plugins",
        "pytest_plugin",
        "cli",
        "commands",
        "tools",
        "__main__",
        "__init__",
    ),
)
# Layers whose parts may import each other.
OPEN = {"errors", "clock", "serve"}
# Parts that may use the wire client.
MAY_CONNECT = {"client", "client_security", "client_tickets", "client_tokens", "commands", "console", "tools"}
# Parts that use the protocol and the base alone.
BESIDE = {"wiretap", "history", "wire_client"}
BASE = {*LAYERS[0], *LAYERS[1], "protocol"}
RANK = {part: rank for rank, layer in enumerate(LAYERS) for part in layer}
# Imports for types alone that point up or close a cycle of files, each with its reason.
TYPES_ALONE = {
    ("api.fetch_sessions", "api.fetch_reads"): "a session makes its answer out of the reads of its request",
    ("broker", "api.fetch_sessions"): "the holder of what all handlers share names what it holds",
    ("broker", "memory_pool"): "the holder of what all handlers share names what it holds",
    ("registry", "frame_receiver"): "counts what they hold before they have authenticated",
    ("registry", "connection"): "counts the connections, which register themselves",
    ("broker", "telemetry.client_metrics"): "the holder of what all handlers share names what it holds",
    ("broker", "network_send"): "the holder of what all handlers share names what it holds",
    ("config.listener", "config.broker"): "reads the class that calls the parser",
    ("config.parse", "config.broker"): "fills in the class that calls it",
    ("group.assignor_mixed", "group.assignors"): "a part of the assignors, loaded when a group needs it",
    ("embedded_control", "embedded"): "moves the broker that made it",
    ("group.consumer_records", "group.consumer"): "the base of the group whose records it makes",
    ("quota.request_throttle", "quota.quotas"): "counts a request against the quotas that made it",
    ("storage.cleaner", "storage.logs"): "belongs to the logs, whose partitions it chooses from",
    ("storage.scheduled_tasks", "storage.logs"): "belongs to the logs, on which it does the periodic work",
    ("storage.services", "storage.local_log"): "knows the logs that wait for something",
    ("storage.services", "storage.log"): "hooks get the log that calls them",
    ("storage.lookup", "storage.log"): "the reading half of a log",
    ("storage.retention", "storage.log"): "asks and rolls the log that calls it",
}


def part_of(path: Path) -> str:
    relative = path.relative_to(SHIM)
    return relative.parts[0] if len(relative.parts) > 1 else relative.stem


def modules() -> list[Path]:
    return [path for path in sorted(SHIM.rglob("*.py")) if "tests" not in path.relative_to(SHIM).parts]


def name_of(path: Path) -> str:
    """A file as the rest of `kafka_shim.` names it."""
    parts = path.relative_to(SHIM).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" and len(parts) > 1 else parts)


MODULES = {name_of(path): path for path in modules()}


@functools.cache
def imports(path: Path) -> list[tuple[str, int, bool]]:
    """(module, line, whether for types alone) of everything of this project that a file imports, at any depth."""
    found: list[tuple[str, int, bool]] = []
    tree = ast.parse(path.read_text())
    guarded = {
        id(node)
        for outer in ast.walk(tree)
        if isinstance(outer, ast.If) and "TYPE_CHECKING" in ast.unparse(outer.test)
        for inner in outer.body
        for node in ast.walk(inner)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            # A module of a package, or a name of a module.
            deep = [f"{node.module}.{alias.name}" for alias in node.names]
            is_package = node.module == "kafka_shim"
            names = [name if is_package or name.partition(".")[2] in MODULES else node.module for name in deep]
        else:
            continue
        found += [(name, node.lineno, id(node) in guarded) for name in dict.fromkeys(names)]
    return [one for one in found if one[0].split(".")[0] == "kafka_shim"]


@pytest.mark.parametrize("path", modules(), ids=lambda path: str(path.relative_to(SHIM)))
def test_imports_point_downwards(path: Path):
    part = part_of(path)
    for name, line, _ in imports(path):
        where = f"{path.relative_to(ROOT)}:{line} imports {name}"
        _, _, module = name.partition(".")
        target = module.split(".")[0]
        if (name_of(path), module) in TYPES_ALONE:
            continue
        assert target not in ("compat", "spark"), where
        if target in ("cext", part) or not target or target.startswith("__"):
            continue
        if part in BESIDE:
            assert target in BASE | BESIDE, where
            continue
        if target in BESIDE:
            assert part in MAY_CONNECT, where
            continue
        assert target in RANK, f"{where}: {target} has no place in LAYERS"
        assert part in RANK, f"{part} has no place in LAYERS"
        if RANK[target] == RANK[part]:
            assert LAYERS[RANK[part]][0] in OPEN, f"{where}: parts of one layer do not know each other"
        else:
            assert RANK[target] < RANK[part], f"{where}: an upward arrow"


def test_the_package_of_options_is_imported_by_its_face():
    for path in modules():
        if part_of(path) == "config":
            continue
        inner = [
            f"{path}:{line} imports {name}" for name, line, _ in imports(path) if name.startswith("kafka_shim.config.")
        ]
        assert not inner


def cycle_of(graph: dict[str, set[str]]) -> list[str]:
    """Files that import each other in a circle; empty when there are none."""
    done: set[str] = set()
    path: list[str] = []

    def walk(name: str) -> list[str]:
        if name in path:
            return [*path[path.index(name) :], name]
        if name in done:
            return []
        path.append(name)
        for target in sorted(graph[name]):
            if cycle := walk(target):
                return cycle
        path.pop()
        done.add(name)
        return []

    return next((cycle for name in sorted(graph) if (cycle := walk(name))), [])


def graph_without(allowed: Collection[tuple[str, str]], *, types: bool = True) -> dict[str, set[str]]:
    graph: dict[str, set[str]] = {}
    for name, path in MODULES.items():
        found = [(target.partition(".")[2], is_type) for target, _, is_type in imports(path)]
        graph[name] = {
            target
            for target, is_type in found
            if target in MODULES and target != name and (types or not is_type) and (name, target) not in allowed
        }
    return graph


def test_no_file_is_imported_by_what_it_imports():
    assert cycle_of(graph_without((), types=False)) == []


def test_no_file_is_imported_by_what_it_imports_for_types():
    assert cycle_of(graph_without(TYPES_ALONE)) == []


@pytest.mark.parametrize("edge", TYPES_ALONE, ids=" -> ".join)
def test_every_exception_is_for_types_alone_and_still_needed(edge: tuple[str, str]):
    name, target = edge
    kinds = [is_type for found, _, is_type in imports(MODULES[name]) if found == f"kafka_shim.{target}"]
    assert kinds, "not imported any more"
    assert all(kinds), "imported when it runs"
    points_up = RANK[target.split(".")[0]] > RANK[name.split(".")[0]]
    assert points_up or cycle_of(graph_without(TYPES_ALONE.keys() - {edge})), "neither up nor in a circle"


def test_a_circle_is_found():
    assert cycle_of({"a": {"b"}, "b": {"c"}, "c": {"b"}}) == ["b", "c", "b"]
    assert cycle_of({"a": {"b", "c"}, "b": {"c"}, "c": set()}) == []


def test_cext_imports_nothing_of_the_broker():
    for path in sorted((ROOT / "cext").glob("*.py*")):
        if path.suffix not in (".py", ".pyx", ".pyi", ".pxd"):
            continue
        text = path.read_text()
        for name in re.findall(r"(?m)^\s*(?:from|c?import)\s+([\w.]+)", text):
            assert name != "asyncio", f"{path.name}: {name}"
            assert not name.startswith("kafka_shim") or name.startswith("kafka_shim.cext"), f"{path.name}: {name}"


def test_what_planted_bugs_replace_is_there():
    """The deliberate bugs of the scenarios replace private names. One that is gone would plant nothing, and is seen
    here rather than after a scenario has waited for its answer."""
    seen = 0
    for path in sorted((ROOT / "compat_tests" / "tests" / "compat" / "planted").glob("[!_]*.py")):
        for bug in (each for each in ast.parse(path.read_text()).body if isinstance(each, ast.FunctionDef)):
            there = {}
            for node in ast.walk(bug):
                if isinstance(node, ast.ImportFrom) and node.module is not None:
                    module = import_module(node.module)
                    for alias in node.names:
                        found = getattr(module, alias.name, None) or import_module(f"{node.module}.{alias.name}")
                        there[alias.asname or alias.name] = found
            for node in ast.walk(bug):
                if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in there:
                    assert hasattr(there[node.value.id], node.attr), f"{path.name}, {bug.name}: no {node.attr}"
                    seen += 1
    assert seen > 50
