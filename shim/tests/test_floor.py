"""The floor of the bench (`bench.floor`): it answers what the cases send, and its table says which goals it misses."""

from __future__ import annotations

from bench import floor
from bench.machine import AS_IS, QUIET
from bench.rounds import FLOOR, KAFKA, SHIM, Pace


def test_every_case_gets_its_answers():
    with floor.Floor() as target:
        side = floor.FloorSide(FLOOR, target)
        for case in floor.cases():
            # Raises for an error in an answer, and if the floor ends.
            assert case.work(side, Pace(seconds=0.02))["per_s"] > 0, case.name
        kept = target.data_dir / "kept"
        assert kept.stat().st_size > 100_000  # one of the large requests at least


def test_the_table_says_whether_the_floor_reaches_a_goal():
    def result(floor_s: float) -> dict[str, object]:
        figures = {
            KAFKA: {"per_s": 100.0, "cpu_us": 30.0},
            FLOOR: {"per_s": floor_s, "cpu_us": 5.0},
            SHIM: {"per_s": 150.0, "cpu_us": 8.0},
        }
        return {"rounds": [{"state": state, "figures": figures} for state in (QUIET, AS_IS)]}

    cases = {name: result(290.0 if name == "small, 64 clients" else 310.0) for name in floor.CASES}
    rows = {row.split(" | ")[0].removeprefix("| "): row for row in floor.table({"cases": cases}).splitlines()}
    assert rows["small, 64 clients"].endswith("| >= 3x | misses it |")
    assert rows["offset commits"].endswith("| >= 3x | reaches it |")
    assert rows["large, 16 clients"].endswith("|  |  |")
    assert "2.9x (2.9-2.9) | 1.5x (1.5-1.5) | 30, 5, 8" in rows["small, 64 clients"]
