from __future__ import annotations

import sys
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafka_shim.config import ConfigError
from kafka_shim.security import standard_authorizer
from kafka_shim.security.acl import AclOperation, PatternType, PermissionType, ResourceType
from kafka_shim.security.acl_binding import Acl
from kafka_shim.security.standard_authorizer import StandardAuthorizer

Op, P, R, A = AclOperation, PatternType, ResourceType, PermissionType
USER, HOST = "User:alice", "10.0.0.1"


def acl(
    operation: AclOperation = Op.READ,
    name: str = "orders",
    pattern: PatternType = P.LITERAL,
    *,
    kind: ResourceType = R.TOPIC,
    user: str = USER,
    host: str = "*",
    permission: PermissionType = A.ALLOW,
) -> Acl:
    return Acl(kind, name, pattern, user, host, operation, permission)


def deny(*arguments: Any, **fields: Any) -> Acl:
    return acl(*arguments, **fields, permission=A.DENY)


def authorizer(*acls: Acl, **options: str) -> StandardAuthorizer:
    made = StandardAuthorizer()
    made.configure({name.replace("_", "."): text for name, text in options.items()})
    made.change_acls(acls, ())
    return made


def may(
    decider: StandardAuthorizer,
    operation: AclOperation = Op.READ,
    name: str = "orders",
    *,
    kind: ResourceType = R.TOPIC,
    user: str = USER,
    host: str = HOST,
) -> bool:
    return name in decider.allowed(user, host, operation, kind, (name,))


def test_nothing_is_allowed_without_an_acl():
    assert not may(authorizer())


def test_a_literal_acl_is_for_its_name_type_user_host_and_operation_alone():
    decider = authorizer(acl(host=HOST))
    assert may(decider)
    assert not may(decider, name="orders2")
    assert not may(decider, name="order")
    assert not may(decider, kind=R.GROUP)
    assert not may(decider, user="User:bob")
    assert not may(decider, user="Group:alice")
    assert not may(decider, host="10.0.0.2")
    assert not may(decider, Op.WRITE)


def test_a_prefixed_acl_is_for_each_name_that_begins_so():
    decider = authorizer(acl(name="ord", pattern=P.PREFIXED))
    assert may(decider, name="ord")
    assert may(decider, name="orders")
    assert not may(decider, name="or")
    assert not may(decider, name="xord")


def test_the_wildcards_are_for_every_name_user_and_host():
    decider = authorizer(acl(name="*", user="User:*"))
    assert may(decider, name="anything", user="User:bob", host="::1")
    # The wildcard is a literal name: as a prefix it is for names that begin with an asterisk.
    assert not may(authorizer(acl(name="*", pattern=P.PREFIXED)))
    assert may(authorizer(acl(name="*", pattern=P.PREFIXED)), name="*x")


def test_the_wildcard_is_not_for_a_name_that_begins_with_an_asterisk():
    """StandardAuthorizerData.checkSection passes over it there."""
    decider = authorizer(deny(name="*", kind=R.GROUP), acl(name="*", pattern=P.PREFIXED, kind=R.GROUP))
    assert may(decider, name="*x", kind=R.GROUP)
    assert not may(decider, name="*", kind=R.GROUP)
    assert not may(decider, name="x", kind=R.GROUP)


def test_one_acl_that_denies_outweighs_all_that_allow():
    for denying in (
        deny(),
        deny(name="*"),
        deny(name="o", pattern=P.PREFIXED),
        deny(user="User:*"),
        deny(Op.ALL),
        deny(host=HOST),
    ):
        assert not may(authorizer(acl(), acl(Op.ALL, "*"), acl(name="orders", pattern=P.PREFIXED), denying))
    assert may(authorizer(acl(), deny(host="10.0.0.2")))


@pytest.mark.parametrize("operation", [Op.READ, Op.WRITE, Op.DELETE, Op.ALTER, Op.DESCRIBE, Op.ALL])
def test_what_allows_describe(operation: AclOperation):
    assert may(authorizer(acl(operation)), Op.DESCRIBE)


@pytest.mark.parametrize("operation", [Op.CREATE, Op.ALTER_CONFIGS, Op.DESCRIBE_CONFIGS, Op.CLUSTER_ACTION])
def test_what_does_not_allow_describe(operation: AclOperation):
    assert not may(authorizer(acl(operation)), Op.DESCRIBE)


def test_alter_configs_allows_describe_configs_and_alter_does_not():
    assert may(authorizer(acl(Op.ALTER_CONFIGS)), Op.DESCRIBE_CONFIGS)
    assert not may(authorizer(acl(Op.ALTER)), Op.DESCRIBE_CONFIGS)


