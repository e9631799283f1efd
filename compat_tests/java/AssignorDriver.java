import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.ArrayList;
import java.util.Collections;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;

import org.apache.kafka.common.Uuid;
import org.apache.kafka.coordinator.group.api.assignor.GroupAssignment;
import org.apache.kafka.coordinator.group.api.assignor.PartitionAssignor;
import org.apache.kafka.coordinator.group.api.assignor.SubscribedTopicDescriber;
import org.apache.kafka.coordinator.group.api.assignor.SubscriptionType;
import org.apache.kafka.coordinator.group.assignor.RangeAssignor;
import org.apache.kafka.coordinator.group.assignor.SimpleAssignor;
import org.apache.kafka.coordinator.group.assignor.UniformAssignor;
import org.apache.kafka.coordinator.group.modern.Assignment;
import org.apache.kafka.coordinator.group.modern.GroupSpecImpl;
import org.apache.kafka.coordinator.group.modern.MemberSubscriptionAndAssignmentImpl;

import com.dynatrace.hash4j.hashing.HashStream64;
import com.dynatrace.hash4j.hashing.Hashing;

/**
 * Asks Apache Kafka's server-side assignors, one case a line:
 *
 * assign TAB assignor TAB same|mixed TAB topic:count,... TAB member TAB member ...
 *     where a member is id|instance|topic,...|topic:0.1.2,...   (an empty instance is none)
 *     answers member|topic:0.1.2,... TAB ..., members and topics sorted
 * hash TAB topic id TAB name TAB count TAB rack      (an empty rack is none)
 * combine TAB hash TAB hash ...
 */
public final class AssignorDriver {
    public static void main(String[] arguments) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, "UTF-8"));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            String[] words = line.split("\t", -1);
            switch (words[0]) {
                case "assign" -> System.out.println(assign(words));
                case "hash" -> System.out.println(hash(words));
                case "combine" -> System.out.println(combine(words));
                default -> System.out.println("?");
            }
            System.out.flush();
        }
    }

    private static Uuid uuid(String hex) {
        return new Uuid(Long.parseUnsignedLong(hex.substring(0, 16), 16), Long.parseUnsignedLong(hex.substring(16), 16));
    }

    private static String hex(Uuid uuid) {
        return String.format("%016x%016x", uuid.getMostSignificantBits(), uuid.getLeastSignificantBits());
    }

    private static String assign(String[] words) {
        PartitionAssignor assignor = switch (words[1]) {
            case "range" -> new RangeAssignor();
            case "simple" -> new SimpleAssignor();
            default -> new UniformAssignor();
        };
        SubscriptionType type = words[2].equals("same") ? SubscriptionType.HOMOGENEOUS : SubscriptionType.HETEROGENEOUS;
        Map<Uuid, Integer> counts = new HashMap<>();
        for (String topic : list(words[3])) {
            String[] parts = topic.split(":");
            counts.put(uuid(parts[0]), Integer.parseInt(parts[1]));
        }
        Map<String, MemberSubscriptionAndAssignmentImpl> members = new HashMap<>();
        Map<Uuid, Map<Integer, String>> inverted = new HashMap<>();
        for (int i = 4; i < words.length; i++) {
            String[] parts = words[i].split("\\|", -1);
            Set<Uuid> topics = new HashSet<>();
            for (String topic : list(parts[2])) topics.add(uuid(topic));
            Map<Uuid, Set<Integer>> target = new HashMap<>();
            for (String topic : list(parts[3])) {
                String[] each = topic.split(":");
                List<Integer> numbers = new ArrayList<>();
                for (String number : each[1].split("\\.")) numbers.add(Integer.parseInt(number));
                target.put(uuid(each[0]), new HashSet<>(numbers));
                for (int number : numbers) inverted.computeIfAbsent(uuid(each[0]), k -> new HashMap<>()).put(number, parts[0]);
            }
            Optional<String> instance = parts[1].isEmpty() ? Optional.empty() : Optional.of(parts[1]);
            members.put(parts[0], new MemberSubscriptionAndAssignmentImpl(
                Optional.empty(), instance, topics, new Assignment(Collections.unmodifiableMap(target))));
        }
        SubscribedTopicDescriber describer = new SubscribedTopicDescriber() {
            @Override
            public int numPartitions(Uuid topicId) {
                return counts.getOrDefault(topicId, -1);
            }

            @Override
            public Set<String> racksForPartition(Uuid topicId, int partition) {
                return Set.of();
            }
        };
        GroupAssignment found = assignor.assign(new GroupSpecImpl(members, type, inverted), describer);
        List<String> answer = new ArrayList<>();
        for (String member : new TreeSet<>(members.keySet())) {
            Map<String, String> topics = new TreeMap<>();
            if (found.members().containsKey(member)) {
                found.members().get(member).partitions().forEach((topic, numbers) -> {
                    List<String> texts = new ArrayList<>();
                    for (int number : new TreeSet<>(numbers)) texts.add(Integer.toString(number));
                    if (!texts.isEmpty()) topics.put(hex(topic), String.join(".", texts));
                });
            }
            List<String> parts = new ArrayList<>();
            topics.forEach((topic, numbers) -> parts.add(topic + ":" + numbers));
            answer.add(member + "|" + String.join(",", parts));
        }
        return String.join("\t", answer);
    }

    private static List<String> list(String text) {
        return text.isEmpty() ? List.of() : List.of(text.split(","));
    }

    /** The hash of one topic, made as Kafka's group coordinator makes it. */
    private static String hash(String[] words) {
        Uuid id = uuid(words[1]);
        int count = Integer.parseInt(words[3]);
        HashStream64 stream = Hashing.xxh3_64().hashStream()
            .putByte((byte) 0)
            .putLong(id.getMostSignificantBits())
            .putLong(id.getLeastSignificantBits())
            .putString(words[2])
            .putInt(count);
        for (int i = 0; i < count; i++) {
            stream = stream.putInt(i);
            if (!words[4].isEmpty()) stream = stream.putInt(words[4].length()).putString(words[4]);
        }
        return Long.toString(stream.getAsLong());
    }

    private static String combine(String[] words) {
        HashStream64 stream = Hashing.xxh3_64().hashStream();
        for (int i = 1; i < words.length; i++) stream.putLong(Long.parseLong(words[i]));
        return Long.toString(stream.getAsLong());
    }
}
