package kafkashim;

import java.io.File;
import java.io.FileInputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.OptionalInt;
import java.util.Properties;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;

import kafka.cluster.Partition;
import kafka.log.LogManager;
import kafka.raft.KafkaRaftManager;
import kafka.server.KafkaConfig;
import kafka.server.ReplicaManager;

import org.apache.kafka.clients.admin.Config;
import org.apache.kafka.clients.admin.ConfigEntry;
import org.apache.kafka.clients.admin.OffsetSpec;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.requests.ApiError;
import org.apache.kafka.controller.ControllerRequestContext;
import org.apache.kafka.controller.ResultOrError;
import org.apache.kafka.image.MetadataImage;
import org.apache.kafka.image.TopicImage;
import org.apache.kafka.image.loader.MetadataLoader;
import org.apache.kafka.raft.KafkaRaftClient;
import org.apache.kafka.raft.LeaderAndEpoch;
import org.apache.kafka.raft.LogOffsetMetadata;
import org.apache.kafka.raft.RaftLog;
import org.apache.kafka.storage.internals.log.LogConfig;
import org.apache.kafka.storage.internals.log.ProducerStateManagerConfig;
import org.apache.kafka.storage.internals.log.UnifiedLog;

import scala.None$;
import scala.Option;
import scala.collection.Seq;
import scala.jdk.javaapi.CollectionConverters;

/** Stand-ins that answer from the metadata log and from the names of the partitions' directories. */
final class Metadata {
    private Metadata() {
    }

    static Object loader(Replacement.Cluster cluster) {
        return Stand.in(MetadataLoader.class, "SharedServer.loader", new Offsets(cluster));
    }

    static Object raftManager(Replacement.Cluster cluster) {
        return Stand.in(KafkaRaftManager.class, "raftManager", new Raft(cluster));
    }

    static Object controller(Replacement.Cluster cluster) {
        return Stand.in(
            org.apache.kafka.controller.Controller.class, "ControllerServer.controller", new Topics(cluster));
    }

    static Object replicaManager(Replacement.Cluster cluster, ShimNode node, LogManager logs) {
        return Stand.in(ReplicaManager.class, "BrokerServer.replicaManager", new Replicas(cluster, node, logs));
    }

    static LogManager logManager(ShimNode node) {
        return Stand.in(LogManager.class, "BrokerServer.logManager", new Logs(node));
    }

    public static final class Offsets {
        private final Replacement.Cluster cluster;

        Offsets(Replacement.Cluster cluster) {
            this.cluster = cluster;
        }

        public long lastAppliedOffset() {
            return cluster.metadata().endOffset() - 1;
        }

        public LogOffsetMetadata endOffset() {
            return new LogOffsetMetadata(cluster.metadata().endOffset());
        }
    }

    public static final class Raft {
        private final Replacement.Cluster cluster;

        Raft(Replacement.Cluster cluster) {
            this.cluster = cluster;
        }

        public RaftLog raftLog() {
            return Stand.in(RaftLog.class, "raftManager.raftLog", new Offsets(cluster));
        }

        public KafkaRaftClient<?> client() {
            return Stand.in(KafkaRaftClient.class, "raftManager.client", new Quorum(cluster));
        }

        public RaftLog replicatedLog() {
            return raftLog();
        }
    }

    /** The quorum of one. */
    public static final class Quorum {
        private final Replacement.Cluster cluster;

        Quorum(Replacement.Cluster cluster) {
            this.cluster = cluster;
        }

        public LeaderAndEpoch leaderAndEpoch() {
            return new LeaderAndEpoch(OptionalInt.of(cluster.nodeId()), cluster.metadata().epoch());
        }
    }

    public static final class Topics {
        private final Replacement.Cluster cluster;

        Topics(Replacement.Cluster cluster) {
            this.cluster = cluster;
        }

        public boolean isActive() {
            return true;
        }

        public CompletableFuture<Void> waitForReadyBrokers(int count) {
            return CompletableFuture.completedFuture(null);
        }

        public CompletableFuture<Map<String, Uuid>> findAllTopicIds(ControllerRequestContext context) {
            Map<String, Uuid> ids = new HashMap<>(cluster.metadata().image().topics().topicNameToIdView());
            return CompletableFuture.completedFuture(ids);
        }

        public CompletableFuture<Map<String, ResultOrError<Uuid>>> findTopicIds(
            ControllerRequestContext context, Collection<String> names
        ) {
            MetadataImage image = cluster.metadata().image();
            Map<String, ResultOrError<Uuid>> found = new HashMap<>();
            for (String name : names) {
                TopicImage topic = image.topics().getTopic(name);
                found.put(name, topic == null
                    ? ResultOrError.of(new ApiError(Errors.UNKNOWN_TOPIC_OR_PARTITION)) : ResultOrError.of(topic.id()));
            }
            return CompletableFuture.completedFuture(found);
        }

        public CompletableFuture<Map<Uuid, ResultOrError<String>>> findTopicNames(
            ControllerRequestContext context, Collection<Uuid> ids
        ) {
            MetadataImage image = cluster.metadata().image();
            Map<Uuid, ResultOrError<String>> found = new HashMap<>();
            for (Uuid id : ids) {
                TopicImage topic = image.topics().getTopic(id);
                found.put(id, topic == null
                    ? ResultOrError.of(new ApiError(Errors.UNKNOWN_TOPIC_ID)) : ResultOrError.of(topic.name()));
            }
            return CompletableFuture.completedFuture(found);
        }
    }

