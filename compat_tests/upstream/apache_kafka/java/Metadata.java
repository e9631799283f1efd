package kafkashim;

import java.io.File;
import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;

import kafka.log.LogManager;
import kafka.raft.KafkaRaftManager;
import kafka.server.KafkaConfig;
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
import org.apache.kafka.raft.LogOffsetMetadata;
import org.apache.kafka.raft.RaftLog;

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

    static Object replicaManager(Replacement.Cluster cluster, KafkaConfig config) {
        return Stand.in(ReplicaManager.class, "BrokerServer.replicaManager", new Replicas(cluster));
    }

    static Object logManager(Replacement.Cluster cluster, KafkaConfig config) {
        return Stand.in(LogManager.class, "BrokerServer.logManager", new Logs(config));
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

        public RaftLog replicatedLog() {
            return raftLog();
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

        Replicas(Replacement.Cluster cluster) {
            this.cluster = cluster;
        }

        public Option<?> onlinePartition(TopicPartition partition) {
            TopicImage topic = cluster.metadata().image().topics().getTopic(partition.topic());
            if (topic == null || !topic.partitions().containsKey(partition.partition())) {
                return None$.MODULE$;
            }
            return Option.apply(
                Stand.in(kafka.cluster.Partition.class, "ReplicaManager.onlinePartition", new Leader()));
        }
    }

    /** A partition of the only broker. */
    public static final class Leader {
        public boolean isLeader() {
            return true;
        }

        public Option<?> leaderLogIfLocal() {
            return Option.apply(Stand.in(
                org.apache.kafka.storage.internals.log.UnifiedLog.class, "Partition.leaderLogIfLocal", new Object()));
        }
    }

    public static final class Logs {
        private final KafkaConfig config;

        Logs(KafkaConfig config) {
            this.config = config;
        }

        public Seq<File> liveLogDirs() {
            List<File> directories = config.logDirs().stream().map(File::new).toList();
            return CollectionConverters.asScala(directories).toSeq();
        }

        public Option<?> getLog(TopicPartition partition, boolean isFuture) {
            if (isFuture) {
                throw new NotApplicable("BrokerServer.logManager.getLog of a future log");
            }
            for (String directory : config.logDirs()) {
                if (new File(directory, partition.toString()).isDirectory()) {
                    return Option.apply(Stand.in(org.apache.kafka.storage.internals.log.UnifiedLog.class,
                        "LogManager.getLog", new Object()));
                }
            }
            return None$.MODULE$;
        }
    }
}
