import java.time.Duration;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;

import org.apache.kafka.clients.consumer.AcknowledgeType;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.KafkaShareConsumer;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.TopicIdPartition;
import org.apache.kafka.common.serialization.StringDeserializer;

/**
 * One share consumer: implicit|explicit BOOTSTRAP GROUP TOPIC. Explicitly, a value says what becomes of its record: one that begins with
 * "release" is released at its first delivery, with "reject" rejected, with "hold" never acknowledged, all others are accepted.
 */
public final class ShareMember {
    public static void main(String[] words) throws Exception {
        boolean explicit = words[0].equals("explicit");
        Map<String, Object> settings = new HashMap<>();
        settings.put("bootstrap.servers", words[1]);
        settings.put("group.id", words[2]);
        settings.put("share.acknowledgement.mode", words[0]);
        settings.put("metadata.max.age.ms", "500");
        KafkaShareConsumer<String, String> consumer =
            new KafkaShareConsumer<>(settings, new StringDeserializer(), new StringDeserializer());
        consumer.subscribe(List.of(words[3]));
        say("started");
        while (true) {
            ConsumerRecords<String, String> found = consumer.poll(Duration.ofMillis(200));
            boolean held = false;
            for (ConsumerRecord<String, String> each : found) {
                short count = each.deliveryCount().orElse((short) -1);
                say("record " + each.topic() + " " + each.partition() + " " + each.offset() + " " + count + " " + each.value());
                if (!explicit) continue;
                String value = each.value();
                if (value.startsWith("hold") && count == 1) held = true;
                else if (value.startsWith("release") && count == 1) consumer.acknowledge(each, AcknowledgeType.RELEASE);
                else if (value.startsWith("reject")) consumer.acknowledge(each, AcknowledgeType.REJECT);
                else consumer.acknowledge(each);
            }
            if (found.isEmpty()) continue;
            if (held) {
                say("holding");
                Thread.sleep(Long.MAX_VALUE);
            }
            for (Map.Entry<TopicIdPartition, Optional<KafkaException>> each : consumer.commitSync().entrySet()) {
                say(each.getValue().isEmpty() ? "committed" : "error " + each.getValue().get().getClass().getSimpleName());
            }
        }
    }

    private static void say(String line) {
        System.out.println(line);
        System.out.flush();
    }
}
