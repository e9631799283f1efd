"""The audit: the history checker of ``kafka_shim.history`` on Spark, for large histories.

Clients log their operations to a topic, one operation of ``kafka_shim.history.operations`` per record. The audit reads
that topic and the data topics, finds every class of anomaly, and writes a table and a page. The checker decides which
classes are errors and which are tolerated. ``python -m kafka_shim.spark.audit --help``.
"""
