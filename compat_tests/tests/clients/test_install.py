"""From a built wheel, where nothing is: a container without a compiler, uvx, the executable where Python is not, and
another architecture under emulation.

The long form, because wheels are compiled and images made for it.
"""

from __future__ import annotations

import os
import platform
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer

from kafka_shim.targets import engine
from kafka_shim.targets.shim_process import ROOT

pytestmark = [pytest.mark.soak, pytest.mark.timeout(1800)]

# A user's own first test.
OWN_TEST = """\
def test_greeting(kafka_shim):
    from kafka import KafkaConsumer, KafkaProducer
    where = kafka_shim.bootstrap_servers
    KafkaProducer(bootstrap_servers=where).send("greetings", b"hello").get(10)
    reader = KafkaConsumer("greetings", bootstrap_servers=where, auto_offset_reset="earliest", consumer_timeout_ms=9000)
    assert next(reader).value == b"hello"
"""
# In the container: pip is started from its own wheel, because Debian's Python has none.
INSTALL = """
set -e
! command -v cc gcc clang tcc
PYTHONPATH=$(ls /wheelhouse/pip-*.whl) python3 -m pip install -q --no-index --find-links /wheelhouse --target /user \
    kafka-shim pytest kafka-python
cd /tmp && PYTHONPATH=/user python3 -m pytest -q -p no:cacheprovider /tests/test_own.py
"""

# Both clients, with their compiled parts, and a transaction that is aborted before the one that is committed.
CLIENT_OF_THE_OTHER = """
import platform, sys
from confluent_kafka import Producer
from kafka import KafkaConsumer
producer = Producer({"bootstrap.servers": sys.argv[1], "transactional.id": "other", "compression.type": "zstd"})
producer.init_transactions(60)
for values, end in (((b"no",), producer.abort_transaction), ((b"one", b"two"), producer.commit_transaction)):
    producer.begin_transaction()
    for value in values:
        producer.produce("other", value)
    producer.flush(60)
    end(60)
reader = KafkaConsumer(
    "other", bootstrap_servers=sys.argv[1], auto_offset_reset="earliest", isolation_level="read_committed"
)
print(platform.machine(), next(reader).value.decode(), next(reader).value.decode())
"""


def run(*command: str | Path, **options: object) -> str:
    line = [str(word) for word in command]
    done = subprocess.run(line, capture_output=True, text=True, check=False, **options)  # type: ignore[call-overload]
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    return str(done.stdout)


