// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"context"
	"net"
	"net/http"
	"strconv"
	"testing"
	"time"

	"github.com/hookgate/hookgate/internal/seeing/observe"
	"github.com/hookgate/hookgate/test/process"
)

func TestProfilerRefusesAForeignHost(t *testing.T) {
	address := "127.0.0.1:" + strconv.Itoa(process.FreePort(t))
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- profilerServer{address}.Run(ctx) }()
	status := func(host string) int {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+"/debug/pprof/cmdline", http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		request.Host = host
		for deadline := time.Now().Add(time.Minute); ; {
			response, err := http.DefaultClient.Do(request)
			if err == nil {
				_ = response.Body.Close()
				return response.StatusCode
			}
			if time.Now().After(deadline) {
				t.Fatal(err)
			}
			time.Sleep(time.Millisecond) // it does not listen yet
		}
	}
	if got := status("localhost"); got != http.StatusOK {
		t.Errorf("localhost: %d", got)
	}
	if got := status("evil.example"); got != http.StatusMisdirectedRequest {
		t.Errorf("a foreign host: %d", got)
	}
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

func TestDashboardIsAnAddress(t *testing.T) {
	open := func(h http.Handler) (http.Handler, error) { return h, nil }
	for link, valid := range map[string]bool{
		"": true, "https://grafana.example/d/hookgate": true, "http://127.0.0.1:3000": true,
		"javascript:alert(1)": false, "grafana.example": false, "https:///d": false, "http://[::1": false,
	} {
		o := diagnosticsOptions{ui: true, uiLink: link}
		if _, _, err := o.statusHandlers(new(observe.Reporter), func() net.Addr { return nil }, nil, open); (err == nil) != valid {
			t.Errorf("%q: %v", link, err)
		}
	}
}
