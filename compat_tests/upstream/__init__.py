"""Clients' own integration tests, fetched at test time from their packages and run against the shim and Apache Kafka.

A suite is a folder here: its definition (``__init__.py``), the tests that must pass (``tests.allow``), and the results
(``FINDINGS.md``). This tree contains no third-party tests: ``packages`` fetches the client's source distribution or Go
module into ``.cache/upstream``, ``pytest_suite`` and ``go_suite`` run it in a child process, ``runner`` starts the
broker and compares the results with the list.
"""

from __future__ import annotations

from importlib import import_module

TYPE_CHECKING = False
if TYPE_CHECKING:
    from kafka_shim.compat.upstream.base import Suite

SUITES = ("kafka_python", "arroyo", "franz_go", "kafka_go")


def load(name: str) -> Suite:
    """The suite of one of SUITES. Raises KeyError for another name."""
    if name not in SUITES:
        raise KeyError(name)
    suite: Suite = import_module(f"kafka_shim.compat.upstream.{name}").SUITE
    return suite
