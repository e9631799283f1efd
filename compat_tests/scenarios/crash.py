"""Rows B12, B21, D4, D10, D12: killed at a step and started again on the same data."""

from __future__ import annotations
