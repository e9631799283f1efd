"""What runs the layers of the suite (scripts/suite.py), in small runs of it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
BYTECODE = """
PROGRAM = "import imported, pathlib; print(pathlib.Path(imported.__cached__).is_file())"
LAYERS["told"] = lambda: [Step(name, [{python!r}, "-c", PROGRAM]) for name in ("first", "second")]
"""


@pytest.mark.parametrize("forbidden", ["1", ""])
def test_a_run_of_the_suite_compiles_a_module_once(tmp_path: Path, forbidden: str) -> None:
    scripts = tmp_path / "scripts"
    scripts.mkdir()
    shutil.copy(ROOT / "scripts" / "suite.py", scripts)
    layers = (ROOT / "scripts" / "layers.py").read_text()
    (scripts / "layers.py").write_text(layers + BYTECODE.format(python=sys.executable))
    (tmp_path / "imported.py").write_text("")
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPYCACHEPREFIX"}
    environment["PYTHONDONTWRITEBYTECODE"] = forbidden
    command = [sys.executable, str(scripts / "suite.py"), "told"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    # Python writes the file of a module before it runs it.
    assert done.stdout.count("True") == 2, done.stdout + done.stderr
    # Where bytecode may not be beside the sources, it is gone with the run.
    beside = [str(path.parent.relative_to(tmp_path)) for path in tmp_path.rglob("imported.*.pyc")]
    assert beside == ([] if forbidden else ["__pycache__"])
