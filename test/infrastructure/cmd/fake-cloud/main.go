// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Command fake-cloud serves a cloud that exists in its memory, on loopback only. Once it listens it prints one line to
// the standard output, the URL; its log goes to the standard error. It ends on SIGINT or SIGTERM.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/go-logr/logr"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/hookgate/hookgate/test/infrastructure/cloud"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "fake-cloud:", err)
		os.Exit(1)
	}
}

// run serves until ctx ends.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	flags := flag.NewFlagSet("fake-cloud", flag.ContinueOnError)
	flags.SetOutput(stderr)
	address := flags.String("listen", "127.0.0.1:0", "the address of the API, on loopback")
	host := flags.String("host", "127.0.0.1", "the IP address of this host that clients of the clusters' API servers use")
	token := flags.String("token", "", "the bearer token that requests must have; none by default")
	joinTimeout := flags.Duration("join-timeout", 10*time.Second, "how long a machine tries to join its cluster")
	verbose := flags.Bool("v", false, "log what the API servers do, too")
	if err := flags.Parse(args); err != nil {
		return err
	}
	listenHost, _, err := net.SplitHostPort(*address)
	if err != nil {
		return err
	}
	if ip := net.ParseIP(listenHost); ip == nil || !ip.IsLoopback() {
		return fmt.Errorf("listen on %s: only loopback addresses are served", *address)
	}
	if net.ParseIP(*host) == nil {
		return fmt.Errorf("host %q: not an IP address", *host)
	}
	handler := slog.NewTextHandler(stderr, nil)
	ctrl.SetLogger(logr.Discard())
	if *verbose {
		ctrl.SetLogger(logr.FromSlogHandler(handler))
	}
	fake, err := cloud.New(cloud.Config{Token: *token, Host: *host, JoinTimeout: *joinTimeout, Logger: slog.New(handler)})
	if err != nil {
		return err
	}
	listener, err := net.Listen("tcp", *address)
	if err != nil {
		return errors.Join(err, fake.Close())
	}
	server := &http.Server{
		Handler: fake, ReadHeaderTimeout: 10 * time.Second, ReadTimeout: 30 * time.Second, IdleTimeout: time.Minute,
	}
	failed := make(chan error, 1)
	go func() { failed <- server.Serve(listener) }()
	fmt.Fprintf(stdout, "http://%s\n", listener.Addr())
	select {
	case err = <-failed:
	case <-ctx.Done():
	}
	server.Close()
	return errors.Join(err, fake.Close())
}
