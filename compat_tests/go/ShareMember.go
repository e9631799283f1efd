// One share consumer of franz-go: implicit|explicit BOOTSTRAP GROUP TOPIC. It does and prints what ShareMember.java does:
// explicitly, a value says what becomes of its record.
package main

import (
	"context"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

func acknowledge(client *kgo.Client, found []*kgo.Record) (held bool) {
	for _, each := range found {
		value := string(each.Value)
		first := each.DeliveryCount() == 1
		switch {
		case strings.HasPrefix(value, "hold") && first:
			held = true
		case strings.HasPrefix(value, "release") && first:
			each.Ack(kgo.AckRelease)
		case strings.HasPrefix(value, "reject"):
			each.Ack(kgo.AckReject)
		default:
			each.Ack(kgo.AckAccept)
		}
	}
	return held
}

func main() {
	explicit := os.Args[1] == "explicit"
	told := func(_ *kgo.Client, results kgo.ShareAckResults) {
		if err := results.Error(); err != nil {
			fmt.Println("error", err)
		} else {
			fmt.Println("committed")
		}
	}
	client, err := kgo.NewClient(
		kgo.SeedBrokers(os.Args[2]),
		kgo.ShareGroup(os.Args[3]),
		kgo.ConsumeTopics(os.Args[4]),
		kgo.ShareAckCallback(told),
		kgo.MetadataMinAge(100*time.Millisecond),
		kgo.MetadataMaxAge(500*time.Millisecond),
	)
	if err != nil {
		fmt.Println("error", err)
		os.Exit(1)
	}
	fmt.Println("started")
	for {
		fetches := client.PollFetches(context.Background())
		found := fetches.Records()
		for _, each := range found {
			fmt.Println("record", each.Topic, each.Partition, each.Offset, each.DeliveryCount(), string(each.Value))
		}
		if explicit && acknowledge(client, found) {
			fmt.Println("holding")
			select {}
		}
		if err := client.FlushAcks(context.Background()); err != nil {
			fmt.Println("error", err)
		}
	}
}
