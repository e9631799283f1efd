"""Who may end the Docker engine: the last of those who use one that was started for tests, and nobody another one."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from kafka_shim.targets import engine


@pytest.fixture
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(engine, "STATE", tmp_path / "state")
    with engine._locked():
        return tmp_path / "state"


def test_a_process_that_is_not_dockerd_is_left_alone(state: Path) -> None:
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as other:
        (state / "pid").write_text(str(other.pid))
        assert engine._pid() is None
        engine.leave()
        assert other.poll() is None
        other.communicate(b"\n")
    assert not (state / "pid").exists()


def test_an_engine_of_others_is_not_joined(state: Path) -> None:
    engine._join()
    assert engine._users() == []


def test_a_user_that_died_is_forgotten(state: Path) -> None:
    done = subprocess.run([sys.executable, "-c", "import os; print(os.getpid())"], capture_output=True, check=True)
    (state / "users" / done.stdout.decode().strip()).touch()
    (state / "users" / str(os.getpid())).touch()
    assert engine._users() == [os.getpid()]


def test_the_engine_stays_while_somebody_uses_it(state: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stopped: list[bool] = []
    monkeypatch.setattr(engine, "_stop", lambda: stopped.append(True))
    for pid in (os.getpid(), os.getppid()):
        (state / "users" / str(pid)).touch()
    engine.leave()
    assert stopped == []
    (state / "users" / str(os.getppid())).unlink()
    engine.leave()
    assert stopped == [True]


def test_without_docker_the_reason_is_one_line(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert engine.unavailable.__wrapped__() == "there is no docker command"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(engine, "unavailable", lambda: "there is no docker command")
        with pytest.raises(engine.EngineError, match="no docker command"):
            engine.ensure()


def test_an_engine_of_another_address_is_not_replaced(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/docker.sock")
    monkeypatch.setattr(engine, "_start", lambda: pytest.fail("started one"))
    monkeypatch.setattr(engine, "_docker", lambda *_: subprocess.CompletedProcess((), 1))
    monkeypatch.setattr("shutil.which", lambda _: "docker")
    assert "DOCKER_HOST" in engine.unavailable.__wrapped__()


def test_a_daemon_that_does_not_start_is_told_by_its_last_line(
    state: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    program = tmp_path / "dockerd"
    program.write_text("#!/bin/sh\necho starting >&2\necho no overlays here: $1 >&2\nexit 1\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setattr(engine, "answers", lambda: False)
    with pytest.raises(engine.EngineError, match="does not start here: no overlays here: --storage-driver=vfs"):
        engine._start()
    assert not (state / "pid").exists()
