"""Expressions of clients: RE2's syntax, whole names, bounded size and time."""

from __future__ import annotations

import time

import pytest

from kafka_shim.errors import ErrorCode, KafkaError
from kafka_shim.patterns import MAX_BYTES, compile_pattern

LONGEST_NAME = "a" * 249
# Far over what they take anywhere; without bounds some of these take minutes.
BOUND_S = 10


@pytest.mark.parametrize(
    ("text", "matched", "others"),
    [
        ("log-.*", ["log-", "log-1"], ["log", "catalog-1", "log-1\n"]),
        ("a|ab", ["a", "ab"], ["b", "aba"]),
        ("(?i)orders", ["ORDERS"], ["order"]),
        ("(a)(b)?", ["a", "ab"], ["b"]),
        ("", [""], ["a"]),
        (r"\pL+", ["été"], ["1"]),
    ],
)
def test_an_expression_matches_whole_names(text: str, matched: list[str], others: list[str]) -> None:
    pattern = compile_pattern(text, "it")
    assert all(pattern.fullmatch(name) for name in matched)
    assert not any(pattern.fullmatch(name) for name in others)


@pytest.mark.parametrize(
    "text",
    [
        "(",
        "[",
        "a**b(",
        "(?=a)",
        r"(a)\1",
        "a{1001}",
        "((a{100}){100}){100}",
        r"(?i)(\pL|\pN){200}",
        "a" * (MAX_BYTES + 1),
        "é" * (MAX_BYTES // 2 + 1),
        "x" * 10_000_000,
        "|".join(f"(.*{number}.*)" for number in range(3000)),
    ],
)
def test_what_is_refused_is_refused_quickly(text: str) -> None:
    started = time.process_time()
    with pytest.raises(KafkaError) as caught:
        compile_pattern(text, "it")
    assert time.process_time() - started < BOUND_S
    assert caught.value.code is ErrorCode.INVALID_REGULAR_EXPRESSION
    assert len(caught.value.message or "") < 2000


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("[a-", "missing closing ]"),
        ("(?:", "missing closing )"),
        (")", "regexp/syntax: internal error"),
        ("[b-a]", "invalid character class range"),
        (r"\1", "invalid escape sequence"),
        ("a\\", "trailing backslash at end of expression"),
        ("(?P<n", "invalid named capture"),
        ("(?=a)", "invalid or unsupported Perl syntax"),
        ("a{2,1}", "invalid repeat count"),
        ("*a", "missing argument to repetition operator"),
        ("a**", "invalid nested repetition operator"),
    ],
)
def test_the_reason_has_the_words_of_apache_kafka(text: str, why: str) -> None:
    with pytest.raises(KafkaError) as caught:
        compile_pattern(text, "SubscribedTopicRegex")
    assert caught.value.message == f"SubscribedTopicRegex `{text}` is not a valid regular expression: {why}."


@pytest.mark.parametrize(
    "text",
    [
        "(a+)+b",
        "(a*)*b",
        "(a|aa)+$",
        "(a?){500}a{500}",
        "(.*)" * 1000 + "b",
        "(" * 900 + "a" + ")*" * 900,
        "(a|b|.*){1000}",
        "|".join(f"(.*{number}.*)" for number in range(1900)),
        "|".join(f"team-{number % 7}.orders-of-region-{number}.v1" for number in range(1000)),
    ],
)
def test_no_expression_costs_more_than_its_size(text: str) -> None:
    started = time.process_time()
    pattern = compile_pattern(text, "it")
    for _ in range(3):
        pattern.fullmatch(LONGEST_NAME)
    assert time.process_time() - started < BOUND_S
    assert 0 < pattern.size < 45_000
