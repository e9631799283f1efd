package kafkashim;

import java.io.BufferedWriter;
import java.io.IOException;
import java.io.PrintWriter;
import java.io.StringWriter;
import java.lang.reflect.Method;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

import com.fasterxml.jackson.databind.ObjectMapper;

import org.junit.platform.commons.support.AnnotationSupport;
import org.junit.platform.commons.support.HierarchyTraversalMode;
import org.junit.platform.commons.support.ReflectionSupport;
import org.junit.platform.commons.annotation.Testable;
import org.junit.platform.engine.DiscoverySelector;
import org.junit.platform.engine.FilterResult;
import org.junit.platform.engine.TestExecutionResult;
import org.junit.platform.engine.UniqueId;
import org.junit.platform.engine.discovery.DiscoverySelectors;
import org.junit.platform.launcher.Launcher;
import org.junit.platform.launcher.LauncherDiscoveryRequest;
import org.junit.platform.launcher.PostDiscoveryFilter;
import org.junit.platform.launcher.TestExecutionListener;
import org.junit.platform.launcher.TestIdentifier;
import org.junit.platform.launcher.TestPlan;
import org.junit.platform.launcher.core.LauncherConfig;
import org.junit.platform.launcher.core.LauncherDiscoveryRequestBuilder;
import org.junit.platform.launcher.core.LauncherFactory;

/**
 * Runs tests and writes one line of JSON for each. Arguments: the target (`shim` or `kafka`; `list` only writes the
 * names of the test methods), the file with the tests
 * (a class, a method of it, or one invocation `method[3]`, a line each; behind a hyphen a method to leave out), the file of results, and the seconds that one
 * test may take. The status is 0 when every test has its line, and 3 when a test had to be given up with the JVM: its
 * line is the last one. It is 143 when the JVM was told to end.
 */
public final class Runner {
    private static final int GIVEN_UP = 3;
    private static final int TOLD_TO_END = 143;
    private static final long GRACE_MS = 30_000;
    private static final Pattern SELECTED = Pattern.compile("(.+)\\.([a-z]\\w*)(?:\\[(\\d+)])?");
    private static final ObjectMapper JSON = new ObjectMapper();

    private Runner() {
    }

    public static void main(String[] arguments) throws Exception {
        boolean isShim = arguments[0].equals("shim");
        List<String> tests = Files.readAllLines(Path.of(arguments[1]));
        int limitSeconds = Integer.parseInt(arguments[3]);
        // A JVM that is told to end would go on with the tests meanwhile, and each would fail at its temporary folder.
        Runtime.getRuntime().addShutdownHook(new Thread(() -> Runtime.getRuntime().halt(TOLD_TO_END)));
        if (!arguments[0].equals("list")) {
            OneBroker.install();
        }
        if (isShim) {
            Replacement.install();
        }
        LauncherDiscoveryRequestBuilder request = LauncherDiscoveryRequestBuilder.request()
            .configurationParameter(
                "junit.jupiter.execution.timeout.testable.method.default", limitSeconds + " s")
            .configurationParameter("junit.jupiter.extensions.autodetection.enabled", "true");
        Set<String> done = done(Path.of(arguments[2]));
        for (String test : tests) {
            if (test.startsWith("-")) {
                done.add(test.substring(1));
            } else {
                request.selectors(selectors(test));
            }
        }
        request.filters((PostDiscoveryFilter) descriptor -> FilterResult.includedIf(
            !descriptor.getUniqueId().getLastSegment().getType().matches("method|test-template")
            || !done.contains(name(descriptor.getUniqueId()))));
        LauncherConfig config = LauncherConfig.builder()
            .enableLauncherSessionListenerAutoRegistration(false)
            .enablePostDiscoveryFilterAutoRegistration(false)
            .enableTestExecutionListenerAutoRegistration(false)
            .build();
        Launcher launcher = LauncherFactory.create(config);
        LauncherDiscoveryRequest built = request.build();
        if (arguments[0].equals("list")) {
            list(launcher.discover(built), Path.of(arguments[2]));
            Runtime.getRuntime().halt(0);
        }
        Report report = new Report(Path.of(arguments[2]), isShim, limitSeconds * 1000L + GRACE_MS);
        launcher.execute(built, report);
        report.close();
        // Threads that a test left behind do not keep the JVM alive.
        Runtime.getRuntime().halt(0);
    }

    /** Writes the name of each test method, a line each. How many invocations a template has shows when it runs. */
    private static void list(TestPlan plan, Path path) throws IOException {
        Set<String> names = new TreeSet<>();
        for (TestIdentifier root : plan.getRoots()) {
            for (TestIdentifier each : plan.getDescendants(root)) {
                if (each.getUniqueIdObject().getLastSegment().getType().matches("method|test-template")) {
                    names.add(name(each.getUniqueIdObject()));
                }
            }
        }
        Files.write(path, names);
    }

    /** The methods that have a result, from a run that a test ended. */
    private static Set<String> done(Path results) throws IOException {
        Set<String> methods = new HashSet<>();
        if (Files.exists(results)) {
            for (String line : Files.readAllLines(results)) {
                methods.add(JSON.readTree(line).get("test").asText().split("\\[")[0]);
            }
        }
        return methods;
    }

