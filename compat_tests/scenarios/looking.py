"""Rows B17-B19, B22: topics that go and grow, compaction, the look-ups, the states of stock producers."""

from __future__ import annotations
