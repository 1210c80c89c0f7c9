// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"testing"

	"k8s.io/client-go/rest"

	"github.com/hookgate/hookgate/internal/base/limits"
	"github.com/hookgate/hookgate/internal/network/certs"
	"github.com/hookgate/hookgate/internal/serving/servers"
)

// What serves the health and the metrics of the controllers answers, and does not take any number of connections.
func TestInfrastructureDiagnostics(t *testing.T) {
	logger := slog.New(slog.DiscardHandler)
	var o infrastructureOptions
	o.diagnostics.address, o.diagnostics.health = "127.0.0.1:0", "127.0.0.1:0"
	mgr, err := o.newManager(&rest.Config{Host: "http://127.0.0.1:1"}, "default", logger)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	running, err := o.diagnosticsServers(ctx, mgr, certs.Settings{}, logger)
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, len(running))
	addresses := make(map[string]string)
	for i, name := range []string{"health", "diagnostics"} {
		server := running[i].(*servers.Side)
		addresses[name] = server.Addr().String()
		go func() { ended <- server.Run(ctx) }()
	}
	t.Cleanup(func() {
		stop()
		for range running {
			if err := <-ended; err != nil {
				t.Error(err)
			}
		}
	})
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	for _, c := range []struct {
		server, path string
		status       int
		text         string
	}{
		{"health", "/healthz", http.StatusOK, "ok"},
		{"health", "/readyz", http.StatusInternalServerError, "[-]caches failed"},
		{"health", "/readyz/caches", http.StatusInternalServerError, "have not been read yet"},
		{"health", "/metrics", http.StatusNotFound, ""},
		{"diagnostics", "/metrics", http.StatusOK, "go_goroutines "},
	} {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+addresses[c.server]+c.path, http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		response, err := client.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(response.Body)
		_ = response.Body.Close()
		if err != nil || response.StatusCode != c.status || !strings.Contains(string(body), c.text) {
			t.Errorf("%s: %s, %.300q, %v, want %d with %q", c.path, response.Status, body, err, c.status, c.text)
		}
	}
	for name, address := range addresses {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+"/healthz", http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		request.Host = "evil.example"
		response, err := client.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		_ = response.Body.Close()
		if response.StatusCode != http.StatusMisdirectedRequest {
			t.Errorf("%s answers %s to a foreign Host", name, response.Status)
		}
		open := 0
		for range limits.SideHostConnections + 8 {
			c, err := new(net.Dialer).DialContext(ctx, "tcp", address)
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = c.Close() }()
			if _, err := io.WriteString(c, "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"); err != nil {
				continue // it was closed at once
			}
			if n, _ := c.Read(make([]byte, 1)); n == 1 {
				open++
			}
		}
		// Connections that have just ended may count for a moment.
		if open > limits.SideHostConnections || open < limits.SideHostConnections-8 {
			t.Errorf("%s keeps %d connections of one host, want %d", name, open, limits.SideHostConnections)
		}
	}
}

func TestInfrastructureDiagnosticsInUse(t *testing.T) {
	taken, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = taken.Close() }()
	logger := slog.New(slog.DiscardHandler)
	for flag, address := range map[string]func(*diagnosticsOptions) *string{
		"--health-addr":         func(d *diagnosticsOptions) *string { return &d.health },
		"--diagnostics-address": func(d *diagnosticsOptions) *string { return &d.address },
	} {
		var o infrastructureOptions
		o.diagnostics.address = "127.0.0.1:0"
		*address(&o.diagnostics) = taken.Addr().String()
		mgr, err := o.newManager(&rest.Config{Host: "http://127.0.0.1:1"}, "default", logger)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := o.diagnosticsServers(t.Context(), mgr, certs.Settings{}, logger); err == nil || !strings.Contains(err.Error(), flag) {
			t.Errorf("%s in use: %v, want an error that names the flag", flag, err)
		}
	}
}
