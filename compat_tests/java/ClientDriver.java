import java.io.*;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.*;
import java.util.concurrent.Future;
import org.apache.kafka.clients.consumer.*;
import org.apache.kafka.clients.producer.*;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.header.internals.RecordHeader;
import org.apache.kafka.common.serialization.*;

/** Writes and reads records with the Java clients; commands come on stdin and answers leave on stdout, both in a small binary form. */
public final class ClientDriver {
    private static final DataInputStream IN = new DataInputStream(new BufferedInputStream(System.in, 1 << 16));
    private static final DataOutputStream OUT = new DataOutputStream(new BufferedOutputStream(System.out, 1 << 16));

    public static void main(String[] args) throws Exception {
        while (true) {
            String command;
            try {
                command = IN.readUTF();
            } catch (EOFException end) {
                return;
            }
            Map<String, Object> settings = settings();
            String topic = IN.readUTF();
            ByteArrayOutputStream answer = new ByteArrayOutputStream();
            DataOutputStream out = new DataOutputStream(answer);
            String error = "";
            try {
                if (command.equals("write")) write(settings, topic);
                else read(settings, topic, IN.readInt(), IN.readInt(), out);
            } catch (Exception failed) {
                error = failed.toString();
            }
            OUT.writeUTF(error);
            OUT.writeInt(answer.size());
            answer.writeTo(OUT);
            OUT.flush();
        }
    }

    private static Map<String, Object> settings() throws IOException {
        Map<String, Object> settings = new HashMap<>();
        for (int left = IN.readInt(); left > 0; left--) settings.put(IN.readUTF(), IN.readUTF());
        return settings;
    }

    private static void write(Map<String, Object> settings, String topic) throws Exception {
        List<ProducerRecord<byte[], byte[]>> records = new ArrayList<>();
        for (int left = IN.readInt(); left > 0; left--) {
            int partition = IN.readInt();
            long timestamp = IN.readLong();
            byte[] key = bytes();
            byte[] value = bytes();
            List<Header> headers = new ArrayList<>();
            for (int more = IN.readInt(); more > 0; more--) {
                String name = new String(bytes(), StandardCharsets.UTF_8);
                headers.add(new RecordHeader(name, bytes()));
            }
            records.add(new ProducerRecord<>(topic, partition, timestamp < 0 ? null : timestamp, key, value, headers));
        }
        var serializer = new ByteArraySerializer();
        try (var producer = new KafkaProducer<byte[], byte[]>(settings, serializer, serializer)) {
            List<Future<RecordMetadata>> sent = new ArrayList<>();
            for (var record : records) sent.add(producer.send(record));
            producer.flush();
            for (var future : sent) future.get();
        }
    }

    private static void read(Map<String, Object> settings, String topic, int partitions, int count, DataOutputStream out) throws IOException {
        var deserializer = new ByteArrayDeserializer();
        try (var consumer = new KafkaConsumer<byte[], byte[]>(settings, deserializer, deserializer)) {
            List<TopicPartition> assigned = new ArrayList<>();
            for (int index = 0; index < partitions; index++) assigned.add(new TopicPartition(topic, index));
            consumer.assign(assigned);
            consumer.seekToBeginning(assigned);
            long deadline = System.nanoTime() + 60_000_000_000L;
            for (int found = 0; found < count && System.nanoTime() < deadline;) {
                for (var record : consumer.poll(Duration.ofMillis(500))) {
                    found++;
                    out.writeInt(record.partition());
                    out.writeLong(record.timestamp());
                    put(out, record.key());
                    put(out, record.value());
                    Header[] headers = record.headers().toArray();
                    out.writeInt(headers.length);
                    for (Header header : headers) {
                        put(out, header.key().getBytes(StandardCharsets.UTF_8));
                        put(out, header.value());
                    }
                }
            }
        }
    }

    private static byte[] bytes() throws IOException {
        int length = IN.readInt();
        return length < 0 ? null : IN.readNBytes(length);
    }

    private static void put(DataOutputStream out, byte[] value) throws IOException {
        out.writeInt(value == null ? -1 : value.length);
        if (value != null) out.write(value);
    }
}
