package kafkashim;

import java.io.BufferedReader;
import java.io.ByteArrayInputStream;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.nio.charset.StandardCharsets;
import java.security.cert.CertificateFactory;
import java.security.cert.X509Certificate;
import java.util.Base64;
import java.util.HashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Optional;
import java.util.Properties;
import java.util.stream.Stream;

import javax.net.ssl.SSLSession;
import javax.security.auth.callback.Callback;
import javax.security.auth.callback.NameCallback;
import javax.security.sasl.SaslServer;

import com.fasterxml.jackson.core.type.TypeReference;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;

import org.apache.kafka.common.ClusterResource;
import org.apache.kafka.common.ClusterResourceListener;
import org.apache.kafka.common.Configurable;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.metrics.KafkaMetricsContext;
import org.apache.kafka.common.metrics.MetricsContext;
import org.apache.kafka.common.metrics.MetricsReporter;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.security.auth.AuthenticateCallbackHandler;
import org.apache.kafka.common.security.auth.AuthenticationContext;
import org.apache.kafka.common.security.auth.KafkaPrincipalBuilder;
import org.apache.kafka.common.security.auth.PlaintextAuthenticationContext;
import org.apache.kafka.common.security.auth.SaslAuthenticationContext;
import org.apache.kafka.common.security.auth.SecurityProtocol;
import org.apache.kafka.common.security.auth.SslAuthenticationContext;

import org.apache.kafka.common.security.plain.PlainAuthenticateCallback;
import org.apache.kafka.metadata.authorizer.StandardAuthorizer;
import org.apache.kafka.server.policy.AlterConfigPolicy;
import org.apache.kafka.server.policy.CreateTopicPolicy;

import org.mockito.Mockito;

import kafka.server.KafkaConfig;

/**
 * Runs the plug-in classes of tests in this JVM for a shim, whose Python plug-ins ask over a socket: a line of JSON with
 * what the plug-in is given, answered by a line of JSON. So a plug-in sees the state that its test keeps for it.
 */
final class PluginServer implements AutoCloseable {
    static final String PRINCIPAL_BUILDER = "principal.builder.class";
    private static final long STOP_MS = 5_000;
    private static final ObjectMapper JSON = new ObjectMapper();

    private static final String PLUGINS = "kafka_shim.compat.upstream.apache_kafka.plugins.";
    private static final String CREATE_TOPIC = "create.topic.policy.class.name";
    private static final String ALTER_CONFIG = "alter.config.policy.class.name";
    private static final String AUTHORIZER = "authorizer.class.name";
    private static final String REPORTERS = "metric.reporters";
    /** What RemoteLogManager loads when tiered storage is on. */
    private static final String TIERED = "remote.log.storage.system.enable";
    private static final String REMOTE_STORAGE = "remote.log.storage.manager.class.name";
    private static final String PLAIN_HANDLER = "plain.sasl.server.callback.handler.class";
    /** Authorizers of tests, and their twins. */
    private static final Map<String, String> AUTHORIZERS = Map.of(
        "kafka.server.AlterCredentialsTest$TestStandardAuthorizer", PLUGINS + "AllowsAllButUnauthorizedAlter",
        "kafka.server.RequestQuotaTest$KraftTestAuthorizer", PLUGINS + "AllowsAllButUnauthorized",
        // It decides like its parent. Two tests hold its updates up, and see that here nothing does.
        "kafka.api.SslAdminIntegrationTest$TestableStandardAuthorizer", StandardAuthorizer.class.getName());

    private final KafkaConfig config;
    private final Map<String, Object> all = new HashMap<>();
    private final Map<String, Object> policies = new HashMap<>();
    private final ServerSocket server;
    private final Thread thread;

    PluginServer(KafkaConfig config, KafkaConfig controller) throws IOException {
        this.config = config;
        if (controller != null) {
            all.putAll(controller.originals());
        }
        all.putAll(config.originals());
        this.server = new ServerSocket(0, 50, InetAddress.getLoopbackAddress());
        this.thread = new Thread(this::serve, "kafkashim-plugins");
        thread.setDaemon(true);
        thread.start();
    }

