// Kafka's own measures of a quota behind a pipe: the oracle of shim/quota/rate.py.
//
// Lines in: NEW rate|bucket BOUND SAMPLES WINDOW_S, or RECORD VALUE TIME_MS. Answers to RECORD: the throttle time in
// milliseconds after the value was recorded.

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.concurrent.TimeUnit;
import org.apache.kafka.common.metrics.MetricConfig;
import org.apache.kafka.common.metrics.Quota;
import org.apache.kafka.common.metrics.stats.Rate;
import org.apache.kafka.common.metrics.stats.TokenBucket;

public class QuotaDriver {
    public static void main(String[] arguments) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        MetricConfig config = null;
        Rate rate = null;
        TokenBucket bucket = null;
        double bound = 0;
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            String[] words = line.split(" ");
            if (words[0].equals("NEW")) {
                bound = Double.parseDouble(words[2]);
                config = new MetricConfig()
                    .timeWindow(Long.parseLong(words[4]), TimeUnit.SECONDS)
                    .samples(Integer.parseInt(words[3]))
                    .quota(new Quota(bound, true));
                rate = words[1].equals("rate") ? new Rate() : null;
                bucket = words[1].equals("bucket") ? new TokenBucket() : null;
                continue;
            }
            double value = Double.parseDouble(words[1]);
            long nowMs = Long.parseLong(words[2]);
            long throttleMs = 0;
            if (rate != null) {
                rate.record(config, value, nowMs);
                double measured = rate.measure(config, nowMs);
                if (measured > bound)
                    throttleMs = Math.round((measured - bound) / bound * rate.windowSize(config, nowMs));
            } else {
                bucket.record(config, value, nowMs);
                double tokens = bucket.measure(config, nowMs);
                if (tokens < 0) throttleMs = Math.round(-tokens / bound * 1000);
            }
            System.out.println(throttleMs);
        }
    }
}