def base_image() -> str:
    """What the shim's image stands on: pulled, or made where no registry can be reached."""
    for is_built in (False, True):
        if is_built:
            run(ROOT / "docker" / "build.sh", "shim")
        images = run("docker", "images", "--format", "{{.Repository}}:{{.Tag}}").split()
        for name in ("kafka-shim-base:bookworm", "python:3.12-slim"):
            if name in images:
                return name
    raise AssertionError("docker/build.sh left no base image")


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel of a release for this Python."""
    folder = tmp_path_factory.mktemp("dist")
    run(sys.executable, ROOT / "scripts" / "wheels.py", "--python", sys.executable, "--out", folder)
    return next(folder.glob("*.whl"))


def test_a_container_without_a_compiler_installs_the_wheel_and_passes_a_test(wheel: Path, tmp_path: Path) -> None:
    if reason := engine.unavailable():
        pytest.skip(f"no containers: {reason}")
    base = base_image()
    inside = run("docker", "run", "--rm", base, "python3", "-c", "import sys; print('%d.%d' % sys.version_info[:2])")
    here = "{}.{}".format(*sys.version_info[:2])
    if inside.strip() != here:
        pytest.skip(f"the wheel is for Python {here}, the base image has {inside.strip()}")
    tests, wheelhouse = tmp_path / "tests", tmp_path / "wheelhouse"
    tests.mkdir()
    (tests / "test_own.py").write_text(OWN_TEST)
    download = [sys.executable, "-m", "pip", "download", "-q", "--only-binary=:all:", "-d", wheelhouse]
    run(*download, wheel, "pip", "pytest", "kafka-python")
    began = time.monotonic()
    volumes = ("-v", f"{tests}:/tests:ro", "-v", f"{wheelhouse}:/wheelhouse:ro")
    said = run("docker", "run", "--rm", "--network", "none", *volumes, base, "bash", "-c", INSTALL)
    assert "1 passed" in said
    print(f"an empty container, from the wheel to a passing test: {time.monotonic() - began:.1f} s")


@contextmanager
def serving(*command: str | Path, **options: object) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """A broker that another command starts, and its address; it must end cleanly on a SIGTERM."""
    line = [str(word) for word in command]
    with subprocess.Popen(line, stdout=subprocess.PIPE, text=True, **options) as broker:  # type: ignore[call-overload]
        try:
            ready = re.match(r"ready PLAINTEXT://(\S+) ", broker.stdout.readline())
            assert ready is not None
            yield broker, ready[1]
            broker.send_signal(signal.SIGTERM)
            assert broker.wait(60) == 0
        finally:
            broker.kill()


def round_trip(address: str) -> None:
    """A transaction, committed, and its record read back by librdkafka."""
    producer = Producer({"bootstrap.servers": address, "transactional.id": "installed"})
    producer.init_transactions(30)
    producer.begin_transaction()
    producer.produce("installed", b"hello")
    producer.commit_transaction(30)
    consumer = Consumer({"bootstrap.servers": address, "group.id": "installed", "auto.offset.reset": "earliest"})
    consumer.subscribe(["installed"])
    record = consumer.poll(60)
    assert record is not None and record.value() == b"hello"
    consumer.close()


def test_a_wheel_for_another_architecture_runs_under_emulation(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Compiled here; then the tests of the compiled part, a broker inside a program, and one for clients of both
    architectures, under QEMU's user emulation.
    """
    if platform.machine() == "aarch64":
        pytest.skip("this is the other architecture")
    monkeypatch.syspath_prepend(ROOT / "scripts")
    import emulated
    import wheels

    version = "{}.{}".format(*sys.version_info[:2])
    if version not in emulated.RELEASES:
        pytest.skip(f"no release of Debian has Python {version}")
    words = ["--python", sys.executable, "--machine", "aarch64", "--check", "--out", tmp_path]
    said = run(sys.executable, ROOT / "scripts" / "wheels.py", *words)
    print(said)
    assert re.search(r"tests of the compiled part: .*\d{2,} passed", said)
    assert "failed" not in said
    assert "one record went through" in said
    python = emulated.python_of("aarch64", version, wheels.EMULATED)
    command, variables = wheels.install(next(tmp_path.glob("*.whl")), python, tmp_path)
    run(*command, "-c", "import platform; assert platform.machine() == 'aarch64'")
    clients = ["--target", tmp_path / "site", *python.pip_options, "confluent-kafka", "kafka-python"]
    run(sys.executable, "-m", "pip", "install", "--quiet", *clients)
    environment = {**os.environ, **variables}
    with serving(*command, "-m", "kafka_shim", "serve", "--listen", "127.0.0.1:0", env=environment) as (_, address):
        round_trip(address)
        client = tmp_path / "client.py"
        client.write_text(CLIENT_OF_THE_OTHER)
        assert run(*command, client, address, env=environment).split() == ["aarch64", "one", "two"]


def test_uvx_runs_the_wheel(wheel: Path, tmp_path: Path) -> None:
    environment = {**os.environ, "UV_CACHE_DIR": str(tmp_path / "cache"), "UV_PYTHON_DOWNLOADS": "never"}
    uvx = [sys.executable, "-m", "uv", "tool", "run", "--python", sys.executable, "--from", wheel, "kafka-shim"]
    with serving(*uvx, "serve", "--listen", "127.0.0.1:0", "--memory", env=environment) as (_, address):
        round_trip(address)


def test_the_executable_serves_where_python_is_not(wheel: Path, tmp_path: Path) -> None:
    """Its root holds the file, the C library that it asks for, an empty /tmp, and a /dev/null."""
    if os.geteuid() != 0:
        pytest.skip("chroot needs root")
    made = tmp_path / "dist"
    base = Path(sys.base_prefix, "bin", "python{}.{}".format(*sys.version_info[:2]))
    print(
        run(sys.executable, ROOT / "scripts" / "binary.py", "--wheel", wheel, "--python", base, "--out", made).strip()
    )
    root = tmp_path / "root"
    for name in ("tmp", "proc", "dev"):
        (root / name).mkdir(parents=True)
    (root / "dev" / "null").touch()
    shutil.copy2(made / "kafka-shim", root)
    needed = re.findall(r"(/\S+) \(0x", run("ldd", made / "kafka-shim"))
    # Python's modules, which the file holds, use more of the C library than the file's start does.
    folder = Path(next(path for path in needed if "/libc." in path)).parent
    more = [folder / name for name in ("libm.so.6", "librt.so.1", "libutil.so.1", "libpthread.so.0", "libdl.so.2")]
    for source in {*map(Path, needed), *more}:
        target = root / str(source).lstrip("/")
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(source, target)
    inside = ["chroot", str(root), "/kafka-shim"]
    began = time.monotonic()
    with serving(*inside, "serve", "--listen", "127.0.0.1:0", "--memory") as (_, address):
        print(f"the executable was ready after {time.monotonic() - began:.2f} s")
        round_trip(address)
    assert not list((root / "tmp").iterdir())  # neither what it unpacked nor the data stays
    assert "version" in run(*inside, "--version")
    wrong = subprocess.run([*inside, "serve", "--no-such-option"], capture_output=True, text=True, check=False)
    assert wrong.returncode == 2
    assert "--no-such-option" in wrong.stderr
