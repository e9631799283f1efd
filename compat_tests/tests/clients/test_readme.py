"""The README's snippets run as they are printed, each against a fresh broker with nothing but defaults."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from kafka_shim.targets import Target, jvm, make, spark_jvm
from kafka_shim.targets.shim_process import ROOT

ADDRESS = "127.0.0.1:9092"
README = (ROOT / "README.md").read_text()
SNIPPETS = re.findall(r"^```(python|sh)\n(.*?)^```$", README, re.MULTILINE | re.DOTALL)
# What names a snippet, and what it prints; `test_every_snippet_is_run` holds this list and the page together.
EXPECTED = {
    "def test_": "1 passed",
    "from kafka import": "[b'hello']",
    "from confluent_kafka import": "b'hello'",
    "from aiokafka import": "b'hello'",
    "kcat -P": "hello\nhello\n",
    "from pyspark.sql import": "1000",
    "from kafka_shim import": "127.0.0.1:",
}


@pytest.fixture
def broker() -> Iterator[Target]:
    target = make("shim")
    target.settings = {}
    with target as started:
        yield started


@pytest.fixture
def tools(tmp_path: Path) -> Path:
    """A folder with Kafka's console tools under the names of its bin folder."""
    for name in ("kafka-console-producer", "kafka-console-consumer"):
        script = tmp_path / f"{name}.sh"
        script.write_text(f'#!/bin/sh\nexec {shlex.join(jvm.command(jvm.TOOLS[name]))} "$@"\n')
        script.chmod(0o755)
    return tmp_path


def test_every_snippet_is_run() -> None:
    found = [[mark for mark in EXPECTED if mark in text] for _, text in SNIPPETS]
    assert found == [[mark] for mark in EXPECTED]


@pytest.mark.timeout(600)
@pytest.mark.parametrize("mark", EXPECTED)
def test_snippet_prints_what_it_should(mark: str, broker: Target, tools: Path) -> None:
    language, text = next(snippet for snippet in SNIPPETS if mark in snippet[1])
    text = text.replace(ADDRESS, broker.bootstrap)
    command = [sys.executable, "-c", text] if language == "python" else ["sh", "-e", "-c", text]
    if "def test_" in text:
        (tools / "test_readme.py").write_text(text)
        command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--basetemp=inner", "test_readme.py"]
    environment = {
        **os.environ,
        **spark_jvm.environment(),
        "PATH": os.pathsep.join([str(tools), os.environ["PATH"]]),
        "PYTHONPATH": str(ROOT),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_DRIVER_MEMORY": "512m",
    }
    done = subprocess.run(command, capture_output=True, text=True, timeout=540, cwd=tools, env=environment, check=False)
    assert done.returncode == 0, done.stdout + done.stderr[-3000:]
    assert EXPECTED[mark] in done.stdout
