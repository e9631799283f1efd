package kafkashim;

import java.io.BufferedReader;
import java.io.File;
import java.io.IOException;
import java.io.InputStream;
import java.io.InputStreamReader;
import java.io.OutputStream;
import java.io.UncheckedIOException;
import java.net.URI;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Properties;
import java.util.Set;
import java.util.concurrent.TimeUnit;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import java.util.stream.Stream;

import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.common.config.internals.BrokerSecurityConfigs;
import org.apache.kafka.common.config.types.Password;
import org.apache.kafka.common.network.ListenerName;
import org.apache.kafka.common.security.auth.SecurityProtocol;
import org.apache.kafka.common.security.authenticator.DefaultKafkaPrincipalBuilder;

import org.apache.kafka.metadata.bootstrap.BootstrapDirectory;
import org.apache.kafka.metadata.bootstrap.BootstrapMetadata;
import org.apache.kafka.server.metrics.KafkaMetricsGroup;

import kafka.server.KafkaConfig;

import scala.jdk.javaapi.CollectionConverters;

/** One `kafka-shim serve` process with the configuration and the formatted directory of a test's broker. */
final class ShimNode {
    private static final Pattern READY =
        Pattern.compile("ready (\\S+) node=\\d+ cluster=\\S+(?: http=(\\S+))? data=.*");
    private static final String RECEIVE_MEMORY = "kafka_shim_receive_memory_bytes ";
    private static final long STOP_MS = 20_000;
    private static final KafkaMetricsGroup METRICS = new KafkaMetricsGroup("kafka.network", "SocketServer");
    private static final String EXPIRED = "ExpiredConnectionsKilledCount";
    /** Options of a controller that are not those of the broker. */
    private static final Pattern OF_ONE_NODE = Pattern.compile("listeners|advertised\\.listeners|node\\.id|broker\\.id"
        + "|process\\.roles|log\\.dirs?|metadata\\.log\\.dir|inter\\.broker\\.listener\\.name"
        + "|security\\.inter\\.broker\\.protocol|controller\\.quorum\\..*");
    /** What tests set for the broker in their JVM. */
    private static final List<String> PROPERTIES = List.of(
        "java.security.auth.login.config", BrokerSecurityConfigs.ALLOWED_SASL_OAUTHBEARER_URLS_CONFIG,
        "java.security.krb5.conf");
    /** The listener of `admin`. */
    private static final String HARNESS = "HARNESS";
    private static final String LOGIN = "org.apache.kafka.common.security.plain.PlainLoginModule required";
    /** Every process that was started and not stopped yet. */
    private static final List<ShimNode> RUNNING = new ArrayList<>();

    private final KafkaConfig config;
    private final MetadataLog metadata;
    private final String metadataDirectory;
    /** Listener name -> the port that it keeps over restarts, as Kafka's own harness does. */
    private final Map<String, Integer> ports = new HashMap<>();
    private final File log;
    private Process process;
    /** Where metrics are, if the test limits the memory of requests. */
    private String http;
    private PluginServer plugins;
    private Admin admin;

    ShimNode(KafkaConfig config) {
        this.config = config;
        this.metadataDirectory = config.metadataLogDir();
        this.metadata = new MetadataLog(new File(metadataDirectory));
        try {
            this.log = File.createTempFile("shim-", ".log", new File(System.getProperty("kafkashim.logs")));
        } catch (IOException error) {
            throw new IllegalStateException(error);
        }
    }

    MetadataLog metadata() {
        return metadata;
    }

    KafkaConfig config() {
        return config;
    }

    synchronized boolean isRunning() {
        return process != null && process.isAlive();
    }

    /** A client of ours that may do everything, open until the process ends. */
    synchronized Admin admin() {
        if (admin == null) {
            Map<String, Object> options = new HashMap<>();
            options.put("bootstrap.servers", "localhost:" + port(hasOwnListener() ? HARNESS : plaintextListener()));
            if (hasOwnListener()) {
                options.put("security.protocol", "SASL_PLAINTEXT");
                options.put("sasl.mechanism", "PLAIN");
                options.put("sasl.jaas.config", LOGIN + " username=\"harness\" password=\"harness\";");
            }
            admin = Admin.create(options);
        }
        return admin;
    }

    /** Null where each listener has security. */
    private String plaintextListener() {
        for (org.apache.kafka.common.Endpoint endpoint : CollectionConverters.asJava(config.listeners())) {
            if (endpoint.securityProtocol() == SecurityProtocol.PLAINTEXT) {
                return endpoint.listener();
            }
        }
        return null;
    }

