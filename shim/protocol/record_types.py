"""Record types of the internal topics. Written by shim.protocol.transcribe: change nothing here."""

GROUP_KEYS: dict[int, str] = {
    0: "LegacyOffsetCommitKey",
    1: "OffsetCommitKey",
    2: "GroupMetadataKey",
    3: "ConsumerGroupMetadataKey",
    4: "ConsumerGroupPartitionMetadataKey",
    5: "ConsumerGroupMemberMetadataKey",
    6: "ConsumerGroupTargetAssignmentMetadataKey",
    7: "ConsumerGroupTargetAssignmentMemberKey",
    8: "ConsumerGroupCurrentMemberAssignmentKey",
    10: "ShareGroupMemberMetadataKey",
    11: "ShareGroupMetadataKey",
    12: "ShareGroupTargetAssignmentMetadataKey",
    13: "ShareGroupTargetAssignmentMemberKey",
    14: "ShareGroupCurrentMemberAssignmentKey",
    15: "ShareGroupStatePartitionMetadataKey",
    16: "ConsumerGroupRegularExpressionKey",
    17: "StreamsGroupMetadataKey",
    19: "StreamsGroupMemberMetadataKey",
    20: "StreamsGroupTargetAssignmentMetadataKey",
    21: "StreamsGroupTargetAssignmentMemberKey",
    22: "StreamsGroupCurrentMemberAssignmentKey",
    23: "StreamsGroupTopologyKey",
}

GROUP_VALUES: dict[int, str] = {
    0: "LegacyOffsetCommitValue",
    1: "OffsetCommitValue",
    2: "GroupMetadataValue",
    3: "ConsumerGroupMetadataValue",
    4: "ConsumerGroupPartitionMetadataValue",
    5: "ConsumerGroupMemberMetadataValue",
    6: "ConsumerGroupTargetAssignmentMetadataValue",
    7: "ConsumerGroupTargetAssignmentMemberValue",
    8: "ConsumerGroupCurrentMemberAssignmentValue",
    10: "ShareGroupMemberMetadataValue",
    11: "ShareGroupMetadataValue",
    12: "ShareGroupTargetAssignmentMetadataValue",
    13: "ShareGroupTargetAssignmentMemberValue",
    14: "ShareGroupCurrentMemberAssignmentValue",
    15: "ShareGroupStatePartitionMetadataValue",
    16: "ConsumerGroupRegularExpressionValue",
    17: "StreamsGroupMetadataValue",
    19: "StreamsGroupMemberMetadataValue",
    20: "StreamsGroupTargetAssignmentMetadataValue",
    21: "StreamsGroupTargetAssignmentMemberValue",
    22: "StreamsGroupCurrentMemberAssignmentValue",
    23: "StreamsGroupTopologyValue",
}

METADATA_RECORDS: dict[int, str] = {
    0: "RegisterBrokerRecord",
    1: "UnregisterBrokerRecord",
    2: "TopicRecord",
    3: "PartitionRecord",
    4: "ConfigRecord",
    5: "PartitionChangeRecord",
    7: "FenceBrokerRecord",
    8: "UnfenceBrokerRecord",
    9: "RemoveTopicRecord",
    10: "DelegationTokenRecord",
    11: "UserScramCredentialRecord",
    12: "FeatureLevelRecord",
    14: "ClientQuotaRecord",
    15: "ProducerIdsRecord",
    17: "BrokerRegistrationChangeRecord",
    18: "AccessControlEntryRecord",
    19: "RemoveAccessControlEntryRecord",
    20: "NoOpRecord",
    21: "ZkMigrationStateRecord",
    22: "RemoveUserScramCredentialRecord",
    23: "BeginTransactionRecord",
    24: "EndTransactionRecord",
    25: "AbortTransactionRecord",
    26: "RemoveDelegationTokenRecord",
    27: "RegisterControllerRecord",
    28: "ClearElrRecord",
}

SHARE_KEYS: dict[int, str] = {
    0: "ShareSnapshotKey",
    1: "ShareUpdateKey",
}

SHARE_VALUES: dict[int, str] = {
    0: "ShareSnapshotValue",
    1: "ShareUpdateValue",
}

TRANSACTION_KEYS: dict[int, str] = {
    0: "TransactionLogKey",
}

TRANSACTION_VALUES: dict[int, str] = {
    0: "TransactionLogValue",
}
