from __future__ import annotations

import pytest

from kafka_shim.metadata.quorum_state import FILE_NAME, QuorumState, QuorumStateError, read, write


def test_a_static_quorum_is_written_in_kafkas_bytes(tmp_path):
    write(tmp_path, QuorumState(0, 1, 2, [1]))
    assert (tmp_path / FILE_NAME).read_text() == (
        '{"clusterId":"","leaderId":1,"leaderEpoch":2,"votedId":-1,"appliedOffset":0,'
        '"currentVoters":[{"voterId":1}],"data_version":0}'
    )
    state = read(tmp_path)
    assert (state.version, state.leader_id, state.leader_epoch, state.voters) == (0, 1, 2, [1])


def test_a_dynamic_quorum_keeps_its_version(tmp_path):
    write(tmp_path, QuorumState(1, 3, 9, []))
    state = read(tmp_path)
    assert (state.version, state.leader_id, state.leader_epoch) == (1, 3, 9)


def test_no_file_and_an_empty_one_are_no_state(tmp_path):
    assert read(tmp_path) is None
    (tmp_path / FILE_NAME).write_text("")
    assert read(tmp_path) is None


@pytest.mark.parametrize("text", ["{", "[]", '{"data_version":0}', '{"data_version":2,"leaderId":1,"leaderEpoch":1}'])
def test_anything_else_is_refused(tmp_path, text):
    (tmp_path / FILE_NAME).write_text(text)
    with pytest.raises(QuorumStateError):
        read(tmp_path)


@pytest.mark.parametrize(
    "content",
    [
        b"\xff\xfe",
        b"[" * 100_000,
        b'{"data_version":0,"leaderId":1,"leaderEpoch":1e400}',
        b'{"data_version":0,"leaderId":1,"leaderEpoch":2147483647}',
        b'{"data_version":0,"leaderId":1,"leaderEpoch":-1}',
        b'{"data_version":0,"leaderId":1,"leaderEpoch":1,"currentVoters":[{"voterId":[]}]}',
    ],
    ids=["no text", "deep", "infinite", "last epoch", "no epoch", "voters"],
)
def test_a_damaged_file_is_named_with_what_to_do(tmp_path, content):
    """Some ended the start with a traceback, or with a line that named no file."""
    (tmp_path / FILE_NAME).write_bytes(content)
    with pytest.raises(QuorumStateError, match=f"{FILE_NAME} is damaged .*: remove it"):
        read(tmp_path)
