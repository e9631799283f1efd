package kafkashim;

import java.util.Collection;
import java.util.HashMap;
import java.util.Map;
import java.util.OptionalInt;
import java.util.concurrent.CompletableFuture;

import kafka.cluster.Partition;
import kafka.log.LogManager;
import kafka.raft.KafkaRaftManager;
import kafka.server.ReplicaManager;

import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.Uuid;
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

import scala.None$;
import scala.Option;

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
            return Option.apply(Logs.log(node, partition));
        }

        public Option<?> log() {
            return leaderLogIfLocal();
        }
    }
}
