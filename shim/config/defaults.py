"""The defaults of the options that this broker uses, as typed attributes. The lowest module of the package."""

from __future__ import annotations

MAX_INT64 = 0x7FFFFFFFFFFFFFFF


class ConfigError(Exception):
    """An option is unknown, has the wrong type, is out of range or is not implemented. The message is for the
    operator."""


class BrokerDefaults:
    """Kafka's defaults (`log.retention.ms` is `log_retention_ms`). `BrokerConfig` has the values in force.

    If Kafka has synonyms (`log.retention.hours`, `.minutes`, `.ms`), the attribute is the resolved value.
    """

    # --- identity, listeners, connections
    node_id: int = 1
    broker_rack: str | None = None
    listeners: str = "PLAINTEXT://127.0.0.1:9092"
    advertised_listeners: str | None = None
    listener_security_protocol_map: str = "SASL_SSL:SASL_SSL,PLAINTEXT:PLAINTEXT,SSL:SSL,SASL_PLAINTEXT:SASL_PLAINTEXT"
    controller_listener_names: tuple[str, ...] = ()
    socket_request_max_bytes: int = 104857600
    socket_send_buffer_bytes: int = 102400
    socket_receive_buffer_bytes: int = 102400
    socket_listen_backlog_size: int = 4096  # Kafka: 50; what overflows waits a second, and Linux cuts it to somaxconn
    queued_max_request_bytes: int = -1
    max_connections: int = 2147483647
    max_connections_per_ip: int = 2147483647
    max_connections_per_ip_overrides: str = ""
    connections_max_idle_ms: int = 600000
    unstable_api_versions_enable: bool = False
    unstable_feature_versions_enable: bool = False
    max_connection_creation_rate: int = 2147483647
    security_inter_broker_protocol: str = "PLAINTEXT"
    inter_broker_listener_name: str | None = None
    kafka_shim_http_bearer_token: str | None = None
    kafka_shim_http_console: bool = False
    kafka_shim_http_console_changes: bool = False
    kafka_shim_http_console_public_url: str = ""
    kafka_shim_http_listener: str = ""  # an option of this project, as the next ones
    kafka_shim_login_timeout_ms: int = 30000
    kafka_shim_disconnect_changed_users: bool = False

    metric_reporters: tuple[str, ...] = ("org.apache.kafka.common.metrics.JmxReporter",)
    telemetry_max_bytes: int = 1048576

    # --- security
    authorizer_class_name: str = ""
    create_topic_policy_class_name: str | None = None
    alter_config_policy_class_name: str | None = None
    delegation_token_secret_key: str | None = None
    delegation_token_max_lifetime_ms: int = 604800000
    delegation_token_expiry_time_ms: int = 86400000
    delegation_token_expiry_check_interval_ms: int = 3600000

    # --- data directories
    log_dirs: tuple[str, ...] = ("./kafka-shim-data",)
    cordoned_log_dirs: tuple[str, ...] = ()
    metadata_log_dir: str | None = None
    log_flush_offset_checkpoint_interval_ms: int = 60000
    log_retention_check_interval_ms: int = 300000
    log_initial_task_delay_ms: int = 30000
    metadata_log_max_record_bytes_between_snapshots: int = 20971520
    metadata_log_max_snapshot_interval_ms: int = 3600000
    metadata_log_segment_bytes: int = 1073741824
    metadata_log_segment_ms: int = 604800000
    metadata_max_retention_bytes: int = 104857600
    metadata_max_retention_ms: int = 604800000

    # --- client quotas
    quota_window_num: int = 11
    quota_window_size_seconds: int = 1
    controller_quota_window_num: int = 11
    controller_quota_window_size_seconds: int = 1

    # --- topics: creation, and the defaults behind TopicConfig
    auto_create_topics_enable: bool = True
    delete_topic_enable: bool = True
    num_partitions: int = 1
    default_replication_factor: int = 1
    max_request_partition_size_limit: int = 2000
    min_insync_replicas: int = 1
    compression_type: str = "producer"
    compression_gzip_level: int = -1
    compression_lz4_level: int = 9
    compression_zstd_level: int = 3
    log_cleanup_policy: tuple[str, ...] = ("delete",)
    log_retention_ms: int = 604800000
    log_retention_bytes: int = -1
    log_roll_ms: int = 604800000
    log_roll_jitter_ms: int = 0
    log_segment_bytes: int = 1073741824
    log_segment_delete_delay_ms: int = 60000
    log_index_interval_bytes: int = 4096
    log_index_size_max_bytes: int = 10485760
    log_flush_interval_messages: int = MAX_INT64
    log_flush_interval_ms: int = MAX_INT64
    log_message_timestamp_type: str = "CreateTime"
    log_message_timestamp_before_max_ms: int = MAX_INT64
    log_message_timestamp_after_max_ms: int = 3600000
    message_max_bytes: int = 1048588

    # --- compaction
    log_cleaner_enable: bool = True
    log_cleaner_backoff_ms: int = 15000
    log_cleaner_dedupe_buffer_size: int = 134217728
    log_cleaner_io_buffer_load_factor: float = 0.9
    log_cleaner_io_max_bytes_per_second: float = 1.7976931348623157e308
    log_cleaner_delete_retention_ms: int = 86400000
    log_cleaner_min_cleanable_ratio: float = 0.5
    log_cleaner_min_compaction_lag_ms: int = 0
    log_cleaner_max_compaction_lag_ms: int = MAX_INT64

    # --- fetch
    fetch_max_bytes: int = 57671680
    max_incremental_fetch_session_cache_slots: int = 1000

    # --- producers and transactions
    producer_id_expiration_ms: int = 86400000
    producer_id_expiration_check_interval_ms: int = 600000
    transaction_max_timeout_ms: int = 900000
    transactional_id_expiration_ms: int = 604800000
    transaction_state_log_num_partitions: int = 50
    transaction_state_log_segment_bytes: int = 104857600
    transaction_abort_timed_out_transaction_cleanup_interval_ms: int = 10000
    transaction_remove_expired_transaction_cleanup_interval_ms: int = 3600000
    transaction_partition_verification_enable: bool = True
    add_partitions_to_txn_retry_backoff_ms: int = 20
    add_partitions_to_txn_retry_backoff_max_ms: int = 100

    # --- groups
    offset_metadata_max_bytes: int = 4096
    offsets_retention_minutes: int = 10080
    offsets_retention_check_interval_ms: int = 600000
    offsets_topic_num_partitions: int = 50
    offsets_topic_segment_bytes: int = 104857600
    offsets_topic_compression_codec: int = 0
    group_coordinator_rebalance_protocols: tuple[str, ...] = ("classic", "consumer", "streams")
    group_initial_rebalance_delay_ms: int = 0  # Kafka: 3000; 0 here, so that no group waits for more members
    group_min_session_timeout_ms: int = 6000
    group_max_session_timeout_ms: int = 1800000
    group_max_size: int = 2147483647
    group_consumer_assignors: tuple[str, ...] = ("uniform", "range")
    group_consumer_assignment_interval_ms: int = 1000
    group_consumer_min_assignment_interval_ms: int = 0
    group_consumer_max_assignment_interval_ms: int = 15000
    group_consumer_heartbeat_interval_ms: int = 5000
    group_consumer_min_heartbeat_interval_ms: int = 5000
    group_consumer_max_heartbeat_interval_ms: int = 15000
    group_consumer_session_timeout_ms: int = 45000
    group_consumer_min_session_timeout_ms: int = 45000
    group_consumer_max_session_timeout_ms: int = 60000
    group_consumer_max_size: int = 2147483647
    group_streams_assignment_interval_ms: int = 1000
    group_streams_min_assignment_interval_ms: int = 0
    group_streams_max_assignment_interval_ms: int = 15000
    group_streams_heartbeat_interval_ms: int = 5000
    group_streams_min_heartbeat_interval_ms: int = 5000
    group_streams_max_heartbeat_interval_ms: int = 15000
    group_streams_session_timeout_ms: int = 45000
    group_streams_min_session_timeout_ms: int = 45000
    group_streams_max_session_timeout_ms: int = 60000
    group_streams_initial_rebalance_delay_ms: int = 3000
    group_streams_num_standby_replicas: int = 0
    group_streams_max_standby_replicas: int = 2
    group_streams_max_size: int = 2147483647
    group_consumer_migration_policy: str = "bidirectional"
    group_consumer_regex_refresh_interval_ms: int = 600000

    # --- share groups
    group_share_assignment_interval_ms: int = 1000
    group_share_min_assignment_interval_ms: int = 0
    group_share_max_assignment_interval_ms: int = 15000
    group_share_heartbeat_interval_ms: int = 5000
    group_share_min_heartbeat_interval_ms: int = 5000
    group_share_max_heartbeat_interval_ms: int = 15000
    group_share_session_timeout_ms: int = 45000
    group_share_min_session_timeout_ms: int = 45000
    group_share_max_session_timeout_ms: int = 60000
    group_share_max_size: int = 200
    group_share_initialize_retry_interval_ms: int = 30000
    group_share_record_lock_duration_ms: int = 30000
    group_share_min_record_lock_duration_ms: int = 15000
    group_share_max_record_lock_duration_ms: int = 60000
    group_share_delivery_count_limit: int = 5
    group_share_min_delivery_count_limit: int = 2
    group_share_max_delivery_count_limit: int = 10
    group_share_partition_max_record_locks: int = 2000
    group_share_min_partition_max_record_locks: int = 100
    group_share_max_partition_max_record_locks: int = 4000
    group_share_max_share_sessions: int = 2000
    share_coordinator_state_topic_num_partitions: int = 50
    share_coordinator_state_topic_segment_bytes: int = 104857600
    share_coordinator_state_topic_compression_codec: int = 0
    share_coordinator_snapshot_update_records_per_snapshot: int = 500
    share_coordinator_state_topic_prune_interval_ms: int = 300000
    share_coordinator_cold_partition_snapshot_interval_ms: int = 300000
