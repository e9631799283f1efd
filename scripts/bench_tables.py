#!/usr/bin/env python
"""Writes the tables of README.md and docs/performance.md from docs/bench.json, the committed result of `make bench`.

Without an argument it writes; ``check`` compares. ``take FILE`` first makes FILE, a result of `make bench`, the
committed one; ``merge FILE`` puts the cases of a run of some parts into it, and the page says when they were taken.
A table stands between ``<!-- bench NAME -->`` and ``<!-- end -->``; NAME is one of
`bench.report.TABLES`, ``headlines``, ``conditions``, ``machines``, which also shows docs/bench-other-*.json, whole
runs on other machines or in another hour, ``instructions``, which is from docs/instructions.json
(`python -m bench.instructions`), ``share``, from docs/share.json (`python -m bench.share`), ``profile``, from
docs/profile.json (`python -m bench.profile`), ``floor``, from docs/floor.json (`python -m bench.floor`), or
``curves``, from docs/curves.json (`python -m bench.curves`), whose picture `bench.curve_plots` draws.
"""

from __future__ import annotations

import json
import re
import shutil
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from bench import curve_plots, curves, floor, instructions, profile, report, share  # noqa: E402

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

FIGURES = ROOT / "docs" / "bench.json"
OTHERS = "bench-other-*.json"
INSTRUCTIONS = ROOT / "docs" / "instructions.json"
SHARE = ROOT / "docs" / "share.json"
PROFILE = ROOT / "docs" / "profile.json"
CURVES = ROOT / "docs" / "curves.json"
FLOOR = ROOT / "docs" / "floor.json"
PICTURE = ROOT / "docs" / "images" / "curves.svg"
PAGES = (ROOT / "README.md", ROOT / "docs" / "performance.md")
PLACE = re.compile(r"(<!-- bench (?P<name>\w+) -->\n).*?(<!-- end -->)", re.DOTALL)


def content(name: str, figures: Mapping[str, Any]) -> str:
    """What stands in one place. Raises KeyError for an unknown name."""
    if name == "headlines":
        return report.headlines(figures)
    if name == "conditions":
        return report.conditions(figures)
    if name == "machines":
        others = [json.loads(path.read_text(encoding="utf-8")) for path in (ROOT / "docs").glob(OTHERS)]
        return report.machines([figures, *sorted(others, key=lambda other: other["began"], reverse=True)])
    if name == "instructions":
        return instructions.table(json.loads(INSTRUCTIONS.read_text(encoding="utf-8")))
    if name == "share":
        return share.table(json.loads(SHARE.read_text(encoding="utf-8"))["samples"], share.KINDS)
    if name == "profile":
        profiled = json.loads(PROFILE.read_text(encoding="utf-8"))
        return f"{profile.conditions(profiled)}\n\n{profile.table(profiled)}"
    if name == "floor":
        measured = json.loads(FLOOR.read_text(encoding="utf-8"))
        return f"{floor.conditions(measured)}\n\n{floor.table(measured)}"
    if name == "curves":
        found = json.loads(CURVES.read_text(encoding="utf-8"))
        return f"{curves.conditions(found)}\n\n{curves.table(found['curves'])}"
    return report.table(name, figures)


def is_picture_current() -> bool:
    """Whether the picture of the curves was drawn from the committed figures."""
    found = json.loads(CURVES.read_text(encoding="utf-8"))
    return curve_plots.digest(found["curves"]) in PICTURE.read_text(encoding="utf-8")


def page(text: str, figures: Mapping[str, Any]) -> str:
    """The text of a page with what `figures` make of its places."""

    def fill(found: re.Match[str]) -> str:
        return f"{found[1]}\n{content(found['name'], figures)}\n\n{found[3]}"

    return PLACE.sub(fill, text)


def merge(path: Path) -> None:
    """Put the cases of a run of some parts into the committed run."""
    figures, later = (json.loads(each.read_text(encoding="utf-8")) for each in (FIGURES, path))
    if figures["settings"] != later["settings"] or figures["machine"] != later["machine"]:
        raise SystemExit(f"{path}: taken with other settings or on another machine than the committed run")
    figures["cases"] |= later["cases"]
    kept = {
        began: [part for part in parts if part not in later["parts"]]
        for began, parts in figures.get("later", {}).items()
    }
    figures["later"] = {began: parts for began, parts in kept.items() if parts} | {later["began"]: later["parts"]}
    figures["failed"] = {part: why for part, why in figures["failed"].items() if part not in later["parts"]}
    FIGURES.write_text(json.dumps(figures, indent=1) + "\n", encoding="utf-8")


def main(arguments: list[str]) -> int:
    """Does what the first argument says. Returns the exit status."""
    match arguments:
        case ["take", run]:
            shutil.copyfile(run, FIGURES)
        case ["merge", parts]:
            merge(Path(parts))
        case [] | ["check"]:
            pass
        case _:
            sys.stderr.write(f"{__doc__}\n")
            return 2
    figures = json.loads(FIGURES.read_text(encoding="utf-8"))
    status = 0
    if not is_picture_current():
        sys.stderr.write("images/curves.svg does not show docs/curves.json: run python -m bench.curve_plots\n")
        status = 1
    for path in PAGES:
        old = path.read_text(encoding="utf-8")
        new = page(old, figures)
        if arguments == ["check"]:
            if old != new:
                sys.stderr.write(f"{path.name} does not show docs/bench.json: run python scripts/bench_tables.py\n")
                status = 1
        else:
            path.write_text(new, encoding="utf-8")
    return status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