    /** Puts what asks this JVM in the place of classes. Not applicable where there is no such thing. */
    static void replace(Properties properties) {
        for (String name : properties.stringPropertyNames()) {
            String type = properties.getProperty(name);
            if (name.endsWith(PRINCIPAL_BUILDER)) {
                properties.setProperty(name, PLUGINS + "PrincipalBuilder");
            } else if (name.equals(CREATE_TOPIC)) {
                properties.setProperty(name, PLUGINS + "CreateTopicPolicy");
            } else if (name.equals(ALTER_CONFIG)) {
                properties.setProperty(name, PLUGINS + "AlterConfigPolicy");
            } else if (name.endsWith(PLAIN_HANDLER) && !type.startsWith("org.apache.kafka.common.security")) {
                properties.setProperty(name, PLUGINS + "PlainHandler");
            } else if (name.equals(AUTHORIZER) && AUTHORIZERS.containsKey(type)) {
                properties.setProperty(name, AUTHORIZERS.get(type));
            } else if (name.equals(REPORTERS) && type.endsWith("ClientTelemetryTest$TelemetryExporter")) {
                properties.setProperty(name, PLUGINS + "TelemetryExporter");
            } else if (name.equals(REPORTERS) && Stream.of(type.split(",")).anyMatch(PluginServer::isOfTheTest)) {
                properties.setProperty(name, PLUGINS + "MetricsReporters");
            } else if (name.equals(REMOTE_STORAGE) && !type.isEmpty() && properties.getProperty(TIERED, "").equals("true")) {
                throw new NotApplicable("RemoteLogManager with a class of the test as " + name);
            } else if (name.equals("client.quota.callback.class") && !type.isEmpty()
                || name.equals(AUTHORIZER) && !type.isEmpty()
                && !type.equals(StandardAuthorizer.class.getName())) {
                throw new NotApplicable("a class of the test as " + name);
            }
        }
    }

    private static boolean isOfTheTest(String type) {
        return !type.isBlank() && !type.trim().endsWith("JmxReporter");
    }

    /** Whether the authorizer of this name decides by ACLs, and in no other way. */
    static boolean isStandard(String authorizer) {
        String standard = StandardAuthorizer.class.getName();
        return standard.equals(AUTHORIZERS.getOrDefault(authorizer, authorizer));
    }

    int port() {
        return server.getLocalPort();
    }

    private void serve() {
        while (!server.isClosed()) {
            try (Socket client = server.accept();
                 PrintStream out = new PrintStream(client.getOutputStream(), true, StandardCharsets.UTF_8);
                 BufferedReader in = new BufferedReader(
                     new InputStreamReader(client.getInputStream(), StandardCharsets.UTF_8))) {
                out.println(JSON.writeValueAsString(answer(JSON.readTree(in.readLine()))));
            } catch (Exception error) {
                // The shim sees a connection without an answer, and refuses its client.
                if (!server.isClosed()) {
                    error.printStackTrace();
                }
            }
        }
    }

    private Object answer(JsonNode asked) throws Exception {
        if (asked.has("password")) {
            return isRight(asked.get("user").asText(), asked.get("password").asText());
        }
        if (asked.has("labels")) {
            report(JSON.convertValue(asked.get("labels"), new TypeReference<>() { }));
            return List.of();
        }
        return asked.has("listener") ? principal(asked) : verdict(asked);
    }

    /** What the test's handler of PLAIN says of a password. */
    private boolean isRight(String user, String password) throws Exception {
        for (Map.Entry<String, Object> entry : all.entrySet()) {
            if (entry.getKey().endsWith(PLAIN_HANDLER)) {
                AuthenticateCallbackHandler handler = (AuthenticateCallbackHandler) type(entry.getValue())
                    .getDeclaredConstructor().newInstance();
                handler.configure(all, "PLAIN", List.of());
                PlainAuthenticateCallback answer = new PlainAuthenticateCallback(password.toCharArray());
                handler.handle(new Callback[] {new NameCallback("user: ", user), answer});
                return answer.authenticated();
            }
        }
        throw new IllegalStateException("no handler of PLAIN is configured");
    }

