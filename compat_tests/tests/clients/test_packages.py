"""The wheel and the source distribution install into an empty environment and serve."""

from __future__ import annotations

import os
import platform
import re
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from kafka_shim.targets import requests
from kafka_shim.targets.shim_process import ROOT
from kafka_shim.wire_client import Connection

# Run in a folder that has folders of the names in FOLDERS.
OWN_TEST = """
from kafka_shim import Broker
with Broker() as broker:
    assert broker.bootstrap_servers
"""

FOLDERS = ("shim", "cext", "spark", "compat_tests", "targets", "bench")

pytestmark = pytest.mark.timeout(900)  # both packages compile: the fixture's time is that of the first test


@pytest.fixture(scope="module")
def packages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Both packages, built as a release builds them: for old systems, checked by auditwheel, from the source
    distribution.
    """
    folder = tmp_path_factory.mktemp("dist")
    line = [sys.executable, str(ROOT / "scripts" / "wheels.py"), "--python", sys.executable, "--out", str(folder)]
    done = subprocess.run(line, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    return {"wheel": next(folder.glob("*.whl")), "sdist": next(folder.glob("*.tar.gz"))}


def test_wheel_holds_the_broker_and_no_tests(packages: dict[str, Path]) -> None:
    assert f"manylinux_2_17_{platform.machine()}" in packages["wheel"].name
    wheel = zipfile.ZipFile(packages["wheel"])
    names = wheel.namelist()
    for name in names:
        if name.endswith(".so"):
            assert str(Path.home()).encode() not in wheel.read(name), name  # a path to this machine's libraries
    assert any(name.startswith("kafka_shim/cext/") and name.endswith(".so") for name in names)
    for name in (
        "api/__init__.py",
        "spark/stream.py",
        "compat/java/CodecDriver.java",
        "targets/java/TransactionDriver.java",
        "compat/report.html",
        "console/static/index.html",
        "console/static/main.js",
    ):
        assert f"kafka_shim/{name}" in names
    assert {name.split("/")[0].partition("-")[0] for name in names} == {"kafka_shim"}  # the package and its dist-info
    assert not [name for name in names if name.endswith((".pyx", ".c"))]
    assert not [name for name in names if "/tests/" in name]


def pythons() -> list[Path]:
    """The interpreters of the environments that the suite keeps: this one, and those of the other Pythons."""
    return [Path(sys.executable), *sorted(ROOT.glob(".venv-3.*/bin/python"))]


def installed(package: Path, python: Path, folder: Path) -> Path:
    """Returns the interpreter of a new environment with the package and what it needs."""
    made = folder / "env" / "bin" / "python"
    commands: list[list[str]] = [[str(python), "-m", "venv", str(folder / "env")]]
    commands.append([str(made), "-m", "pip", "install", "--quiet", str(package)])
    for command in commands:
        done = subprocess.run(command, capture_output=True, text=True, cwd=folder, check=False)
        assert done.returncode == 0, done.stderr[-2000:]
    return made


def check_names(python: Path, folder: Path) -> None:
    """Only `kafka_shim` is importable, and a user's own folders of the repository's names are no obstacle."""
    for name in FOLDERS:
        line = [str(python), "-c", f"import {name}"]
        done = subprocess.run(line, capture_output=True, text=True, cwd=folder, check=False)
        assert "ModuleNotFoundError" in done.stderr, name
    for name in FOLDERS:
        (folder / name).mkdir()
        (folder / name / "__init__.py").write_text("raise SystemExit('the folder of a user')\n")
    (folder / "test_own.py").write_text(OWN_TEST)
    for words in (["test_own.py"], ["-m", "kafka_shim", "--version"]):
        done = subprocess.run([str(python), *words], capture_output=True, text=True, cwd=folder, check=False)
        assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]


def test_wheel_of_the_sdist_serves_from_an_empty_environment(packages: dict[str, Path], tmp_path: Path) -> None:
    python = installed(packages["wheel"], Path(sys.executable), tmp_path)
    check_names(python, tmp_path)
    command = [str(python.parent / "kafka-shim"), "serve", "--listen", "127.0.0.1:0", "--memory"]
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


@pytest.mark.parametrize("python", pythons()[1:] or pythons(), ids=lambda python: python.parent.parent.name)
def test_sdist_installs_on_the_other_pythons(
    python: Path, packages: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """pip compiles it in an environment that it makes by itself; without optimisation, which takes half of the time.
    On this Python the wheel is made of the sdist."""
    compiler = tmp_path / "cc"
    compiler.write_text('#!/bin/sh\nexec cc "$@" -O0\n')
    compiler.chmod(0o755)
    monkeypatch.setenv("CC", str(compiler))
    check_names(installed(packages["sdist"], python, tmp_path), tmp_path)


@pytest.mark.parametrize("python", pythons(), ids=lambda python: python.parent.parent.name)
def test_the_checkout_is_importable_on_each_python(python: Path, tmp_path: Path) -> None:
    """By the editable install, and by the tree of links that builds beside it use."""
    line = [str(python), "-c", "import kafka_shim.cext.batch as it; print(it.__file__)"]
    for environment in ({}, {"PYTHONPATH": str(ROOT / "build" / "names")}):
        done = subprocess.run(
            line, capture_output=True, text=True, cwd=tmp_path, check=False, env={**os.environ, **environment}
        )
        assert Path(done.stdout.strip()).resolve().parent == ROOT / "cext", done.stderr
