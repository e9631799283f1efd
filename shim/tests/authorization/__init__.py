"""What Kafka 4.3.1 asks its authorizer, for every API and resource (KafkaApis, ControllerApis)."""

from __future__ import annotations

from kafka_shim.tests.authorization import admin, groups, share_groups, topics, transactions
from kafka_shim.tests.authorization.requests import DESCRIBE_TOPIC, GROUP, cluster

_all = topics.CASES | groups.CASES | share_groups.CASES | transactions.CASES | admin.CASES
# In the order of the keys: compat_tests/tests/security asks one after the other.
CASES = {case: _all[case] for case in sorted(_all)}

# Where a denied operation on the cluster leaves a second question, or a second answer.
INSTEAD = {
    (3, 12): {("CREATE", "TOPIC", "new")},
    (16, 5): {("DESCRIBE", "GROUP", name) for name in (GROUP, "k", "s")},
    (19, 7): {("CREATE", "TOPIC", "n")},
    (20, 5): {("DESCRIBE", "TOPIC", "none"), ("DELETE", "TOPIC", "none")},
    (22, 5): {("WRITE", "TOPIC", "*any*")},
    (23, 4): {DESCRIBE_TOPIC},
    (27, 1): {cluster("CLUSTER_ACTION")},
}
# Of these no answer names what is hidden, or nothing is asked.
SILENT = {
    (71, 0),
    (72, 0),
    (3, 8),
    (16, 5),
    (60, 1),
    (60, 2),
    (66, 2),
    (17, 1),
    (18, 3),
    (36, 2),
    (38, 3),
    (39, 2),
    (40, 2),
    (41, 3),
}
