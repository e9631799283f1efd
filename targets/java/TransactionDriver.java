import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.lang.reflect.Field;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Future;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicReference;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.InvalidTxnStateException;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;

/**
 * Java producers and consumers on a string: a command a line on stdin, an answer a line on stdout, tabs between words.
 * Answers are "ok" and words, or "error", the simple class name of the exception, and its message. One line is one
 * call of the client, so that a test can stop between any two.
 */
public class TransactionDriver {
    private final String bootstrap;
    private final Map<String, KafkaProducer<String, String>> producers = new ConcurrentHashMap<>();
    private final Map<String, KafkaConsumer<String, String>> consumers = new HashMap<>();
    private final Map<String, List<Future<RecordMetadata>>> sent = new ConcurrentHashMap<>();

    private TransactionDriver(String bootstrap) {
        this.bootstrap = bootstrap;
    }

    public static void main(String[] args) throws Exception {
        PrintStream out = new PrintStream(System.out, true, StandardCharsets.UTF_8);
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        TransactionDriver driver = new TransactionDriver(args[0]);
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            String answer;
            try {
                answer = "ok\t" + driver.run(line.split("\t", -1));
            } catch (Throwable error) {
                Throwable cause = error instanceof ExecutionException ? error.getCause() : error;
                answer = "error\t" + cause.getClass().getSimpleName() + "\t" + cause.getMessage();
            }
            out.println(answer.replace('\n', ' '));
        }
        driver.producers.values().forEach(producer -> producer.close(Duration.ZERO));
        driver.consumers.values().forEach(consumer -> consumer.close());
    }

    private String run(String[] words) throws Exception {
        String name = words.length > 1 ? words[1] : "";
        switch (words[0]) {
            case "producer":
                makeProducer(name, options(words, 2));
                return "";
            case "init":
                producers.get(name).initTransactions();
                return "";
            case "begin":
                producers.get(name).beginTransaction();
                return "";
            case "send": // name topic partition key value: waits for nothing
                sent.get(name).add(producers.get(name).send(
                    new ProducerRecord<>(words[2], Integer.parseInt(words[3]), words[4], words[5])));
                return "";
            case "flush": // offsets of all that was sent since the last flush
                return flush(name);
            case "offsets": // name group topic partition offset
                producers.get(name).sendOffsetsToTransaction(
                    Map.of(new TopicPartition(words[3], Integer.parseInt(words[4])),
                        new OffsetAndMetadata(Long.parseLong(words[5]))),
                    new org.apache.kafka.clients.consumer.ConsumerGroupMetadata(words[2]));
                return "";
            case "offsets-of": // name consumer: its positions, with its group metadata
                return sendPositions(name, words[2]);
            case "commit":
                producers.get(name).commitTransaction();
                return "";
            case "abort": // what failed in it is forgotten with it
                sent.get(name).clear();
                producers.get(name).abortTransaction();
                return "";
            case "state":
                return state(producers.get(name));
            case "close-producer":
                sent.remove(name);
                producers.remove(name).close(Duration.ZERO);
                return "";
            case "consumer":
                consumers.put(name, new KafkaConsumer<>(options(words, 2), new StringDeserializer(), new StringDeserializer()));
                return "";
            case "subscribe":
                consumers.get(name).subscribe(Arrays.asList(words[2].split(",")));
                return "";
            case "assign": // name topic partition: from the beginning
                TopicPartition partition = new TopicPartition(words[2], Integer.parseInt(words[3]));
                consumers.get(name).assign(List.of(partition));
                consumers.get(name).seekToBeginning(List.of(partition));
                return "";
            case "poll":
                return poll(consumers.get(name), Long.parseLong(words[2]));
            case "assignment": // partitions of whatever topic
                return words(consumers.get(name).assignment().stream().map(TopicPartition::partition).toList());
            case "commit-consumer":
                consumers.get(name).commitSync();
                return "";
            case "committed": // name topic partition
                TopicPartition asked = new TopicPartition(words[2], Integer.parseInt(words[3]));
                OffsetAndMetadata committed = consumers.get(name).committed(java.util.Set.of(asked)).get(asked);
                return committed == null ? "none" : String.valueOf(committed.offset());
            case "close-consumer":
                consumers.remove(name).close();
                return "";
            case "bench": // prefix producers topic partitions transactions records
                return bench(name, Integer.parseInt(words[2]), words[3], Integer.parseInt(words[4]),
                    Integer.parseInt(words[5]), Integer.parseInt(words[6]));
            default:
                throw new IllegalArgumentException(words[0]);
        }
    }

    private static String words(List<Integer> numbers) {
        StringBuilder words = new StringBuilder();
        for (int number : numbers) {
            words.append(words.length() == 0 ? "" : "\t").append(number);
        }
        return words.toString();
    }

    private Map<String, Object> options(String[] words, int from) {
        Map<String, Object> options = new HashMap<>();
        options.put("bootstrap.servers", bootstrap);
        for (int i = from; i < words.length; i++) {
            int equals = words[i].indexOf('=');
            options.put(words[i].substring(0, equals), words[i].substring(equals + 1));
        }
        return options;
    }

    private String flush(String name) throws Exception {
        producers.get(name).flush();
        StringBuilder offsets = new StringBuilder();
        List<Future<RecordMetadata>> futures = new ArrayList<>(sent.get(name));
        sent.get(name).clear();
        for (Future<RecordMetadata> future : futures) {
            offsets.append(offsets.length() == 0 ? "" : "\t").append(future.get().offset());
        }
        return offsets.toString();
    }

    private String sendPositions(String producer, String consumer) {
        KafkaConsumer<String, String> from = consumers.get(consumer);
        Map<TopicPartition, OffsetAndMetadata> positions = new HashMap<>();
        for (TopicPartition partition : from.assignment()) {
            positions.put(partition, new OffsetAndMetadata(from.position(partition)));
        }
        producers.get(producer).sendOffsetsToTransaction(positions, from.groupMetadata());
        return "";
    }

    private static String poll(KafkaConsumer<String, String> consumer, long timeoutMs) {
        StringBuilder records = new StringBuilder();
        for (ConsumerRecord<String, String> record : consumer.poll(Duration.ofMillis(timeoutMs))) {
            records.append(records.length() == 0 ? "" : "\t");
            records.append(record.topic()).append('-').append(record.partition()).append('@').append(record.offset());
            records.append('=').append(record.value());
        }
        return records.toString();
    }

    /**
     * Commits per second, and how many transactions were done again with a new producer. Each producer has a thread and
     * commits its share; records go around the partitions. Producers are kept.
     */
    private String bench(String prefix, int count, String topic, int partitions, int transactions, int records)
            throws Exception {
        List<Thread> threads = new ArrayList<>();
        AtomicReference<RuntimeException> failure = new AtomicReference<>();
        AtomicInteger again = new AtomicInteger();
        String value = "v".repeat(100);
        for (int p = 0; p < count; p++) {
            String id = prefix + "-" + p;
            if (!producers.containsKey(id)) {
                makeBenchProducer(id);
            }
            threads.add(new Thread(() -> {
                try {
                    for (int done = 0; done < transactions / count;) {
                        KafkaProducer<String, String> producer = producers.get(id);
                        try {
                            producer.beginTransaction();
                            for (int r = 0; r < records; r++) {
                                producer.send(new ProducerRecord<>(topic, r % partitions, "k", value));
                            }
                            producer.commitTransaction();
                            done++;
                        } catch (InvalidTxnStateException error) {
                            // The client (4.3.1) looks whether records are waiting before it looks for the end of the
                            // transaction: one time in 30,000 the broker gets EndTxn without them. An application makes
                            // a new producer then, and so does the bench, on its own time.
                            if (again.incrementAndGet() > 1 + transactions / 1000) {
                                throw error;
                            }
                            producer.close(Duration.ZERO);
                            makeBenchProducer(id);
                        }
                    }
                } catch (RuntimeException error) {
                    failure.compareAndSet(null, error);
                }
            }));
        }
        long started = System.nanoTime();
        for (Thread thread : threads) {
            thread.start();
        }
        for (Thread thread : threads) {
            thread.join();
        }
        if (failure.get() != null) {
            throw failure.get();
        }
        return transactions / count * count * 1e9 / (System.nanoTime() - started) + "\t" + again;
    }

    private void makeBenchProducer(String id) {
        makeProducer(id, options(new String[] {"transactional.id=" + id, "linger.ms=0"}, 0));
        producers.get(id).initTransactions();
    }

    private void makeProducer(String name, Map<String, Object> options) {
        producers.put(name, new KafkaProducer<>(options, new StringSerializer(), new StringSerializer()));
        sent.put(name, new ArrayList<>());
    }

    private static String state(KafkaProducer<String, String> producer) throws ReflectiveOperationException {
        Field manager = KafkaProducer.class.getDeclaredField("transactionManager");
        manager.setAccessible(true);
        Object transactions = manager.get(producer);
        Field state = transactions.getClass().getDeclaredField("currentState");
        state.setAccessible(true);
        return String.valueOf(state.get(transactions));
    }
}
