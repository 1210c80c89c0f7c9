// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Command extension is a Runtime Extension built with Cluster API v1.12: its server, its types, its idea of a Cluster.
// Cluster API has changed the objects in requests since, without another version of the hooks, so it stands for the
// extensions that people built back then.
//
// It has three sets of handlers. Those named after the hooks report in the message of an answer what they decoded, as
// JSON, so that a test sees member by member what arrived. Those named strict- refuse templates with members that they
// do not know. With --guard, others take the place of the first: they do what extensions do with a Cluster, read its
// class and get the objects that it refers to, and fail where that cannot be done. It is a separate module, because it
// is built with v1.12.
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
	runtimehooksv1 "sigs.k8s.io/cluster-api/api/runtime/hooks/v1alpha1"
	runtimecatalog "sigs.k8s.io/cluster-api/exp/runtime/catalog"
	"sigs.k8s.io/cluster-api/exp/runtime/server"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// options are the flags.
type options struct {
	port    int
	certDir string
	guard   bool
	record  string
}

func main() {
	var o options
	flag.IntVar(&o.port, "port", 0, "port on 127.0.0.1; 0 takes a free one")
	flag.StringVar(&o.certDir, "cert-dir", "", "directory with tls.crt and tls.key")
	flag.BoolVar(&o.guard, "guard", false, "have the handlers that use the Cluster; they need KUBECONFIG, or --kubeconfig")
	flag.StringVar(&o.record, "record", "", "directory to which the guards write the Cluster of the last call of each hook, as JSON")
	flag.Parse()

	ctrl.SetLogger(logr.FromSlogHandler(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn})))
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	err := serve(ctx, o)
	stop()
	if err != nil {
		fmt.Fprintf(os.Stderr, "extension: %v\n", err)
		os.Exit(1)
	}
}

// serve runs the server until ctx is done. The server package cannot listen on port 0, so a free port is looked for
// first; another process may take it in between, and then the next one is tried.
func serve(ctx context.Context, o options) error {
	handlers := echoes()
	if o.guard {
		config, err := ctrl.GetConfig()
		if err != nil {
			return err
		}
		reader, err := client.New(config, client.Options{})
		if err != nil {
			return err
		}
		handlers = guards(guard{reader: reader, record: o.record})
	}
	handlers = append(handlers, stricts()...)
	if o.port != 0 {
		return start(ctx, o.port, o.certDir, handlers)
	}
	for {
		port, err := freePort()
		if err != nil {
			return err
		}
		if err := start(ctx, port, o.certDir, handlers); !errors.Is(err, syscall.EADDRINUSE) {
			return err
		}
	}
}

func start(ctx context.Context, port int, certDir string, handlers []server.ExtensionHandler) error {
	catalog := runtimecatalog.New()
	if err := runtimehooksv1.AddToCatalog(catalog); err != nil {
		return fmt.Errorf("fill catalog: %w", err)
	}
	s, err := server.New(server.Options{Catalog: catalog, Host: "127.0.0.1", Port: port, CertDir: certDir})
	if err != nil {
		return fmt.Errorf("create server: %w", err)
	}
	for _, h := range handlers {
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
