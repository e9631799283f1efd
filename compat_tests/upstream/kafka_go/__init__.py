"""kafka-go's tests (segmentio), from the Go module proxy. They name one fixed address; a copy of them asks for it."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path

from kafka_shim.compat.upstream.go_suite import GoSuite, copy_of
from kafka_shim.compat.upstream.packages import CACHE, go_module
from kafka_shim.compat.upstream.pytest_suite import ADDRESS
from kafka_shim.targets.kafka_jars import KAFKA_VERSION

# What stands in the tests, and what takes its place. The first that fits a place wins.
REPLACED = (
    (r'const (\w+) = "localhost:9092"', r"var \1 = upstreamBroker"),
    (r'\bconst (\(\s+tcp\s+= "tcp"\s+kafka = )"localhost:9092"', r"var \1upstreamBroker"),
    (r'"localhost:9092"', "upstreamBroker"),
    (r'Dial\("tcp", "127\.0\.0\.1:9092"\)', 'Dial("tcp", upstreamBroker)'),
    (r'\bTCP\("localhost"\)', "TCP(upstreamBroker)"),
    (r'Host: "localhost", Port: 9092', 'Host: "localhost", Port: upstreamPort'),
    (r"\.Port != 9092", ".Port != upstreamPort"),
)
# Tests of how an address is read, not of a broker.
AS_THEY_ARE = ("address_test.go", "example_*_test.go")

OURS = f"""package kafka

import (
	"os"
	"strconv"
	"strings"
)

var upstreamBroker = os.Getenv("{ADDRESS}")

var upstreamPort, _ = strconv.Atoi(upstreamBroker[strings.LastIndex(upstreamBroker, ":")+1:])
"""


class KafkaGo(GoSuite):
    name = "kafka_go"
    title = "kafka-go (segmentio), its Go module"
    folder = Path(__file__).resolve().parent
    module = "github.com/segmentio/kafka-go"
    pinned = "v0.4.51"
    host = "localhost"
    # The module's go.mod is older in form than today's Go wants it.
    build_options = ("-mod=mod",)

    @property
    def _copy(self) -> str:
        """A change of what is replaced makes another copy."""
        return f"{self.name}-{self.pinned}-{hashlib.sha256(Path(__file__).read_bytes()).hexdigest()[:8]}"

    @property
    def _binary(self) -> Path:
        return CACHE / f"{self._copy}.test"

    def sources(self) -> Path:
        target = CACHE / self._copy
        if not (target / "go.mod").exists() or not self._binary.exists():
            copy_of(go_module(self.module, self.pinned), target)
            for path in target.glob("*_test.go"):
                if not any(path.match(pattern) for pattern in AS_THEY_ARE):
                    path.write_text(with_the_address_asked_for(path.read_text()))
            (target / "upstream_test.go").write_text(OURS)
        return target

    def environment(self, bootstrap: str, *, long: bool) -> dict[str, str]:
        # Its own CI leaves out the tests of net.Conn's contract too.
        return {ADDRESS: bootstrap, "KAFKA_VERSION": KAFKA_VERSION, "KAFKA_SKIP_NETTEST": "1"}


def with_the_address_asked_for(source: str) -> str:
    for pattern, replacement in REPLACED:
        source = re.sub(pattern, replacement, source)
    return source


SUITE = KafkaGo()
