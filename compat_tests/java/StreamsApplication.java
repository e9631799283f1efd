import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.time.Duration;
import java.util.Properties;

import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.KeyValue;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.kstream.Consumed;
import org.apache.kafka.streams.kstream.Grouped;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.kstream.Produced;

/**
 * One instance of a Kafka Streams application: counts the values of a topic, exactly once. The values become keys, which
 * takes a topic for repartitioning; the counts are kept in a store with a changelog topic; each count goes to the output.
 *
 * bootstrap, application id, input topic, output topic, state directory, then options as name=value
 *
 * Prints "state NAME" at each change of its state, and "failed NAME: MESSAGE". Ends when its standard input does.
 */
public final class StreamsApplication {
    public static void main(String[] words) throws Exception {
        Properties options = new Properties();
        options.put("bootstrap.servers", words[0]);
        options.put("application.id", words[1]);
        options.put("state.dir", words[4]);
        options.put("processing.guarantee", "exactly_once_v2");
        options.put("commit.interval.ms", "100");
        options.put("statestore.cache.max.bytes", "0");
        options.put("replication.factor", "1");
        options.put("consumer.auto.offset.reset", "earliest");
        for (int i = 5; i < words.length; i++) {
            String[] parts = words[i].split("=", 2);
            options.put(parts[0], parts[1]);
        }
        StreamsBuilder builder = new StreamsBuilder();
        builder.stream(words[2], Consumed.with(Serdes.String(), Serdes.String()))
            .map((key, value) -> KeyValue.pair(value, key))
            .groupByKey(Grouped.with("by-value", Serdes.String(), Serdes.String()))
            .count(Materialized.as("counts"))
            .toStream()
            .mapValues(count -> Long.toString(count))
            .to(words[3], Produced.with(Serdes.String(), Serdes.String()));
        try (KafkaStreams streams = new KafkaStreams(builder.build(), options)) {
            streams.setStateListener((now, before) -> say("state " + now));
            streams.setUncaughtExceptionHandler(error -> {
                say("failed " + error.getClass().getSimpleName() + ": " + error.getMessage());
                return org.apache.kafka.streams.errors.StreamsUncaughtExceptionHandler.StreamThreadExceptionResponse.SHUTDOWN_CLIENT;
            });
            streams.start();
            BufferedReader in = new BufferedReader(new InputStreamReader(System.in, "UTF-8"));
            while (in.readLine() != null) continue;
            streams.close(Duration.ofSeconds(30));
        }
        say("ended");
    }

    private static synchronized void say(String line) {
        System.out.println(line.replace('\n', ' '));
        System.out.flush();
    }
}
