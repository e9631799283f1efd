"""A TxnOffsetCommit of which nothing is refused, from frame to frame. Contracts are in plain_txn_commits.pyi."""

cimport cython
from libc.stdint cimport int16_t, int32_t, int64_t, uint8_t

from kafka_shim.cext.bigendian cimport load_i16, load_i64
from kafka_shim.cext.headers cimport RequestHeader
from kafka_shim.cext.java_hash cimport partition_of
from kafka_shim.cext.log_base cimport Appended, LogBase
from kafka_shim.cext.plain_api cimport IN_STEPS_BYTES, Frame, Reader, take, take_i32, take_text, text_of
from kafka_shim.cext.plain_commits cimport (
    NO_RETENTION,
    OffsetsApi,
    OffsetsRequest,
    answer_to,
    batch_of,
    changes_of,
    read_topics,
)
from kafka_shim.cext.transaction_log cimport TransactionLogBase

cdef enum:
    NO_SEQUENCE = -1
    # The version whose partitions are added to the transaction; it is flexible, and names topics.
    TRANSACTIONS_2 = 5
    # OffsetCommit of this version has the same partitions.
    AS_OFFSET_COMMIT = 8


@cython.final
@cython.freelist(4)
cdef class TxnCommit:
    cdef readonly str group_id
    cdef readonly int32_t generation_id
    cdef readonly str member_id
    cdef readonly str group_instance_id


cdef struct Transaction:
    const uint8_t* transactional_id
    int32_t transactional_id_bytes
    int64_t producer_id
    int16_t producer_epoch


cdef bint _read(Reader* c, Transaction* transaction, OffsetsRequest* request) noexcept nogil:
    request.retention_ms = NO_RETENTION
    if (
        not take_text(c, True, &transaction.transactional_id, &transaction.transactional_id_bytes)
        or transaction.transactional_id_bytes < 1
        or not take_text(c, True, &request.group_id, &request.group_id_bytes)
        or request.group_id_bytes < 1
        or not take(c, 10)
    ):
        return False
    transaction.producer_id, transaction.producer_epoch = load_i64(c.at - 10), load_i16(c.at - 2)
    return (
        take_i32(c, &request.epoch)
        and take_text(c, True, &request.member_id, &request.member_id_bytes)
        and request.member_id_bytes >= 0
        and take_text(c, True, &request.instance_id, &request.instance_id_bytes)
        and read_topics(c, request, AS_OFFSET_COMMIT)
    )


cdef class PlainTxnCommit(OffsetsApi):
    cdef object _answer(self, object broker, RequestHeader* header, Frame* frame, Reader* c, int64_t now_ms):
        cdef Transaction transaction
        cdef OffsetsRequest request
        if header.api_version < TRANSACTIONS_2 or frame.size_bytes > IN_STEPS_BYTES:
            return None
        if not _read(c, &transaction, &request):
            return None
        return self._serve(broker, &transaction, &request, header, now_ms)

    cdef object _serve(
        self, object broker, Transaction* transaction, OffsetsRequest* request, RequestHeader* header, int64_t now_ms
    ):
        cdef TransactionLogBase transactions
        cdef list admitted
        cdef list changes
        cdef bytearray batch
        cdef LogBase log
        cdef Py_ssize_t partition_count
        cdef TxnCommit commit
        cdef object producer_id = transaction.producer_id
        try:
            transactions = <TransactionLogBase?>broker.transactions._log
            partition_count = broker.groups.partitions.known
            if partition_count == 0:
                return None
            commit = _commit_of(request)
            prepared = self._prepare(broker, partition_of(commit.group_id, partition_count), commit)
            if prepared is None:
                return None
            groups, end, metadata_limit = <tuple?>prepared
            log = <LogBase?>end
            if not log._is_ready():
                return None
            changes = changes_of(
                broker.metadata.image.topics, request, AS_OFFSET_COMMIT, metadata_limit, now_ms
            )
            if changes is None:
                return None
            batch = batch_of(
                commit.group_id, changes, now_ms, transaction.producer_id, transaction.producer_epoch, True
            )
            answer = answer_to(request, header, True, True, False)
            admitted = transactions.admit_plain(
                text_of(transaction.transactional_id, transaction.transactional_id_bytes), producer_id,
                transaction.producer_epoch, [(log, NO_SEQUENCE)], now_ms, self._segment.append,
                self._cached_batches, "TxnOffsetCommit",
            )
            if admitted is None:
                return None
            if isinstance(admitted[0], Exception):
                return admitted[0], False
        except Exception:
            return None         # no offset is written: the handler meets it again, and answers
        stored = self._store(broker, groups, log, batch, commit.group_id, changes, now_ms, producer_id)
        if not isinstance(stored, Appended):
            return None if stored is None else (stored, True)
        self.answered = request.count
        return answer


cdef TxnCommit _commit_of(OffsetsRequest* request):
    cdef TxnCommit commit = TxnCommit.__new__(TxnCommit)
    commit.group_id = text_of(request.group_id, request.group_id_bytes)
    commit.generation_id = request.epoch
    commit.member_id = text_of(request.member_id, request.member_id_bytes)
    commit.group_instance_id = text_of(request.instance_id, request.instance_id_bytes)
    return commit
