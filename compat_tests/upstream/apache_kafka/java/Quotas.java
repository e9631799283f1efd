package kafkashim;

import java.lang.reflect.Field;
import java.net.InetAddress;
import java.util.HashMap;
import java.util.Map;
import java.util.Optional;

import kafka.network.ConnectionQuotas;
import kafka.server.ClientRequestQuotaManager;
import kafka.server.QuotaFactory.QuotaManagers;
import kafka.server.ReplicationQuotaManager;

import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.metrics.Quota;
import org.apache.kafka.common.quota.ClientQuotaEntity;
import org.apache.kafka.common.security.auth.KafkaPrincipal;
import org.apache.kafka.image.ClientQuotaImage;
import org.apache.kafka.network.SocketServerConfigs;
import org.apache.kafka.server.config.QuotaConfig;
import org.apache.kafka.server.quota.ClientQuotaManager;
import org.apache.kafka.server.quota.ControllerMutationQuotaManager;

/** The limits that the metadata log sets. What was used of them only the broker knows. */
final class Quotas {
    private Quotas() {
    }

    static QuotaManagers managers(Replacement.Cluster cluster, String name) {
        return Stand.in(QuotaManagers.class, name, new Managers(cluster, name));
    }

    static ConnectionQuotas connections(Replacement.Cluster cluster, String name) {
        ConnectionQuotas made = Stand.in(ConnectionQuotas.class, name, new Connections(cluster));
        try {
            // A test reads the field.
            Field limit = ConnectionQuotas.class.getDeclaredField("brokerMaxConnections");
            limit.setAccessible(true);
            limit.set(made, Integer.valueOf(option(cluster, SocketServerConfigs.MAX_CONNECTIONS_CONFIG)
                .orElse(String.valueOf(cluster.config().maxConnections()))));
        } catch (ReflectiveOperationException error) {
            throw new IllegalStateException(error);
        }
        return made;
    }

    /** What is set for the broker dynamically, for itself or by default. */
    private static Optional<String> option(Replacement.Cluster cluster, String name) {
        for (String broker : new String[] {String.valueOf(cluster.nodeId()), ""}) {
            String set = cluster.metadata().image().configs()
                .configProperties(new ConfigResource(ConfigResource.Type.BROKER, broker)).getProperty(name);
            if (set != null) {
                return Optional.of(set);
            }
        }
        return Optional.empty();
    }

    private static Double limit(Replacement.Cluster cluster, Map<String, String> entity, String option) {
        ClientQuotaImage found = cluster.metadata().image().clientQuotas().entities()
            .get(new ClientQuotaEntity(entity));
        return found == null ? null : found.quotas().get(option);
    }

    public static final class Managers {
        private final Replacement.Cluster cluster;
        private final String name;

        Managers(Replacement.Cluster cluster, String name) {
            this.cluster = cluster;
            this.name = name;
        }

        private <T> T clients(Class<T> type, String which, String option) {
            return Stand.in(type, name + "." + which, new Clients(cluster, option));
        }

        private ReplicationQuotaManager replicas(String which, String option) {
            return Stand.in(ReplicationQuotaManager.class, name + "." + which, new Replicas(cluster, option));
        }

        public ClientQuotaManager fetch() {
            return clients(ClientQuotaManager.class, "fetch", QuotaConfig.CONSUMER_BYTE_RATE_OVERRIDE_CONFIG);
        }

        public ClientQuotaManager produce() {
            return clients(ClientQuotaManager.class, "produce", QuotaConfig.PRODUCER_BYTE_RATE_OVERRIDE_CONFIG);
        }

        public ClientRequestQuotaManager request() {
            return clients(ClientRequestQuotaManager.class, "request", QuotaConfig.REQUEST_PERCENTAGE_OVERRIDE_CONFIG);
        }

        public ControllerMutationQuotaManager controllerMutation() {
            return clients(ControllerMutationQuotaManager.class, "controllerMutation",
                QuotaConfig.CONTROLLER_MUTATION_RATE_OVERRIDE_CONFIG);
        }

        public ReplicationQuotaManager leader() {
            return replicas("leader", QuotaConfig.LEADER_REPLICATION_THROTTLED_RATE_CONFIG);
        }

        public ReplicationQuotaManager follower() {
            return replicas("follower", QuotaConfig.FOLLOWER_REPLICATION_THROTTLED_RATE_CONFIG);
        }

        public ReplicationQuotaManager alterLogDirs() {
            return replicas("alterLogDirs", QuotaConfig.REPLICA_ALTER_LOG_DIRS_IO_MAX_BYTES_PER_SECOND_CONFIG);
        }
    }

    /** Of one kind of client quota, in the order of precedence of KIP-55. */
    public static final class Clients {
        private final Replacement.Cluster cluster;
        private final String option;

        Clients(Replacement.Cluster cluster, String option) {
            this.cluster = cluster;
            this.option = option;
        }

        public Quota quota(KafkaPrincipal principal, String clientId) {
            return quota(principal.getName(), clientId);
        }

        public Quota quota(String user, String clientId) {
            String[][] entities = {
                {user, clientId}, {user, null}, {user}, {null, clientId}, {null, null}, {null}
            };
            for (String[] names : entities) {
                Map<String, String> entity = new HashMap<>();
                entity.put(ClientQuotaEntity.USER, names[0]);
                if (names.length > 1) {
                    entity.put(ClientQuotaEntity.CLIENT_ID, names[1]);
                }
                Double found = limit(cluster, entity, option);
                if (found != null) {
                    return Quota.upperBound(found);
                }
            }
            for (String name : new String[] {clientId, null}) {
                Map<String, String> entity = new HashMap<>();
                entity.put(ClientQuotaEntity.CLIENT_ID, name);
                Double found = limit(cluster, entity, option);
                if (found != null) {
                    return Quota.upperBound(found);
                }
            }
            return Quota.upperBound(Long.MAX_VALUE);
        }
    }

    public static final class Replicas {
        private final Replacement.Cluster cluster;
        private final String option;

        Replicas(Replacement.Cluster cluster, String option) {
            this.cluster = cluster;
            this.option = option;
        }

        public long upperBound() {
            return Quotas.option(cluster, option).map(Long::parseLong)
                .orElse(QuotaConfig.QUOTA_BYTES_PER_SECOND_DEFAULT);
        }
    }

    public static final class Connections {
        private final Replacement.Cluster cluster;

        Connections(Replacement.Cluster cluster) {
            this.cluster = cluster;
        }

        public int connectionRateForIp(InetAddress address) {
            Map<String, String> everyone = new HashMap<>();
            everyone.put(ClientQuotaEntity.IP, null);
            return Optional.ofNullable(limit(
                    cluster, Map.of(ClientQuotaEntity.IP, address.getHostAddress()), QuotaConfig.IP_CONNECTION_RATE_OVERRIDE_CONFIG))
                .or(() -> Optional.ofNullable(limit(cluster, everyone, QuotaConfig.IP_CONNECTION_RATE_OVERRIDE_CONFIG)))
                .map(Double::intValue).orElse(QuotaConfig.IP_CONNECTION_RATE_DEFAULT);
        }
    }
}
