"""From a Kerberos principal to a user, by Kafka's rules. The same cases run through Kafka's own classes in
compat_tests/tests/security/test_kerberos.py."""

from __future__ import annotations

import pytest

from kafka_shim.config import ConfigError
from kafka_shim.security.kerberos_rules import KerberosRules, NoMatchingRuleError

REALM = "SHIM.TEST"
# (rules, principal, name; None: no name)
CASES: list[tuple[str, str, str | None]] = [
    ("RULE:[1:$]", "alice@SHIM.TEST", None),
    ("DEFAULT", "alice@SHIM.TEST", "alice"),
    ("DEFAULT", "kafka/host.example@SHIM.TEST", "kafka"),
    ("DEFAULT", "alice@OTHER", None),
    ("DEFAULT", "alice", "alice"),
    ("DEFAULT", "a/b/c@SHIM.TEST", None),
    ("RULE:[1:$1]", "alice@OTHER", "alice"),
    ("RULE:[1:$1]", "alice/host@OTHER", None),
    ("RULE:[2:$1]", "alice/host@OTHER", "alice"),
    ("RULE:[1:$1@$0]", "alice@OTHER", None),
    ("RULE:[1:$1@$0](.*@OTHER)s/@.*//", "alice@OTHER", "alice"),
    ("RULE:[1:$1@$0](.*@OTHER)s/@.*//;DEFAULT", "alice@SHIM.TEST", "alice"),
    ("RULE:[1:$1@$0](OTHER)s/@.*//", "alice@OTHER", None),
    ("RULE:[2:$1-$2]", "alice/host@OTHER", "alice-host"),
    ("RULE:[2:$1-$2](.*)s/-/_/", "a-b/c-d@OTHER", "a_b-c-d"),
    ("RULE:[2:$1-$2](.*)s/-/_/g", "a-b/c-d@OTHER", "a_b_c_d"),
    ("RULE:[1:$1]/L", "Alice@OTHER", "alice"),
    ("RULE:[1:$1]/U", "Alice@OTHER", "ALICE"),
    ("RULE:[1:$1](.*)s/li/LI/g/L", "alice@OTHER", "alice"),
    ("RULE:[1:$1](.*)s/(a)(l)/$2$1/", "alice@OTHER", "laice"),
    ("RULE:[1:$1](.*)s/(a)/$1$10x\\$/", "alice@OTHER", "aa0x$lice"),
    ("RULE:[1:$1](.*)s/a/$1/", "alice@OTHER", None),
    ("RULE:[1:$1](.*)s/a/$/", "alice@OTHER", None),
    ("RULE:[1:$3]", "alice@OTHER", None),
    ("RULE:[1:user]", "alice@OTHER", "user"),
    ("RULE:[1:$1$0]", "alice@OTHER", "aliceOTHER"),
    ("RULE:[1:$1](b.*);RULE:[1:x$1](xa.*)", "alice@OTHER", "xalice"),
    ("RULE:[0:$0]", "alice@OTHER", None),
]
BAD = ["", "default", "RULE:[1:$1", "RULE:1:$1]", "DEFAULT x", "RULE:[1:$1]s/a/b", "RULE:[1:$1]g", "RULE:[1:$1]/LU"]


@pytest.mark.parametrize(("rules", "principal", "name"), CASES)
def test_a_principal_becomes_the_user_that_kafka_makes_of_it(rules: str, principal: str, name: str | None):
    made = KerberosRules(REALM, rules.split(";"))
    if name is not None:
        assert made.name_of(principal) == name
    else:
        with pytest.raises(NoMatchingRuleError):
            made.name_of(principal)


@pytest.mark.parametrize("rule", [*BAD, "RULE:[:$1]", "RULE:[1:$1](*)", "RULE:[1:$1]s/(/x/"])
def test_a_rule_that_is_none_is_refused(rule: str):
    with pytest.raises(ConfigError, match="Invalid rule"):
        KerberosRules(REALM, [rule])
