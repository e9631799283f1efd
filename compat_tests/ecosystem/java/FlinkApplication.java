import java.time.Duration;
import java.util.*;
import java.util.concurrent.atomic.*;
import org.apache.flink.api.common.eventtime.WatermarkStrategy;
import org.apache.flink.api.common.functions.RichMapFunction;
import org.apache.flink.api.common.serialization.SimpleStringSchema;
import org.apache.flink.api.common.state.CheckpointListener;
import org.apache.flink.configuration.*;
import org.apache.flink.connector.base.DeliveryGuarantee;
import org.apache.flink.connector.kafka.sink.*;
import org.apache.flink.connector.kafka.source.KafkaSource;
import org.apache.flink.connector.kafka.source.enumerator.initializer.OffsetsInitializer;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.kafka.clients.admin.*;
import org.apache.kafka.clients.consumer.*;
import org.apache.kafka.clients.producer.*;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.*;

/**
 * A job on a local mini cluster of Flink: Kafka's source to the exactly-once sink of two-phase commit, with one failure
 * while it works and one between its two phases.
 */
public class FlinkApplication {
    static final int COUNT = 3000;
    static final AtomicBoolean failedAtWork = new AtomicBoolean();
    static final AtomicBoolean failedBetween = new AtomicBoolean();
    static final AtomicInteger checkpoints = new AtomicInteger();

    /** Fails once at a record after the first checkpoint, and once when the third is complete: what it prepared is then
     * to be committed by the restarted job. */
    public static class Copy extends RichMapFunction<String, String> implements CheckpointListener {
        @Override public String map(String value) throws Exception {
            Thread.sleep(1);
            if (checkpoints.get() >= 1 && failedAtWork.compareAndSet(false, true)) throw new Exception("at work, on purpose");
            return value + " copied";
        }
        @Override public void notifyCheckpointComplete(long number) throws Exception {
            if (checkpoints.incrementAndGet() >= 3 && failedBetween.compareAndSet(false, true))
                throw new Exception("between the phases, on purpose");
        }
    }

    public static void main(String[] arguments) throws Exception {
        String bootstrap = arguments[0];
        Map<String, Object> common = Map.of("bootstrap.servers", bootstrap);
        try (Admin admin = Admin.create(common)) {
            admin.createTopics(List.of(new NewTopic("flink-in", 2, (short) 1), new NewTopic("flink-out", 2, (short) 1)))
                .all().get();
        }
        try (var producer = new KafkaProducer<String, String>(common, new StringSerializer(), new StringSerializer())) {
            for (int number = 0; number < COUNT; number++)
                producer.send(new ProducerRecord<>("flink-in", number % 2, null, "v" + number));
        }
        var settings = new Configuration();
        settings.set(RestartStrategyOptions.RESTART_STRATEGY, "fixed-delay");
        settings.set(RestartStrategyOptions.RESTART_STRATEGY_FIXED_DELAY_ATTEMPTS, 10);
        settings.set(RestartStrategyOptions.RESTART_STRATEGY_FIXED_DELAY_DELAY, Duration.ofMillis(100));
        var environment = StreamExecutionEnvironment.createLocalEnvironment(1, settings);
        environment.enableCheckpointing(300);
        var source = KafkaSource.<String>builder().setBootstrapServers(bootstrap).setTopics("flink-in").setGroupId("flink-group")
            .setStartingOffsets(OffsetsInitializer.earliest()).setBounded(OffsetsInitializer.latest())
            .setValueOnlyDeserializer(new SimpleStringSchema()).build();
        var sink = KafkaSink.<String>builder().setBootstrapServers(bootstrap)
            .setDeliveryGuarantee(DeliveryGuarantee.EXACTLY_ONCE).setTransactionalIdPrefix("flink")
            .setProperty("transaction.timeout.ms", "60000")
            .setRecordSerializer(KafkaRecordSerializationSchema.builder().setTopic("flink-out")
                .setValueSerializationSchema(new SimpleStringSchema()).build()).build();
        environment.fromSource(source, WatermarkStrategy.noWatermarks(), "orders").map(new Copy()).sinkTo(sink);
        environment.execute();
        System.out.println("failed at work: " + failedAtWork + ", between the phases: " + failedBetween);

        // Whether an attempt that was aborted left records depends on when it failed, so readers of those are not asked.
        Map<String, Object> reading = Map.of("bootstrap.servers", bootstrap, "isolation.level", "read_committed");
        var found = new HashMap<String, Integer>();
        try (var reader = new KafkaConsumer<String, String>(reading, new StringDeserializer(), new StringDeserializer())) {
            var parts = List.of(new TopicPartition("flink-out", 0), new TopicPartition("flink-out", 1));
            reader.assign(parts);
            reader.seekToBeginning(parts);
            var ends = reader.endOffsets(parts);
            while (parts.stream().anyMatch(part -> reader.position(part) < ends.get(part)))
                for (var record : reader.poll(Duration.ofMillis(200))) found.merge(record.value(), 1, Integer::sum);
        }
        boolean isOnce = found.size() == COUNT && found.values().stream().allMatch(times -> times == 1);
        System.out.println("committed: " + found.size() + " values, each once: " + isOnce);
        try (Admin admin = Admin.create(common)) {
            var offsets = admin.listConsumerGroupOffsets("flink-group").partitionsToOffsetAndMetadata().get();
            System.out.println("committed partitions: " + offsets.size());
            var left = admin.listTransactions().all().get().stream()
                .filter(each -> each.state() != TransactionState.COMPLETE_COMMIT && each.state() != TransactionState.COMPLETE_ABORT
                    && each.state() != TransactionState.EMPTY).toList();
            System.out.println("transactions left open: " + left.size());
        }
    }
}
