"""A client of Kafka's protocol for the tools of this project: the command line, fixtures and pages. It speaks to any
Kafka cluster, and needs no client library. `Cluster` is where to begin.
"""
