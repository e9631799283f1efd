"""AlterPartition (key 56), versions 2-3, of the controller.

A leader proposes the in-sync replicas of its partitions. Each partition has one replica here, so there is nothing to
change: what Kafka's controller refuses is refused with its code, and the one proposal that fits is answered with the
partition as it is. v3 has the epochs of the proposed brokers (KIP-903).
"""

from __future__ import annotations

from kafka_shim.api.controller.brokers import check_broker_epoch
from kafka_shim.errors import ErrorCode
from kafka_shim.protocol.messages.alter_partition_request import AlterPartitionRequest
from kafka_shim.protocol.messages.alter_partition_request import PartitionData as Proposed
from kafka_shim.protocol.messages.alter_partition_response import AlterPartitionResponse, PartitionData, TopicData

TYPE_CHECKING = False
if TYPE_CHECKING:
    from kafka_shim.context import Context
    from kafka_shim.metadata.image import Partition

KEY, MIN, MAX = 56, 2, 3
REQUEST, RESPONSE = AlterPartitionRequest, AlterPartitionResponse

RECOVERED, RECOVERING = 0, 1
NO_EPOCH = -1


def handle(context: Context, request: AlterPartitionRequest) -> AlterPartitionResponse:
    if not request.topics:
        return AlterPartitionResponse()
    check_broker_epoch(context, request.broker_id, request.broker_epoch)
    image = context.broker.metadata.image
    response = AlterPartitionResponse()
    for asked in request.topics:
        topic = image.topics_by_id.get(asked.topic_id)
        answer = TopicData(topic_id=asked.topic_id)
        response.topics.append(answer)
        for proposed in asked.partitions:
            number = proposed.partition_index
            if topic is None:
                answer.partitions.append(PartitionData(partition_index=number, error_code=ErrorCode.UNKNOWN_TOPIC_ID))
                continue
            partition = topic.partitions[number] if 0 <= number < len(topic.partitions) else None
            code = _fault(context, request.broker_id, partition, proposed)
            if code or partition is None:
                answer.partitions.append(PartitionData(partition_index=number, error_code=code))
                continue
            answer.partitions.append(
                PartitionData(
                    partition_index=number,
                    leader_id=partition.leader,
                    leader_epoch=partition.leader_epoch,
                    isr=list(partition.isr),
                    leader_recovery_state=partition.leader_recovery_state,
                    partition_epoch=partition.partition_epoch,
                )
            )
    return response


def _fault(context: Context, broker_id: int, partition: Partition | None, proposed: Proposed) -> ErrorCode:
    """The checks of Kafka's ReplicationControlManager.validateAlterPartitionData, in its order."""
    if partition is None:
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    if proposed.leader_epoch > partition.leader_epoch or proposed.partition_epoch > partition.partition_epoch:
        return ErrorCode.NOT_CONTROLLER
    if proposed.leader_epoch < partition.leader_epoch:
        return ErrorCode.FENCED_LEADER_EPOCH
    if broker_id != partition.leader:
        return ErrorCode.INVALID_REQUEST
    if proposed.partition_epoch < partition.partition_epoch:
        return ErrorCode.INVALID_UPDATE_VERSION
    epochs = {one.broker_id: one.broker_epoch for one in proposed.new_isr_with_epochs}
    if context.api_version < MAX:
        epochs = dict.fromkeys(proposed.new_isr, NO_EPOCH)
    if not epochs or not epochs.keys() <= set(partition.replicas) or partition.leader not in epochs:
        return ErrorCode.INVALID_REQUEST
    if proposed.leader_recovery_state == RECOVERING and (
        len(epochs) > 1 or partition.leader_recovery_state == RECOVERED
    ):
        return ErrorCode.INVALID_REQUEST
    brokers = context.broker.metadata.image.brokers
    for one, epoch in epochs.items():
        registered = brokers.get(one)
        if registered is None or registered.fenced or epoch not in (NO_EPOCH, registered.broker_epoch):
            return ErrorCode.INELIGIBLE_REPLICA
    return ErrorCode.NONE
