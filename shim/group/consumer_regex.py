"""Subscriptions by regular expression (KIP-848): RE2 syntax, matched against whole topic names, resolved per group.

An expression is resolved right after the response to the heartbeat that brought it. It is resolved again by a later
heartbeat after topics were created or after `group.consumer.regex.refresh.interval.ms`. All expressions of a group are
resolved together, at most every ten seconds, and match only topics that the client whose request asked for it may
describe (Kafka: TopicRegexResolver). The result is a record; a change bumps the group epoch. The cost of a
match is bounded (`kafka_shim.patterns`).
"""

from __future__ import annotations

from kafka_shim.errors import KafkaError
from kafka_shim.group.consumer import MAX_INT64, ConsumerGroup, Resolved, add_count
from kafka_shim.group.consumer_target import REFRESH_INTERVAL_MS
from kafka_shim.group.decision import REGEX, Decision
from kafka_shim.group.records import Record
from kafka_shim.patterns import compile_pattern
from kafka_shim.protocol.records.consumer_group_regular_expression_key import ConsumerGroupRegularExpressionKey
from kafka_shim.protocol.records.consumer_group_regular_expression_value import ConsumerGroupRegularExpressionValue

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable

    from kafka_shim.group.consumer_member import ConsumerMember
    from kafka_shim.group.metadata_image import CoordinatorMetadataImage
    from kafka_shim.group.request_context import RequestContext
    from kafka_shim.metadata.image import Image
    from kafka_shim.patterns import Pattern

MIN_REFRESH_INTERVAL_MS = 10_000
# Work per step: a few milliseconds. A match counts its worst case, the pattern's size times the name's length, plus a
# fixed cost. A compilation takes less than ten milliseconds and counts the pattern's size.
WORK_PER_STEP = 2_000_000
WORK_PER_MATCH = 500
WORK_PER_INSTRUCTION = 100
WORK_PER_CHECK = 4_000

UNCHANGED = 0
# The expression changed, and its topics are not known yet.
CHANGED = 1
CHANGED_AND_RESOLVED = 2


def compile_regex(regex: str) -> Pattern:
    """Returns the compiled expression. Raises INVALID_REGULAR_EXPRESSION."""
    return compile_pattern(regex, "SubscribedTopicRegex")


def update_regex(group: ConsumerGroup, old: ConsumerMember, new: ConsumerMember, context: RequestContext) -> int:
    """Handle a possible change of a member's expression: add the tombstone of an expression without members, and
    request a resolution if one is due. Returns UNCHANGED, CHANGED or CHANGED_AND_RESOLVED."""
    image, decision, now_ms = context.image, context.decision, context.now_ms
    counts = group.regexes
    status = UNCHANGED
    is_due = False
    if old.subscribed_regex != new.subscribed_regex:
        status = CHANGED
        if old.regex is not None and counts.get(old.regex, 0) == 1:
            decision.records.append(group.regex_tombstone(old.regex))
        if new.regex is None:
            if old.regex is not None:
                status = CHANGED_AND_RESOLVED
        elif counts.get(new.regex, 0) == 0:
            compile_regex(new.regex)
            is_due = True
        elif new.regex in group.resolved:
            status = CHANGED_AND_RESOLVED
    if not is_due and not counts:
        return status
    newest = next(iter(group.resolved.values()), None)
    # A time to come is unknown, as in `consumer_target.is_too_early`.
    last_refresh_ms = -MAX_INT64 if newest is None or newest.timestamp_ms > now_ms else newest.timestamp_ms
    if now_ms <= last_refresh_ms + MIN_REFRESH_INTERVAL_MS:
        return status
    wanted = _count_wanted(group, old, new)
    is_due = (
        is_due
        or wanted != len(group.resolved)
        or (0 if newest is None else newest.version) < image.newest_topics_version
        or now_ms > last_refresh_ms + image.config.group_consumer_regex_refresh_interval_ms
    )
    if is_due and wanted:
        decision.describers.append((group.group_id, context.client.may_describe))
        decision.schedule_if_absent(group.group_id, REGEX, "", 0)
    return status


def _count_wanted(group: ConsumerGroup, old: ConsumerMember, new: ConsumerMember) -> int:
    """Returns the number of expressions that have members once `new` has replaced `old`."""
    changes: dict[str, int] = {}
    for member in group.replaced_by(old, new):
        if member.regex is not None:
            add_count(changes, member.regex, -1)
    if new.regex is not None:
        add_count(changes, new.regex, 1)
    counts = group.regexes
    return len(counts) + sum(
        (counts.get(regex, 0) + change > 0) - (regex in counts) for regex, change in changes.items()
    )


def resolve(group: ConsumerGroup, image: CoordinatorMetadataImage, now_ms: int) -> Decision:
    """Handle the timer REGEX: match all expressions of the group in steps, so that many of them on many topics do not
    block other work. Then record the matches, and bump the group epoch if they changed."""
    decision = Decision()
    if not group.regexes:
        group.matching = None
        return decision
    if group.matching is None:
        group.matching = _match(tuple(group.regexes), image.metadata, group.may_describe)
    try:
        next(group.matching)
    except StopIteration as done:
        group.matching = None
        matched, version = done.value
        _record(group, matched, version, image, decision, now_ms)
    else:
        decision.schedule(group.group_id, REGEX, "", 0)
    return decision


def _match(
    regexes: Iterable[str], image: Image, may_describe: Callable[[str], bool] | None
) -> Generator[None, None, tuple[dict[str, frozenset[str]], int]]:
    """Returns (topics by expression, the metadata version that was matched)."""
    version = image.last_offset
    names = tuple(image.topics)
    found: dict[str, frozenset[str]] = {}
    work = 0
    for regex in regexes:
        try:
            pattern = compile_regex(regex)
        except KafkaError:
            found[regex] = frozenset()
            continue
        topics = set()
        work += WORK_PER_INSTRUCTION * pattern.size
        for name in names:
            work += WORK_PER_MATCH + pattern.size * len(name)
            if work >= WORK_PER_STEP:
                work = 0
                yield
            if pattern.fullmatch(name):
                if may_describe is not None:
                    work += WORK_PER_CHECK
                    if not may_describe(name):
                        continue
                topics.add(name)
        found[regex] = frozenset(topics)
    return found, version


def _record(
    group: ConsumerGroup,
    matched: dict[str, frozenset[str]],
    version: int,
    image: CoordinatorMetadataImage,
    decision: Decision,
    now_ms: int,
) -> None:
    bump = False
    found: dict[str, Resolved] = {}
    for regex, topics in matched.items():
        if regex not in group.regexes:
            continue  # its last member left
        old = group.resolved.get(regex)
        bump = bump or topics != (frozenset() if old is None else old.topics)
        found[regex] = Resolved(topics, version, now_ms)
        decision.records.append(
            Record(
                ConsumerGroupRegularExpressionKey(group_id=group.group_id, regular_expression=regex),
                ConsumerGroupRegularExpressionValue(topics=sorted(topics), version=version, timestamp=now_ms),
            )
        )
    subscribed = set(group.topic_counts).union(*(each.topics for each in found.values()))
    subscribed.update(*(each.topics for regex, each in group.resolved.items() if regex not in found))
    metadata_hash = image.metadata_hash(subscribed)
    if bump or metadata_hash != group.metadata_hash:
        epoch = group.group_epoch + 1
        decision.records.append(group.epoch_record(epoch, metadata_hash))
        decision.refreshes.append((group.group_id, now_ms + REFRESH_INTERVAL_MS, epoch))
