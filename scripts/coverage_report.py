"""Prints the coverage that a run of the tests left, and fails when a file is below its floor.

coverage_report.py DATA        Python's, of the unit tests: floors are in pyproject.toml, [tool.kafka-shim.coverage]
coverage_report.py --cython    Cython's, of the data in the working directory: no floors
"""

from __future__ import annotations

import sys
import tomllib
from pathlib import Path

import coverage

ROOT = Path(__file__).resolve().parent.parent


def print_cython() -> int:
    measured = coverage.Coverage(config_file="scripts/coverage_cython.toml")
    measured.load()
    # Cython's plugin recognises a .pxd only after it has read the C file of a .pyx that uses it.
    files = sorted(measured.get_data().measured_files(), key=lambda path: (path.endswith(".pxd"), path))
    measured.report(morfs=files)
    return 0


def below_floors(percent: dict[str, float], floor: float, floors: dict[str, float]) -> list[str]:
    """Returns a line for each file below its floor, and for each floor whose file does not exist."""
    lines = [
        f"{path}: {found:.1f}% is below its floor of {floors.get(path, floor)}%"
        for path, found in sorted(percent.items())
        if found < floors.get(path, floor)
    ]
    return lines + [f"{path}: has a floor and is not measured" for path in sorted(floors.keys() - percent.keys())]


def check_python(data: str) -> int:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["kafka-shim"]["coverage"]
    measured = coverage.Coverage(data_file=data, config_file=str(ROOT / "pyproject.toml"))
    measured.load()
    measured.report(skip_covered=True, show_missing=False)
    percent = {}
    for path in sorted(measured.get_data().measured_files()):
        _, statements, _, missing, _ = measured.analysis2(path)
        name = Path(path).relative_to(ROOT).as_posix()
        percent[name] = 100.0 if not statements else 100.0 * (len(statements) - len(missing)) / len(statements)
    wrong = below_floors(percent, settings["floor"], settings["floors"])
    print("\n".join(wrong) or f"each of {len(percent)} files is above its floor")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(print_cython() if sys.argv[1:] == ["--cython"] else check_python(sys.argv[1]))
