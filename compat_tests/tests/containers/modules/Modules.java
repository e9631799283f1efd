import java.util.Scanner;
import org.testcontainers.kafka.ConfluentKafkaContainer;
import org.testcontainers.kafka.KafkaContainer;
import org.testcontainers.utility.DockerImageName;

/** Starts an image with a module of Testcontainers, prints where it is and how long it took, stops it at a line of stdin. */
public final class Modules {
    private Modules() {
    }

    public static void main(String[] arguments) {
        long begun = System.nanoTime();
        DockerImageName image = DockerImageName.parse(arguments[1]);
        if (arguments[0].equals("apache")) {
            try (KafkaContainer container = new KafkaContainer(image.asCompatibleSubstituteFor("apache/kafka"))) {
                container.start();
                serve(container.getBootstrapServers(), begun);
            }
        } else {
            try (ConfluentKafkaContainer container =
                    new ConfluentKafkaContainer(image.asCompatibleSubstituteFor("confluentinc/cp-kafka"))) {
                container.start();
                serve(container.getBootstrapServers(), begun);
            }
        }
    }

    private static void serve(String bootstrap, long begun) {
        System.out.println("ready " + bootstrap + " " + (System.nanoTime() - begun) / 1_000_000);
        new Scanner(System.in).nextLine();
    }
}
