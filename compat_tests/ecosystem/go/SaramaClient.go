// One application of sarama: a transactional producer, a consumer group, an admin. Prints its findings.
package main

import (
	"context"
	"fmt"
	"os"
	"sort"
	"sync"
	"time"

	"github.com/IBM/sarama"
)

const topic, group, count = "sarama", "sarama-group", 300

type reader struct {
	mutex sync.Mutex
	seen  map[string]int
	done  chan struct{}
}

func (r *reader) Setup(sarama.ConsumerGroupSession) error   { return nil }
func (r *reader) Cleanup(sarama.ConsumerGroupSession) error { return nil }
func (r *reader) ConsumeClaim(session sarama.ConsumerGroupSession, claim sarama.ConsumerGroupClaim) error {
	for {
		select {
		case message, isOpen := <-claim.Messages():
			if !isOpen {
				return nil
			}
			r.mutex.Lock()
			r.seen[string(message.Value)+" "+string(message.Headers[0].Value)]++
			if len(r.seen) == 2*count {
				select {
				case <-r.done:
				default:
					close(r.done)
				}
			}
			r.mutex.Unlock()
			session.MarkMessage(message, "")
		case <-session.Context().Done():
			return nil
		}
	}
}

func check(err error) {
	if err != nil {
		fmt.Println("error:", err)
		os.Exit(1)
	}
}

func send(producer sarama.SyncProducer, text string) {
	var messages []*sarama.ProducerMessage
	for number := 0; number < count; number++ {
		messages = append(messages, &sarama.ProducerMessage{
			Topic: topic, Key: sarama.StringEncoder(fmt.Sprint(number)), Value: sarama.StringEncoder(fmt.Sprint(text, number)),
			Headers: []sarama.RecordHeader{{Key: []byte("kind"), Value: []byte(text)}},
		})
	}
	check(producer.SendMessages(messages))
}

func main() {
	bootstrap := []string{os.Args[1]}
	config := sarama.NewConfig()
	config.Version = sarama.MaxVersion
	config.Producer.RequiredAcks = sarama.WaitForAll
	config.Producer.Return.Successes = true
	config.Producer.Compression = sarama.CompressionZSTD
	config.Producer.Idempotent = true
	config.Net.MaxOpenRequests = 1
	config.Consumer.IsolationLevel = sarama.ReadCommitted
	config.Consumer.Offsets.Initial = sarama.OffsetOldest

	admin, err := sarama.NewClusterAdmin(bootstrap, config)
	check(err)
	check(admin.CreateTopic(topic, &sarama.TopicDetail{NumPartitions: 3, ReplicationFactor: 1}, false))
	fmt.Println("again:", admin.CreateTopic(topic, &sarama.TopicDetail{NumPartitions: 3, ReplicationFactor: 1}, false))

	plain, err := sarama.NewSyncProducer(bootstrap, config)
	check(err)
	send(plain, "plain")
	check(plain.Close())

	transactional := *config
	transactional.Producer.Transaction.ID = "sarama-transactional"
	producer, err := sarama.NewSyncProducer(bootstrap, &transactional)
	check(err)
	check(producer.BeginTxn())
	send(producer, "aborted")
	check(producer.AbortTxn())
	check(producer.BeginTxn())
	send(producer, "committed")
	check(producer.CommitTxn())
	check(producer.Close())

	members, err := sarama.NewConsumerGroup(bootstrap, group, config)
	check(err)
	handler := &reader{seen: map[string]int{}, done: make(chan struct{})}
	ctx, cancel := context.WithCancel(context.Background())
	var waiting sync.WaitGroup
	waiting.Add(1)
	go func() {
		defer waiting.Done()
		for ctx.Err() == nil {
			if err := members.Consume(ctx, []string{topic}, handler); err != nil {
				fmt.Println("error:", err)
				return
			}
		}
	}()
	select {
	case <-handler.done:
	case <-time.After(90 * time.Second):
	}
	cancel()
	waiting.Wait()
	check(members.Close())
	kinds := map[string]int{}
	for value, times := range handler.seen {
		var number int
		kind := value[len(value)-9:]
		fmt.Sscan(value, &number)
		if times != 1 {
			fmt.Println("more than once:", value)
		}
		if kind == "committed" {
			kinds["committed"]++
		} else if value[len(value)-5:] == "plain" {
			kinds["plain"]++
		} else {
			kinds["aborted"]++
		}
	}
	fmt.Println("read:", kinds)

	offsets, err := admin.ListConsumerGroupOffsets(group, map[string][]int32{topic: {0, 1, 2}})
	check(err)
	client, err := sarama.NewClient(bootstrap, config)
	check(err)
	for partition := int32(0); partition < 3; partition++ {
		end, err := client.GetOffset(topic, partition, sarama.OffsetNewest)
		check(err)
		at := offsets.GetBlock(topic, partition).Offset
		// Behind the last record there is the marker of its transaction.
		fmt.Println("partition", partition, "committed up to its last record:", at == end-1 || at == end)
	}
	groups, err := admin.DescribeConsumerGroups([]string{group})
	check(err)
	fmt.Println("group:", groups[0].State, groups[0].ProtocolType)
	entries, err := admin.DescribeConfig(sarama.ConfigResource{Type: sarama.TopicResource, Name: topic, ConfigNames: []string{"cleanup.policy", "retention.ms"}})
	check(err)
	sort.Slice(entries, func(a, b int) bool { return entries[a].Name < entries[b].Name })
	for _, entry := range entries {
		fmt.Println("config:", entry.Name, entry.Value, entry.Source)
	}
	check(admin.DeleteConsumerGroup(group))
	check(admin.DeleteTopic(topic))
	check(admin.Close())
}
