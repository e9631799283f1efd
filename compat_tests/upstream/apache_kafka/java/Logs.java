package kafkashim;

import java.io.File;
import java.io.FileInputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.concurrent.ExecutionException;
import java.util.stream.Stream;

import kafka.log.LogManager;
import kafka.server.KafkaConfig;

import org.apache.kafka.clients.admin.AlterConfigOp;
import org.apache.kafka.clients.admin.Config;
import org.apache.kafka.clients.admin.ConfigEntry;
import org.apache.kafka.clients.admin.OffsetSpec;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.config.TopicConfig;
import org.apache.kafka.common.internals.Topic;
import org.apache.kafka.storage.internals.log.LogCleaner;
import org.apache.kafka.storage.internals.log.LogConfig;
import org.apache.kafka.storage.internals.log.LogSegment;
import org.apache.kafka.storage.internals.log.ProducerStateManagerConfig;
import org.apache.kafka.storage.internals.log.UnifiedLog;

import scala.None$;
import scala.Option;
import scala.collection.Seq;
import scala.jdk.javaapi.CollectionConverters;

/** Stand-ins for the logs: what a client can ask of them, what their files say. */
final class Logs {
    private Logs() {
    }

    static LogManager logManager(ShimNode node) {
        return Stand.in(LogManager.class, "BrokerServer.logManager", new Manager(node));
    }

    static UnifiedLog log(ShimNode node, TopicPartition partition) {
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
            for (ConfigEntry entry : Logs.described(node, ConfigResource.Type.TOPIC, partition.topic()).entries()) {
                options.put(entry.name(), entry.value());
            }
            return new LogConfig(options);
        }

        /** Has the broker write one more record, a commit of a group of ours, when the active segment is too old. */
        public LogSegment roll() {
            ConfigResource topic = new ConfigResource(ConfigResource.Type.TOPIC, partition.topic());
            ConfigEntry age = new ConfigEntry(TopicConfig.SEGMENT_MS_CONFIG, "1");
            if (!partition.topic().equals(Topic.GROUP_METADATA_TOPIC_NAME)) {
                throw new NotApplicable("UnifiedLog.roll");
            }
            int before = numberOfSegments();
            try {
                alter(topic, new AlterConfigOp(age, AlterConfigOp.OpType.SET));
                node.admin().alterConsumerGroupOffsets("harness", Map.of(partition, new OffsetAndMetadata(0)))
                    .all().get();
                alter(topic, new AlterConfigOp(age, AlterConfigOp.OpType.DELETE));
            } catch (InterruptedException | ExecutionException error) {
                throw new IllegalStateException(error);
            }
            if (numberOfSegments() <= before) {
                throw new IllegalStateException("the segment was not rolled");
            }
            return null;
        }

        private void alter(ConfigResource resource, AlterConfigOp change)
            throws InterruptedException, ExecutionException {
            node.admin().incrementalAlterConfigs(Map.of(resource, List.of(change))).all().get();
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

    public static final class Manager {
        private final ShimNode node;

        Manager(ShimNode node) {
            this.node = node;
        }

        /** What the broker describes as in force. */
        public ProducerStateManagerConfig producerStateManagerConfig() {
            Config config = Logs.described(
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

        public LogCleaner cleaner() {
            return Stand.in(LogCleaner.class, "BrokerServer.logManager.cleaner", new Cleaner(node));
        }

        public Option<?> getLog(TopicPartition partition, boolean isFuture) {
            if (isFuture) {
                throw new NotApplicable("BrokerServer.logManager.getLog of a future log");
            }
            return directory(node.config(), partition) == null ? None$.MODULE$ : Option.apply(log(node, partition));
        }
    }

    /** How far the logs are cleaned: the broker's checkpoint says so. */
    public static final class Cleaner {
        private final ShimNode node;

        Cleaner(ShimNode node) {
            this.node = node;
        }

        public boolean awaitCleaned(TopicPartition partition, long offset, long maxWaitMs) throws InterruptedException {
            long deadline = System.currentTimeMillis() + maxWaitMs;
            while (cleanedTo(partition) < offset) {
                if (System.currentTimeMillis() > deadline) {
                    return false;
                }
                Thread.sleep(100);
            }
            return true;
        }

        private long cleanedTo(TopicPartition partition) {
            File checkpoint = new File(directory(node.config(), partition).getParentFile(), "cleaner-offset-checkpoint");
            try (Stream<String> lines = checkpoint.exists() ? Files.lines(checkpoint.toPath()) : Stream.empty()) {
                return lines.map(line -> line.split(" "))
                    .filter(parts -> parts.length == 3 && parts[0].equals(partition.topic())
                        && parts[1].equals(String.valueOf(partition.partition())))
                    .mapToLong(parts -> Long.parseLong(parts[2])).findFirst().orElse(0);
            } catch (IOException error) {
                throw new UncheckedIOException(error);
            }
        }
    }
}
