import java.io.BufferedReader;
import java.io.ByteArrayOutputStream;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.lang.reflect.InvocationTargetException;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import org.apache.kafka.common.utils.Exit;

/**
 * Runs main classes one after the other in one JVM. A line of stdin is a class and its arguments with tabs between;
 * the answer is a line "status length" and as many bytes of what it printed.
 */
public final class ToolDriver {
    /** What a tool's exit becomes. */
    private static final class Exited extends RuntimeException {
        private static final long serialVersionUID = 1L;
    }

    /** The first status that the tool asked to end with: some catch what they throw at their own exit, and exit again. */
    private static Integer exitStatus;

    private ToolDriver() {
    }

    public static void main(String[] arguments) throws Exception {
        Exit.setExitProcedure((status, message) -> {
            if (exitStatus == null) {
                exitStatus = status;
            }
            throw new Exited();
        });
        PrintStream answers = System.out;
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            ByteArrayOutputStream printed = new ByteArrayOutputStream();
            System.setOut(new PrintStream(printed, true, StandardCharsets.UTF_8));
            int status = run(line.split("\t", -1));
            System.out.flush();
            answers.println(status + " " + printed.size());
            printed.writeTo(answers);
            answers.flush();
        }
    }

    private static int run(String[] words) throws ReflectiveOperationException {
        Object tail = Arrays.copyOfRange(words, 1, words.length);
        exitStatus = null;
        try {
            Class.forName(words[0]).getMethod("main", String[].class).invoke(null, tail);
            return 0;
        } catch (InvocationTargetException error) {
            if (error.getCause() instanceof Exited) {
                return exitStatus;
            }
            error.getCause().printStackTrace();
            return 1;
        }
    }
}
