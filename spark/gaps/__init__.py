"""The offset-gap kit: topics whose offsets have holes of every kind, on any broker, and Spark's readers run over them.

A reader may get stuck before a hole, take it for lost data, or read around it twice. `shapes` makes the topics,
`readers` reads them, ``python -m kafka_shim.spark.gaps`` does both and prints a table.
"""
