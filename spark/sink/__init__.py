"""An exactly-once Kafka sink for PySpark, on Kafka transactions.

What it promises: the rows of one task of one micro-batch become visible to ``read_committed`` readers all together and
once, however often Spark retries the task, restarts the query from its checkpoint or loses the answer of a commit.
What it does not promise: a batch that has several tasks is not atomic as a whole (a reader may see task 1 of a batch
before task 2), and ``read_uncommitted`` readers see attempts that were aborted.

Two faces, one writer: the data source ``kafka_exactly_once`` (`data_source.py`), and `write_batch` for
``foreachBatch`` (`foreach_batch.py`).
"""
