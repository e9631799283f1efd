import java.io.*;
import java.nio.charset.StandardCharsets;
import java.nio.file.*;
import java.time.Duration;
import java.util.*;
import org.apache.kafka.clients.consumer.*;
import org.apache.kafka.clients.producer.*;
import org.apache.kafka.common.serialization.*;

/** One transaction and one group for each line of stdin: a topic and a file of client properties. The committed values that the group read are one line of stdout each. */
public final class SecuredClient {
    public static void main(String[] args) throws Exception {
        var lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line; (line = lines.readLine()) != null; ) {
            String[] words = line.split("\t");
            try {
                Properties given = new Properties();
                try (var reader = Files.newBufferedReader(Path.of(words[1]))) {
                    given.load(reader);
                }
                write(words[0], given);
                System.out.println(String.join(" ", read(words[0], given)));
            } catch (Exception failed) {
                System.out.println("failed: " + failed + " " + failed.getCause());
            }
        }
    }

    private static void write(String topic, Properties given) throws Exception {
        Properties settings = new Properties();
        settings.putAll(given);
        settings.put("transactional.id", "java-" + topic);
        try (var producer = new KafkaProducer<>(settings, new StringSerializer(), new StringSerializer())) {
            producer.initTransactions();
            for (boolean commits : new boolean[] {false, true}) {
                producer.beginTransaction();
                for (int number = 0; number < 5; number++) producer.send(new ProducerRecord<>(topic, commits + "-" + number)).get();
                if (commits) producer.commitTransaction();
                else producer.abortTransaction();
            }
        }
    }

    private static List<String> read(String topic, Properties given) {
        Properties settings = new Properties();
        settings.putAll(given);
        settings.put("group.id", "java-" + topic);
        settings.put("isolation.level", "read_committed");
        settings.put("auto.offset.reset", "earliest");
        settings.put("enable.auto.commit", "false");
        List<String> values = new ArrayList<>();
        try (var consumer = new KafkaConsumer<>(settings, new StringDeserializer(), new StringDeserializer())) {
            consumer.subscribe(List.of(topic));
            long deadline = System.nanoTime() + 90_000_000_000L;
            while (values.size() < 5 && System.nanoTime() < deadline)
                for (var record : consumer.poll(Duration.ofMillis(500))) values.add(record.value());
            consumer.commitSync();
        }
        return values;
    }
}
