// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Command quickstart is behind "make run": it makes certificates, starts the example extension and a gateway, calls
// hooks through both of the gateway's fronts, prints what was asked and answered, and leaves both running until Ctrl-C.
// It starts the real programs and calls them as any client would; nothing in it is part of the gateway.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"os"
	"os/signal"
	"strconv"
	"syscall"
)

// options holds the flags.
type options struct {
	hookgate  string
	extension string
	requests  string
	dir       string
	http      string
	grpc      string
	health    string
	extAddr   string
	ports     int
	once      bool
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// run is the whole program, so that tests can call it. It returns the exit status.
func run(ctx context.Context, args []string, out, errOut io.Writer) int {
	var o options
	f := flag.NewFlagSet("quickstart", flag.ContinueOnError)
	f.SetOutput(errOut)
	f.StringVar(&o.hookgate, "hookgate", "bin/hookgate", "the program hookgate")
	f.StringVar(&o.extension, "extension", "bin/rest-extension", "the program rest-extension")
	f.StringVar(&o.requests, "requests", "examples/requests", "directory with the example requests")
	f.StringVar(&o.dir, "dir", "out/dev", "directory for certificates, manifests and logs; what is in it is replaced")
	f.StringVar(&o.http, "http-address", "127.0.0.1:9443", "the gateway's address for HTTPS JSON")
	f.StringVar(&o.grpc, "grpc-address", "127.0.0.1:9090", "the gateway's address for gRPC")
	f.StringVar(&o.health, "diagnostics-address", "127.0.0.1:8443", "the gateway's address for health and metrics")
	f.StringVar(&o.extAddr, "extension-address", "127.0.0.1:9442", "the extension's address")
	f.IntVar(&o.ports, "ports", -1,
		"first of four ports to use instead of the addresses' own; 0 lets the system choose them all")
	f.BoolVar(&o.once, "once", false, "stop after the calls")
	if err := f.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return 0
		}
		return 2
	}
	err := o.choosePorts()
	if err == nil {
		err = newTour(o, out).run(ctx)
	}
	if err != nil && ctx.Err() == nil {
		_, _ = fmt.Fprintf(errOut, "\nquickstart: %s\n", err)
		return 1
	}
	return 0
}

// choosePorts applies --ports, and checks that the ports are free before anything is started.
func (o *options) choosePorts() error {
	if o.ports > 65535-3 {
		return fmt.Errorf("--ports %d: want the first of four consecutive ports", o.ports)
	}
	for i, a := range []struct {
		flag, serves string
		address      *string
	}{
		{"--http-address", "HTTPS JSON", &o.http},
		{"--grpc-address", "gRPC", &o.grpc},
		{"--diagnostics-address", "health and metrics", &o.health},
		{"--extension-address", "the extension", &o.extAddr},
	} {
		host, port, err := net.SplitHostPort(*a.address)
		if err != nil {
			return fmt.Errorf("%s: %w", a.flag, err)
		}
		switch {
		case o.ports == 0:
			port = "0"
		case o.ports > 0:
			port = strconv.Itoa(o.ports + i)
		}
		*a.address = net.JoinHostPort(host, port)
		listener, err := net.Listen("tcp", *a.address)
		if errors.Is(err, syscall.EADDRINUSE) {
			return fmt.Errorf("port %s, for %s, is taken by another program (maybe another quickstart).\n"+
				"Stop that one, choose another address with %s HOST:PORT, or let the system choose all ports with --ports 0:\n"+
				"  make run RUNFLAGS=\"--ports 0\"", port, a.serves, a.flag)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", a.flag, err)
		}
		if err := listener.Close(); err != nil {
			return fmt.Errorf("%s: %w", a.flag, err)
		}
	}
	return nil
}
