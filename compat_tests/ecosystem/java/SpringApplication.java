import java.time.Duration;
import java.util.*;
import java.util.concurrent.*;
import java.util.concurrent.atomic.*;
import org.apache.kafka.clients.admin.*;
import org.apache.kafka.clients.consumer.*;
import org.apache.kafka.clients.producer.*;
import org.apache.kafka.common.*;
import org.apache.kafka.common.serialization.*;
import org.springframework.kafka.core.*;
import org.springframework.kafka.listener.*;
import org.springframework.kafka.transaction.KafkaTransactionManager;
import org.springframework.transaction.support.TransactionTemplate;
import org.springframework.util.backoff.FixedBackOff;

/**
 * What an application of Spring Kafka does: a listener container copies a topic inside transactions of a
 * KafkaTransactionManager, and fails twice on the way. Prints one line of findings for each question.
 */
public class SpringApplication {
    static final int COUNT = 500;

    public static void main(String[] arguments) throws Exception {
        String bootstrap = arguments[0];
        Map<String, Object> common = Map.of("bootstrap.servers", bootstrap);
        try (Admin admin = Admin.create(common)) {
            admin.createTopics(List.of(new NewTopic("spring-in", 3, (short) 1), new NewTopic("spring-out", 3, (short) 1)))
                .all().get();
        }
        Map<String, Object> producing = new HashMap<>(common);
        producing.put("key.serializer", StringSerializer.class);
        producing.put("value.serializer", StringSerializer.class);
        var producers = new DefaultKafkaProducerFactory<String, String>(producing);
        producers.setTransactionIdPrefix("spring-");
        var template = new KafkaTemplate<>(producers);
        var manager = new KafkaTransactionManager<String, String>(producers);

        // A transaction that is rolled back, and one that is not.
        var transactions = new TransactionTemplate(manager);
        try {
            transactions.executeWithoutResult(status -> {
                for (int number = 0; number < COUNT; number++) template.send("spring-in", "k" + number, "rolled back");
                throw new IllegalStateException("on purpose");
            });
        } catch (IllegalStateException expected) {
            System.out.println("rollback: " + expected.getMessage());
        }
        transactions.executeWithoutResult(status -> {
            for (int number = 0; number < COUNT; number++) template.send("spring-in", "k" + number, "v" + number);
        });

        Map<String, Object> consuming = new HashMap<>(common);
        consuming.put("group.id", "spring-group");
        consuming.put("isolation.level", "read_committed");
        consuming.put("auto.offset.reset", "earliest");
        consuming.put("enable.auto.commit", false);
        consuming.put("key.deserializer", StringDeserializer.class);
        consuming.put("value.deserializer", StringDeserializer.class);
        var properties = new ContainerProperties("spring-in");
        properties.setKafkaAwareTransactionManager(manager);
        properties.setPollTimeout(200);
        var failures = new ConcurrentHashMap<String, AtomicInteger>();
        var done = ConcurrentHashMap.<String>newKeySet();
        var enough = new CountDownLatch(COUNT);
        properties.setMessageListener((MessageListener<String, String>) record -> {
            template.send("spring-out", record.key(), record.value() + " copied");
            boolean hasToFail = record.key().equals("k100") || record.key().equals("k300");
            if (hasToFail && failures.computeIfAbsent(record.key(), key -> new AtomicInteger()).incrementAndGet() < 3) {
                template.flush();
                throw new IllegalStateException("on purpose");
            }
            if (done.add(record.key())) enough.countDown();
        });
        var container = new ConcurrentMessageListenerContainer<>(
            new DefaultKafkaConsumerFactory<String, String>(consuming), properties);
        container.setConcurrency(2);
        container.setAfterRollbackProcessor(new DefaultAfterRollbackProcessor<String, String>(new FixedBackOff(0, 5)));
        container.start();
        System.out.println("all handled: " + enough.await(60, TimeUnit.SECONDS));
        container.stop();
        System.out.println("attempts: " + new TreeMap<>(failures));

        var found = new TreeMap<String, List<String>>();
        var uncommitted = new AtomicInteger();
        for (String level : List.of("read_committed", "read_uncommitted")) {
            Map<String, Object> reading = new HashMap<>(consuming);
            reading.put("isolation.level", level);
            try (var reader = new KafkaConsumer<String, String>(reading)) {
                var parts = reader.partitionsFor("spring-out").stream()
                    .map(info -> new TopicPartition(info.topic(), info.partition())).toList();
                reader.assign(parts);
                reader.seekToBeginning(parts);
                var ends = reader.endOffsets(parts);
                while (parts.stream().anyMatch(part -> reader.position(part) < ends.get(part)))
                    for (var record : reader.poll(Duration.ofMillis(200)))
                        if (level.equals("read_committed"))
                            found.computeIfAbsent(record.key(), key -> new ArrayList<>()).add(record.value());
                        else uncommitted.incrementAndGet();
            }
        }
        long once = found.entrySet().stream()
            .filter(each -> each.getValue().equals(List.of("v" + each.getKey().substring(1) + " copied"))).count();
        System.out.println("copied once: " + once + " of " + found.size());
        System.out.println("attempts left aborted records: " + (uncommitted.get() > COUNT));
        try (Admin admin = Admin.create(common)) {
            var offsets = admin.listConsumerGroupOffsets("spring-group").partitionsToOffsetAndMetadata().get();
            System.out.println("committed partitions: " + new TreeSet<>(offsets.keySet().stream().map(TopicPartition::partition).toList()));
            System.out.println("lag: " + lag(admin, offsets));
            System.out.println("group: " + admin.describeConsumerGroups(List.of("spring-group")).all().get().get("spring-group").groupState());
        }
        producers.destroy();
    }

    /** Records behind the committed offsets, without markers: none of them is a record. */
    static long lag(Admin admin, Map<TopicPartition, OffsetAndMetadata> offsets) throws Exception {
        long records = 0;
        Map<String, Object> reading = Map.of("bootstrap.servers", bootstrap(admin), "isolation.level", "read_committed",
            "key.deserializer", StringDeserializer.class, "value.deserializer", StringDeserializer.class);
        try (var reader = new KafkaConsumer<String, String>(reading)) {
            reader.assign(offsets.keySet());
            offsets.forEach((part, at) -> reader.seek(part, at.offset()));
            var ends = reader.endOffsets(offsets.keySet());
            while (offsets.keySet().stream().anyMatch(part -> reader.position(part) < ends.get(part)))
                records += reader.poll(Duration.ofMillis(200)).count();
        }
        return records;
    }

    static String bootstrap(Admin admin) throws Exception {
        Node node = admin.describeCluster().nodes().get().iterator().next();
        return node.host() + ":" + node.port();
    }
}
