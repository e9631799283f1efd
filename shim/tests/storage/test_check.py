"""A data directory is read whole: what is damaged is said, where it is; what a start repairs is no damage."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from kafka_shim import Broker
from kafka_shim.storage.check import DAMAGE, REPAIRED, Report, check_directory, log_bytes
from kafka_shim.storage.data_dir import CLEAN_SHUTDOWN
from kafka_shim.tests.produced import batch, make_topic, produce
from kafka_shim.tests.storage.compacted import COMPACT, clean, headers, keyed
from kafka_shim.tests.storage.conftest import NOW_MS, Disk
from kafka_shim.wire_client import Connection

SEGMENTS = 3


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with a partition of three segments, stopped cleanly."""
    path = tmp_path_factory.mktemp("data") / "d"
    with (
        Broker(data_dir=path, log_segment_bytes=1 << 20, log_index_interval_bytes=4096) as broker,
        Connection(broker.bootstrap_servers) as client,
    ):
        make_topic(client, "t", 1)
        for number in range(26):
            records = batch(b"v" * 100_000, producer_id=5, producer_epoch=0, base_sequence=number)
            assert produce(client, "t", 0, records).error_code == 0
    return path


@pytest.fixture
def copy(whole: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(whole, tmp_path / "d"))


def files(path: Path, suffix: str) -> list[Path]:
    return sorted((path / "t-0").glob(f"*{suffix}"))


def only(report: Report) -> tuple[str, str, str]:
    (finding,) = report.findings
    return finding.severity, Path(finding.path).name, finding.text


def test_a_whole_directory_has_no_findings(copy: Path) -> None:
    before = {path: path.stat().st_mtime_ns for path in copy.rglob("*")}
    read: list[int] = []
    report = check_directory(str(copy), read.append)
    assert report.findings == []
    assert not report.is_damaged
    assert report.was_clean
    assert report.segments == SEGMENTS + 1  # and that of the metadata log
    assert report.batches > 26
    assert sum(read) == log_bytes(str(copy)) == report.read_bytes
    assert {path: path.stat().st_mtime_ns for path in copy.rglob("*")} == before


def flip(path: Path, at: int) -> None:
    content = bytearray(path.read_bytes())
    content[at] ^= 0xFF
    path.write_bytes(bytes(content))


def test_a_flipped_byte_is_damage_with_its_place(copy: Path) -> None:
    first = files(copy, ".log")[0]
    flip(first, 200_000)
    severity, name, text = only(check_directory(str(copy)))
    assert (severity, name) == (DAMAGE, first.name)
    assert "offset 1 on are no batches: BAD_CRC" in text


def test_half_a_batch_at_the_end_is_repaired_after_a_crash_and_damage_after_a_clean_stop(copy: Path) -> None:
    last = files(copy, ".log")[-1]
    last.write_bytes(last.read_bytes()[:-7])
    report = check_directory(str(copy))
    assert {one.severity for one in report.findings if one.path.endswith(".log")} == {DAMAGE}
    (copy / CLEAN_SHUTDOWN).unlink()
    report = check_directory(str(copy))
    assert {one.severity for one in report.findings} == {REPAIRED}
    assert not report.is_damaged


def test_what_a_start_after_a_crash_would_lose_is_damage(copy: Path) -> None:
    """No crash tears a batch before whole ones: cutting there is a loss that the operator must hear of before."""
    (copy / CLEAN_SHUTDOWN).unlink()
    last = files(copy, ".log")[-1]
    content = last.read_bytes()
    flip(last, 200)
    assert "with the whole batches that follow" in {
        one.severity: one.text for one in check_directory(str(copy)).findings
    }.get(DAMAGE, "")
    last.write_bytes(content)
    (metadata,) = (copy / "__cluster_metadata-0").glob("*.log")
    for left in (b"nonsense", b""):
        metadata.write_bytes(left)
        text = {one.severity: one.text for one in check_directory(str(copy)).findings}.get(DAMAGE, "")
        assert text == "no metadata is left: the next start would set 1 partition aside"


@pytest.mark.parametrize("suffix", [".index", ".timeindex"])
def test_an_index_that_contradicts_the_log_is_damage(copy: Path, suffix: str) -> None:
    index = files(copy, suffix)[0]
    flip(index, len(index.read_bytes()) - 1)
    severity, name, text = only(check_directory(str(copy)))
    assert (severity, name) == (DAMAGE, index.name)
    assert "remove the file, the next start writes a new one" in text


def test_the_indexed_time_of_a_batch_that_compaction_emptied_is_no_damage(make_disk: Callable[..., Disk]) -> None:
    disk = make_disk()
    log = disk.open(COMPACT)
    keyed(log, (b"k", b"old"), pid=5, seq=0, timestamp=NOW_MS + 1)
    keyed(log, (b"k", b"new"))
    clean(disk, log)
    assert [header.record_count for header in headers(log)] == [0, 1]
    (index,) = (path for path in Path(log.directory).glob("*.timeindex") if path.stat().st_size)
    disk.stop()
    assert [one.text for one in check_directory(str(disk.path)).findings if one.path == str(index)] == []
    flip(index, 7)  # another time
    texts = [one.text for one in check_directory(str(disk.path)).findings if one.path == str(index)]
    assert [text.partition(": Index")[0] for text in texts] == ["contradicts the log"]


@pytest.mark.parametrize(
    ("name", "content", "severity"),
    [
        ("meta.properties", b"version=1\n", DAMAGE),
        ("meta.properties", b"version=7\n", DAMAGE),
        ("recovery-point-offset-checkpoint", b"0\n1\nt 0 99\n", DAMAGE),
        ("log-start-offset-checkpoint", b"0\nmany\n", REPAIRED),
        ("t-0/leader-epoch-checkpoint", b"0\n2\n3 0\n2 5\n", DAMAGE),
        ("t-0/leader-epoch-checkpoint", b"0\n1\n3 99\n", DAMAGE),
        ("t-0/leader-epoch-checkpoint", b"0\n1\n3 x\n", DAMAGE),
        ("t-0/00000000000000000099.snapshot", b"nonsense", REPAIRED),
        ("t-0/00000000000000000000.txnindex", bytes(25) + b"\x63" + bytes(8), DAMAGE),
        ("not of kafka/x", b"", DAMAGE),
    ],
)
def test_what_stands_beside_the_logs_is_read_too(copy: Path, name: str, content: bytes, severity: str) -> None:
    path = copy / name
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(content)
    report = check_directory(str(copy))
    assert [one.severity for one in report.findings] == [severity], report.findings


def test_segments_that_overlap_are_damage(copy: Path) -> None:
    second = files(copy, ".log")[1]
    for path in files(copy, ".log")[1], files(copy, ".index")[1], files(copy, ".timeindex")[1]:
        path.rename(path.with_name(f"{2:020d}{path.suffix}"))
    texts = [one.text for one in check_directory(str(copy)).findings]
    assert any("begins below offset" in text for text in texts), (second, texts)
