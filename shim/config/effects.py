"""Which options of Kafka have no effect in this broker, and why; and which are refused, because they promise something
that is not built. All others have an effect: code outside this package reads them, and a test shows what they do
(`shim/tests/config/test_effects.py`).
"""

from __future__ import annotations

ONE_BROKER = "there is one broker, so nothing is replicated, moved or sent to others"
ONE_REPLICA = "a partition has one replica, and never needs more than it has"
OWN_CONTROLLER = "the broker is its own controller, without a quorum and without calls between the two"
ONE_LOOP = "one event loop serves all requests, without pools of threads and queues between them"
NO_BUFFER = "nothing of this size is allocated or limited"
INLINE = "the coordinator's records are written at once, in the request that causes them"
NO_TIERS = "tiered storage is not implemented"
ONE_SHARE_ASSIGNOR = "there is one assignor for share groups, Kafka's simple one"
NO_SECURITY = (
    "it belongs to the renewal of Kerberos tickets, to clients inside a broker, or to Java's TLS, none of which is here"
)
NO_REPORTERS = "there are no reporters and no samples of metrics"
AT_ONCE = "the file is written as soon as an offset changes"
WITH_RECOVERY_POINTS = "high watermarks are log end offsets here, and are written with the recovery points"
AS_RECORDS_COME = "a segment's file grows with its records"
NO_DELAY = "the start has no such step"

