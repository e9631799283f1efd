import static org.junit.jupiter.api.Assertions.assertEquals;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;

class OrdersTest {
    private static Process broker;
    private static String bootstrap;

    @BeforeAll
    static void startBroker() throws IOException {
        String name = Optional.ofNullable(System.getenv("KAFKA_SHIM")).orElse("kafka-shim");
        broker = new ProcessBuilder(name, "serve", "--memory", "--listen", "127.0.0.1:0", "--log-level", "WARNING")
                .redirectError(ProcessBuilder.Redirect.INHERIT)
                .start();
        // ready PLAINTEXT://127.0.0.1:41234 node=1 cluster=... data=...
        String line = new BufferedReader(new InputStreamReader(broker.getInputStream())).readLine();
        bootstrap = line.split(" ")[1].replace("PLAINTEXT://", "");
    }

    @AfterAll
    static void stopBroker() throws InterruptedException {
        broker.destroy(); // SIGTERM
        broker.waitFor();
    }

    @Test
    void aRecordArrives() throws Exception {
        Map<String, Object> settings = Map.of("bootstrap.servers", bootstrap);
        try (var producer = new KafkaProducer<>(settings, new StringSerializer(), new StringSerializer())) {
            producer.send(new ProducerRecord<>("orders", "one")).get();
        }
        Map<String, Object> reading =
                Map.of("bootstrap.servers", bootstrap, "group.id", "billing", "auto.offset.reset", "earliest");
        try (var consumer = new KafkaConsumer<>(reading, new StringDeserializer(), new StringDeserializer())) {
            consumer.subscribe(List.of("orders"));
            long deadline = System.nanoTime() + Duration.ofSeconds(30).toNanos();
            var records = consumer.poll(Duration.ofSeconds(1));
            while (records.isEmpty() && System.nanoTime() < deadline) {
                records = consumer.poll(Duration.ofSeconds(1));
            }
            assertEquals("one", records.iterator().next().value());
        }
    }
}
