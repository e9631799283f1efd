"""The APIs of a listener in `controller.listener.names`, as Kafka's controller advertises them (ControllerApis).

Most are those of a broker's listener: the metadata is this node's own, so there is nothing to forward. What only
members of a quorum and brokers without a controller of their own send has a module here, in the form that
`shim/api/__init__.py` describes. This node is the only voter and the leader of its quorum from start to stop, and the
only broker: it answers so.
"""

from __future__ import annotations

from kafka_shim.api import LATER, TABLE, Api, T
from kafka_shim.security.acl import AclOperation as Op

TYPE_CHECKING = False
if TYPE_CHECKING:
    from kafka_shim.api import ThrottleClass

# Served as on a broker's listener, by the same module; a key that is not served there is not served here either.
AS_BROKER = (
    *(17, 18, 19, 20, 29, 30, 31, 32, 33, 36, 37, 38, 39, 40, 43, 44, 45, 46, 49, 51, 55, 57),
    *(64, 80, 81),
)
# As in `api.ROWS`.
OWN_ROWS: tuple[tuple[int, str, int, int, int, ThrottleClass, tuple[Op, ...], bool], ...] = (
    (1, "fetch", 4, 18, 4, T.EXEMPT, (Op.CLUSTER_ACTION,), LATER),
    (41, "describe_delegation_token", 1, 3, 1, T.REQUEST, (), LATER),
    (50, "describe_user_scram_credentials", 0, 0, 0, T.REQUEST, (), LATER),
    (52, "vote", 0, 2, 0, T.EXEMPT, (Op.CLUSTER_ACTION,), LATER),
    (53, "begin_quorum_epoch", 0, 1, 0, T.EXEMPT, (Op.CLUSTER_ACTION,), LATER),
    (54, "end_quorum_epoch", 0, 1, 0, T.EXEMPT, (Op.CLUSTER_ACTION,), LATER),
    (56, "alter_partition", 2, 3, 2, T.EXEMPT, (Op.CLUSTER_ACTION,), LATER),
    (58, "envelope", 0, 0, 0, T.REQUEST, (Op.CLUSTER_ACTION,), LATER),
    (59, "fetch_snapshot", 0, 1, 0, T.EXEMPT, (Op.CLUSTER_ACTION,), LATER),
    (60, "describe_cluster", 0, 2, 0, T.REQUEST, (Op.ALTER,), LATER),
    (62, "broker_registration", 0, 4, 0, T.REQUEST, (Op.CLUSTER_ACTION,), LATER),
    (63, "broker_heartbeat", 0, 2, 0, T.REQUEST, (Op.CLUSTER_ACTION,), LATER),
    (67, "allocate_producer_ids", 0, 0, 0, T.REQUEST, (Op.CLUSTER_ACTION,), LATER),
    (70, "controller_registration", 0, 0, 0, T.REQUEST, (Op.CLUSTER_ACTION,), LATER),
    (73, "assign_replicas_to_dirs", 0, 0, 0, T.REQUEST, (Op.CLUSTER_ACTION,), LATER),
    (82, "update_raft_voter", 0, 0, 0, T.EXEMPT, (Op.CLUSTER_ACTION,), LATER),
)

CONTROLLER_APIS = tuple(
    sorted(
        (*(TABLE[key] for key in AS_BROKER if key in TABLE), *(Api(*row, package=__name__) for row in OWN_ROWS)),
        key=lambda api: api.key,
    )
)
CONTROLLER_TABLE = {api.key: api for api in CONTROLLER_APIS}
