"""The audit: the history checker of ``kafka_shim.history`` at the size of Spark.

Clients log what they did to a topic, one operation of ``kafka_shim.history.operations`` a record; the audit reads that
topic and the data topics themselves, finds every class of anomaly, and ends with a table and a page. What is an error
and what is tolerated is the checker's to say. ``python -m kafka_shim.spark.audit --help``.
"""
