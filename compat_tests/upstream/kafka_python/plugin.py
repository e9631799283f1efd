"""Loaded into the child pytest before kafka-python's conftest: what the source distribution leaves out.

Its tests are the package ``test`` with a module ``test.service`` that starts and stops servers; the distribution has
neither ``test/__init__.py`` nor that module, and Python has a package ``test`` of its own.
"""

from __future__ import annotations

import sys
import types

import pytest

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class ExternalService:
    """A broker that others run: nothing to start or stop."""

    def __init__(self, host: str, port: int) -> None:
        self.host = host
        self.port = port

    def open(self) -> None:
        """It runs already."""

    def stop(self) -> None:
        """It goes on."""

    def dump_logs(self) -> None:
        """The bench keeps the broker's log."""


class SpawnedService:
    """A broker that the tests start: they are told of one, so none is."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        raise RuntimeError("these tests run against a broker that is given to them")


@pytest.hookimpl(tryfirst=True)
def pytest_load_initial_conftests(early_config: pytest.Config) -> None:
    tests = types.ModuleType("test")
    tests.__path__ = [str(early_config.rootpath.parent)]
    service = types.ModuleType("test.service")
    service.ExternalService = ExternalService  # type: ignore[attr-defined]
    service.SpawnedService = SpawnedService  # type: ignore[attr-defined]
    sys.modules["test"] = tests
    sys.modules["test.service"] = service
