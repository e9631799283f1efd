package kafkashim;

import java.io.BufferedReader;
import java.io.File;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.OutputStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Properties;
import java.util.concurrent.TimeUnit;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Collectors;

import org.apache.kafka.common.config.types.Password;
import org.apache.kafka.common.security.auth.SecurityProtocol;

import org.apache.kafka.metadata.bootstrap.BootstrapDirectory;
import org.apache.kafka.metadata.bootstrap.BootstrapMetadata;

import kafka.server.KafkaConfig;

import scala.jdk.javaapi.CollectionConverters;

/** One `kafka-shim serve` process with the configuration and the formatted directory of a test's broker. */
final class ShimNode {
    private static final Pattern READY = Pattern.compile("ready (\\S+) node=\\d+ cluster=\\S+ data=.*");
    private static final long STOP_MS = 20_000;
    /** Every process that was started and not stopped yet. */
    private static final List<ShimNode> RUNNING = new ArrayList<>();

    private final KafkaConfig config;
    private final MetadataLog metadata;
    private final String metadataDirectory;
    /** Listener name -> the port that it keeps over restarts, as Kafka's own harness does. */
    private final Map<String, Integer> ports = new HashMap<>();
    private final File log;
    private Process process;

    ShimNode(KafkaConfig config) {
        this.config = config;
        String wanted = config.metadataLogDir();
        this.metadataDirectory = config.logDirs().contains(wanted) ? wanted : config.logDirs().get(0);
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

    /** An address for a client of ours. Not applicable where the broker has no listener without security. */
    String bootstrapServers() {
        for (org.apache.kafka.common.Endpoint endpoint : CollectionConverters.asJava(config.listeners())) {
            if (endpoint.securityProtocol() == SecurityProtocol.PLAINTEXT && port(endpoint.listener()) > 0) {
                return "localhost:" + port(endpoint.listener());
            }
        }
        throw new NotApplicable("a log of a broker without a plaintext listener");
    }

    int port(String listener) {
        return ports.getOrDefault(listener.toUpperCase(Locale.ROOT), 0);
    }

    /** Raises an IllegalStateException with the broker's own message when it does not get ready. */
    synchronized void start(BootstrapMetadata bootstrap) {
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
                properties().store(out, null);
            }
            List<String> command = new ArrayList<>(List.of(System.getProperty("kafkashim.command").split("\t")));
            command.addAll(List.of("--config", file.toString()));
            ProcessBuilder builder = new ProcessBuilder(command);
            builder.environment().put("KAFKA_SHIM_STOP_WITH_STDIN", "1");
            String jaas = System.getProperty("java.security.auth.login.config");
            if (jaas != null) {
                builder.environment().put("KAFKA_OPTS", "-Djava.security.auth.login.config=" + jaas);
            }
            builder.redirectError(ProcessBuilder.Redirect.appendTo(log));
            process = builder.start();
            synchronized (RUNNING) {
                RUNNING.add(this);
            }
            BufferedReader out = new BufferedReader(
                new InputStreamReader(process.getInputStream(), StandardCharsets.UTF_8));
            String line = out.readLine();
            Matcher ready = READY.matcher(line == null ? "" : line);
            if (!ready.matches()) {
                stop(true);
                throw new IllegalStateException("the shim did not get ready: " + tail(1));
            }
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

    /** The test's own properties, as one process that is broker and controller takes them. */
    private Properties properties() {
        Properties properties = new Properties();
        for (Map.Entry<String, Object> entry : config.originals().entrySet()) {
            properties.setProperty(entry.getKey(), text(entry.getValue()));
        }
        int nodeId = config.nodeId();
        properties.setProperty("process.roles", "broker,controller");
        properties.setProperty("controller.quorum.voters", nodeId + "@localhost:9093");
        properties.remove("controller.quorum.bootstrap.servers");
        properties.remove("metadata.log.dir");
        properties.setProperty("listeners", withPorts(properties.getProperty("listeners"), true));
        if (properties.containsKey("advertised.listeners")) {
            String advertised = withPorts(properties.getProperty("advertised.listeners"), false);
            if (advertised.isEmpty()) {
                properties.remove("advertised.listeners");
            } else {
                properties.setProperty("advertised.listeners", advertised);
            }
        }
        return properties;
    }

    /**
     * Puts the ports of the first start in the place of 0. At the first start a bound listener takes a free one, and an
     * advertised one is left out, so that clients are told the address that they dialled.
     */
    private String withPorts(String listeners, boolean isBound) {
        List<String> entries = new ArrayList<>();
        for (String entry : listeners.split(",")) {
            String trimmed = entry.trim();
            int port = port(trimmed.split("://")[0]);
            if (!trimmed.endsWith(":0")) {
                entries.add(trimmed);
            } else if (port > 0) {
                entries.add(trimmed.substring(0, trimmed.length() - 1) + port);
            } else if (isBound) {
                entries.add(trimmed);
            }
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

    private String tail(int lines) throws IOException {
        List<String> all = Files.readAllLines(log.toPath());
        return all.subList(Math.max(0, all.size() - lines), all.size()).stream().collect(Collectors.joining("\n"));
    }
}
