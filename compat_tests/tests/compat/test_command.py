"""`python -m kafka_shim.compat` itself: what it takes, and what it leaves alone."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType

import pytest

from kafka_shim.compat import __main__ as command
from kafka_shim.compat.ecosystem import __main__ as ecosystem
from kafka_shim.compat.upstream import __main__ as upstream


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--only", "*x*"], "--only '*x*' is no regular expression: nothing to repeat at position 0"),
        (["--only", "no-such"], "--only 'no-such' is in the name of no scenario without --long"),
        (["--only", "no-such", "--long"], "--only 'no-such' is in the name of no scenario"),
        (
            ["--targets", "shim,kafka"],
            "--targets: there is no 'kafka': it is one of shim, shim-embedded, kafka-native,",
        ),
    ],
)
def test_a_choice_that_chooses_nothing_is_one_line(
    capsys: pytest.CaptureFixture[str], words: list[str], said: str
) -> None:
    """It was a traceback of `re` or of the target, or a good end with no scenario run."""
    with pytest.raises(SystemExit) as ended:
        command.main(words)
    assert ended.value.code == 2
    assert capsys.readouterr().err.splitlines()[-1].startswith(f"python -m kafka_shim.compat: error: {said}")


@pytest.mark.parametrize(("module", "option"), [(ecosystem, "--only"), (upstream, "--suites")])
def test_an_unknown_part_is_named_with_those_that_there_are(
    capsys: pytest.CaptureFixture[str], module: ModuleType, option: str
) -> None:
    with pytest.raises(SystemExit) as ended:
        module.main([option, "nope"])
    assert ended.value.code == 2
    assert f": error: {option}: there is no nope: there are " in capsys.readouterr().err


def test_a_choice_does_not_become_the_summary_of_all(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """`make compat ARGS="--only ..."` has --readme too."""
    readme = command.ROOT / "README.md"
    monkeypatch.setattr(command, "ROOT", tmp_path)
    (tmp_path / "README.md").write_text(readme.read_text())
    words = ["--long", "--readme", "--targets", "shim-embedded", "--only", "^a1-half", "--report", str(tmp_path)]
    assert command.main(words) == 0
    assert (tmp_path / "README.md").read_text() == readme.read_text()
    assert "README.md keeps its summary" in capsys.readouterr().out
