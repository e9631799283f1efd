// One transaction and one group for each line of stdin, by franz-go: a JSON object with the settings of a listener. The
// committed values that the group read are one line of stdout each.
package main

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/sasl/oauth"
	"github.com/twmb/franz-go/pkg/sasl/plain"
	"github.com/twmb/franz-go/pkg/sasl/scram"
)

type settings struct {
	Bootstrap, Topic, Mechanism, User, Password, Token, Authority, Certificate string
}

func options(given settings) ([]kgo.Opt, error) {
	found := []kgo.Opt{kgo.SeedBrokers(given.Bootstrap)}
	if given.Authority != "" {
		trusted := x509.NewCertPool()
		pem, err := os.ReadFile(given.Authority)
		if err != nil || !trusted.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("no authority: %v", err)
		}
		config := &tls.Config{RootCAs: trusted}
		if given.Certificate != "" {
			own, err := tls.LoadX509KeyPair(given.Certificate, given.Certificate)
			if err != nil {
				return nil, err
			}
			config.Certificates = []tls.Certificate{own}
		}
		found = append(found, kgo.DialTLSConfig(config))
	}
	login := scram.Auth{User: given.User, Pass: given.Password}
	switch given.Mechanism {
	case "PLAIN":
		found = append(found, kgo.SASL(plain.Auth{User: given.User, Pass: given.Password}.AsMechanism()))
	case "SCRAM-SHA-256":
		found = append(found, kgo.SASL(login.AsSha256Mechanism()))
	case "SCRAM-SHA-512":
		found = append(found, kgo.SASL(login.AsSha512Mechanism()))
	case "OAUTHBEARER":
		found = append(found, kgo.SASL(oauth.Auth{Token: given.Token}.AsMechanism()))
	}
	return found, nil
}

func write(ctx context.Context, given settings, common []kgo.Opt) error {
	producer, err := kgo.NewClient(append(common, kgo.TransactionalID("go-"+given.Topic), kgo.DefaultProduceTopic(given.Topic))...)
	if err != nil {
		return err
	}
	defer producer.Close()
	for _, how := range []kgo.TransactionEndTry{kgo.TryAbort, kgo.TryCommit} {
		if err := producer.BeginTransaction(); err != nil {
			return err
		}
		for number := 0; number < 5; number++ {
			value := fmt.Sprintf("%v-%d", bool(how), number)
			if err := producer.ProduceSync(ctx, kgo.StringRecord(value)).FirstErr(); err != nil {
				return err
			}
		}
		if err := producer.EndTransaction(ctx, how); err != nil {
			return err
		}
	}
	return nil
}

func read(ctx context.Context, given settings, common []kgo.Opt) ([]string, error) {
	consumer, err := kgo.NewClient(append(common, kgo.ConsumerGroup("go-"+given.Topic), kgo.ConsumeTopics(given.Topic),
		kgo.FetchIsolationLevel(kgo.ReadCommitted()), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))...)
	if err != nil {
		return nil, err
	}
	defer consumer.Close()
	var values []string
	for len(values) < 5 {
		fetches := consumer.PollFetches(ctx)
		if err := fetches.Err(); err != nil {
			return nil, err
		}
		fetches.EachRecord(func(record *kgo.Record) { values = append(values, string(record.Value)) })
	}
	return values, consumer.CommitUncommittedOffsets(ctx)
}

func main() {
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var given settings
		err := json.Unmarshal(lines.Bytes(), &given)
		var common []kgo.Opt
		if err == nil {
			common, err = options(given)
		}
		ctx, cancel := context.WithTimeout(context.Background(), 90*time.Second)
		if err == nil {
			err = write(ctx, given, common)
		}
		var values []string
		if err == nil {
			values, err = read(ctx, given, common)
		}
		cancel()
		if err != nil {
			fmt.Println("failed:", err)
		} else {
			fmt.Println(strings.Join(values, " "))
		}
	}
}
