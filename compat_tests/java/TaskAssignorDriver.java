import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;

import org.apache.kafka.coordinator.group.streams.assignor.AssignmentMemberSpec;
import org.apache.kafka.coordinator.group.streams.assignor.GroupAssignment;
import org.apache.kafka.coordinator.group.streams.assignor.GroupSpecImpl;
import org.apache.kafka.coordinator.group.streams.assignor.MemberAssignment;
import org.apache.kafka.coordinator.group.streams.assignor.StickyTaskAssignor;
import org.apache.kafka.coordinator.group.streams.assignor.TopologyDescriber;

/**
 * Asks Apache Kafka's task assignor of streams groups, one case a line:
 *
 * standby replicas TAB subtopology:tasks:stateful|stateless,... TAB member TAB member ...
 *     where a member is id|process|rack|subtopology:0.1.2,...|subtopology:0.1.2,...   (what it had, active and standby)
 *     answers member|subtopology:0.1.2,...|subtopology:0.1.2,... TAB ..., all sorted
 */
public final class TaskAssignorDriver {
    public static void main(String[] arguments) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, "UTF-8"));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            System.out.println(assign(line.split("\t", -1)));
            System.out.flush();
        }
    }

    private static List<String> list(String text) {
        return text.isEmpty() ? List.of() : List.of(text.split(","));
    }

    private static Map<String, Set<Integer>> tasks(String text) {
        Map<String, Set<Integer>> found = new HashMap<>();
        for (String entry : list(text)) {
            String[] parts = entry.split(":");
            Set<Integer> numbers = new HashSet<>();
            for (String number : parts[1].split("\\.")) numbers.add(Integer.parseInt(number));
            found.put(parts[0], numbers);
        }
        return found;
    }

    private static String text(Map<String, Set<Integer>> tasks) {
        List<String> entries = new ArrayList<>();
        new TreeMap<>(tasks).forEach((subtopology, numbers) -> {
            List<String> texts = new ArrayList<>();
            for (int number : new TreeSet<>(numbers)) texts.add(Integer.toString(number));
            entries.add(subtopology + ":" + String.join(".", texts));
        });
        return String.join(",", entries);
    }

    private static String assign(String[] words) {
        TreeMap<String, Integer> counts = new TreeMap<>();
        Set<String> stateful = new HashSet<>();
        for (String entry : list(words[1])) {
            String[] parts = entry.split(":");
            counts.put(parts[0], Integer.parseInt(parts[1]));
            if (parts[2].equals("stateful")) stateful.add(parts[0]);
        }
        Map<String, AssignmentMemberSpec> members = new HashMap<>();
        for (int i = 2; i < words.length; i++) {
            String[] parts = words[i].split("\\|", -1);
            Optional<String> rack = parts[2].isEmpty() ? Optional.empty() : Optional.of(parts[2]);
            members.put(parts[0], new AssignmentMemberSpec(
                Optional.empty(), rack, tasks(parts[3]), tasks(parts[4]), Map.of(), parts[1],
                rack.map(name -> Map.of("zone", name)).orElse(Map.of()), Map.of(), Map.of()));
        }
        TopologyDescriber describer = new TopologyDescriber() {
            @Override
            public List<String> subtopologies() {
                return new ArrayList<>(counts.keySet());
            }

            @Override
            public int maxNumInputPartitions(String subtopology) {
                return counts.get(subtopology);
            }

            @Override
            public boolean isStateful(String subtopology) {
                return stateful.contains(subtopology);
            }
        };
        GroupAssignment found = new StickyTaskAssignor().assign(
            new GroupSpecImpl(members, Map.of("num.standby.replicas", words[0])), describer);
        List<String> answer = new ArrayList<>();
        for (String member : new TreeSet<>(members.keySet())) {
            MemberAssignment given = found.members().get(member);
            answer.add(member + "|" + text(given.activeTasks()) + "|" + text(given.standbyTasks()));
        }
        return String.join("\t", answer);
    }
}
