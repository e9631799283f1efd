"""A Kafka broker in Python and Cython. `from kafka_shim import Broker` gives one inside this process."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from kafka_shim.embedded import Broker as Broker

    __version__: str
__all__ = ["Broker", "__version__"]


def __getattr__(name: str) -> object:
    # Late: `kafka-shim serve` needs nothing of the embedded broker.
    if name == "Broker":
        try:
            from kafka_shim.embedded import Broker
        except ModuleNotFoundError as error:
            if not (error.name or "").startswith("kafka_shim.cext."):
                raise
            from kafka_shim.errors import not_compiled

            raise ImportError(not_compiled(__path__[0])) from error
        return Broker
    # pyproject.toml is the one place of the version.
    if name == "__version__":
        from importlib.metadata import version

        return version("kafka-shim")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
