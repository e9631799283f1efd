"""Fixtures of other folders that show what options do."""

from __future__ import annotations

from kafka_shim.tests.storage.conftest import make_disk

__all__ = ["make_disk"]
