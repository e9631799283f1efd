"""The shim with one deliberate bug, in a process of its own (``python -m kafka_shim.compat.tests.compat.planted BUG
serve``).

Each bug is a patch of one part. It names the scenario that must catch it, and what that must say: a scenario that fails
for another reason has not seen the bug. The broker itself knows nothing of them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules

from kafka_shim.targets.shim_process import ShimProcess


@dataclass(frozen=True)
class Bug:
    """One bug. `says` is part of what the scenario answers to it: of the check that fails, or of the first difference
    from the transcript of the healthy shim.
    """

    name: str
    scenario: str
    says: str
    plant: Callable[[], None]


BUGS: dict[str, Bug] = {}


class PlantedShim(ShimProcess):
    """The shim process with a bug."""

    def __init__(self, bug: str, settings: Mapping[str, str] | None = None, data_dir: Path | None = None) -> None:
        super().__init__(settings, data_dir)
        self.bug = bug

    def command(self) -> list[str]:
        python, _, _, *rest = super().command()
        return [python, "-m", "kafka_shim.compat.tests.compat.planted", self.bug, *rest]


def caught_by(scenario: str, says: str) -> Callable[[Callable[[], None]], Callable[[], None]]:
    """Registers a bug, which the function plants."""

    def register(plant: Callable[[], None]) -> Callable[[], None]:
        BUGS[plant.__name__] = Bug(plant.__name__, scenario, says, plant)
        return plant

    return register


def load() -> dict[str, Bug]:
    """Returns every bug by name."""
    for module in iter_modules(__path__):
        if module.name != "__main__":
            import_module(f"{__name__}.{module.name}")
    return BUGS
