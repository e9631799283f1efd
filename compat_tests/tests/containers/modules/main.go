package main

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"time"

	"github.com/testcontainers/testcontainers-go/modules/kafka"
)

// Starts the image that the argument names, prints where it is and how long it took, and stops it at a line of stdin.
func main() {
	begun := time.Now()
	container, err := kafka.Run(context.Background(), os.Args[1])
	if err != nil {
		fmt.Println("failed", err)
		os.Exit(1)
	}
	brokers, err := container.Brokers(context.Background())
	if err != nil {
		fmt.Println("failed", err)
		os.Exit(1)
	}
	fmt.Println("ready", brokers[0], time.Since(begun).Milliseconds())
	_, _ = bufio.NewReader(os.Stdin).ReadString('\n')
	_ = container.Terminate(context.Background())
}
