// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package process

import (
	"context"
	"fmt"
	"net/http"
	"os/exec"
	"strings"
	"time"
)

// Gateway is a running `hookgate serve`.
type Gateway struct {
	*Process
	// The addresses that it listens on; empty without the flag.
	HTTPS, GRPC, Diagnostics, Health string
}

// AnyPorts returns the flags that let the system choose the ports.
func AnyPorts() []string {
	return []string{"--http-address=127.0.0.1:0", "--grpc-address=127.0.0.1:0", "--diagnostics-address=127.0.0.1:0"}
}

// StartGateway starts cmd, a `hookgate serve`, and waits until it listens.
func StartGateway(ctx context.Context, name string, cmd *exec.Cmd) (*Gateway, error) {
	p, err := Start(name, cmd)
	if err != nil {
		return nil, err
	}
	line, err := p.Await(ctx, `(?m)^hookgate serving (.*)\n`)
	if err != nil {
		p.Kill()
		return nil, err
	}
	g := &Gateway{Process: p}
	for field := range strings.FieldsSeq(line[1]) {
		switch key, address, _ := strings.Cut(field, "="); key {
		case "https":
			g.HTTPS = address
		case "grpc":
			g.GRPC = address
		case "diagnostics":
			g.Diagnostics = address
		case "health":
			g.Health = address
		}
	}
	return g, nil
}

// Ready returns the status of /readyz at the health address, or else the diagnostics address; 0 without an answer.
func (g *Gateway) Ready(ctx context.Context) int {
	address := g.Health
	if address == "" {
		address = g.Diagnostics
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+"/readyz", http.NoBody)
	if err != nil {
		return 0
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return 0
	}
	_ = response.Body.Close()
	return response.StatusCode
}

// AwaitReady waits until the gateway is ready. It gives up when the gateway ends, after Patience, or with ctx.
func (g *Gateway) AwaitReady(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, Patience, fmt.Errorf("waited %s", Patience))
	defer cancel()
	for {
		status := g.Ready(ctx)
		if status == http.StatusOK {
			return nil
		}
		select {
		case <-g.exited:
			return fmt.Errorf("%s ended before it was ready:%s", g.name, g.LogTail())
		case <-ctx.Done():
			return fmt.Errorf("%s is not ready, status %d: %w:%s", g.name, status, context.Cause(ctx), g.LogTail())
		case <-time.After(20 * time.Millisecond):
		}
	}
}
