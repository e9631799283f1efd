"""Recording, replaying and comparing what clients and brokers of Kafka say to each other. Imports nothing of the
broker.
"""
