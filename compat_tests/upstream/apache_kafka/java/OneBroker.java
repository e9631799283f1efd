package kafkashim;

import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.TreeMap;
import java.util.stream.Collectors;

import net.bytebuddy.agent.ByteBuddyAgent;
import net.bytebuddy.agent.builder.AgentBuilder;
import net.bytebuddy.asm.Advice;
import net.bytebuddy.description.method.MethodDescription;
import net.bytebuddy.matcher.ElementMatcher;

import static net.bytebuddy.matcher.ElementMatchers.isConstructor;
import static net.bytebuddy.matcher.ElementMatchers.named;
import static net.bytebuddy.matcher.ElementMatchers.takesArgument;
import static net.bytebuddy.matcher.ElementMatchers.takesArguments;

/**
 * Reduces the clusters that tests ask for to one broker and one controller, and the replication factors with them; for
 * some tests to one node that is both. Both targets run with it: a test counts only if it passes on Apache Kafka so.
 */
public final class OneBroker {
    private static final String CLUSTER = "org.apache.kafka.common.test.api.ClusterConfig";
    /** Options that name a number of replicas, for a cluster that was to have several brokers. */
    private static final List<String> REPLICAS = List.of(
        "offsets.topic.replication.factor", "transaction.state.log.replication.factor",
        "transaction.state.log.min.isr", "share.coordinator.state.topic.replication.factor",
        "share.coordinator.state.topic.min.isr");
    private static final List<String> REPLICAS_IF_GIVEN = List.of("default.replication.factor", "min.insync.replicas");
    /**
     * Tests that ask only for a controller that is a node of its own, by method. They compare its id, and hold of a
     * node that is broker and controller, too. (Those that ask for both kinds run for both.)
     */
    private static final Set<String> OF_ONE_NODE = Set.of(
        "testDescribeClusterByControllers", "testDescribeMetadataQuorum", "testDescribeMetadataQuorumByControllers",
        "testIncrementalAlterConfigsByControllers", "testQuotaConfigsIsReadOnlyShouldBeFalse");
    /** The brokers that the running test asked for, or its class. */
    private static volatile int asked = 1;
    /** The brokers of a cluster that the class starts for all of its tests. */
    private static volatile int askedByClass = 1;
    private static volatile boolean isBeforeTests = true;

    private OneBroker() {
    }

    static void install() throws ClassNotFoundException {
        AgentBuilder agent = new AgentBuilder.Default()
            .disableClassFormatChanges()
            .with(AgentBuilder.RedefinitionStrategy.RETRANSFORMATION)
            .with(AgentBuilder.Listener.StreamWriting.toSystemError().withErrorsOnly())
            .ignore(named("none"));
        agent = at(agent, CLUSTER, named("numBrokers"), NumBrokers.class);
        agent = at(agent, CLUSTER, named("numControllers"), NumControllers.class);
        agent = at(agent, CLUSTER, named("perServerOverrideProperties"), PerServer.class);
        agent = at(agent, "org.apache.kafka.common.test.junit.RaftClusterInvocationContext",
            isConstructor().and(takesArguments(3)), OneNode.class);
        String kit = "org.apache.kafka.common.test.TestKitNodes$Builder";
        agent = at(agent, kit, named("setNumBrokerNodes"), Brokers.class);
        agent = at(agent, kit, named("setNumControllerNodes"), Controllers.class);
        agent = at(agent, kit, named("setPerServerProperties"), GivenPerServer.class);
        agent = at(agent, "kafka.utils.TestUtils$", named("createBrokerConfigs"), Brokers.class);
        // It creates its brokers one by one.
        agent = at(agent, "kafka.server.DynamicBrokerReconfigurationTest", named("numServers"), NumBrokers.class);
        String topic = "org.apache.kafka.clients.admin.NewTopic";
        agent = at(agent, topic, isConstructor().and(takesArgument(1, Optional.class)), Factor.class);
        agent = at(agent, topic, isConstructor().and(takesArgument(1, Map.class)), Assignment.class);
        agent = at(agent, "kafka.server.KafkaConfig", isConstructor().and(takesArguments(Map.class, boolean.class)),
            Options.class);
        // It compares the factor that a test asks for with its brokers.
        agent = at(agent, "org.apache.kafka.streams.integration.utils.EmbeddedKafkaCluster",
            named("createTopic").and(takesArgument(2, int.class)), Replication.class);
        agent.installOn(ByteBuddyAgent.install());
        // A class that is loaded first while another one is being transformed would be left as it is.
        for (String type : List.of(CLUSTER, kit, topic, "kafka.utils.TestUtils$", "kafka.server.KafkaConfig")) {
            Class.forName(type, false, OneBroker.class.getClassLoader());
        }
    }

