import java.time.Duration;
import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeSet;
import java.util.concurrent.CountDownLatch;
import java.util.regex.Pattern;

import org.apache.kafka.clients.consumer.ConsumerRebalanceListener;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.SubscriptionPattern;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.WakeupException;
import org.apache.kafka.common.serialization.StringDeserializer;

/**
 * One Java consumer, told as kafka_shim.compat.groups.member tells it: java|java-consumer BOOTSTRAP GROUP TOPIC key=value...
 */
public final class GroupMember {
    public static void main(String[] words) throws Exception {
        Map<String, String> options = new HashMap<>();
        for (int i = 4; i < words.length; i++) {
            String[] pair = words[i].split("=", 2);
            options.put(pair[0], pair[1]);
        }
        boolean classic = words[0].equals("java");
        Map<String, Object> settings = new HashMap<>();
        settings.put("bootstrap.servers", words[1]);
        settings.put("group.id", words[2]);
        settings.put("group.protocol", classic ? "classic" : "consumer");
        settings.put("auto.offset.reset", "earliest");
        settings.put("enable.auto.commit", "false");
        settings.put("metadata.max.age.ms", "500");
        if (classic) {
            settings.put("session.timeout.ms", options.getOrDefault("session", "6000"));
            settings.put("heartbeat.interval.ms", "500");
            Map<String, String> assignors = Map.of(
                "range", "RangeAssignor", "roundrobin", "RoundRobinAssignor", "sticky", "StickyAssignor",
                "cooperative-sticky", "CooperativeStickyAssignor");
            settings.put("partition.assignment.strategy",
                "org.apache.kafka.clients.consumer." + assignors.get(options.getOrDefault("assignor", "range")));
        } else if (options.containsKey("assignor")) {
            settings.put("group.remote.assignor", options.get("assignor"));
        }
        if (options.containsKey("instance")) settings.put("group.instance.id", options.get("instance"));
        KafkaConsumer<String, String> consumer =
            new KafkaConsumer<>(settings, new StringDeserializer(), new StringDeserializer());
        CountDownLatch closed = new CountDownLatch(1);
        Runtime.getRuntime().addShutdownHook(new Thread(() -> {
            consumer.wakeup();
            try {
                closed.await();
            } catch (InterruptedException ignored) {
                Thread.currentThread().interrupt();
            }
        }));
        say("started");
        ConsumerRebalanceListener listener = new ConsumerRebalanceListener() {
            @Override
            public void onPartitionsRevoked(Collection<TopicPartition> revoked) { }

            @Override
            public void onPartitionsAssigned(Collection<TopicPartition> assigned) {
                TreeSet<String> held = new TreeSet<>();
                for (TopicPartition each : consumer.assignment()) held.add(each.topic() + ":" + each.partition());
                say("assigned " + String.join(" ", held));
            }
        };
        // A name that begins with ^ is a pattern; the consumer protocol lets the broker match it.
        if (!words[3].startsWith("^")) consumer.subscribe(List.of(words[3]), listener);
        else if (classic) consumer.subscribe(Pattern.compile(words[3]), listener);
        else consumer.subscribe(new SubscriptionPattern(words[3]), listener);
        try {
            while (true) {
                ConsumerRecords<String, String> found = consumer.poll(Duration.ofMillis(100));
                for (ConsumerRecord<String, String> each : found) {
                    say("record " + each.topic() + " " + each.partition() + " " + each.offset() + " " + each.value());
                }
                if (!found.isEmpty()) {
                    try {
                        consumer.commitSync();
                        say("committed");
                    } catch (WakeupException wakeup) {
                        throw wakeup;
                    } catch (RuntimeException error) {
                        say("error " + error.getClass().getSimpleName());
                    }
                }
            }
        } catch (WakeupException wakeup) {
            consumer.close();
            say("closed");
        } finally {
            closed.countDown();
        }
    }

    private static void say(String line) {
        System.out.println(line);
        System.out.flush();
    }
}
