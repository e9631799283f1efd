"""franz-go's client tests (package kgo), from the Go module proxy."""

from __future__ import annotations

from pathlib import Path

from kafka_shim.compat.upstream.go_suite import GoSuite


class FranzGo(GoSuite):
    name = "franz_go"
    title = "franz-go, its Go module"
    folder = Path(__file__).resolve().parent
    module = "github.com/twmb/franz-go"
    pinned = "v1.22.2"
    package = "pkg/kgo"

    def environment(self, bootstrap: str, *, long: bool) -> dict[str, str]:
        return {
            "KGO_SEEDS": bootstrap,
            "KGO_TEST_RF": "1",
            # Through six chains of consumer groups and four of transactions each.
            "KGO_TEST_RECORDS": "20000" if long else "5000",
            "KGO_LOG_LEVEL": "none",
        }


SUITE = FranzGo()