    /** Whether the broker has a listener for `admin` beside the test's own. */
    private boolean hasOwnListener() {
        return plaintextListener() == null || config.originals().containsKey("authorizer.class.name");
    }

    int port(String listener) {
        return ports.getOrDefault(listener.toUpperCase(Locale.ROOT), 0);
    }

    /** Raises an IllegalStateException with the broker's own message when it does not get ready. */
    synchronized void start(BootstrapMetadata bootstrap, KafkaConfig controller) {
        if (isRunning()) {
            return;
        }
        try {
            if (bootstrap != null && !metadata.exists()) {
                Files.createDirectories(Path.of(metadataDirectory));
                new BootstrapDirectory(metadataDirectory).writeBinaryFile(bootstrap);
            }
            Path file = Files.createTempFile(log.getParentFile().toPath(), "server-", ".properties");
            try (OutputStream out = Files.newOutputStream(file)) {
                properties(controller).store(out, null);
            }
            List<String> command = new ArrayList<>(List.of(System.getProperty("kafkashim.command").split("\t")));
            command.addAll(List.of("--config", file.toString()));
            ProcessBuilder builder = new ProcessBuilder(command);
            builder.environment().put("KAFKA_SHIM_STOP_WITH_STDIN", "1");
            plugins = new PluginServer(config, controller);
            builder.environment().put("KAFKA_SHIM_TEST_PLUGINS", String.valueOf(plugins.port()));
            List<String> options = new ArrayList<>();
            for (String name : PROPERTIES) {
                if (System.getProperty(name) != null) {
                    options.add("-D" + name + "=" + System.getProperty(name));
                }
            }
            builder.environment().put("KAFKA_OPTS", String.join(" ", options));
            builder.redirectError(ProcessBuilder.Redirect.appendTo(log));
            process = builder.start();
            synchronized (RUNNING) {
                RUNNING.add(this);
            }
            BufferedReader out = new BufferedReader(
                new InputStreamReader(process.getInputStream(), StandardCharsets.UTF_8));
            METRICS.newGauge(EXPIRED, () -> (double) count("has expired and its client did not authenticate again"));
            String line = out.readLine();
            Matcher ready = READY.matcher(line == null ? "" : line);
            if (!ready.matches()) {
                stop(true);
                throw new IllegalStateException("the shim did not get ready: " + tail(1));
            }
            http = ready.group(2);
            for (String listener : ready.group(1).split(",")) {
                String[] parts = listener.split("://");
                ports.put(parts[0], Integer.parseInt(parts[1].substring(parts[1].lastIndexOf(':') + 1)));
            }
        } catch (IOException error) {
            throw new IllegalStateException(error);
        } catch (Exception error) {
            throw error instanceof RuntimeException known ? known : new IllegalStateException(error);
        }
    }

    /** The test's own properties of the broker and of the controller, as one process that is both takes them. */
    private Properties properties(KafkaConfig controller) {
        Properties properties = new Properties();
        if (controller != null) {
            for (Map.Entry<String, Object> entry : controller.originals().entrySet()) {
                if (!OF_ONE_NODE.matcher(entry.getKey()).matches()) {
                    properties.setProperty(entry.getKey(), text(entry.getValue()));
                }
            }
        }
        for (Map.Entry<String, Object> entry : config.originals().entrySet()) {
            properties.setProperty(entry.getKey(), text(entry.getValue()));
        }
        if (controller != null) {
            addControllerListeners(properties, controller);
        }
        int nodeId = config.nodeId();
        properties.setProperty("process.roles", "broker,controller");
        properties.setProperty("controller.quorum.voters", nodeId + "@localhost:9093");
        properties.remove("controller.quorum.bootstrap.servers");
        for (String name : List.of("listeners", "advertised.listeners")) {
            properties.computeIfPresent(name, (key, listeners) -> withPorts((String) listeners));
        }
        PluginServer.replace(properties);
        if (config.queuedMaxBytes() > 0) {
            properties.setProperty("kafka.shim.http.listener", "127.0.0.1:0");
        }
        if (hasOwnListener()) {
            addOwnListener(properties);
        }
        return properties;
    }

