// Prints one tab-separated line for each option of Kafka: table, name, type, default, check, importance, how it changes;
// of the clients' options the table CLIENT and the name. A table is in the order in which Kafka defines its options.
// Run by shim/config/transcribe.py against the released jars; facts only, no descriptions.

import java.lang.reflect.Field;
import java.util.Set;
import java.util.TreeSet;
import org.apache.kafka.common.config.ConfigDef;
import org.apache.kafka.server.config.DynamicBrokerConfig;

public class OptionFacts {
    private static Set<String> perBroker = Set.of();

    private static String update(String table, String name) {
        if (!table.equals("BROKER"))
            return "";
        if (perBroker.contains(name))
            return "per-broker";
        return DynamicBrokerConfig.ALL_DYNAMIC_CONFIGS.contains(name) ? "cluster-wide" : "read-only";
    }

    private static void print(String table, ConfigDef options) {
        for (String name : options.names()) {
            ConfigDef.ConfigKey key = options.configKeys().get(name);
            String value = !key.hasDefault() ? "\u0001" : key.defaultValue == null ? "\u0000"
                : ConfigDef.convertToString(key.defaultValue, key.type);
            String check = key.validator == null ? "" : key.validator.toString();
            System.out.println(String.join("\t", table, name, key.type.toString(), value, check,
                key.importance.toString(), update(table, name), key.internalConfig ? "internal" : ""));
        }
    }

    @SuppressWarnings("unchecked")
    public static void main(String[] arguments) throws Exception {
        Field field = DynamicBrokerConfig.class.getDeclaredField("PER_BROKER_CONFIGS");
        field.setAccessible(true);
        perBroker = (Set<String>) field.get(null);
        print("BROKER", kafka.server.KafkaConfig.configDef());
        print("TOPIC", org.apache.kafka.storage.internals.log.LogConfig.configDefCopy());
        print("GROUP", org.apache.kafka.coordinator.group.GroupConfig.CONFIG_DEF);
        Set<String> ofClients = new TreeSet<>(org.apache.kafka.clients.admin.AdminClientConfig.configNames());
        ofClients.addAll(org.apache.kafka.clients.consumer.ConsumerConfig.configNames());
        ofClients.addAll(org.apache.kafka.clients.producer.ProducerConfig.configNames());
        for (String name : ofClients)
            System.out.println("CLIENT\t" + name);
        print("CLIENT_METRICS", org.apache.kafka.server.metrics.ClientMetricsConfigs.configDef());
    }
}