def test_a_denied_operation_denies_no_other():
    assert may(authorizer(deny(Op.READ), acl(Op.WRITE)), Op.DESCRIBE)
    assert not may(authorizer(deny(Op.DESCRIBE), acl(Op.WRITE)), Op.DESCRIBE)


def test_super_users_may_do_everything_whatever_denies_it():
    decider = authorizer(deny(Op.ALL, "*"), super_users=" User:root ;;User:alice")
    assert may(decider)
    assert may(decider, user="User:root")
    assert not may(decider, user="User:bob")


def test_a_super_user_that_is_no_principal_is_refused_with_the_form_it_should_have():
    with pytest.raises(ConfigError, match="principalType:principalName but got User=a"):
        authorizer(super_users="User=a")


def test_everyone_is_allowed_only_where_no_acl_applies_to_the_resource():
    option = {"allow_everyone_if_no_acl_found": "true"}
    assert may(authorizer(**option))
    assert may(authorizer(acl(name="other"), **option))
    # An ACL for somebody else is an ACL.
    assert not may(authorizer(acl(user="User:bob"), **option))
    assert not may(authorizer(acl(name="ord", pattern=P.PREFIXED, user="User:bob"), **option))
    assert not may(authorizer(acl(name="*", user="User:bob"), **option))
    assert may(authorizer(acl(user="User:bob"), **option), kind=R.GROUP)


def test_a_changed_acl_decides_the_next_question():
    decider = authorizer()
    assert not may(decider)
    decider.change_acls([acl()], ())
    assert may(decider)
    decider.change_acls([deny()], ())
    assert not may(decider)
    decider.change_acls((), [acl(), deny()])
    assert not may(decider)
    assert not list(decider.index.of_type(R.TOPIC))


def on_any(*acls: Acl, **options: str) -> bool:
    return authorizer(*acls, **options).allowed_on_any(USER, HOST, Op.WRITE, R.TOPIC)


def test_something_is_allowed_somewhere():
    """KIP-679: a client that may write to any topic may be idempotent."""
    assert not on_any()
    assert on_any(acl(Op.WRITE))
    assert on_any(acl(Op.ALL, "p", P.PREFIXED))
    assert not on_any(acl(Op.READ))
    assert not on_any(acl(Op.WRITE, kind=R.GROUP))
    assert not on_any(acl(Op.WRITE, user="User:bob"))
    assert not on_any(acl(Op.WRITE, host="10.0.0.2"))
    assert on_any(deny(Op.WRITE, "*"), super_users=USER)
    assert on_any(allow_everyone_if_no_acl_found="true")


def test_what_a_wider_acl_denies_is_allowed_nowhere():
    assert not on_any(acl(Op.WRITE), deny(Op.WRITE))
    assert on_any(acl(Op.WRITE), acl(Op.WRITE, "other"), deny(Op.WRITE))
    assert not on_any(acl(Op.WRITE), deny(Op.WRITE, "ord", P.PREFIXED))
    assert not on_any(acl(Op.WRITE, "orders", P.PREFIXED), deny(Op.ALL, "orders", P.PREFIXED))
    assert on_any(acl(Op.WRITE, "ord", P.PREFIXED), deny(Op.WRITE, "orders", P.PREFIXED))
    assert on_any(acl(Op.WRITE, "orders", P.PREFIXED), deny(Op.WRITE, "orders"))
    assert not on_any(acl(Op.WRITE, "*"), deny(Op.WRITE, "*"))
    assert on_any(acl(Op.WRITE, "*"), deny(Op.WRITE, "orders"))
    # Kafka asks about a resource named "hardcode" first, whatever is denied elsewhere.
    assert on_any(acl(Op.WRITE, "hard", P.PREFIXED))


def test_the_rule_is_in_kafkas_words():
    def rule(decider: StandardAuthorizer) -> str:
        return decider.rule(USER, HOST, Op.READ, R.TOPIC, "orders")

    assert rule(authorizer()) == "DefaultDeny"
    assert rule(authorizer(allow_everyone_if_no_acl_found="true")) == "DefaultAllow"
    assert rule(authorizer(super_users=USER)) == "SuperUser"
    assert rule(authorizer(acl())) == (
        "MatchingAcl(acl=StandardAcl[resourceType=TOPIC, resourceName=orders, patternType=LITERAL, "
        "principal=User:alice, host=*, operation=READ, permissionType=ALLOW])"
    )