    /** Tells the test's reporters of metrics what the broker tells its own: the context, and the cluster's id. */
    private void report(Map<String, String> labels) throws Exception {
        String namespace = labels.remove(MetricsContext.NAMESPACE);
        for (String name : all.get(REPORTERS).toString().split(",")) {
            if (isOfTheTest(name)) {
                MetricsReporter reporter = (MetricsReporter) type(name.trim()).getDeclaredConstructor().newInstance();
                reporter.configure(all);
                reporter.init(List.of());
                reporter.contextChange(new KafkaMetricsContext(namespace, labels));
                if (reporter instanceof ClusterResourceListener listener) {
                    listener.onUpdate(new ClusterResource(labels.get("kafka.cluster.id")));
                }
            }
        }
    }

    private static Class<?> type(Object name) throws ClassNotFoundException {
        return name instanceof Class<?> known ? known : Class.forName(name.toString());
    }

    /** What a policy says: empty, or the name of its exception and the message. */
    private List<String> verdict(JsonNode asked) throws Exception {
        String option = asked.get("option").asText();
        Object policy = policies.get(option);
        if (policy == null) {
            Object name = all.get(option);
            policy = type(name).getDeclaredConstructor().newInstance();
            ((Configurable) policy).configure(all);
            policies.put(option, policy);
        }
        Map<String, String> configs = JSON.convertValue(asked.get("configs"), new TypeReference<>() { });
        try {
            if (policy instanceof CreateTopicPolicy forTopics) {
                Map<Integer, List<Integer>> replicas =
                    JSON.convertValue(asked.get("assignments"), new TypeReference<>() { });
                forTopics.validate(new CreateTopicPolicy.RequestMetadata(asked.get("topic").asText(),
                    JSON.convertValue(asked.get("partitions"), Integer.class),
                    JSON.convertValue(asked.get("factor"), Short.class), replicas, configs));
            } else {
                ((AlterConfigPolicy) policy).validate(new AlterConfigPolicy.RequestMetadata(new ConfigResource(
                    ConfigResource.Type.forId((byte) asked.get("type").asInt()), asked.get("name").asText()), configs));
            }
            return List.of();
        } catch (RuntimeException error) {
            return List.of(Errors.forException(error).name(), String.valueOf(error.getMessage()));
        }
    }

    private String principal(JsonNode asked) throws Exception {
        String listener = asked.get("listener").asText();
        Object name = config.originals().get(
            "listener.name." + listener.toLowerCase(Locale.ROOT) + "." + PRINCIPAL_BUILDER);
        if (name == null) {
            name = all.get(PRINCIPAL_BUILDER);
        }
        KafkaPrincipalBuilder builder = (KafkaPrincipalBuilder) type(name).getDeclaredConstructor().newInstance();
        return builder.build(context(asked)).toString();
    }

    private static AuthenticationContext context(JsonNode asked) throws Exception {
        String listener = asked.get("listener").asText();
        InetAddress address = InetAddress.getByName(asked.get("address").asText());
        SecurityProtocol protocol = SecurityProtocol.forName(asked.get("protocol").asText());
        Optional<SSLSession> session = Optional.empty();
        if (asked.hasNonNull("certificate")) {
            byte[] bytes = Base64.getDecoder().decode(asked.get("certificate").asText());
            X509Certificate certificate = (X509Certificate) CertificateFactory.getInstance("X.509")
                .generateCertificate(new ByteArrayInputStream(bytes));
            SSLSession made = Mockito.mock(SSLSession.class, Mockito.withSettings().stubOnly());
            Mockito.when(made.getPeerPrincipal()).thenReturn(certificate.getSubjectX500Principal());
            session = Optional.of(made);
        }
        if (asked.hasNonNull("mechanism")) {
            SaslServer sasl = Mockito.mock(SaslServer.class, Mockito.withSettings().stubOnly());
            Mockito.when(sasl.getMechanismName()).thenReturn(asked.get("mechanism").asText());
            Mockito.when(sasl.getAuthorizationID()).thenReturn(asked.get("authorization_id").asText());
            return new SaslAuthenticationContext(sasl, protocol, address, listener, session);
        }
        return session.isPresent() ? new SslAuthenticationContext(session.get(), address, listener)
            : new PlaintextAuthenticationContext(address, listener);
    }

    @Override
    public void close() throws IOException {
        server.close();
        try {
            // Some tests look for threads that are left.
            thread.join(STOP_MS);
        } catch (InterruptedException interrupted) {
            Thread.currentThread().interrupt();
        }
    }
}
