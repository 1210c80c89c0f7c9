// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/hookgate/hookgate/test/process"
	"github.com/hookgate/hookgate/test/samples"
)

// TestSmallMemory calls a gateway in a cage of 64 MiB with 12 bodies of 15 MiB at the same time, twice. It says at start
// that it has little memory, refuses what it has no room for, and goes on answering small calls to another extension.
func TestSmallMemory(t *testing.T) {
	a := newAuthority(t)
	large, small := startExtension(t, a, healthy), startExtension(t, a, healthy)
	g := newGateway(t, a, map[string]string{
		"large.yaml": a.config("large", "https://"+large.https), "small.yaml": a.config("small", "https://"+small.https),
	})
	g.limit = 64 << 20
	if newCage(t, g.limit).dir == "" {
		t.Skip("without a control group, the gateway knows no limit, and the pages of its program count")
	}
	g.start(t, process.AnyPorts())
	if !strings.Contains(g.Output(), "The process has too little memory") {
		t.Errorf("nothing warns:%s", g.LogTail())
	}
	caller, attacks := newClient(healthyCaller, a.client), newClient(attacker, a.client)
	defer caller.CloseIdleConnections()
	defer attacks.CloseIdleConnections()
	process.Eventually(t, "both extensions are known", func() bool {
		for _, name := range []string{"large", "small"} {
			if callREST(caller, g.HTTPS, handler+"."+name, samples.Body("BeforeClusterCreate")) != nil {
				return false
			}
		}
		return true
	})
	body, refused := largeBody(15<<20), failure(http.StatusServiceUnavailable, http.StatusRequestEntityTooLarge)
	for range 2 {
		var running sync.WaitGroup
		for range 12 {
			running.Go(func() {
				got, err := post(attacks, g.HTTPS, handler+".large", body)
				if err != nil || !success(got) && !refused(got) {
					t.Errorf("a large call: status %d, %v: %.300s", got.code, err, got.body)
				}
			})
		}
		ended := make(chan struct{})
		go func() { defer close(ended); running.Wait() }()
		for calls, more := 0, true; more; calls++ {
			select {
			case <-ended:
				more = false
			default:
			}
			if err := callREST(caller, g.HTTPS, handler+".small", samples.Body("BeforeClusterCreate")); err != nil {
				t.Errorf("small call %d: %v", calls, err)
				more = false
			}
		}
		<-ended
	}
	select {
	case <-g.Exited():
		t.Errorf("the gateway has ended:%s", g.LogTail())
	default:
	}
}