    private static AgentBuilder at(
        AgentBuilder agent, String type, ElementMatcher<? super MethodDescription> method, Class<?> advice
    ) {
        return agent.type(named(type)).transform((builder, description, loader, module, domain) ->
            builder.visit(Advice.to(advice).on(method)));
    }

    /** A class begins. */
    static void beginClass() {
        asked = 1;
        askedByClass = 1;
        isBeforeTests = true;
    }

    static void beginTest() {
        isBeforeTests = false;
        asked = askedByClass;
    }

    public static boolean isCombined(String method, boolean asked) {
        return asked || OF_ONE_NODE.contains(method);
    }

    public static int brokers(int count) {
        if (count > 1) {
            asked = Math.max(asked, count);
            return 1;
        }
        return count;
    }

    /** Of a cluster that starts. */
    public static int started(int count) {
        if (isBeforeTests) {
            askedByClass = Math.max(askedByClass, count);
        }
        return brokers(count);
    }

    /** A factor that the cluster asked for could have had is 1 now; one that it must refuse stays. */
    public static Optional<Short> factor(Optional<Short> factor) {
        return factor.map(value -> (short) factor(value.intValue()));
    }

    public static int factor(int factor) {
        return factor > 1 && factor <= asked ? 1 : factor;
    }

    public static Map<Integer, List<Integer>> assignment(Map<Integer, List<Integer>> assignment) {
        if (asked == 1 || assignment == null) {
            return assignment;
        }
        Map<Integer, List<Integer>> reduced = new TreeMap<>(assignment);
        reduced.replaceAll((partition, replicas) -> replicas.isEmpty() ? replicas : List.of(0));
        return reduced;
    }

    public static Map<?, ?> options(Map<?, ?> given) {
        if (asked == 1) {
            return given;
        }
        Map<Object, Object> reduced = new HashMap<>(given);
        REPLICAS.forEach(name -> reduced.put(name, "1"));
        REPLICAS_IF_GIVEN.forEach(name -> reduced.computeIfPresent(name, (key, value) -> "1"));
        return reduced;
    }

    /** Leaves out the servers that the reduced cluster does not have. Node ids are 0 and 3000 there. */
    public static Map<Integer, Map<String, String>> perServer(Map<Integer, Map<String, String>> given) {
        return given.entrySet().stream().filter(entry -> entry.getKey() == 0 || entry.getKey() == 3000)
            .collect(Collectors.toMap(Map.Entry::getKey, Map.Entry::getValue));
    }

    public static final class OneNode {
        @Advice.OnMethodEnter
        static void enter(@Advice.Argument(0) String method, @Advice.Argument(value = 2, readOnly = false) boolean both) {
            both = OneBroker.isCombined(method, both);
        }
    }

    public static final class Brokers {
        @Advice.OnMethodEnter
        static void enter(@Advice.Argument(value = 0, readOnly = false) int count) {
            count = OneBroker.started(count);
        }
    }

    public static final class Controllers {
        @Advice.OnMethodEnter
        static void enter(@Advice.Argument(value = 0, readOnly = false) int count) {
            count = Math.min(count, 1);
        }
    }

    public static final class NumBrokers {
        @Advice.OnMethodExit
        static void exit(@Advice.Return(readOnly = false) int count) {
            count = OneBroker.brokers(count);
        }
    }

    public static final class NumControllers {
        @Advice.OnMethodExit
        static void exit(@Advice.Return(readOnly = false) int count) {
            count = Math.min(count, 1);
        }
    }

    public static final class PerServer {
        @Advice.OnMethodExit
        static void exit(@Advice.Return(readOnly = false) Map<Integer, Map<String, String>> given) {
            given = OneBroker.perServer(given);
        }
    }

    public static final class GivenPerServer {
        @Advice.OnMethodEnter
        static void enter(@Advice.Argument(value = 0, readOnly = false) Map<Integer, Map<String, String>> given) {
            given = OneBroker.perServer(given);
        }
    }

    public static final class Factor {
        @Advice.OnMethodEnter
        static void enter(@Advice.Argument(value = 2, readOnly = false) Optional<Short> factor) {
            factor = OneBroker.factor(factor);
        }
    }

    public static final class Replication {
        @Advice.OnMethodEnter
        static void enter(@Advice.Argument(value = 2, readOnly = false) int factor) {
            factor = OneBroker.factor(factor);
        }
    }

    public static final class Assignment {
        @Advice.OnMethodEnter
        static void enter(@Advice.Argument(value = 1, readOnly = false) Map<Integer, List<Integer>> assignment) {
            assignment = OneBroker.assignment(assignment);
        }
    }

    public static final class Options {
        @Advice.OnMethodEnter
        static void enter(@Advice.Argument(value = 0, readOnly = false) Map<?, ?> given) {
            given = OneBroker.options(given);
        }
    }
}
