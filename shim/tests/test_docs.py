"""Pages that scripts write are what the scripts would write now."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent


@pytest.mark.slow
def test_the_api_coverage_page_is_up_to_date():
    command = [sys.executable, str(ROOT / "scripts" / "api_coverage.py"), "--check"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr


def test_the_readme_counts_the_apis_as_the_coverage_page_does():
    page = (ROOT / "docs" / "api-coverage.md").read_text()
    served, _, known = page.rstrip().rpartition("\n")[2].partition(" APIs")[0].partition(" of ")
    assert served == known
    assert f"It serves all {served} APIs" in (ROOT / "README.md").read_text()
