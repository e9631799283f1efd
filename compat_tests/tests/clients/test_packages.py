"""The wheel and the source distribution install into an empty environment and serve."""

from __future__ import annotations

import re
import subprocess
import sys
import venv
import zipfile
from pathlib import Path

import pytest

from kafka_shim.targets import requests
from kafka_shim.targets.shim_process import ROOT
from kafka_shim.wire_client import Connection

# Run in a folder that has folders shim/, cext/, spark/ and compat_tests/ of its own.
OWN_TEST = """
from kafka_shim import Broker
with Broker() as broker:
    assert broker.bootstrap_servers
"""

pytestmark = pytest.mark.timeout(900)  # both packages compile: the fixture's time is that of the first test


@pytest.fixture(scope="module")
def packages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Both packages, built as a release builds them; the wheel is made from the source distribution."""
    folder = tmp_path_factory.mktemp("dist")
    line = [sys.executable, "-m", "build", "--no-isolation", "--outdir", str(folder), str(ROOT)]
    done = subprocess.run(line, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    return {"wheel": next(folder.glob("*.whl")), "sdist": next(folder.glob("*.tar.gz"))}


def test_wheel_holds_the_broker_and_no_tests(packages: dict[str, Path]) -> None:
    names = zipfile.ZipFile(packages["wheel"]).namelist()
    assert any(name.startswith("kafka_shim/cext/") and name.endswith(".so") for name in names)
    for name in ("api/__init__.py", "spark/stream.py", "compat/java/CodecDriver.java", "compat/report.html"):
        assert f"kafka_shim/{name}" in names
    assert {name.split("/")[0].partition("-")[0] for name in names} == {"kafka_shim"}  # the package and its dist-info
    assert not [name for name in names if name.endswith((".pyx", ".c"))]
    assert not [name for name in names if "/tests/" in name]


@pytest.mark.parametrize("kind", ["wheel", "sdist"])
def test_package_serves_from_an_empty_environment(kind: str, packages: dict[str, Path], tmp_path: Path) -> None:
    environment = tmp_path / "env"
    venv.create(environment, with_pip=True)
    pip = [str(environment / "bin" / "python"), "-m", "pip", "install", "--quiet", str(packages[kind])]
    done = subprocess.run(pip, capture_output=True, text=True, cwd=tmp_path, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    for folder in ("shim", "cext", "spark", "compat_tests"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "__init__.py").write_text("raise SystemExit('the folder of a user')\n")
    (tmp_path / "test_own.py").write_text(OWN_TEST)
    for line in (["test_own.py"], ["-m", "kafka_shim", "--version"]):
        words = [str(environment / "bin" / "python"), *line]
        done = subprocess.run(words, capture_output=True, text=True, cwd=tmp_path, check=False)
        assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    command = [str(environment / "bin" / "kafka-shim"), "serve", "--listen", "127.0.0.1:0", "--memory"]
    with subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as broker:
        assert broker.stdout is not None
        ready = re.match(r"ready PLAINTEXT://(\S+) node=1 cluster=\S+ data=", broker.stdout.readline())
        assert ready is not None
        with Connection(ready[1]) as client:
            requests.create_topic(client, "installed")
            answer = client.request(requests.produce("installed", 0, [(b"k", b"v")]), 11)
            assert answer.responses[0].partition_responses[0].error_code == 0
            found = client.request(requests.fetch("installed", 0, 0), 12)
            assert found.responses[0].partitions[0].high_watermark == 1
        broker.terminate()
        broker.communicate()
        assert broker.returncode == 0
