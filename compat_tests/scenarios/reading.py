"""Rows B14-B16: what readers of both isolation levels see, and committed offsets of open transactions."""

from __future__ import annotations
