package kafkashim;

import java.lang.reflect.Field;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Properties;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;

import org.mockito.MockedConstruction;
import org.mockito.Mockito;

import kafka.log.LogManager;
import kafka.server.BrokerServer;
import kafka.server.ControllerServer;
import kafka.server.KafkaConfig;
import kafka.server.SharedServer;

import org.apache.kafka.common.memory.MemoryPool;
import org.apache.kafka.common.metrics.Metrics;
import org.apache.kafka.common.network.ListenerName;
import org.apache.kafka.common.security.scram.internals.ScramMechanism;
import org.apache.kafka.common.security.token.delegation.internals.DelegationTokenCache;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.internals.Plugin;
import org.apache.kafka.coordinator.group.GroupConfig;
import org.apache.kafka.image.ConfigurationsImage;
import org.apache.kafka.metadata.BrokerState;
import org.apache.kafka.metadata.KRaftMetadataCache;
import org.apache.kafka.metadata.bootstrap.BootstrapMetadata;
import org.apache.kafka.metadata.properties.MetaPropertiesEnsemble;
import org.apache.kafka.security.CredentialProvider;
import org.apache.kafka.server.BrokerFeatures;
import org.apache.kafka.server.authorizer.Authorizer;
import org.apache.kafka.server.common.KRaftVersion;

import scala.None$;
import scala.Option;

/**
 * Puts a stand-in at the place of each server that the tests' harnesses construct. The broker's stand-in runs a
 * `ShimNode`; the controller's belongs to the same cluster and runs nothing, because the shim is its own controller.
 */
public final class Replacement {
    /** Cluster id -> its servers. */
    private static final Map<String, Cluster> CLUSTERS = new ConcurrentHashMap<>();
    /** Those that the test's class started for all of its tests. */
    private static final Set<String> OF_CLASS = ConcurrentHashMap.newKeySet();

    private Replacement() {
    }

    /** Replaces what this thread constructs from here on. */
    static List<MockedConstruction<?>> install() {
        return List.of(
            Mockito.mockConstruction(SharedServer.class, context ->
                Stand.settings("SharedServer", new Shared(context.arguments()))),
            Mockito.mockConstruction(BrokerServer.class, context ->
                Stand.settings("BrokerServer", new Broker((SharedServer) context.arguments().get(0)))),
            Mockito.mockConstruction(ControllerServer.class, context ->
                Stand.settings("ControllerServer", new Controller(
                    (SharedServer) context.arguments().get(0), (BootstrapMetadata) context.arguments().get(2)))));
    }

    static void beginTest() {
        OF_CLASS.addAll(CLUSTERS.keySet());
    }

    /** Ends what the last test left, but not what its class started. */
    static void endTest() {
        CLUSTERS.entrySet().removeIf(entry -> {
            boolean isLeft = !OF_CLASS.contains(entry.getKey());
            if (isLeft) {
                entry.getValue().end();
            }
            return isLeft;
        });
    }

    /** Ends what a class left. */
    static void reset() {
        ShimNode.stopAll();
        CLUSTERS.clear();
        OF_CLASS.clear();
    }

    static final class Cluster {
        final String id;
        private ShimNode node;
        private BootstrapMetadata bootstrap;
        private KafkaConfig controller;

        Cluster(String id) {
            this.id = id;
        }

        static Cluster of(MetaPropertiesEnsemble ensemble) {
            return CLUSTERS.computeIfAbsent(ensemble.clusterId().orElseThrow(), Cluster::new);
        }

        /** What a controller writes first into an empty metadata log. */
        synchronized void beginsWith(BootstrapMetadata metadata, KafkaConfig config) {
            bootstrap = metadata;
            controller = config;
        }

        void start(KafkaConfig config) {
            node(config).start(bootstrap, controller);
        }

        synchronized void end() {
            if (node != null) {
                node.stop(true);
            }
        }

        synchronized int port(ListenerName listener) {
            return node == null ? 0 : node.port(listener.value());
        }

        /** The process of this broker. A broker that is created again takes over the directory and the port. */
        synchronized ShimNode node(KafkaConfig config) {
            if (node != null && node.config().nodeId() != config.nodeId()) {
                throw new NotApplicable("several brokers");
            }
            if (node == null || node.config() != config && !node.isRunning()) {
                node = new ShimNode(config);
            }
            return node;
        }

