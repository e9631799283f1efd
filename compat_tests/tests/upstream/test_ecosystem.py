"""The parts of the ecosystem: their table, the comparison, and in the long form each of them on both brokers."""

from __future__ import annotations

from pathlib import Path

import pytest

from kafka_shim.compat.ecosystem import PARTS, load, page
from kafka_shim.compat.ecosystem.__main__ import main
from kafka_shim.compat.ecosystem.base import Lab, Part, PartError, Result, run_program
from kafka_shim.compat.ecosystem.base import measure as measure_part


class Told(Part):
    """A part that finds what it is told to find."""

    name, title, what, version = "told", "Told", "nothing", "1"

    def __init__(self, *lines: list[str]) -> None:
        self.lines = list(lines)

    def run(self, lab: Lab) -> list[str]:
        found = self.lines.pop(0)
        if not found:
            raise PartError("it broke")
        return found


@pytest.mark.parametrize("name", PARTS)
def test_each_part_is_named_as_it_is_listed(name: str) -> None:
    part = load(name)
    assert part.name == name
    assert part.title and part.what and part.version


def test_what_differs_and_what_finds_nothing_is_not_the_same() -> None:
    part = load("kafkajs")
    assert Result(part, {"shim": ["a"], "kafka-native": ["a"]}).is_same
    assert not Result(part, {"shim": ["a"], "kafka-native": ["b"]}).is_same
    assert not Result(part, {"shim": [], "kafka-native": []}).is_same


def test_a_part_that_breaks_is_a_difference(tmp_path: Path) -> None:
    result = measure_part(Told([]), ["shim-embedded"], tmp_path)
    assert not result.is_same
    assert "failed: it broke" in result.text()


def test_a_program_that_fails_or_hangs_is_told_with_the_end_of_its_output(tmp_path: Path) -> None:
    log = tmp_path / "log"
    assert run_program(["sh", "-c", "echo one; echo two"], log) == ["one", "two"]
    with pytest.raises(PartError, match=r"status 3.*'last'.*said"):
        run_program(["sh", "-c", "echo last; echo said >&2; exit 3"], log)
    with pytest.raises(PartError, match="ran over 0 s: early"):
        run_program(["sh", "-c", "echo early; exec sleep 60"], log, timeout_s=0.3)


def test_rows_of_parts_that_did_not_run_stay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "page.md"
    path.write_text(f"before\n{page.BEGIN}\n{page.END}\nbehind\n")
    monkeypatch.setattr(page, "PAGE", path)
    page.write({"a": "| A | 1 | x | the same, 1 findings |", "b": "| B | 1 | y | the same, 2 findings |"})
    page.write({"b": "| B | 2 | y | the same, 3 findings |"})
    assert path.read_text().splitlines() == [
        "before",
        page.BEGIN,
        *page.HEAD,
        "| A | 1 | x | the same, 1 findings |",
        "| B | 2 | y | the same, 3 findings |",
        page.END,
        "behind",
    ]


def test_rows_of_a_page_are_those_of_a_comparison(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.argv", ["ecosystem", "--targets", "shim", "--readme"])
    with pytest.raises(SystemExit):
        main()
    assert "needs two --targets" in capsys.readouterr().err


@pytest.mark.soak
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("name", PARTS)
def test_a_part_finds_the_same_on_the_shim_and_on_apache_kafka(name: str, tmp_path: Path) -> None:
    part = load(name)
    part.prepare()
    result = measure_part(part, ["shim", "kafka-native"], tmp_path)
    print(result.text())
    assert result.is_same
