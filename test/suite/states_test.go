// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package suite

import (
	"encoding/json"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/hookgate/hookgate/internal/base/status"
	"github.com/hookgate/hookgate/test/process"
	"github.com/hookgate/hookgate/test/samples"
)

// state returns what the gateway says of an extension.
func (g *gateway) state(t testing.TB, name string) status.Extension {
	t.Helper()
	response, err := http.Get("http://" + g.Diagnostics + status.Path + "?extension=" + name)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	var got status.Gateway
	if err := json.NewDecoder(response.Body).Decode(&got); err != nil || len(got.Extensions) != 1 {
		t.Fatalf("status of %s: %v, %+v", name, err, got)
	}
	return got.Extensions[0]
}

// awaitState waits until an extension has a state, and returns how long that took.
func (g *gateway) awaitState(t testing.TB, name string, want status.State) time.Duration {
	t.Helper()
	began := time.Now()
	process.Eventually(t, name+" is "+string(want), func() bool { return g.state(t, name).State == want })
	return time.Since(began)
}

// An extension whose process is killed is Down, and Up when it is back, whether it is called or not; and no hook is
// called to find out. The figures are printed: they are 5 s at most where nothing else runs.
func TestStatesFollowTheProcess(t *testing.T) {
	for name, called := range map[string]bool{"Idle": false, "Called": true} {
		t.Run(name, func(t *testing.T) {
			a := newAuthority(t)
			e := startExtension(t, a, "acme", "0")
			_, port, err := net.SplitHostPort(strings.TrimPrefix(e.url, "https://"))
			if err != nil {
				t.Fatal(err)
			}
			g := startGateway(t, a, map[string]string{"acme.yaml": registration{name: "acme", url: e.url}.manifest(a)})
			g.awaitState(t, "acme", status.Up)
			if called {
				stop := make(chan struct{})
				t.Cleanup(func() { close(stop) })
				go func() {
					for {
						select {
						case <-stop:
							return
						case <-time.After(100 * time.Millisecond):
							_, _ = try(g.client, "https://"+g.HTTPS+path("BeforeClusterCreate", ""), samples.Body("BeforeClusterCreate"))
						}
					}
				}()
			}
			for range 2 {
				e.Kill()
				down := g.awaitState(t, "acme", status.Down)
				x := g.state(t, "acme")
				if !called && (x.Error == "" || x.Calls.Total != 0) {
					t.Errorf("the reason is %q, after %d calls", x.Error, x.Calls.Total)
				}
				if x.LastSuccess != nil && x.Since != nil && x.Since.Before(*x.LastSuccess) {
					t.Errorf("Down since %s, and its last answer was at %s", x.Since, x.LastSuccess)
				}
				e = startExtension(t, a, "acme", port)
				up := g.awaitState(t, "acme", status.Up)
				t.Logf("Down after %s, Up after %s", down.Round(10*time.Millisecond), up.Round(10*time.Millisecond))
			}
		})
	}
}