        synchronized KafkaConfig config() {
            metadata();
            return node.config();
        }

        int nodeId() {
            return config().nodeId();
        }

        synchronized Authorizer acls() {
            if (node == null) {
                throw new NotApplicable("a controller without a broker");
            }
            return new Acls(node);
        }

        synchronized MetadataLog metadata() {
            if (node == null) {
                throw new NotApplicable("a controller without a broker");
            }
            return node.metadata();
        }
    }

    /** `SharedServer`: what was given to its constructor, and how far the metadata was applied. */
    public static final class Shared {
        private final KafkaConfig config;
        private final MetaPropertiesEnsemble ensemble;
        private final Time time;
        private final Metrics metrics;
        private final Object controllerQuorumVotersFuture;

        Shared(List<?> arguments) {
            config = (KafkaConfig) arguments.get(0);
            ensemble = (MetaPropertiesEnsemble) arguments.get(1);
            time = (Time) arguments.get(2);
            metrics = (Metrics) arguments.get(3);
            controllerQuorumVotersFuture = arguments.get(4);
        }

        public KafkaConfig brokerConfig() {
            return config;
        }

        public KafkaConfig controllerConfig() {
            return config;
        }

        public MetaPropertiesEnsemble metaPropsEnsemble() {
            return ensemble;
        }

        public String clusterId() {
            return ensemble.clusterId().orElseThrow();
        }

        public int nodeId() {
            return config.nodeId();
        }

        public Time time() {
            return time;
        }

        public Metrics metrics() {
            return metrics;
        }

        public Object controllerQuorumVotersFuture() {
            return controllerQuorumVotersFuture;
        }

        public void stopForBroker() {
        }

        public void stopForController() {
        }

        public Object loader() {
            return Metadata.loader(Cluster.of(ensemble));
        }

        public Object raftManager() {
            return Metadata.raftManager(Cluster.of(ensemble));
        }
    }

    /** `BrokerServer`. */
    public static final class Broker {
        private final SharedServer shared;
        private final Cluster cluster;
        private final KafkaConfig config;
        private final KRaftMetadataCache cache;
        private boolean isShutdown = true;
        private boolean wasStarted;

        Broker(SharedServer shared) {
            this.shared = shared;
            this.config = shared.brokerConfig();
            this.cluster = Cluster.of(shared.metaPropsEnsemble());
            this.cache = new KRaftMetadataCache(config.nodeId(), () -> KRaftVersion.KRAFT_VERSION_0);
            cluster.node(config);
        }

        private ShimNode node() {
            return cluster.node(config);
        }

        public SharedServer sharedServer() {
            return shared;
        }

        /** With what was set dynamically; as given while that is not valid. */
        public KafkaConfig config() {
            ConfigurationsImage set = cluster.metadata().image().configs();
            Properties dynamic = new Properties();
            for (String name : List.of("", String.valueOf(config.nodeId()))) {
                dynamic.putAll(set.configProperties(new ConfigResource(ConfigResource.Type.BROKER, name)));
            }
            if (dynamic.isEmpty()) {
                return config;
            }
            Map<Object, Object> all = new HashMap<>(config.originals());
            all.putAll(dynamic);
            try {
                return KafkaConfig.fromProps(properties(all), false);
            } catch (RuntimeException invalid) {
                return config;
            }
        }

        private static Properties properties(Map<?, ?> values) {
            Properties properties = new Properties();
            properties.putAll(values);
            return properties;
        }

        public Time time() {
            return shared.time();
        }

        public Metrics metrics() {
            return shared.metrics();
        }

        public String clusterId() {
            return cluster.id;
        }

        public synchronized void startup() {
            if (isShutdown) {
                cluster.start(config);
                isShutdown = false;
                wasStarted = true;
            }
        }

        public synchronized void shutdown() {
            node().stop(false);
            isShutdown = true;
        }

        public void shutdown(java.time.Duration timeout) {
            shutdown();
        }

        public void awaitShutdown() {
        }

        public boolean isShutdown() {
            return isShutdown;
        }

        public BrokerState brokerState() {
            return node().isRunning() ? BrokerState.RUNNING : BrokerState.NOT_RUNNING;
        }

