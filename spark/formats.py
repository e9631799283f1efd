"""Keys and values as columns: JSON and Avro by a schema, text, or the bytes as they are."""

from __future__ import annotations

from dataclasses import dataclass

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pyspark.sql import Column

BINARY, STRING, JSON, AVRO = "binary", "string", "json", "avro"
KINDS = (BINARY, STRING, JSON, AVRO)


@dataclass(frozen=True)
class Format:
    """``schema`` is a Spark DDL for JSON (``id bigint, name string``), or an Avro schema as JSON. A JSON value that
    does not parse becomes null with ``permissive``, else it fails the job (``FAILFAST``). An invalid Avro value is
    handled likewise.
    """

    kind: str = BINARY
    schema: str | None = None
    permissive: bool = False

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise ValueError(f"unknown format {self.kind!r}: one of {', '.join(KINDS)}")
        if self.kind in (JSON, AVRO) and not self.schema:
            raise ValueError(f"the format {self.kind} needs a schema")

    def decode(self, column: Column) -> Column:
        """Decodes Kafka's bytes."""
        from pyspark.sql import functions
        from pyspark.sql.avro.functions import from_avro

        mode = {"mode": "PERMISSIVE" if self.permissive else "FAILFAST"}
        if self.kind == STRING:
            return column.cast("string")
        if self.kind == JSON:
            return functions.from_json(column.cast("string"), str(self.schema), mode)
        if self.kind == AVRO:
            return from_avro(column, str(self.schema), mode)
        return column

    def encode(self, column: Column) -> Column:
        """Encodes to Kafka's bytes. Null stays null (a tombstone)."""
        from pyspark.sql import functions
        from pyspark.sql.avro.functions import to_avro

        if self.kind == JSON:
            return functions.to_json(column).cast("binary")
        if self.kind == AVRO:
            encoded = to_avro(column, str(self.schema))
            return functions.when(column.isNotNull(), encoded)
        return column.cast("binary")
