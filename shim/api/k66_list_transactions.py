"""ListTransactions (key 66), versions 0-2.

Returns all transactional ids, filtered by state names and producer ids. Unknown state names match nothing and are
returned in `unknownStateFilters` (B19). v1 adds a minimum duration (KIP-994). It is measured from the start of the last
transaction, so transactional ids without an open transaction match too. v2 adds a pattern in RE2 syntax for the whole
id (KIP-1152); an invalid one is INVALID_REGULAR_EXPRESSION.
"""

from __future__ import annotations

from kafka_shim.authorization import authorized_in_steps
from kafka_shim.protocol.messages.list_transactions_request import ListTransactionsRequest
from kafka_shim.protocol.messages.list_transactions_response import ListTransactionsResponse, TransactionState
from kafka_shim.security.acl import AclOperation, ResourceType
from kafka_shim.txn.transaction import STATE_NAMES, STATES_BY_NAME

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from kafka_shim.context import Context
    from kafka_shim.turns import Steps

KEY, MIN, MAX = 66, 0, 2
REQUEST, RESPONSE = ListTransactionsRequest, ListTransactionsResponse
ABANDONABLE = True


def handle(context: Context, request: ListTransactionsRequest) -> Steps[ListTransactionsResponse]:
    filters = dict.fromkeys(request.state_filters)
    states = {STATES_BY_NAME[name] for name in filters if name in STATES_BY_NAME}
    producer_ids = set(request.producer_id_filters)
    least_ms = request.duration_filter
    matches = _matcher(request.transactional_id_pattern)
    transactions = context.broker.transactions.transactions()
    names = (txn.transactional_id for txn in transactions)
    described = yield from authorized_in_steps(context, AclOperation.DESCRIBE, ResourceType.TRANSACTIONAL_ID, names)
    now_ms = context.broker.clock.now_ms()
    response = ListTransactionsResponse(unknown_state_filters=[name for name in filters if name not in STATES_BY_NAME])
    for txn in transactions:
        if (
            txn.transactional_id in described
            and (not producer_ids or txn.producer_id in producer_ids)
            and (not filters or txn.state in states)
            and (least_ms < 0 or now_ms - txn.start_ms > least_ms)
            and matches(txn.transactional_id)
        ):
            response.transaction_states.append(
                TransactionState(
                    transactional_id=txn.transactional_id,
                    producer_id=txn.producer_id,
                    transaction_state=STATE_NAMES[txn.state],
                )
            )
        yield
    return response


def _matcher(pattern: str | None) -> Callable[[str], object]:
    if not pattern:
        return lambda transactional_id: True
    from kafka_shim.patterns import compile_pattern

    return compile_pattern(pattern, "Transaction ID pattern").fullmatch
