// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"context"
	"errors"
	"flag"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/hookgate/hookgate/test/infrastructure/cloud/api"
)

// TestRun starts the program, reads its URL, makes a network at the given address, and ends it.
func TestRun(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	output, stdout := io.Pipe()
	ended := make(chan error, 1)
	go func() {
		ended <- run(ctx, []string{"--token", "secret", "--host", "::1"}, stdout, io.Discard)
		_ = stdout.Close()
	}()
	line, err := bufio.NewReader(output).ReadString('\n')
	if err != nil {
		t.Fatalf("%v, %v", err, <-ended)
	}
	client := &api.Client{URL: strings.TrimSpace(line), Token: "secret"}
	var counts api.Counts
	if err := client.Do(t.Context(), http.MethodGet, "/counts", nil, &counts); err != nil {
		t.Fatal(err)
	}
	if counts.Requests["GET /counts"] != 1 {
		t.Errorf("counts: %+v", counts)
	}
	network := api.Network{}
	if err := client.Do(t.Context(), http.MethodPut, "/networks/n", api.NetworkSpec{}, &network); err != nil {
		t.Fatal(err)
	}
	for network.Endpoint == nil {
		if err := client.Do(t.Context(), http.MethodGet, "/networks/n", nil, &network); err != nil {
			t.Fatal(err)
		}
	}
	if network.Endpoint.Host != "::1" {
		t.Errorf("the endpoint is %+v", network.Endpoint)
	}
	stop()
	if err := <-ended; err != nil {
		t.Errorf("at the end: %v", err)
	}
	if err := client.Do(t.Context(), http.MethodGet, "/counts", nil, nil); err == nil {
		t.Error("it still answers")
	}
}

// TestBadFlags refuses addresses that others reach, and what is no flag.
func TestBadFlags(t *testing.T) {
	for _, address := range []string{":0", "0.0.0.0:0", "10.0.0.1:80", "localhost:0", "127.0.0.1"} {
		if err := run(t.Context(), []string{"--listen", address}, io.Discard, io.Discard); err == nil {
			t.Errorf("%s: no error", address)
		}
	}
	if err := run(t.Context(), []string{"--host", "localhost"}, io.Discard, io.Discard); err == nil {
		t.Error("a host that is no address: no error")
	}
	if err := run(t.Context(), []string{"--help"}, io.Discard, io.Discard); !errors.Is(err, flag.ErrHelp) {
		t.Errorf("help: %v", err)
	}
	if err := run(t.Context(), []string{"--wrong"}, io.Discard, io.Discard); err == nil {
		t.Error("a flag that is none: no error")
	}
}
