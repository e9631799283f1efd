"""One record through an installed kafka-shim: what a wheel must do on any system before it is released."""

from kafka_shim import Broker, __version__

with Broker() as broker:
    broker.produce("greetings", "hello")
    found = [record.text for record in broker.consume("greetings")]
assert found == ["hello"], found
print(f"kafka-shim {__version__}: one record went through")
