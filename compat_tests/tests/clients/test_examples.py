"""The examples of other languages, with their own toolchains and package registries."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from kafka_shim.targets.shim_process import ROOT

RUNS = {
    "go": ["go test ./..."],
    "java": ["mvn -q --batch-mode test"],
    "node": ["npm install --no-audit --no-fund", "node --test"],
}


@pytest.mark.soak
@pytest.mark.timeout(900)
@pytest.mark.parametrize("language", RUNS)
def test_example_passes(language: str, tmp_path: Path) -> None:
    folder = tmp_path / language
    shutil.copytree(ROOT / "examples" / language, folder)
    # The command, from whatever of the project is under test.
    command = tmp_path / "kafka-shim"
    command.write_text(f'#!/bin/sh\nexec {ROOT}/.venv/bin/python -m kafka_shim "$@"\n')
    command.chmod(0o755)
    environment = {**os.environ, "KAFKA_SHIM": str(command)}
    for words in RUNS[language]:
        done = subprocess.run(
            words.split(), cwd=folder, env=environment, capture_output=True, text=True, timeout=800, check=False
        )
        assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
