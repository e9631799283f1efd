"""Rows C: groups of both protocols and their offsets."""

from __future__ import annotations
