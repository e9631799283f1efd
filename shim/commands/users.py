"""`kafka-shim users`: list, add and remove users of SCRAM, as `kafka-configs --entity-type users` does.

A password comes from a file, a variable or the terminal, never from the command line, where every process could see
it.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import click

from kafka_shim.commands.options import bootstrap_option, connected, json_option, show_rows
from kafka_shim.errors import ErrorCode
from kafka_shim.randomness import Randomness
from kafka_shim.security.sasl.scram import MAX_ITERATIONS, MECHANISMS, MIN_ITERATIONS, NAME_OF, salted_password
from kafka_shim.wire_client import RequestError, check

DEFAULT_MECHANISM = "SCRAM-SHA-512"
PASSWORD_VARIABLE = "KAFKA_SHIM_PASSWORD"
mechanism_option = click.option(
    "--mechanism", type=click.Choice(list(MECHANISMS)), default=DEFAULT_MECHANISM, show_default=True
)


@click.group(name="users", help="List, add and remove users of SCRAM.")
def group() -> None:
    pass


@group.command(name="list", help="Print the users: all, or those named.")
@bootstrap_option
@click.argument("names", nargs=-1)
@click.option("--json", "as_json", is_flag=True, help="one JSON array")
def list_users(bootstrap_server: str, names: tuple[str, ...], as_json: bool) -> None:
    from kafka_shim.protocol.messages.describe_user_scram_credentials_request import (
        DescribeUserScramCredentialsRequest,
        UserName,
    )

    request = DescribeUserScramCredentialsRequest(users=[UserName(name=name) for name in names] if names else None)
    found: list[dict[str, str | int]] = []
    failed: RequestError | None = None
    with connected(bootstrap_server) as connection:
        answer = connection.request(request)
        check(answer.error_code, answer.error_message)
        for result in answer.results:
            if result.error_code:
                failed = failed or RequestError(result.error_code, result.error_message, f"user {result.user}")
            found += [
                {"user": result.user, "mechanism": NAME_OF[one.mechanism], "iterations": one.iterations}
                for one in result.credential_infos
            ]
        if as_json:
            click.echo(json.dumps(found, indent=2))
        else:
            for one in found:
                click.echo(f"{one['user']}\t{one['mechanism']}\titerations={one['iterations']}")
        if failed is not None:
            raise failed


@group.command(help="Add a user, or give one another password.")
@bootstrap_option
@click.argument("name")
@mechanism_option
@click.option(
    "--iterations", type=click.IntRange(MIN_ITERATIONS, MAX_ITERATIONS), default=MIN_ITERATIONS, show_default=True
)
@click.option(
    "--password-file",
    metavar="FILE",
    help=f"its first line is the password, - for stdin; default: ${PASSWORD_VARIABLE}, else the terminal asks",
)
@json_option
def add(bootstrap_server: str, name: str, mechanism: str, iterations: int, password_file: str | None) -> None:
    from kafka_shim.protocol.messages.alter_user_scram_credentials_request import (
        AlterUserScramCredentialsRequest,
        ScramCredentialUpsertion,
    )

    salt = Randomness().bytes_of(16)
    upsertion = ScramCredentialUpsertion(
        name=name,
        mechanism=MECHANISMS[mechanism][0],
        iterations=iterations,
        salt=salt,
        salted_password=salted_password(mechanism, _password(password_file), salt, iterations),
    )
    with connected(bootstrap_server) as connection:
        (result,) = connection.request(AlterUserScramCredentialsRequest(upsertions=[upsertion])).results
        check(result.error_code, result.error_message, f"user {name}")
        _say(name, mechanism, f"User {name} has a password for {mechanism}.")


@group.command(help="Remove a user's password for one mechanism.")
@bootstrap_option
@click.argument("name")
@mechanism_option
@click.option("--if-exists", is_flag=True, help="it is no error that there is none")
@json_option
def remove(bootstrap_server: str, name: str, mechanism: str, if_exists: bool) -> None:
    from kafka_shim.protocol.messages.alter_user_scram_credentials_request import (
        AlterUserScramCredentialsRequest,
        ScramCredentialDeletion,
    )

    deletion = ScramCredentialDeletion(name=name, mechanism=MECHANISMS[mechanism][0])
    with connected(bootstrap_server) as connection:
        (result,) = connection.request(AlterUserScramCredentialsRequest(deletions=[deletion])).results
        if if_exists and result.error_code == ErrorCode.RESOURCE_NOT_FOUND:
            _say(name, mechanism, f"User {name} has no password for {mechanism}.")
            return
        check(result.error_code, result.error_message, f"user {name}")
        _say(name, mechanism, f"User {name} has no password for {mechanism} any more.")


def _say(name: str, mechanism: str, text: str) -> None:
    show_rows(("User", "Mechanism"), [(name, mechanism)], lambda: click.echo(text))


def _password(path: str | None) -> str:
    """Raises click.UsageError if there is no password."""
    if path is None:
        given = os.environ.get(PASSWORD_VARIABLE)
        if given is None and sys.stdin.isatty():
            given = click.prompt("Password", hide_input=True, confirmation_prompt=True, err=True)
        if given is None:
            raise click.UsageError(f"give the password with --password-file FILE or ${PASSWORD_VARIABLE}")
    else:
        try:
            text = sys.stdin.readline() if path == "-" else Path(path).read_text(encoding="utf-8")
            given = text.partition("\n")[0]
        except OSError as err:
            raise click.BadParameter(f"cannot read {path}: {err.strerror}", param_hint="--password-file") from None
        except UnicodeDecodeError:
            raise click.BadParameter(f"{path} is not text in UTF-8", param_hint="--password-file") from None
    if not given:
        raise click.UsageError("the password is empty")
    return given
