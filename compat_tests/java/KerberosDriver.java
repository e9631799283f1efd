import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.List;
import org.apache.kafka.common.security.kerberos.KerberosName;
import org.apache.kafka.common.security.kerberos.KerberosShortNamer;

/**
 * Asks Kafka's KerberosShortNamer. A line of stdin is a realm, rules with semicolons between, and a principal,
 * tab-separated; the answer is a line of stdout: "name NAME", "none", or "bad" if the rules are refused.
 */
public final class KerberosDriver {
    private KerberosDriver() {
    }

    public static void main(String[] arguments) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        PrintStream out = new PrintStream(System.out, true, StandardCharsets.UTF_8);
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            String[] words = line.split("\t", -1);
            out.println(answer(words[0], List.of(words[1].split(";", -1)), words[2]));
        }
    }

    private static String answer(String realm, List<String> rules, String principal) {
        KerberosShortNamer namer;
        try {
            namer = KerberosShortNamer.fromUnparsedRules(realm, rules);
        } catch (RuntimeException error) {
            return "bad";
        }
        try {
            return "name " + namer.shortName(KerberosName.parse(principal));
        } catch (Exception error) {
            return "none";
        }
    }
}
