// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Command extension is a Runtime Extension built on Cluster API's own server package. It serves every hook, with
// answers that depend only on the request, and reports in each answer what it decoded, so that the gateway's suite can
// compare an answer through the gateway with one without it.
// It is a separate module, because the server package needs all of Cluster API's dependencies.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"net"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/go-logr/logr"
	runtimecatalog "sigs.k8s.io/cluster-api/api/runtime/catalog"
	runtimehooksv1 "sigs.k8s.io/cluster-api/api/runtime/hooks/v1alpha1"
	"sigs.k8s.io/cluster-api/exp/runtime/server"
	ctrl "sigs.k8s.io/controller-runtime"
)

func main() {
	port := flag.Int("port", 0, "port on 127.0.0.1; 0 takes a free one")
	certDir := flag.String("cert-dir", "", "directory with tls.crt and tls.key")
	name := flag.String("name", "extension", "name of this extension, which stands in every message")
	flag.Parse()

	ctrl.SetLogger(logr.FromSlogHandler(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn})))
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	err := serve(ctx, *port, *certDir, *name)
	stop()
	if err != nil {
		fmt.Fprintf(os.Stderr, "extension %s: %v\n", *name, err)
		os.Exit(1)
	}
}

// serve runs the server until ctx is done. The server package cannot listen on port 0, so a free port is looked for
// first; another process may take it in between, and then the next one is tried.
func serve(ctx context.Context, port int, certDir, name string) error {
	if port != 0 {
		return start(ctx, port, certDir, name)
	}
	for {
		port, err := freePort()
		if err != nil {
			return err
		}
		if err := start(ctx, port, certDir, name); !errors.Is(err, syscall.EADDRINUSE) {
			return err
		}
	}
}

func start(ctx context.Context, port int, certDir, name string) error {
	catalog := runtimecatalog.New()
	if err := runtimehooksv1.AddToCatalog(catalog); err != nil {
		return fmt.Errorf("fill catalog: %w", err)
	}
	s, err := server.New(server.Options{Catalog: catalog, Host: "127.0.0.1", Port: port, CertDir: certDir})
	if err != nil {
		return fmt.Errorf("create server: %w", err)
	}
	for _, h := range handlers(name) {
		if err := s.AddExtensionHandler(h); err != nil {
			return fmt.Errorf("add handler %q: %w", h.Name, err)
		}
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go announce(ctx, s, port)
	return s.Start(ctx)
}

// announce prints the address once the server answers.
func announce(ctx context.Context, s *server.Server, port int) {
	ticker := time.NewTicker(10 * time.Millisecond)
	defer ticker.Stop()
	for {
		if s.StartedChecker()(nil) == nil {
			fmt.Printf("extension serving https=127.0.0.1:%d\n", port)
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

func freePort() (int, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	defer func() { _ = listener.Close() }()
	return listener.Addr().(*net.TCPAddr).Port, nil
}