    public static final class Replicas {
        private final Replacement.Cluster cluster;
        private final ShimNode node;
        private final LogManager logs;

        Replicas(Replacement.Cluster cluster, ShimNode node, LogManager logs) {
            this.cluster = cluster;
            this.node = node;
            this.logs = logs;
        }

        public Option<?> onlinePartition(TopicPartition partition) {
            TopicImage topic = cluster.metadata().image().topics().getTopic(partition.topic());
            if (topic == null || !topic.partitions().containsKey(partition.partition())) {
                return None$.MODULE$;
            }
            return Option.apply(
                Stand.in(Partition.class, "ReplicaManager.onlinePartition", new Leader(node, partition)));
        }

        public Option<?> localLog(TopicPartition partition) {
            return logs.getLog(partition, false);
        }

        public LogManager logManager() {
            return logs;
        }
    }

    /** A partition of the only broker. */
    public static final class Leader {
        private final ShimNode node;
        private final TopicPartition partition;

        Leader(ShimNode node, TopicPartition partition) {
            this.node = node;
            this.partition = partition;
        }

        public boolean isLeader() {
            return true;
        }

        public int getLeaderEpoch() {
            return node.metadata().image().topics().getTopic(partition.topic()).partitions()
                .get(partition.partition()).leaderEpoch;
        }

        public Option<Object> leaderIdIfLocal() {
            return Option.apply(node.config().nodeId());
        }

        public Option<?> leaderLogIfLocal() {
            return Option.apply(Metadata.log(node, partition));
        }

        public Option<?> log() {
            return leaderLogIfLocal();
        }
    }

    private static UnifiedLog log(ShimNode node, TopicPartition partition) {
        return Stand.in(UnifiedLog.class, "UnifiedLog", new Log(node, partition));
    }

    private static Config described(ShimNode node, ConfigResource.Type type, String name) {
        ConfigResource resource = new ConfigResource(type, name);
        try {
            return node.admin().describeConfigs(List.of(resource)).values().get(resource).get();
        } catch (InterruptedException | ExecutionException error) {
            throw new IllegalStateException(error);
        }
    }

    /** What a client can ask of a log. */
    public static final class Log {
        private final ShimNode node;
        private final TopicPartition partition;

        Log(ShimNode node, TopicPartition partition) {
            this.node = node;
            this.partition = partition;
        }

        private long offset(OffsetSpec spec) {
            try {
                return node.admin().listOffsets(Map.of(partition, spec)).partitionResult(partition).get().offset();
            } catch (InterruptedException | ExecutionException error) {
                throw new IllegalStateException(error);
            }
        }

        public long logStartOffset() {
            return offset(OffsetSpec.earliest());
        }

        public long logEndOffset() {
            return offset(OffsetSpec.latest());
        }

        public long highWatermark() {
            return logEndOffset();
        }

        public TopicPartition topicPartition() {
            return partition;
        }

        public File dir() {
            return directory(node.config(), partition);
        }

        public String parentDir() {
            return dir().getParent();
        }

        /** What the broker describes as in force. */
        public LogConfig config() {
            Map<String, Object> options = new HashMap<>();
            for (ConfigEntry entry : Metadata.described(node, ConfigResource.Type.TOPIC, partition.topic()).entries()) {
                options.put(entry.name(), entry.value());
            }
            return new LogConfig(options);
        }

        public int numberOfSegments() {
            return dir().list((directory, name) -> name.endsWith(".log")).length;
        }
    }

    private static File directory(KafkaConfig config, TopicPartition partition) {
        for (String directory : config.logDirs()) {
            File found = new File(directory, partition.toString()).getAbsoluteFile();
            if (found.isDirectory()) {
                return found;
            }
        }
        return null;
    }

    public static final class Logs {
        private final ShimNode node;

        Logs(ShimNode node) {
            this.node = node;
        }

        /** What the broker describes as in force. */
        public ProducerStateManagerConfig producerStateManagerConfig() {
            Config config = Metadata.described(
                node, ConfigResource.Type.BROKER, String.valueOf(node.config().nodeId()));
            return new ProducerStateManagerConfig(
                Integer.parseInt(config.get("producer.id.expiration.ms").value()),
                Boolean.parseBoolean(config.get("transaction.partition.verification.enable").value()));
        }

        public Seq<File> liveLogDirs() {
            List<File> directories = node.config().logDirs().stream()
                .map(directory -> new File(directory).getAbsoluteFile()).toList();
            return CollectionConverters.asScala(directories).toSeq();
        }

        /** From the directory's `meta.properties`. */
        public Option<?> directoryId(String directory) {
            Properties stored = new Properties();
            try (InputStream in = new FileInputStream(new File(directory, "meta.properties"))) {
                stored.load(in);
            } catch (IOException error) {
                throw new UncheckedIOException(error);
            }
            return Option.apply(stored.getProperty("directory.id")).map(Uuid::fromString);
        }

        public Option<?> getLog(TopicPartition partition, boolean isFuture) {
            if (isFuture) {
                throw new NotApplicable("BrokerServer.logManager.getLog of a future log");
            }
            return directory(node.config(), partition) == null ? None$.MODULE$ : Option.apply(log(node, partition));
        }
    }
}