# Options of server.properties: reason -> names.
BROKER_IDLE: dict[str, tuple[str, ...]] = {
    ONE_BROKER: (
        "alter.log.dirs.replication.quota.window.num",
        "alter.log.dirs.replication.quota.window.size.seconds",
        "auto.leader.rebalance.enable",
        "controlled.shutdown.enable",
        "follower.replication.throttled.rate",
        "leader.imbalance.check.interval.seconds",
        "leader.replication.throttled.rate",
        "num.replica.alter.log.dirs.threads",
        "num.replica.fetchers",
        "offsets.topic.replication.factor",
        "replica.fetch.backoff.ms",
        "replica.fetch.max.bytes",
        "replica.fetch.min.bytes",
        "replica.fetch.response.max.bytes",
        "replica.fetch.wait.max.ms",
        "replica.lag.time.max.ms",
        "replica.selector.class",
        "replica.socket.receive.buffer.bytes",
        "replica.socket.timeout.ms",
        "replication.quota.window.num",
        "replication.quota.window.size.seconds",
        "request.timeout.ms",
        "share.coordinator.state.topic.min.isr",
        "share.coordinator.state.topic.replication.factor",
        "socket.connection.setup.timeout.max.ms",
        "socket.connection.setup.timeout.ms",
        "transaction.state.log.min.isr",
        "transaction.state.log.replication.factor",
        "unclean.leader.election.enable",
        "unclean.leader.election.interval.ms",
    ),
    OWN_CONTROLLER: (
        "broker.heartbeat.interval.ms",
        "broker.session.timeout.ms",
        "controller.performance.always.log.threshold.ms",
        "controller.performance.sample.period.ms",
        "controller.quorum.append.linger.ms",
        "controller.quorum.auto.join.enable",
        "controller.quorum.bootstrap.servers",
        "controller.quorum.election.backoff.max.ms",
        "controller.quorum.election.timeout.ms",
        "controller.quorum.fetch.max.bytes",
        "controller.quorum.fetch.snapshot.max.bytes",
        "controller.quorum.fetch.timeout.ms",
        "controller.quorum.request.timeout.ms",
        "controller.quorum.retry.backoff.ms",
        "controller.quorum.voters",
        "controller.socket.timeout.ms",
        "early.start.listeners",
        "initial.broker.registration.timeout.ms",
        "internal.metadata.delete.delay.millis",
        "internal.metadata.log.segment.bytes",
        "internal.metadata.max.batch.size.in.bytes",
        "log.dir.failure.timeout.ms",
        "metadata.max.idle.interval.ms",
        "process.roles",
    ),
    ONE_LOOP: (
        "background.threads",
        "delete.records.purgatory.purge.interval.requests",
        "fetch.purgatory.purge.interval.requests",
        "group.coordinator.background.threads",
        "group.coordinator.threads",
        "log.cleaner.threads",
        "num.io.threads",
        "num.network.threads",
        "num.recovery.threads.per.data.dir",
        "producer.purgatory.purge.interval.requests",
        "queued.max.requests",
        "share.coordinator.threads",
        "share.fetch.purgatory.purge.interval.requests",
    ),
    NO_BUFFER: (
        "group.coordinator.cached.buffer.max.bytes",
        "log.cleaner.io.buffer.size",
        "offsets.load.buffer.size",
        "share.coordinator.cached.buffer.max.bytes",
        "share.coordinator.load.buffer.size",
        "transaction.state.log.load.buffer.size",
    ),
    INLINE: (
        "group.coordinator.append.linger.ms",
        "group.share.persister.class.name",
        "offsets.commit.timeout.ms",
        "share.coordinator.append.linger.ms",
        "share.coordinator.write.timeout.ms",
    ),
    AT_ONCE: ("log.flush.start.offset.checkpoint.interval.ms",),
    WITH_RECOVERY_POINTS: ("replica.high.watermark.checkpoint.interval.ms",),
    AS_RECORDS_COME: ("log.preallocate",),
    NO_DELAY: ("server.max.startup.time.ms",),
    NO_REPORTERS: (
        "kafka.metrics.polling.interval.secs",
        "kafka.metrics.reporters",
        "metrics.num.samples",
        "metrics.recording.level",
        "metrics.sample.window.ms",
    ),
    NO_TIERS: (
        "follower.fetch.last.tiered.offset.enable",
        "log.local.retention.bytes",
        "log.local.retention.ms",
        "remote.fetch.max.wait.ms",
        "remote.list.offsets.request.timeout.ms",
        "remote.log.index.file.cache.total.size.bytes",
        "remote.log.index.file.cache.ttl.ms",
        "remote.log.manager.copier.thread.pool.size",
        "remote.log.manager.copy.max.bytes.per.second",
        "remote.log.manager.copy.quota.window.num",
        "remote.log.manager.copy.quota.window.size.seconds",
        "remote.log.manager.expiration.thread.pool.size",
        "remote.log.manager.fetch.max.bytes.per.second",
        "remote.log.manager.fetch.quota.window.num",
        "remote.log.manager.fetch.quota.window.size.seconds",
        "remote.log.manager.follower.thread.pool.size",
        "remote.log.manager.task.interval.ms",
        "remote.log.manager.task.retry.backoff.max.ms",
        "remote.log.manager.task.retry.backoff.ms",
        "remote.log.manager.task.retry.jitter",
        "remote.log.manager.thread.pool.size",
        "remote.log.metadata.custom.metadata.max.bytes",
        "remote.log.metadata.manager.class.name",
        "remote.log.metadata.manager.class.path",
        "remote.log.metadata.manager.impl.prefix",
        "remote.log.metadata.manager.listener.name",
        "remote.log.reader.max.pending.tasks",
        "remote.log.reader.threads",
        "remote.log.storage.manager.class.name",
        "remote.log.storage.manager.class.path",
        "remote.log.storage.manager.impl.prefix",
    ),
    ONE_SHARE_ASSIGNOR: ("group.share.assignors",),
    NO_SECURITY: (
        "sasl.client.callback.handler.class",
        "sasl.kerberos.kinit.cmd",
        "sasl.kerberos.min.time.before.relogin",
        "sasl.kerberos.ticket.renew.jitter",
        "sasl.kerberos.ticket.renew.window.factor",
        "sasl.login.callback.handler.class",
        "sasl.login.class",
        "sasl.login.connect.timeout.ms",
        "sasl.login.read.timeout.ms",
        "sasl.login.refresh.buffer.seconds",
        "sasl.login.refresh.min.period.seconds",
        "sasl.login.refresh.window.factor",
        "sasl.login.refresh.window.jitter",
        "sasl.login.retry.backoff.max.ms",
        "sasl.login.retry.backoff.ms",
        "sasl.mechanism.controller.protocol",
        "sasl.mechanism.inter.broker.protocol",
        "sasl.oauthbearer.assertion.algorithm",
        "sasl.oauthbearer.assertion.claim.aud",
        "sasl.oauthbearer.assertion.claim.exp.seconds",
        "sasl.oauthbearer.assertion.claim.iss",
        "sasl.oauthbearer.assertion.claim.jti.include",
        "sasl.oauthbearer.assertion.claim.nbf.seconds",
        "sasl.oauthbearer.assertion.claim.sub",
        "sasl.oauthbearer.assertion.file",
        "sasl.oauthbearer.assertion.private.key.file",
        "sasl.oauthbearer.assertion.private.key.passphrase",
        "sasl.oauthbearer.assertion.template.file",
        "sasl.oauthbearer.client.credentials.client.id",
        "sasl.oauthbearer.client.credentials.client.secret",
        "sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms",
        "sasl.oauthbearer.jwks.endpoint.retry.backoff.ms",
        "sasl.oauthbearer.jwt.retriever.class",
        "sasl.oauthbearer.jwt.validator.class",
        "sasl.oauthbearer.scope",
        "sasl.oauthbearer.token.endpoint.url",
        "ssl.endpoint.identification.algorithm",
        "ssl.keymanager.algorithm",
        "ssl.protocol",
        "ssl.provider",
        "ssl.secure.random.implementation",
        "ssl.trustmanager.algorithm",
    ),
}

TOPIC_IDLE: dict[str, tuple[str, ...]] = {
    ONE_REPLICA: ("min.insync.replicas",),
    ONE_BROKER: (
        "follower.replication.throttled.replicas",
        "leader.replication.throttled.replicas",
        "unclean.leader.election.enable",
    ),
    AS_RECORDS_COME: ("preallocate",),
    NO_TIERS: (
        "local.retention.bytes",
        "local.retention.ms",
        "remote.log.copy.disable",
        "remote.log.delete.on.disable",
    ),
}

GROUP_IDLE: dict[str, tuple[str, ...]] = {}

CLIENT_METRICS_IDLE: dict[str, tuple[str, ...]] = {}

# Broker options that stop the start, unless they have their default: name -> what is missing.
REFUSED: dict[str, str] = {
    "transaction.two.phase.commit.enable": "two-phase commit (KIP-939) is not implemented",
}


def by_name(reasons: dict[str, tuple[str, ...]]) -> dict[str, str]:
    """Turn reason -> names into name -> reason."""
    return {name: reason for reason, names in reasons.items() for name in names}
