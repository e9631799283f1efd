"""Changes, in steps, and descriptions of SCRAM credentials: pure functions (Kafka: ScramControlManager, ScramImage)."""

from __future__ import annotations

from kafka_shim.errors import ErrorCode, KafkaError
from kafka_shim.protocol.messages.alter_user_scram_credentials_response import AlterUserScramCredentialsResult
from kafka_shim.protocol.messages.describe_user_scram_credentials_response import (
    CredentialInfo,
    DescribeUserScramCredentialsResult,
)
from kafka_shim.protocol.records.remove_user_scram_credential_record import RemoveUserScramCredentialRecord
from kafka_shim.protocol.records.user_scram_credential_record import UserScramCredentialRecord
from kafka_shim.security.sasl.scram import MAX_ITERATIONS, MIN_ITERATIONS, NAME_OF, keys_of, salted_password

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Any

    from kafka_shim.protocol.messages.alter_user_scram_credentials_request import (
        AlterUserScramCredentialsRequest,
        ScramCredentialDeletion,
        ScramCredentialUpsertion,
    )
    from kafka_shim.randomness import Randomness
    from kafka_shim.turns import Steps

    Credentials = Mapping[tuple[str, int], Any]

TWICE = "A user credential cannot be altered twice in the same request"


def decide_alteration(
    stored: Credentials, request: AlterUserScramCredentialsRequest, *, is_supported: bool
) -> Steps[tuple[list[AlterUserScramCredentialsResult], list[Any]]]:
    """Return (one result for each user, the records to commit). A user that occurs twice is refused as a whole."""
    deletions: dict[str, ScramCredentialDeletion] = {}
    upsertions: dict[str, ScramCredentialUpsertion] = {}
    errors: dict[str, KafkaError] = {}
    for deletion in request.deletions:
        yield
        name = deletion.name
        if name not in errors:
            try:
                _check_once(deletions.pop(name, None))
                _check_deletion(stored, deletion, is_supported)
                deletions[name] = deletion
            except KafkaError as err:
                errors[name] = err
    for upsertion in request.upsertions:
        yield
        name = upsertion.name
        if name not in errors:
            try:
                _check_once(deletions.pop(name, None) or upsertions.pop(name, None))
                _check_upsertion(upsertion, is_supported)
                upsertions[name] = upsertion
            except KafkaError as err:
                errors[name] = err
    results = [AlterUserScramCredentialsResult(user=name, error_message=None) for name in (*deletions, *upsertions)]
    results += [
        AlterUserScramCredentialsResult(user=name, error_code=err.code, error_message=err.message)
        for name, err in errors.items()
    ]
    records: list[Any] = [
        RemoveUserScramCredentialRecord(name=one.name, mechanism=one.mechanism) for one in deletions.values()
    ]
    for one in upsertions.values():
        records.append(
            credential_record(one.name, NAME_OF[one.mechanism], one.salt, one.salted_password, one.iterations)
        )
        yield
    return results, records


def credential_record(
    name: str, mechanism: str, salt: bytes, salted_password: bytes, iterations: int
) -> UserScramCredentialRecord:
    """Return the record of a credential, which has neither the password nor the salted one."""
    stored_key, server_key = keys_of(mechanism, salted_password)
    code = next(code for code, one in NAME_OF.items() if one == mechanism)
    return UserScramCredentialRecord(
        name=name, mechanism=code, salt=salt, stored_key=stored_key, server_key=server_key, iterations=iterations
    )


def records_of_users(mechanism: str, users: Mapping[str, str], random: Randomness) -> list[UserScramCredentialRecord]:
    """Return the records of users with these passwords, each with a salt of its own."""
    records = []
    for name, password in users.items():
        salt = random.bytes_of(16)
        salted = salted_password(mechanism, password, salt, MIN_ITERATIONS)
        records.append(credential_record(name, mechanism, salt, salted, MIN_ITERATIONS))
    return records


def _check_once(before: object) -> None:
    if before is not None:
        raise KafkaError(ErrorCode.DUPLICATE_RESOURCE, TWICE)


def _check_deletion(stored: Credentials, deletion: ScramCredentialDeletion, is_supported: bool) -> None:
    _check(deletion.name, deletion.mechanism, is_supported)
    if (deletion.name, deletion.mechanism) not in stored:
        raise KafkaError(ErrorCode.RESOURCE_NOT_FOUND, "Attempt to delete a user credential that does not exist")


def _check_upsertion(upsertion: ScramCredentialUpsertion, is_supported: bool) -> None:
    _check(upsertion.name, upsertion.mechanism, is_supported)
    if upsertion.iterations < MIN_ITERATIONS:
        raise KafkaError(ErrorCode.UNACCEPTABLE_CREDENTIAL, "Too few iterations")
    if upsertion.iterations > MAX_ITERATIONS:
        raise KafkaError(ErrorCode.UNACCEPTABLE_CREDENTIAL, "Too many iterations")
    if not upsertion.salted_password:
        raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR)  # Java has no key of no bytes


def _check(name: str, mechanism: int, is_supported: bool) -> None:
    if not is_supported:
        raise KafkaError(ErrorCode.UNSUPPORTED_VERSION, "The current metadata.version does not support SCRAM")
    if not name:
        raise KafkaError(ErrorCode.UNACCEPTABLE_CREDENTIAL, "Username must not be empty")
    if mechanism not in NAME_OF:
        raise KafkaError(ErrorCode.UNSUPPORTED_SASL_MECHANISM, "Unknown SCRAM mechanism")


def describe(stored: Credentials, users: Iterable[str] | None) -> Steps[list[DescribeUserScramCredentialsResult]]:
    """Return mechanism and iterations of each credential of these users, or of all if there are none."""
    wanted: dict[str, int] = {}
    for name in list(users or ()) or dict.fromkeys(name for name, _ in stored):
        wanted[name] = wanted.get(name, 0) + 1
    results = []
    for name, times in wanted.items():
        result = DescribeUserScramCredentialsResult(user=name)
        infos = [
            CredentialInfo(mechanism=code, iterations=stored[name, code].iterations)
            for code in NAME_OF
            if (name, code) in stored
        ]
        if times > 1:
            result.error_code = ErrorCode.DUPLICATE_RESOURCE
            result.error_message = (
                f"Cannot describe SCRAM credentials for the same user twice in a single request: {name}"
            )
        elif not infos:
            result.error_code = ErrorCode.RESOURCE_NOT_FOUND
            result.error_message = f"Attempt to describe a user credential that does not exist: {name}"
        else:
            result.credential_infos = infos
        results.append(result)
        yield
    return results
