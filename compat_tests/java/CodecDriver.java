import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.BufferedReader;
import java.io.BufferedWriter;
import java.io.InputStreamReader;
import java.io.OutputStreamWriter;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.HashMap;
import java.util.HexFormat;
import java.util.Map;
import org.apache.kafka.common.protocol.ByteBufferAccessor;
import org.apache.kafka.common.protocol.Message;
import org.apache.kafka.common.protocol.MessageUtil;

/**
 * Kafka's own message classes behind a pipe. Each line of input is: class name, version, bytes in hex or "-", JSON or "-",
 * apart by tabs. Each line of output is: the bytes that Kafka makes of the JSON, the bytes it makes again of the
 * given bytes after reading them, the JSON of those, and how many bytes it left unread; or "!" and what was thrown.
 */
public final class CodecDriver {
    private static final ObjectMapper MAPPER = new ObjectMapper();
    private static final HexFormat HEX = HexFormat.of();

    private record Codec(Class<?> type, Method fromJson, Method toJson) { }

    private final Map<String, Codec> codecs = new HashMap<>();

    private Codec codec(String name) throws ReflectiveOperationException {
        Codec known = codecs.get(name);
        if (known == null) {
            Class<?> type = Class.forName(name);
            Class<?> json = Class.forName(name + "JsonConverter");
            known = new Codec(
                type,
                json.getMethod("read", JsonNode.class, short.class),
                json.getMethod("write", type, short.class, boolean.class));
            codecs.put(name, known);
        }
        return known;
    }

    private static String hex(Object message, short version) {
        ByteBuffer buffer = MessageUtil.toByteBufferAccessor((Message) message, version).buffer();
        byte[] bytes = new byte[buffer.remaining()];
        buffer.get(bytes);
        return HEX.formatHex(bytes);
    }

    private String answer(String line) throws Exception {
        String[] cells = line.split("\t", 4);
        Codec codec = codec(cells[0]);
        short version = Short.parseShort(cells[1]);
        StringBuilder out = new StringBuilder();
        if (cells[3].equals("-")) {
            out.append('-');
        } else {
            out.append(hex(codec.fromJson.invoke(null, MAPPER.readTree(cells[3]), version), version));
        }
        if (cells[2].equals("-")) {
            return out.append("\t-\t-\t0").toString();
        }
        Message message = (Message) codec.type.getConstructor().newInstance();
        ByteBuffer buffer = ByteBuffer.wrap(HEX.parseHex(cells[2]));
        message.read(new ByteBufferAccessor(buffer), version);
        String again = hex(message, version);
        JsonNode json = (JsonNode) codec.toJson.invoke(null, message, version, true);
        return out.append('\t').append(again).append('\t').append(MAPPER.writeValueAsString(json))
            .append('\t').append(buffer.remaining()).toString();
    }

    public static void main(String[] args) throws Exception {
        CodecDriver driver = new CodecDriver();
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8), 1 << 16);
        BufferedWriter out = new BufferedWriter(new OutputStreamWriter(System.out, StandardCharsets.UTF_8), 1 << 16);
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            String reply;
            try {
                reply = driver.answer(line);
            } catch (InvocationTargetException e) {
                reply = "!" + e.getCause();
            } catch (Exception | Error e) {
                reply = "!" + e;
            }
            out.write(reply.replace('\n', ' '));
            out.write('\n');
            if (!in.ready()) {
                out.flush();
            }
        }
        out.flush();
    }
}
