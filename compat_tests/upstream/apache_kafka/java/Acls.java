package kafkashim;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import java.util.stream.Collectors;

import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.common.Endpoint;
import org.apache.kafka.common.KafkaFuture;
import org.apache.kafka.common.acl.AclBinding;
import org.apache.kafka.common.acl.AclBindingFilter;
import org.apache.kafka.common.errors.ApiException;
import org.apache.kafka.metadata.authorizer.StandardAcl;
import org.apache.kafka.server.authorizer.AclCreateResult;
import org.apache.kafka.server.authorizer.AclDeleteResult;
import org.apache.kafka.server.authorizer.Action;
import org.apache.kafka.server.authorizer.AuthorizableRequestContext;
import org.apache.kafka.server.authorizer.AuthorizationResult;
import org.apache.kafka.server.authorizer.Authorizer;
import org.apache.kafka.server.authorizer.AuthorizerServerInfo;

/** A broker's authorizer: ACLs are read from its metadata log, and an admin client of the harness changes them. */
final class Acls implements Authorizer {
    private final ShimNode node;

    Acls(ShimNode node) {
        this.node = node;
    }

    @Override
    public List<CompletionStage<AclCreateResult>> createAcls(
        AuthorizableRequestContext context, List<AclBinding> bindings
    ) {
        Map<AclBinding, KafkaFuture<Void>> done = node.admin().createAcls(bindings).values();
        List<CompletionStage<AclCreateResult>> results = new ArrayList<>();
        for (AclBinding binding : bindings) {
            results.add(CompletableFuture.completedFuture(resultOf(done.get(binding))));
        }
        return results;
    }

    private static AclCreateResult resultOf(KafkaFuture<Void> created) {
        try {
            created.get();
            return AclCreateResult.SUCCESS;
        } catch (java.util.concurrent.ExecutionException error) {
            return new AclCreateResult((ApiException) error.getCause());
        } catch (InterruptedException error) {
            throw new IllegalStateException(error);
        }
    }

    @Override
    public List<CompletionStage<AclDeleteResult>> deleteAcls(
        AuthorizableRequestContext context, List<AclBindingFilter> filters
    ) {
        List<CompletionStage<AclDeleteResult>> results = new ArrayList<>();
        Admin admin = node.admin();
        for (AclBindingFilter filter : filters) {
            try {
                results.add(CompletableFuture.completedFuture(new AclDeleteResult(
                    admin.deleteAcls(List.of(filter)).all().get().stream()
                        .map(AclDeleteResult.AclBindingDeleteResult::new).collect(Collectors.toList()))));
            } catch (InterruptedException | java.util.concurrent.ExecutionException error) {
                throw new IllegalStateException(error);
            }
        }
        return results;
    }

    @Override
    public Iterable<AclBinding> acls(AclBindingFilter filter) {
        return node.metadata().image().acls().acls().values().stream()
            .map(StandardAcl::toBinding).filter(filter::matches).toList();
    }

    @Override
    public int aclCount() {
        return node.metadata().image().acls().acls().size();
    }

    @Override
    public Map<Endpoint, CompletionStage<Void>> start(AuthorizerServerInfo information) {
        throw new NotApplicable("Authorizer.start");
    }

    @Override
    public List<AuthorizationResult> authorize(AuthorizableRequestContext context, List<Action> actions) {
        throw new NotApplicable("Authorizer.authorize");
    }

    @Override
    public void configure(Map<String, ?> options) {
        throw new NotApplicable("Authorizer.configure");
    }

    @Override
    public void close() {
    }
}
