"""The recipes of docs/testing.md, each run as the test file that it is."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from kafka_shim.targets import spark_jvm
from kafka_shim.targets.shim_process import ROOT

GUIDE = (ROOT / "docs/testing.md").read_text()
RECIPES = re.findall(r"^```python\n(.*?)^```$", GUIDE, re.MULTILINE | re.DOTALL)
SPARK = "from pyspark"


def run(folder: Path, recipes: list[str]) -> subprocess.CompletedProcess[str]:
    for number, text in enumerate(recipes):
        (folder / f"test_recipe_{number}.py").write_text(text)
    command = [sys.executable, "-m", "pytest", "-q", "-rfE", "-p", "no:cacheprovider", "-p", "kafka_shim.pytest_plugin"]
    command.append(f"--basetemp={folder / 'inner'}")
    environment = {
        **os.environ,
        **spark_jvm.environment(),
        "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
        "PYTHONPATH": str(ROOT),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_DRIVER_MEMORY": "512m",
    }
    return subprocess.run(
        [*command, "--strict-markers", str(folder)],
        capture_output=True,
        text=True,
        timeout=540,
        cwd=folder,
        env=environment,
        check=False,
    )


@pytest.mark.timeout(600)
def test_recipes_pass(tmp_path: Path) -> None:
    recipes = [text for text in RECIPES if SPARK not in text]
    assert len(recipes) >= 12
    assert all("def test_" in text for text in RECIPES)
    done = run(tmp_path, recipes)
    assert done.returncode == 0, done.stdout + done.stderr
    # One of them has five cases.
    assert f"{len(recipes) + 4} passed" in done.stdout, done.stdout


@pytest.mark.timeout(600)
@pytest.mark.soak
def test_spark_recipe_passes(tmp_path: Path) -> None:
    done = run(tmp_path, [text for text in RECIPES if SPARK in text])
    assert "1 passed" in done.stdout, done.stdout + done.stderr


def test_the_first_test_is_six_lines() -> None:
    assert len(RECIPES[0].splitlines()) <= 6
