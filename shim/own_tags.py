"""The tags of tagged fields by which this project's clients ask its broker for more than Kafka's requests do
(docs/adr/0012-own-questions-as-tagged-fields.md). They are far from the tags that Kafka assigns, which count from 0."""

# In InitProducerId: end what the transactional id has open, whatever it waits for.
RESOLVE_TAG = 20022
# In DescribeTransactions: what the transactional id went through.
EXPLAIN_TAG = 20065