    private static List<DiscoverySelector> selectors(String test) {
        Optional<Class<?>> whole = ReflectionSupport.tryToLoadClass(test).toOptional();
        if (whole.isPresent()) {
            return List.of(DiscoverySelectors.selectClass(whole.get()));
        }
        Matcher parts = SELECTED.matcher(test);
        if (!parts.matches()) {
            throw new IllegalArgumentException(test + " names no test");
        }
        Class<?> type = ReflectionSupport.tryToLoadClass(parts.group(1)).toOptional()
            .orElseThrow(() -> new IllegalArgumentException(test + " names no test"));
        List<DiscoverySelector> found = new ArrayList<>();
        for (Method method : AnnotationSupport.findAnnotatedMethods(type, Testable.class,
            HierarchyTraversalMode.BOTTOM_UP)) {
            if (method.getName().equals(parts.group(2))) {
                DiscoverySelector selector = DiscoverySelectors.selectMethod(type, method);
                found.add(parts.group(3) == null ? selector
                    : DiscoverySelectors.selectIteration(selector, Integer.parseInt(parts.group(3)) - 1));
            }
        }
        if (found.isEmpty()) {
            throw new IllegalArgumentException(test + " names no test");
        }
        return found;
    }

    /** `package.Class.method[3]` of a unique id; a class alone for a container. */
    static String name(UniqueId id) {
        StringBuilder text = new StringBuilder();
        for (UniqueId.Segment segment : id.getSegments()) {
            String value = segment.getValue();
            switch (segment.getType()) {
                case "class" -> text.append(value);
                case "nested-class" -> text.append('$').append(value);
                case "method", "test-template" -> text.append('.').append(value, 0, value.indexOf('('));
                case "test-template-invocation" -> text.append('[').append(value.substring(1)).append(']');
                default -> {
                }
            }
        }
        return text.toString();
    }

    static final class Report implements TestExecutionListener {
        private final BufferedWriter out;
        private final boolean isShim;
        private final long limitMs;
        private final Map<String, Long> began = new HashMap<>();
        private volatile String running;
        private volatile long runningSinceMs;

        Report(Path path, boolean isShim, long limitMs) throws IOException {
            this.out = Files.newBufferedWriter(path, StandardOpenOption.CREATE, StandardOpenOption.APPEND);
            this.isShim = isShim;
            this.limitMs = limitMs;
            Thread watch = new Thread(this::watch, "JUnit-watch");
            watch.setDaemon(true);
            watch.start();
        }

        /** Gives up the JVM when a test does not react to its time limit. */
        private void watch() {
            Thread main = null;
            for (Thread thread : Thread.getAllStackTraces().keySet()) {
                if (thread.getName().equals("main")) {
                    main = thread;
                }
            }
            while (true) {
                try {
                    Thread.sleep(500);
                } catch (InterruptedException interrupted) {
                    return;
                }
                String test = running;
                if (test != null && System.currentTimeMillis() - runningSinceMs > limitMs) {
                    StringBuilder where = new StringBuilder("over the time limit, at");
                    for (StackTraceElement frame : main == null ? new StackTraceElement[0] : main.getStackTrace()) {
                        where.append("\n  ").append(frame);
                    }
                    write(test, "aborted", limitMs / 1000.0, where.toString());
                    Runtime.getRuntime().halt(GIVEN_UP);
                }
            }
        }

        @Override
        public void executionStarted(TestIdentifier test) {
            began.put(test.getUniqueId(), System.currentTimeMillis());
            if (isOfAClass(test)) {
                OneBroker.beginClass();
            }
            if (test.isTest()) {
                NotApplicable.reset();
                OneBroker.beginTest();
                if (isShim) {
                    Replacement.beginTest();
                }
                runningSinceMs = System.currentTimeMillis();
                running = name(test.getUniqueIdObject());
            }
        }

        @Override
        public void executionSkipped(TestIdentifier test, String reason) {
            write(name(test.getUniqueIdObject()), "skipped", 0, reason);
        }

        @Override
        public void executionFinished(TestIdentifier test, TestExecutionResult result) {
            boolean isGood = result.getStatus() == TestExecutionResult.Status.SUCCESSFUL;
            if (isShim && isOfAClass(test)) {
                Replacement.reset();
            }
            if (test.isTest()) {
                running = null;
            } else if (isGood) {
                return;
            }
            String outcome = switch (result.getStatus()) {
                case SUCCESSFUL -> "passed";
                case ABORTED -> "skipped";
                case FAILED -> NotApplicable.calls().isEmpty() ? "failed" : "not applicable";
            };
            StringWriter text = new StringWriter();
            result.getThrowable().ifPresent(error -> error.printStackTrace(new PrintWriter(text)));
            double seconds = (System.currentTimeMillis() - began.get(test.getUniqueId())) / 1000.0;
            write(name(test.getUniqueIdObject()), outcome, seconds, text.toString());
            if (test.isTest() && isShim) {
                Replacement.endTest();
            }
        }

        private static boolean isOfAClass(TestIdentifier test) {
            return test.getUniqueIdObject().getLastSegment().getType().equals("class");
        }

        private synchronized void write(String test, String outcome, double seconds, String message) {
            Map<String, Object> line = new TreeMap<>();
            line.put("test", test);
            line.put("outcome", outcome);
            line.put("seconds", seconds);
            if (!message.isEmpty()) {
                line.put("message", message.substring(0, Math.min(4000, message.length())));
            }
            if (!outcome.equals("passed") && !NotApplicable.calls().isEmpty()) {
                line.put("calls", NotApplicable.calls());
            }
            try {
                out.write(JSON.writeValueAsString(line));
                out.newLine();
                out.flush();
            } catch (IOException error) {
                throw new IllegalStateException(error);
            }
        }

        void close() throws IOException {
            out.close();
        }
    }
}
