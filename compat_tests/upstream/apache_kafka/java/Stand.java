package kafkashim;

import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.util.Arrays;
import java.util.Set;

import org.mockito.Answers;
import org.mockito.MockSettings;
import org.mockito.Mockito;
import org.mockito.invocation.InvocationOnMock;
import org.mockito.stubbing.Answer;

/** Mocks whose calls go to an object of ours with a method of the same name, or else are not applicable. */
final class Stand {
    /** Of Kafka's Logging trait. */
    private static final Set<String> LOGGING = Set.of(
        "trace", "debug", "info", "warn", "error", "fatal", "logger", "logIdent", "msgWithLogIdent", "loggerName");

    private Stand() {
    }

    static MockSettings settings(String name, Object object) {
        return Mockito.withSettings().stubOnly().defaultAnswer(answer(name, object));
    }

    static <T> T in(Class<T> type, String name, Object object) {
        return Mockito.mock(type, settings(name, object));
    }

    private static Answer<Object> answer(String name, Object object) {
        return invocation -> {
            Method asked = invocation.getMethod();
            if (asked.getDeclaringClass() == Object.class || LOGGING.contains(asked.getName())) {
                return Answers.RETURNS_DEFAULTS.answer(invocation);
            }
            if (asked.getName().contains("$default$")) {
                return invocation.callRealMethod();
            }
            for (Method ours : object.getClass().getMethods()) {
                if (ours.getDeclaringClass() != Object.class && fits(ours, invocation)) {
                    try {
                        return ours.invoke(object, invocation.getArguments());
                    } catch (InvocationTargetException error) {
                        throw error.getCause();
                    }
                }
            }
            throw new NotApplicable(name + "." + asked.getName());
        };
    }

    private static boolean fits(Method ours, InvocationOnMock invocation) {
        Method asked = invocation.getMethod();
        return ours.getName().equals(asked.getName())
            && Arrays.equals(ours.getParameterTypes(), asked.getParameterTypes());
    }
}
