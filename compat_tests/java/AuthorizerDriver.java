import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.net.InetAddress;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.Map;

import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.acl.AclOperation;
import org.apache.kafka.common.acl.AclPermissionType;
import org.apache.kafka.common.metrics.Metrics;
import org.apache.kafka.common.metrics.internals.PluginMetricsImpl;
import org.apache.kafka.common.resource.PatternType;
import org.apache.kafka.common.resource.ResourcePattern;
import org.apache.kafka.common.resource.ResourceType;
import org.apache.kafka.common.security.auth.KafkaPrincipal;
import org.apache.kafka.common.security.auth.SecurityProtocol;
import org.apache.kafka.common.utils.SecurityUtils;
import org.apache.kafka.metadata.authorizer.StandardAcl;
import org.apache.kafka.metadata.authorizer.StandardAuthorizer;
import org.apache.kafka.server.authorizer.Action;
import org.apache.kafka.server.authorizer.AuthorizableRequestContext;
import org.apache.kafka.server.authorizer.AuthorizationResult;

/**
 * Asks Kafka's StandardAuthorizer. A line of stdin is a new authorizer, an ACL, or a question, tab-separated; the answer
 * to a question is a line of stdout, 1 or 0.
 */
public final class AuthorizerDriver {
    private record Context(KafkaPrincipal principal, InetAddress clientAddress) implements AuthorizableRequestContext {
        public String listenerName() {
            return "PLAINTEXT";
        }

        public SecurityProtocol securityProtocol() {
            return SecurityProtocol.PLAINTEXT;
        }

        public int requestType() {
            return 0;
        }

        public int requestVersion() {
            return 0;
        }

        public String clientId() {
            return "";
        }

        public int correlationId() {
            return 0;
        }
    }

    public static void main(String[] arguments) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        PrintStream out = new PrintStream(System.out, false, StandardCharsets.UTF_8);
        StandardAuthorizer authorizer = null;
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            String[] words = line.split("\t", -1);
            switch (words[0]) {
                case "new" -> {
                    authorizer = new StandardAuthorizer();
                    authorizer.withPluginMetrics(new PluginMetricsImpl(new Metrics(), Map.of()));
                    authorizer.configure(Map.of("super.users", words[1], "allow.everyone.if.no.acl.found", words[2]));
                    authorizer.completeInitialLoad();
                }
                case "acl" -> authorizer.addAcl(Uuid.randomUuid(), new StandardAcl(
                    ResourceType.fromCode(Byte.parseByte(words[1])), words[2],
                    PatternType.fromCode(Byte.parseByte(words[3])), words[4], words[5],
                    AclOperation.fromCode(Byte.parseByte(words[6])),
                    AclPermissionType.fromCode(Byte.parseByte(words[7]))));
                default -> {
                    Context context = new Context(SecurityUtils.parseKafkaPrincipal(words[1]), InetAddress.getByName(words[2]));
                    AclOperation operation = AclOperation.fromCode(Byte.parseByte(words[3]));
                    ResourceType type = ResourceType.fromCode(Byte.parseByte(words[4]));
                    AuthorizationResult result;
                    if (words[0].equals("any")) {
                        result = authorizer.authorizeByResourceType(context, operation, type);
                    } else {
                        ResourcePattern resource = new ResourcePattern(type, words[5], PatternType.LITERAL);
                        result = authorizer.authorize(context, List.of(new Action(operation, resource, 1, false, false))).get(0);
                    }
                    out.println(result == AuthorizationResult.ALLOWED ? "1" : "0");
                }
            }
        }
        out.flush();
    }
}