NAMES = st.sampled_from(["a", "ab", "abc", "b", "*", "*a"])
ACLS = st.builds(
    Acl,
    st.sampled_from([R.TOPIC, R.GROUP]),
    NAMES,
    st.sampled_from([P.LITERAL, P.PREFIXED]),
    st.sampled_from([USER, "User:*", "User:bob"]),
    st.sampled_from([HOST, "*", "10.0.0.2"]),
    st.sampled_from([Op.READ, Op.WRITE, Op.DESCRIBE, Op.ALL]),
    st.sampled_from([A.ALLOW, A.DENY]),
)


@given(st.lists(ACLS, max_size=12, unique=True), NAMES, st.sampled_from([Op.READ, Op.DESCRIBE]), st.data())
def test_the_index_finds_what_a_look_at_every_acl_finds(acls: list[Acl], name: str, operation: AclOperation, data):
    gone = data.draw(st.lists(st.sampled_from(acls), unique=True)) if acls else []
    decider = authorizer(*acls)
    decider.change_acls((), gone)
    applying = [
        one
        for one in acls
        if one not in gone
        and one.resource_type == R.TOPIC
        and (
            name.startswith(one.resource_name)
            if one.pattern_type == P.PREFIXED
            else one.resource_name == name or (one.resource_name == "*" and name[0] != "*")
        )
        and one.principal in (USER, "User:*")
        and one.host in (HOST, "*")
    ]
    implies = {Op.READ, Op.WRITE, Op.ALL, Op.DESCRIBE} if operation == Op.DESCRIBE else {Op.READ, Op.ALL}
    allowed = any(one.permission_type == A.ALLOW and one.operation in implies for one in applying)
    denied = any(one.permission_type == A.DENY and one.operation in (operation, Op.ALL) for one in applying)
    assert may(decider, operation, name) == (allowed and not denied)


def many(count: int) -> list[Acl]:
    """ACLs as a large installation has them: of many users, on names and on prefixes, some of our user among them."""
    rows = [acl(Op.WRITE, f"topic-{number}", user=f"User:{number % 500}") for number in range(count // 2)]
    rows += [acl(Op.WRITE, f"team-{number % 1000}.", P.PREFIXED, user=f"User:{number}") for number in range(count // 4)]
    rows += [acl(Op.READ, "orders", user=f"User:{number}") for number in range(count - len(rows) - 1)]
    return [*rows, acl(Op.WRITE)]


def opcodes(decider: StandardAuthorizer) -> int:
    """How many bytecode instructions one question takes."""
    counted = 0

    def trace(frame: Any, event: str, _: object) -> Any:
        nonlocal counted
        frame.f_trace_opcodes, frame.f_trace_lines = True, False
        counted += event == "opcode"
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        decider.allowed(USER, HOST, Op.WRITE, R.TOPIC, ("orders",))
    finally:
        sys.settrace(before)
    return counted


def test_ten_thousand_acls_cost_a_question_no_more_than_ten():
    few, lots = authorizer(*many(10)), authorizer(*many(10_000))
    first = opcodes(few), opcodes(lots)
    # A length that a prefix has is one step, and a thousand teams have four different lengths.
    assert first[1] < first[0] + 4 * 30
    again = opcodes(few), opcodes(lots)
    assert again[0] == again[1] < 60
    assert may(lots, Op.WRITE)
    assert not may(lots, Op.READ)


def test_what_is_remembered_is_bounded(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(standard_authorizer, "MAX_REMEMBERED", 100)
    decider = authorizer(acl(name="*"))
    for number in range(1000):
        assert may(decider, name=f"t{number}", host=f"10.0.{number}.1")
        assert sum(map(len, decider._remembered.values())) <= 100
    decider._remembered.clear()
    assert may(decider, name="x" * 300)
    assert not decider._remembered


def test_what_was_removed_costs_nothing():
    decider = authorizer(acl(Op.WRITE))
    before = opcodes(decider)
    prefixes = [acl(Op.WRITE, "orders"[:size], P.PREFIXED) for size in range(1, 7)]
    decider.change_acls(prefixes, ())
    decider.change_acls((), prefixes)
    assert opcodes(decider) == before


def test_operations_have_kafkas_codes() -> None:
    """They are on the wire, in the metadata log and in the bits of authorized operations."""
    names = "UNKNOWN ANY ALL READ WRITE CREATE DELETE ALTER DESCRIBE CLUSTER_ACTION DESCRIBE_CONFIGS ALTER_CONFIGS"
    names += " IDEMPOTENT_WRITE CREATE_TOKENS DESCRIBE_TOKENS TWO_PHASE_COMMIT"
    assert {operation.name: operation.value for operation in AclOperation} == {
        name: code for code, name in enumerate(names.split())
    }
