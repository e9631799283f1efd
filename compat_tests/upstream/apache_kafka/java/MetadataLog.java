package kafkashim;

import java.io.File;
import java.io.IOException;
import java.util.Arrays;

import org.apache.kafka.common.metadata.BeginTransactionRecord;
import org.apache.kafka.common.metadata.EndTransactionRecord;
import org.apache.kafka.common.protocol.ApiMessage;
import org.apache.kafka.common.protocol.ByteBufferAccessor;
import org.apache.kafka.common.record.internal.FileRecords;
import org.apache.kafka.common.record.internal.Record;
import org.apache.kafka.common.record.internal.RecordBatch;
import org.apache.kafka.image.MetadataDelta;
import org.apache.kafka.image.MetadataImage;
import org.apache.kafka.image.MetadataProvenance;
import org.apache.kafka.metadata.MetadataRecordSerde;

/** The metadata image that follows from the metadata log of a running broker, read from its files. */
final class MetadataLog {
    private final File folder;
    private MetadataImage image = MetadataImage.EMPTY;
    private long nextOffset = 0;
    private int epoch = 0;

    MetadataLog(File directory) {
        this.folder = new File(directory, "__cluster_metadata-0");
    }

    /** Whether a broker has begun it. */
    boolean exists() {
        return folder.isDirectory();
    }

    /** Reads what was appended since the last call. */
    synchronized MetadataImage image() {
        try {
            File[] snapshots = sorted(".checkpoint");
            File[] segments = sorted(".log");
            if (segments.length == 0) {
                return image;
            }
            if (snapshots.length > 0 && baseOffset(segments[0]) > nextOffset) {
                nextOffset = 0;
                image = MetadataImage.EMPTY;
                read(snapshots[snapshots.length - 1], true);
                nextOffset = baseOffset(snapshots[snapshots.length - 1]);
            }
            for (int index = 0; index < segments.length; index++) {
                if (index + 1 == segments.length || baseOffset(segments[index + 1]) > nextOffset) {
                    read(segments[index], false);
                }
            }
            return image;
        } catch (IOException error) {
            throw new IllegalStateException(error);
        }
    }

    synchronized int epoch() {
        image();
        return epoch;
    }

    synchronized long endOffset() {
        image();
        return nextOffset;
    }

    private File[] sorted(String suffix) {
        File[] found = folder.listFiles((parent, name) -> name.endsWith(suffix));
        if (found == null) {
            return new File[0];
        }
        Arrays.sort(found);
        return found;
    }

    private static long baseOffset(File file) {
        return Long.parseLong(file.getName().split("[.-]")[0]);
    }

    private void read(File file, boolean isSnapshot) throws IOException {
        MetadataDelta delta = new MetadataDelta.Builder().setImage(image).build();
        boolean isChanged = false;
        FileRecords records = FileRecords.open(file, false);
        try {
            for (RecordBatch batch : records.batches()) {
                if (!isSnapshot && batch.lastOffset() < nextOffset) {
                    continue;
                }
                if (!batch.isControlBatch()) {
                    for (Record record : batch) {
                        ByteBufferAccessor value = new ByteBufferAccessor(record.value());
                        ApiMessage message = MetadataRecordSerde.INSTANCE.read(value, record.valueSize()).message();
                        // The shim ends each metadata transaction in the batch that begins it.
                        if (!(message instanceof BeginTransactionRecord) && !(message instanceof EndTransactionRecord)) {
                            delta.replay(message);
                        }
                    }
                }
                epoch = Math.max(epoch, batch.partitionLeaderEpoch());
                nextOffset = batch.lastOffset() + 1;
                isChanged = true;
            }
        } finally {
            // `close` would truncate the file to what was read.
            records.closeHandlers();
        }
        if (isChanged) {
            image = delta.apply(new MetadataProvenance(nextOffset - 1, epoch, System.currentTimeMillis(), true));
        }
    }
}
