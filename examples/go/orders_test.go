package orders

import (
	"bufio"
	"context"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// startBroker returns the address of a broker that ends with the test.
func startBroker(t *testing.T) string {
	name := os.Getenv("KAFKA_SHIM")
	if name == "" {
		name = "kafka-shim"
	}
	command := exec.Command(name, "serve", "--memory", "--listen", "127.0.0.1:0", "--log-level", "WARNING")
	command.Stderr = os.Stderr
	output, err := command.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = command.Process.Signal(syscall.SIGTERM)
		_ = command.Wait()
	})
	// ready PLAINTEXT://127.0.0.1:41234 node=1 cluster=... data=...
	line, err := bufio.NewReader(output).ReadString('\n')
	words := strings.Fields(line)
	if err != nil || len(words) < 2 || words[0] != "ready" {
		t.Fatalf("no ready line, but %q: %v", line, err)
	}
	return strings.TrimPrefix(words[1], "PLAINTEXT://")
}

func TestARecordArrives(t *testing.T) {
	client, err := kgo.NewClient(
		kgo.SeedBrokers(startBroker(t)),
		kgo.AllowAutoTopicCreation(),
		kgo.DefaultProduceTopic("orders"),
		kgo.ConsumeTopics("orders"),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
	)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	if err := client.ProduceSync(ctx, kgo.StringRecord("one")).FirstErr(); err != nil {
		t.Fatal(err)
	}
	fetches := client.PollFetches(ctx)
	if records := fetches.Records(); len(records) != 1 || string(records[0].Value) != "one" {
		t.Fatalf("got %v, %v", records, fetches.Errors())
	}
}
