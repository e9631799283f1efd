"""StandardAuthorizer decides as Kafka's class of that name does, over random ACLs and questions."""

from __future__ import annotations

import random
from pathlib import Path

from kafka_shim.security.acl import AclOperation, PatternType, PermissionType, ResourceType
from kafka_shim.security.acl_binding import Acl
from kafka_shim.security.standard_authorizer import StandardAuthorizer
from kafka_shim.targets import jvm

SOURCE = Path(__file__).resolve().parent.parent.parent / "java" / "AuthorizerDriver.java"
SCENARIOS, QUESTIONS = 400, 50
SEED = 20260401

NAMES = ("a", "ab", "abc", "abd", "b", "*", "*a", "hard", "hardcode", "!a", "z")
PRINCIPALS = ("User:a", "User:b", "User:*", "Group:a", "User:a:b")
HOSTS = ("10.0.0.1", "10.0.0.2")
TYPES = (ResourceType.TOPIC, ResourceType.GROUP, ResourceType.USER)
OPERATIONS = [one for one in AclOperation if one not in (AclOperation.UNKNOWN, AclOperation.ANY)]


def test_random_acls_and_questions_have_kafkas_verdicts() -> None:
    choose = random.Random(SEED)
    lines: list[str] = []
    ours: list[bool] = []
    asked: list[str] = []
    for _ in range(SCENARIOS):
        super_users = choose.choice(("", "", "User:b", "User:root; User:a:b"))
        everyone = choose.choice(("true", "false"))
        authorizer = StandardAuthorizer()
        authorizer.configure({"super.users": super_users, "allow.everyone.if.no.acl.found": everyone})
        lines.append(f"new\t{super_users}\t{everyone}")
        operations = choose.sample(OPERATIONS, 4)
        acls = {
            Acl(
                choose.choice(TYPES),
                choose.choice(NAMES),
                choose.choice((PatternType.LITERAL, PatternType.PREFIXED)),
                choose.choice(PRINCIPALS),
                choose.choice(("*", *HOSTS)),
                choose.choice((*operations, AclOperation.ALL)),
                choose.choice((PermissionType.ALLOW, PermissionType.ALLOW, PermissionType.DENY)),
            )
            for _ in range(choose.randrange(12))
        }
        authorizer.change_acls(acls, ())
        for acl in acls:
            kind, name, pattern, principal, host, operation, permission = acl.fields
            words = (kind.value, name, pattern.value, principal, host, operation.value, permission.value)
            lines.append("\t".join(map(str, ("acl", *words))))
        for _ in range(QUESTIONS):
            # Kafka's class fails where a client itself is named User:*.
            principal, host = choose.choice([one for one in PRINCIPALS if one != "User:*"]), choose.choice(HOSTS)
            operation, kind = choose.choice((*operations, AclOperation.DESCRIBE)), choose.choice(TYPES)
            words = (principal, host, operation.value, kind.value)
            if choose.random() < 0.3:
                line = "\t".join(map(str, ("any", *words)))
                verdict = authorizer.allowed_on_any(principal, host, operation, kind)
            else:
                name = choose.choice(NAMES)
                line = "\t".join(map(str, ("ask", *words, name)))
                verdict = bool(authorizer.allowed(principal, host, operation, kind, (name,)))
            lines.append(line)
            asked.append(f"{line!r} after {[str(acl) for acl in acls]}, {super_users!r}, {everyone}")
            ours.append(verdict)
    text = "\n".join(lines) + "\n"
    done = jvm.run("AuthorizerDriver", stdin=text.encode(), extra=(jvm.compiled(SOURCE),))
    theirs = [line == "1" for line in done.stdout.decode().split()]
    assert len(theirs) == len(ours) == SCENARIOS * QUESTIONS
    wrong = [question for question, one, other in zip(asked, ours, theirs, strict=True) if one != other]
    print(f"{len(ours)} verdicts, {sum(ours)} of them allow, {len(wrong)} differ")
    assert not wrong, "\n".join(wrong[:5])
    assert len(ours) // 5 < sum(ours) < len(ours) * 4 // 5
