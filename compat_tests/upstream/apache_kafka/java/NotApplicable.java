package kafkashim;

import java.util.LinkedHashSet;
import java.util.Set;

/**
 * Thrown where a test asks for an object that lives only in the JVM of a Kafka broker. An Error, so that a test that
 * retries on exceptions does not wait for it in vain.
 */
public final class NotApplicable extends Error {
    private static final Set<String> CALLS = new LinkedHashSet<>();

    public NotApplicable(String call) {
        super("not applicable: " + call);
        synchronized (CALLS) {
            CALLS.add(call);
        }
    }

    /** The calls since the last `reset`, in order, also those whose error a test swallowed. */
    static Set<String> calls() {
        synchronized (CALLS) {
            return new LinkedHashSet<>(CALLS);
        }
    }

    static void reset() {
        synchronized (CALLS) {
            CALLS.clear();
        }
    }
}