    /** A controller that is a node of its own in the test has listeners of its own. */
    private static void addControllerListeners(Properties properties, KafkaConfig controller) {
        Set<String> known = new HashSet<>();
        for (String entry : properties.getProperty("listeners").split(",")) {
            known.add(entry.trim().split("://")[0]);
        }
        for (String entry : text(controller.originals().getOrDefault("listeners", "")).split(",")) {
            String name = entry.trim().split("://")[0];
            if (!name.isEmpty() && known.add(name)) {
                properties.merge("listeners", entry.trim(), (before, more) -> before + "," + more);
                properties.computeIfPresent("listener.security.protocol.map", (key, map) ->
                    Arrays.stream(map.toString().split(",")).anyMatch(each -> each.trim().startsWith(name + ":"))
                        ? map : map + "," + name + ":" + controller.effectiveListenerSecurityProtocolMap()
                            .get(ListenerName.normalised(name)));
            }
        }
    }

    private void addOwnListener(Properties properties) {
        String prefix = "listener.name." + HARNESS.toLowerCase(Locale.ROOT) + ".";
        String own = HARNESS + "://localhost:" + port(HARNESS);
        for (String name : List.of("listeners", "advertised.listeners")) {
            properties.computeIfPresent(name, (key, listeners) -> listeners + "," + own);
        }
        properties.merge("listener.security.protocol.map", HARNESS + ":SASL_PLAINTEXT", (known, more) ->
            known + "," + more);
        properties.merge("super.users", "User:harness", (known, more) ->
            known.toString().isEmpty() ? more : known + ";" + more);
        properties.setProperty(prefix + "sasl.enabled.mechanisms", "PLAIN");
        properties.setProperty(prefix + "plain.sasl.jaas.config", LOGIN + " user_harness=\"harness\";");
        properties.setProperty(prefix + PluginServer.PRINCIPAL_BUILDER, DefaultKafkaPrincipalBuilder.class.getName());
    }

    /** Puts the ports of the first start in the place of 0. */
    private String withPorts(String listeners) {
        List<String> entries = new ArrayList<>();
        for (String entry : listeners.split(",")) {
            String trimmed = entry.trim();
            int port = port(trimmed.split("://")[0]);
            entries.add(trimmed.endsWith(":0") ? trimmed.substring(0, trimmed.length() - 1) + port : trimmed);
        }
        return String.join(",", entries);
    }

    private static String text(Object value) {
        if (value instanceof Password password) {
            return password.value();
        }
        if (value instanceof Class<?> type) {
            return type.getName();
        }
        if (value instanceof Iterable<?> values) {
            List<String> texts = new ArrayList<>();
            values.forEach(each -> texts.add(text(each)));
            return String.join(",", texts);
        }
        return String.valueOf(value);
    }

    /** Ends the process: by SIGTERM, and by SIGKILL when that takes too long or `now`. */
    synchronized void stop(boolean now) {
        if (process == null) {
            return;
        }
        try {
            if (now) {
                process.destroyForcibly().waitFor();
            } else {
                process.destroy();
                if (!process.waitFor(STOP_MS, TimeUnit.MILLISECONDS)) {
                    process.destroyForcibly().waitFor();
                }
            }
        } catch (InterruptedException interrupted) {
            process.destroyForcibly();
            Thread.currentThread().interrupt();
        }
        process = null;
        METRICS.removeMetric(EXPIRED);
        if (admin != null) {
            admin.close(Duration.ZERO);
            admin = null;
        }
        try {
            plugins.close();
        } catch (IOException error) {
            throw new IllegalStateException(error);
        }
        synchronized (RUNNING) {
            RUNNING.remove(this);
        }
    }

    /** Ends what a test left behind. */
    static void stopAll() {
        List<ShimNode> left;
        synchronized (RUNNING) {
            left = new ArrayList<>(RUNNING);
        }
        left.forEach(node -> node.stop(true));
    }

    /** What is left of `queued.max.request.bytes`, by the broker's own metric. */
    long availableMemory() {
        try (InputStream metrics = URI.create(http + "/metrics").toURL().openStream()) {
            return new String(metrics.readAllBytes(), StandardCharsets.UTF_8).lines()
                .filter(line -> line.startsWith(RECEIVE_MEMORY))
                .mapToLong(line -> config.queuedMaxBytes() - (long) Double.parseDouble(line.split(" ")[1]))
                .findFirst().orElseThrow();
        } catch (IOException error) {
            throw new UncheckedIOException(error);
        }
    }

    /** How often the broker logged this since its first start. */
    private long count(String words) {
        try (Stream<String> lines = Files.lines(log.toPath())) {
            return lines.filter(line -> line.contains(words)).count();
        } catch (IOException error) {
            throw new UncheckedIOException(error);
        }
    }

    private String tail(int lines) throws IOException {
        List<String> all = Files.readAllLines(log.toPath());
        return all.subList(Math.max(0, all.size() - lines), all.size()).stream().collect(Collectors.joining("\n"));
    }
}
