"""An exactly-once Kafka sink for PySpark, based on Kafka transactions.

Guarantee: the rows of one task of one micro-batch become visible to ``read_committed`` readers together and exactly
once, even if Spark retries the task, restarts the query from its checkpoint or loses the response of a commit.

Limits: a batch of several tasks is not atomic (a reader may see task 1 of a batch before task 2), and
``read_uncommitted`` readers see attempts that were aborted.

There are two interfaces to one writer: the data source ``kafka_exactly_once`` (`data_source.py`), and `write_batch` for
``foreachBatch`` (`foreach_batch.py`).
"""