        public int boundPort(ListenerName listener) {
            return node().port(listener.value());
        }

        public Object socketServer() {
            if (!wasStarted) {
                return null;
            }
            Object made = Stand.in(kafka.network.SocketServer.class, "BrokerServer.socketServer",
                new Ports(cluster, "BrokerServer.socketServer"));
            try {
                // A test reads the field.
                Field pool = kafka.network.SocketServer.class.getDeclaredField("memoryPool");
                pool.setAccessible(true);
                pool.set(made, Stand.in(MemoryPool.class, "BrokerServer.socketServer.memoryPool", new Pool(node())));
            } catch (ReflectiveOperationException error) {
                throw new IllegalStateException(error);
            }
            return made;
        }

        public KRaftMetadataCache metadataCache() {
            cache.setImage(cluster.metadata().image());
            return cache;
        }

        public Object raftManager() {
            return Metadata.raftManager(cluster);
        }

        public BrokerFeatures brokerFeatures() {
            return BrokerFeatures.createDefault(config.unstableFeatureVersionsEnabled());
        }

        public Object dataPlaneRequestProcessor() {
            return Stand.in(kafka.server.KafkaApis.class, "BrokerServer.dataPlaneRequestProcessor", new Apis(this));
        }

        public Object replicaManager() {
            return Metadata.replicaManager(cluster, node(), logManager());
        }

        public LogManager logManager() {
            return Logs.logManager(node());
        }

        public Object quotaManagers() {
            return Quotas.managers(cluster, "BrokerServer.quotaManagers");
        }

        public Object groupCoordinator() {
            return Stand.in(org.apache.kafka.coordinator.group.GroupCoordinator.class, "BrokerServer.groupCoordinator",
                new Groups(cluster, config));
        }

        public Object groupConfigManager() {
            return Stand.in(org.apache.kafka.coordinator.group.GroupConfigManager.class,
                "BrokerServer.groupConfigManager", new Groups(cluster, config));
        }

        public Object lifecycleManager() {
            return Stand.in(org.apache.kafka.server.BrokerLifecycleManager.class, "BrokerServer.lifecycleManager",
                new Lifecycle(this));
        }

        public Option<?> authorizerPlugin() {
            return authorizer(config, cluster);
        }

        /** The tokens in the metadata; without credentials, which no test reads. */
        public DelegationTokenCache tokenCache() {
            DelegationTokenCache cache = new DelegationTokenCache(List.of());
            cluster.metadata().image().delegationTokens().tokens().forEach(
                (id, token) -> cache.addToken(id, token.tokenInformation()));
            return cache;
        }

        /** The SCRAM credentials in the metadata. */
        public CredentialProvider credentialProvider() {
            CredentialProvider provider = new CredentialProvider(ScramMechanism.mechanismNames(), tokenCache());
            cluster.metadata().image().scram().mechanisms().forEach((mechanism, credentials) -> credentials.forEach(
                (user, credential) -> provider.updateCredential(mechanism, user, credential.toCredential())));
            return provider;
        }
    }

    static Option<?> authorizer(KafkaConfig config, Cluster cluster) {
        Object name = config.originals().get("authorizer.class.name");
        if (name == null || name.toString().isEmpty()) {
            return None$.MODULE$;
        }
        if (!PluginServer.isStandard(name.toString())) {
            throw new NotApplicable("authorizerPlugin of a test's own class");
        }
        return Option.apply(Plugin.wrapInstance(cluster.acls(), null, "authorizer.class.name"));
    }

    public static final class Ports {
        private final Cluster cluster;
        private final String name;

        Ports(Cluster cluster, String name) {
            this.cluster = cluster;
            this.name = name;
        }

        public int boundPort(ListenerName listener) {
            return cluster.port(listener);
        }

        public Object connectionQuotas() {
            return Quotas.connections(cluster, name + ".connectionQuotas");
        }
    }

    public static final class Pool {
        private final ShimNode node;

        Pool(ShimNode node) {
            this.node = node;
        }

        public long availableMemory() {
            return node.availableMemory();
        }
    }

    public static final class Lifecycle {
        private final Broker broker;

        Lifecycle(Broker broker) {
            this.broker = broker;
        }

        public BrokerState state() {
            return broker.brokerState();
        }

