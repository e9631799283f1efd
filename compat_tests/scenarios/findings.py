"""Rows D3-D18: published findings about systems like Kafka, each as a scenario."""

from __future__ import annotations
