"""Tests that pass on Kafka with one broker and that no other broker can pass: what they look at is inside Kafka's JVM,
or is a node that is a controller alone. Each was read in Kafka's test sources; the harness names most others by call.

A test that fails on the shim and stands here is not applicable. One that passes counts as passed.
"""

from __future__ import annotations

_RECONFIGURATION = "kafka.server.DynamicBrokerReconfigurationTest."
_QUORUM = "org.apache.kafka.tools.MetadataQuorumCommandTest.testDescribeQuorum"
_METRICS = (
    "BrokerStateMetric",
    "BrokerTopicMetricsUnregisteredAfterDeletingTopic",
    "ClusterIdMetric",
    "GeneralBrokerTopicMetricsAreGreedilyRegistered",
    "JMXFilter",
    "KRaftControllerMetrics",
    "LinuxIoMetrics",
    "YammerMetricsCountMetric",
)
# What they look at -> the tests, by method or invocation.
SUBJECTS: dict[str, tuple[str, ...]] = {
    "a controller that is a node of its own, with an id of its own or alive beside a stopped broker": (
        "org.apache.kafka.api.EndToEndClusterIdTest.testEndToEndWithClassicProtocol[1]",
        "org.apache.kafka.api.EndToEndClusterIdTest.testEndToEndWithConsumerProtocol[1]",
        "org.apache.kafka.clients.admin.DescribeFeaturesTest.testSendRequestToWrongNodeType",
        "org.apache.kafka.clients.admin.StaticBrokerConfigTest.testInternalConfigsDoNotReturnForDescribeConfigs",
        "org.apache.kafka.clients.admin.StaticBrokerConfigTest.testTopicConfigsGetImpactedIfStaticConfigsAddToBroker",
        "org.apache.kafka.clients.admin.StaticBrokerConfigTest.testTopicConfigsGetImpactedIfStaticConfigsAddToController",
        "org.apache.kafka.server.CordonedLogDirsIntegrationTest.testUpdateCordonedDirsViaController",
        "org.apache.kafka.common.test.junit.ClusterTestExtensionsTest.testClusterTests[1]",
        "org.apache.kafka.server.KRaftClusterTest.testDescribeQuorumRequestToBrokers",
        "org.apache.kafka.server.KRaftClusterTest.testSnapshotCount",
        "org.apache.kafka.server.ReconfigurableQuorumIntegrationTest.testRemoveAndAddVoterWithInconsistentClusterId",
        "org.apache.kafka.tools.ClusterToolTest.testListEndpointsWithBootstrapController[1]",
        "org.apache.kafka.tools.ClusterToolTest.testUnregisterWithBootstrapController[1]",
        "org.apache.kafka.tools.FeatureCommandTest.testDowngradeMetadataVersionWithKRaft[1]",
        "kafka.server.DescribeQuorumRequestTest.testDescribeQuorum",
        "unit.kafka.server.AllocateProducerIdsRequestTest.testAllocateProducersIdSentToController",
        *(f"{_QUORUM}{what}Successful[{number}]" for what in ("Replication", "Status") for number in (1, 3, 5)),
    ),
    # One node that is both cannot have two listeners of one name.
    "a controller that is a node of its own, with a listener of the same name as the broker's": (
        "kafka.api.SslAdminIntegrationTest.testListNodesFromControllers",
        "kafka.api.SslAdminIntegrationTest.testListNodesFromControllersIncludingFencedBrokers",
    ),
    "a controller that is a node of its own, stopped before a broker starts": (
        "kafka.server.ServerShutdownTest.testCleanShutdownAfterFailedStartup",
    ),
    "a controller that is a node of its own, without the broker's authorizer": (
        "kafka.server.DescribeUserScramCredentialsRequestNotAuthorizedTest.testDescribeNotAuthorized",
    ),
    # Kafka's kit formats the quorum in that node's directory alone, and starts no combined node on it.
    "a controller that is a node of its own, with a dynamic quorum in its directory": (
        "org.apache.kafka.server.BootstrapControllersIntegrationTest."
        "testIncrementalAlterConfigsByAllControllersWithDynamicQuorum",
        "org.apache.kafka.server.BootstrapControllersIntegrationTest."
        "testIncrementalAlterConfigsBySingleControllerWithDynamicQuorum",
        "org.apache.kafka.server.KRaftClusterTest.testDescribeKRaftVersion",
        "org.apache.kafka.server.ReconfigurableQuorumIntegrationTest.testCreateAndDestroyReconfigurableCluster",
    ),
    "MetricsReporter.metricChange and its like: metrics in the JVM, reported to instances of a class of the test": (
        f"{_RECONFIGURATION}testMetricsReporterUpdate",
        f"{_RECONFIGURATION}testUpdatesUsingConfigProvider",
        "kafka.server.KafkaMetricReporterExceptionHandlingTest.testBothReportersAreInvoked",
    ),
    "an exporter of clients' metrics, a class of the test that keeps them in the JVM": tuple(
        f"org.apache.kafka.streams.integration.KafkaStreamsTelemetryIntegrationTest.shouldPush{what}ToBroker"
        for what in ("GlobalThreadMetrics", "Metrics")
    ),
    "a second broker, created after the first": (
        "kafka.server.epoch.LeaderEpochIntegrationTest.shouldIncreaseLeaderEpochBetweenLeaderRestarts",
    ),
    "BrokerServer.metrics and KafkaYammerMetrics, the metrics in the JVM": (
        "kafka.api.GroupEndToEndAuthorizationTest.testAuthentications",
        "kafka.api.MetricsTest.testMetrics[2]",
        "kafka.api.SaslScramSslEndToEndAuthorizationTest.testAuthentications",
        *(f"kafka.metrics.MetricsTest.test{what}" for what in _METRICS),
        "kafka.network.DynamicNumNetworkThreadsTest.testDynamicNumNetworkThreads",
        "kafka.server.BrokerMetricNamesTest.testMetrics",
        "kafka.server.ControllerMutationQuotaTest.testQuotaMetric",
        "kafka.server.GssapiAuthenticationTest.testRequestIsAReplay",
        "kafka.server.ProduceRequestTest.testCorruptLz4ProduceRequest",
        "org.apache.kafka.clients.MetricsDuringTopicCreationDeletionTest.testMetricsDuringTopicCreateDelete",
        # The count of renewals, at the end of each; what stands before passes.
        *(
            f"org.apache.kafka.clients.consumer.ShareConsumerTest.testRenewAcknowledgement{what}"
            for what in ("InvalidStateRecord", "NoResultInPoll", "OnCommitSync", "OnPoll")
        ),
    ),
    "threads, counted by name": (
        f"{_RECONFIGURATION}testLogCleanerConfig",
        f"{_RECONFIGURATION}testTransactionVerificationEnable",
    ),
    "acceptors, counted among BrokerServer.config.dynamicConfig.reconfigurables": (
        f"{_RECONFIGURATION}testReconfigureRemovedListener",
    ),
    "an authorizer, a class of the test": (
        # They count its calls, and make them wait.
        *(
            f"kafka.api.SslAdminIntegrationTest.test{what}"
            for what in (
                "AclUpdatesUsingAsynchronousAuthorizer",
                "AclUpdatesUsingSynchronousAuthorizer",
                "AsynchronousAuthorizerAclUpdatesDontBlockRequestThreads",
                "SynchronousAuthorizerAclUpdatesBlockRequestThreads",
            )
        ),
        "org.apache.kafka.server.KRaftClusterTest.testAuthorizerFailureFoundInControllerStartup",
    ),
    "the level of Log4j's root logger, which a file of the tests sets": (
        "org.apache.kafka.tools.ConfigCommandIntegrationTest.testBrokerLoggerConfigUpdate",
    ),
}
_SUBJECT_OF = {test: subject for subject, tests in SUBJECTS.items() for test in tests}


def subject_of(test: str) -> str:
    """Return what a test looks at that only Kafka's JVM has, or an empty string."""
    return _SUBJECT_OF.get(test) or _SUBJECT_OF.get(test.partition("[")[0], "")
