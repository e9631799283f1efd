"""Pages that scripts write are what the scripts would write now."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent


def test_the_api_coverage_page_is_up_to_date():
    command = [sys.executable, str(ROOT / "scripts" / "api_coverage.py"), "--check"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