        public CompletableFuture<Void> initialUnfenceFuture() {
            return CompletableFuture.completedFuture(null);
        }

        public long brokerEpoch() {
            return broker.cluster.metadata().image().cluster().broker(broker.config.nodeId()).epoch();
        }
    }

    public static final class Apis {
        private final Broker broker;

        Apis(Broker broker) {
            this.broker = broker;
        }

        public KRaftMetadataCache metadataCache() {
            return broker.metadataCache();
        }

        public int brokerId() {
            return broker.config.nodeId();
        }

        public String clusterId() {
            return broker.cluster.id;
        }

        public Object quotas() {
            return Quotas.managers(broker.cluster, "BrokerServer.dataPlaneRequestProcessor.quotas");
        }

        public boolean isConsumerGroupProtocolEnabled() {
            return isGroupProtocolEnabled("group.version", "CONSUMER");
        }

        public boolean isStreamsGroupProtocolEnabled() {
            return isGroupProtocolEnabled("streams.version", "STREAMS");
        }

        public Option<?> authorizerPlugin() {
            return broker.authorizerPlugin();
        }

        private boolean isGroupProtocolEnabled(String feature, String protocol) {
            Map<String, Short> levels = broker.metadataCache().features().finalizedFeatures();
            return levels.getOrDefault(feature, (short) 0) > 0 && broker.config.groupCoordinatorRebalanceProtocols()
                .exists(each -> each.toString().equalsIgnoreCase(protocol));
        }
    }

    public static final class Groups {
        private final Cluster cluster;
        private final KafkaConfig config;

        Groups(Cluster cluster, KafkaConfig config) {
            this.cluster = cluster;
            this.config = config;
        }

        /** What is set for the group, over the broker's defaults; empty where nothing is set. */
        public Optional<GroupConfig> groupConfig(String group) {
            Properties set = cluster.metadata().image().configs().configProperties(
                new ConfigResource(ConfigResource.Type.GROUP, group));
            return set.isEmpty() ? Optional.empty() : Optional.of(GroupConfig.fromProps(
                config.groupCoordinatorConfig().extractGroupConfigMap(config.shareGroupConfig()), set));
        }

        public Properties groupMetadataTopicConfigs() {
            Properties properties = new Properties();
            properties.put("cleanup.policy", "compact");
            properties.put("compression.type", "producer");
            properties.put("segment.bytes", String.valueOf(config.groupCoordinatorConfig().offsetsTopicSegmentBytes()));
            return properties;
        }
    }

    /** `ControllerServer`. */
    public static final class Controller {
        private final SharedServer shared;
        private final Cluster cluster;
        private final CompletableFuture<Integer> port = new CompletableFuture<>();

        Controller(SharedServer shared, BootstrapMetadata bootstrap) {
            this.shared = shared;
            this.cluster = Cluster.of(shared.metaPropsEnsemble());
            cluster.beginsWith(bootstrap, shared.controllerConfig());
        }

        public SharedServer sharedServer() {
            return shared;
        }

        public KafkaConfig config() {
            return shared.controllerConfig();
        }

        public Time time() {
            return shared.time();
        }

        public Metrics metrics() {
            return shared.metrics();
        }

        public String clusterId() {
            return cluster.id;
        }

        public void startup() {
            port.complete(1);
        }

        public void shutdown() {
        }

        public void awaitShutdown() {
        }

        public Object socketServer() {
            return Stand.in(kafka.network.SocketServer.class, "ControllerServer.socketServer",
                new Ports(cluster, "ControllerServer.socketServer"));
        }

        public CompletableFuture<Integer> socketServerFirstBoundPortFuture() {
            return port;
        }

        public Object raftManager() {
            return Metadata.raftManager(cluster);
        }

        public Option<?> authorizerPlugin() {
            return authorizer(shared.controllerConfig(), cluster);
        }

        public KRaftMetadataCache metadataCache() {
            KRaftMetadataCache cache = new KRaftMetadataCache(
                shared.controllerConfig().nodeId(), () -> KRaftVersion.KRAFT_VERSION_0);
            cache.setImage(cluster.metadata().image());
            return cache;
        }

        public Object controller() {
            return Metadata.controller(cluster);
        }

        public Object quotaManagers() {
            return Quotas.managers(cluster, "ControllerServer.quotaManagers");
        }
    }
}
