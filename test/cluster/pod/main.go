// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Command pod is what Pods of test/cluster run, besides the product and extensions:
//
//	pod pause             wait to be ended; also the container that holds the namespaces of a Pod
//	pod work              wait to be ended, and fail then, as work that was not done
//	pod finish CODE TEXT  leave TEXT as the container's message, and end with CODE
//	pod tell FILE…        leave what the files have as the container's message
//	pod fill              use memory until there is none left
//	pod connect ADDRESS…  try to connect to each, and print those that answer
//	pod rack ADDRESS DIR  provide infrastructure, with the certificate in DIR
//	pod load …            call hooks at a steady rate, and print what the calls got
//	pod large …           have many callers send large requests at once
package main

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"os"
	"os/signal"
	"strconv"
	"sync"
	"syscall"
	"time"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "pod:", err)
		os.Exit(1)
	}
}

// filled is what `pod fill` has used.
var filled [][]byte

func run(args []string) error {
	switch {
	case len(args) == 1 && args[0] == "pause":
		pause()
		return nil
	case len(args) == 1 && args[0] == "work":
		pause()
		return errors.New("ended before the work was done")
	case len(args) == 3 && args[0] == "finish":
		code, err := strconv.Atoi(args[1])
		if err == nil {
			err = os.WriteFile("/dev/termination-log", []byte(args[2]), 0o644)
		}
		if err != nil {
			return err
		}
		os.Exit(code)
		return nil
	case len(args) > 1 && args[0] == "tell":
		var all []byte
		for _, file := range args[1:] {
			text, err := os.ReadFile(file)
			if err != nil {
				return err
			}
			all = append(append(all, text...), ' ')
		}
		return os.WriteFile("/dev/termination-log", all, 0o644)
	case len(args) > 1 && args[0] == "connect":
		connect(args[1:])
		return nil
	case len(args) == 1 && args[0] == "fill":
		for {
			filled = append(filled, bytes.Repeat([]byte{1}, 1<<20))
		}
	case len(args) > 0 && args[0] == "rack":
		return rack(args[1:])
	case len(args) > 0 && args[0] == "load":
		return load(args[1:])
	case len(args) > 0 && args[0] == "large":
		return large(args[1:])
	}
	return fmt.Errorf("unknown command %q", args)
}

// connect prints the addresses that accept a connection within two seconds: a firewall drops packets without an answer.
func connect(addresses []string) {
	var wg sync.WaitGroup
	for _, address := range addresses {
		wg.Go(func() {
			if c, err := net.DialTimeout("tcp", address, 2*time.Second); err == nil {
				_ = c.Close()
				fmt.Println(address)
			}
		})
	}
	wg.Wait()
}

// pause waits for a signal, and reaps the processes that it has adopted until then.
func pause() {
	signals := make(chan os.Signal, 8)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM, syscall.SIGCHLD)
	for s := range signals {
		if s != syscall.SIGCHLD {
			return
		}
		for {
			if pid, err := syscall.Wait4(-1, nil, syscall.WNOHANG, nil); pid <= 0 || err != nil {
				break
			}
		}
	}
}
