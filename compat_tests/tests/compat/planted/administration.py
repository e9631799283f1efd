"""Bugs of administration, configuration and retention."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from kafka_shim.compat.tests.compat.planted import caught_by


@caught_by("f1-validation-creates-nothing", "topics after the validation: ['NONE', 'NONE'] where")
def validation_creates_the_topic() -> None:
    from kafka_shim.api import k19_create_topics
    from kafka_shim.protocol.messages.create_topics_request import CreateTopicsRequest

    right = k19_create_topics.handle

    async def really(context: Any, request: CreateTopicsRequest) -> Any:
        request.validate_only = False
        return await right(context, request)

    k19_create_topics.handle = really


@caught_by("f2-deleted-records-are-gone", "the first offset: 0 where 3 is right")
def deleted_records_stay() -> None:
    from kafka_shim.errors import ErrorCode, KafkaError
    from kafka_shim.storage.log import PartitionLog

    def unchanged(log: PartitionLog, offset: int) -> int:
        if offset > log.high_watermark:
            raise KafkaError(ErrorCode.OFFSET_OUT_OF_RANGE)
        return log.high_watermark if offset == -1 else offset

    PartitionLog.delete_records_before = unchanged  # type: ignore[method-assign]


@caught_by("g1-an-option-tells-its-source", "source of max.message.bytes: 5 where 1 is right")
def every_source_is_the_default() -> None:
    from kafka_shim.api import k32_describe_configs

    right = k32_describe_configs._entry

    def from_nowhere(entry: Any, request: Any) -> Any:
        answer = right(entry, request)
        answer.config_source = 5
        return answer

    k32_describe_configs._entry = from_nowhere


@caught_by("g1-an-option-tells-its-source", "synonyms of max.message.bytes: [('max.message.bytes', 1)] where")
def the_last_synonym_is_missing() -> None:
    from kafka_shim.api import k32_describe_configs

    right = k32_describe_configs._entry

    def shorter(entry: Any, request: Any) -> Any:
        answer = right(entry, request)
        answer.synonyms = answer.synonyms[:-1]
        return answer

    k32_describe_configs._entry = shorter


@caught_by("g2-a-changed-option-is-in-force", "the smaller max.message.bytes is in force: not within")
def a_change_reaches_no_log() -> None:
    from kafka_shim.storage.log import PartitionLog

    PartitionLog.configure = lambda log, config: None  # type: ignore[method-assign]


@caught_by("f3-partitions-are-added-and-never-taken", "counts: ['NONE', 'NONE', 'NONE'] where")
def a_count_that_is_refused_is_answered_as_done() -> None:
    from kafka_shim.errors import KafkaError
    from kafka_shim.metadata.store import MetadataStore

    right = MetadataStore.decide_growth

    def silent(store: MetadataStore, *arguments: Any) -> list[list[int]]:
        with suppress(KafkaError):
            return right(store, *arguments)
        return []

    MetadataStore.decide_growth = silent  # type: ignore[method-assign]


@caught_by("g3-lists-are-appended-to-and-subtracted-from", "both policies: not within")
def what_is_appended_replaces() -> None:
    from kafka_shim.metadata import configs

    right = configs._operated

    def replaces(kind: int, option: str, current: str | None, operation: int, value: str | None) -> str | None:
        return value if operation == configs.APPEND else right(kind, option, current, operation, value)

    configs._operated = replaces


@caught_by("g3-one-bad-option-refuses-them-all", "a bad value: 'NONE' where 'INVALID_CONFIG' is right")
def a_bad_value_is_stored() -> None:
    from kafka_shim.errors import KafkaError
    from kafka_shim.metadata import configs

    right = configs._check_result

    def lenient(metadata: Any, kind: int, name: str, options: Any) -> None:
        with suppress(KafkaError):
            right(metadata, kind, name, options)

    configs._check_result = lenient


@caught_by("h3-old-records-go-with-their-segment", "the log start: not within")
def nothing_grows_old() -> None:
    from kafka_shim.storage import retention

    retention._over_time = lambda log, now_ms: lambda segment, later: False
