"""Tokens without a signature: what is read of them, and what refuses them."""

from __future__ import annotations

import asyncio
from base64 import urlsafe_b64encode

import pytest

from kafka_shim.clock import VirtualClock
from kafka_shim.config import ConfigError
from kafka_shim.security.sasl.mechanism import InvalidTokenError
from kafka_shim.security.sasl.unsecured_tokens import UnsecuredTokens
from kafka_shim.tests.security.sasl_client import unsecured_token

CLOCK = VirtualClock()
NOW = CLOCK.now_ms() // 1000


def validate(token: str, **options: str) -> tuple[str, int]:
    tokens = UnsecuredTokens({f"unsecuredValidator{name}": value for name, value in options.items()}, CLOCK)
    return asyncio.run(tokens.validate(token))


def test_principal_and_end_are_those_of_the_claims():
    assert validate(unsecured_token(sub="carol", iat=NOW, exp=NOW + 60)) == ("carol", 1000 * (NOW + 60))
    token = unsecured_token(name="dave", exp=NOW + 60, groups=["a", "b"])
    assert validate(token, PrincipalClaimName="name", ScopeClaimName="groups", RequiredScope="b a")[0] == "dave"


def test_clocks_may_differ_by_the_allowed_skew():
    assert validate(unsecured_token(sub="c", exp=NOW - 5), AllowableClockSkewMs="6000")[0] == "c"
    with pytest.raises(InvalidTokenError, match="has expired"):
        validate(unsecured_token(sub="c", exp=NOW - 5), AllowableClockSkewMs="5000")
    with pytest.raises(ConfigError, match="soon is not a number of milliseconds"):
        validate("", AllowableClockSkewMs="soon")


@pytest.mark.parametrize(
    ("token", "reason"),
    [
        ("a.b", "three parts"),
        ("a..", "three parts"),
        ("%.%.", "not base64 of JSON"),
        (urlsafe_b64encode(b"[]").decode() + ".e30.", "not base64 of JSON"),
        (unsecured_token(sub="c", exp=NOW + 60) + "signature", "the token is signed"),
        (unsecured_token(sub="c"), "no expiration time"),
        (unsecured_token(sub="c", exp=True), "claim exp of the token is not a time in seconds"),
        (unsecured_token(sub="c", exp=1e300), "claim exp of the token is not a time in seconds"),
        (unsecured_token(exp=NOW + 60), "no principal name"),
        (unsecured_token(sub=" ", exp=NOW + 60), "no principal name"),
        (unsecured_token(sub="c", iat=NOW + 30, exp=NOW + 60), "issued in the future"),
        (unsecured_token(sub="c", iat=NOW - 5, exp=NOW - 6), "has expired"),
        (unsecured_token(sub="c", exp=NOW + 60, scope=5), "scope of the token is neither text nor a list"),
    ],
    # A token has the time in it: processes that share the work would have names of their own.
    ids=lambda text: text if " " in text else "token",
)
def test_bad_token_says_what_is_wrong(token: str, reason: str):
    with pytest.raises(InvalidTokenError, match=reason):
        validate(token)


def test_a_missing_scope_is_told_to_the_client():
    with pytest.raises(InvalidTokenError) as caught:
        validate(unsecured_token(sub="c", exp=NOW + 60, scope="read"), RequiredScope="write")
    assert caught.value.scope == "[write]"
