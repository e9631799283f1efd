"""The rows of docs/SEMANTICS.md as executable scenarios: short functions over a `ScenarioClient`. ``load()`` returns
all.

A scenario asserts its row on any broker, and leaves a transcript that can be compared with another broker's.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from importlib import import_module
from pkgutil import iter_modules

from kafka_shim.targets import Power

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from kafka_shim.compat.apps import App
    from kafka_shim.compat.scenarios.scenario_client import ScenarioClient

__all__ = ["SCENARIOS", "Scenario", "client_scenario", "load", "scenario"]

# The client with which the short form of every test run has the scenarios over clients.
SMOKE_CLIENT = "confluent-kafka"


@dataclass(frozen=True)
class Scenario:
    """One scenario.

    - `rows`: ids of docs/SEMANTICS.md.
    - `needs`: the powers that a target must have.
    - `settings`: broker configs in addition to the common ones.
    - `is_long`: only in the long form.
    - `is_smoke`: also in the short form of every test run.
    - `unobservable`: for scenarios that need INSIDE, why Apache Kafka cannot show the behaviour.
    - `client`: the client whose view is tested, one of `apps.CLIENTS`; empty for single requests.
    - `behaviour`: the same for one function on several clients.
    - `spoils`: what the scenario leaves behind disturbs others, so its broker is not used again.
    """

    name: str
    rows: tuple[str, ...]
    run: Callable[[ScenarioClient], None]
    needs: Power = Power.WIRE
    settings: Mapping[str, str] = field(default_factory=dict)
    is_long: bool = False
    is_smoke: bool = True
    unobservable: str = ""
    client: str = ""
    spoils: bool = False

    @property
    def behaviour(self) -> str:
        """The name without the client's name."""
        return self.name.partition("@")[0]

    @property
    def title(self) -> str:
        """The first paragraph of the docstring, in one line."""
        return " ".join((self.run.__doc__ or "").split("\n\n")[0].split())

    @property
    def is_alone(self) -> bool:
        """Whether it needs its own broker, because it stops the broker, sets options, or acts inside it."""
        return bool(self.settings) or self.spoils or bool(self.needs & (Power.KILL | Power.SEEDED | Power.INSIDE))


SCENARIOS: dict[str, Scenario] = {}


def scenario(
    *rows: str,
    needs: Power = Power.WIRE,
    settings: Mapping[str, str] | None = None,
    is_long: bool = False,
    is_smoke: bool = True,
    unobservable: str = "",
    client: str = "",
    spoils: bool = False,
) -> Callable[[Callable[[ScenarioClient], None]], Callable[[ScenarioClient], None]]:
    """Registers the function under its first row and its name."""

    def register(function: Callable[[ScenarioClient], None]) -> Callable[[ScenarioClient], None]:
        name = f"{rows[0].lower()}-{function.__name__.replace('_', '-')}" + (f"@{client}" if client else "")
        assert name not in SCENARIOS, f"two scenarios are called {name}"
        assert bool(unobservable) == bool(needs & Power.INSIDE), f"{name}: a reason goes with INSIDE"
        SCENARIOS[name] = Scenario(
            name, rows, function, needs, settings or {}, is_long, is_smoke and not is_long, unobservable, client, spoils
        )
        return function

    return register


def client_scenario(
    *rows: str, needs: Power = Power.WIRE
) -> Callable[[Callable[[ScenarioClient, App], None]], Callable[[ScenarioClient, App], None]]:
    """Registers the function once for each client, with an application that is closed at its end."""
    from kafka_shim.compat import apps
    from kafka_shim.compat.apps.told import ToldApp

    def register(function: Callable[[ScenarioClient, App], None]) -> Callable[[ScenarioClient, App], None]:
        for client in apps.CLIENTS:

            def run(t: ScenarioClient, client: str = client) -> None:
                app = ToldApp(apps.make(client, t.target.bootstrap), t.note)
                try:
                    function(t, app)
                finally:
                    app.close()

            run.__name__, run.__doc__ = function.__name__, function.__doc__
            scenario(*rows, needs=needs, is_smoke=client == SMOKE_CLIENT, client=client)(run)
        return function

    return register


def load() -> dict[str, Scenario]:
    """Returns every scenario by name, in the order of the rows."""
    for module in iter_modules(__path__):
        import_module(f"{__name__}.{module.name}")
    return dict(sorted(SCENARIOS.items(), key=lambda item: (item[0][0], int(item[1].rows[0][1:] or 0), item[0])))
