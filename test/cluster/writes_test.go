// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/hookgate/hookgate/test/process"
)

// TestWritesDuringARestart changes an ExtensionConfig, and reads it in the older version, while the gateway is restarted:
// the API server asks the webhooks of Pods that are ready, and none fails.
func TestWritesDuringARestart(t *testing.T) {
	hub(t)
	stop, ended := make(chan struct{}), make(chan []string)
	go func() {
		var failed []string
		for n := 0; ; n++ {
			select {
			case <-stop:
				t.Logf("%d writes and reads", n)
				ended <- failed
				return
			default:
			}
			args := []string{"label", "--overwrite", "extensionconfigs.v1beta2.runtime.hookgate.dev/acme", fmt.Sprintf("n=%d", n)}
			if n%4 == 0 {
				args = []string{"get", "extensionconfigs.v1alpha1.runtime.hookgate.dev/acme"}
			}
			if out, err := tryKubectl(nil, args...); err != nil {
				failed = append(failed, out)
			}
		}
	}()
	kubectl(t, "-n", namespace, "rollout", "restart", "deployment/hookgate")
	rolledOut(t, namespace, "hookgate")
	// The last of the former Pods ends after the rollout is complete.
	process.EventuallySees(t, process.Patience, "two Pods are left", func() (string, bool) {
		pods := kubectl(t, "-n", namespace, "get", "pods", "-l", "app.kubernetes.io/name=hookgate", "-o", "name")
		return pods, strings.Count(pods, "\n") == 2
	})
	close(stop)
	if failed := <-ended; len(failed) > 0 {
		t.Errorf("%d failed, such as: %s", len(failed), failed[0])
	}
}

// TestFrozenGateway stops the process of a gateway under calls: it leaves the Services, and is replaced, about 20 s later.
// Calls that it has, or gets until then, fail, for at most 30 s.
func TestFrozenGateway(t *testing.T) {
	hub(t)
	const status = `jsonpath={range .items[*]}{.status.containerStatuses[0].ready}:{.status.containerStatuses[0].restartCount} {end}`
	end := load(t, 20, 45*time.Second)
	time.Sleep(2 * time.Second) // so that there are calls before it
	frozen := gateways(t)[0]
	if err := syscall.Kill(frozen, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	begun, left, replaced := time.Now(), time.Duration(0), time.Duration(0)
	for replaced == 0 && time.Since(begun) < time.Minute {
		pods := kubectl(t, "-n", namespace, "get", "pods", "-l", "app.kubernetes.io/name=hookgate", "-o", status)
		if left == 0 && strings.Contains(pods, "false:") {
			left = time.Since(begun)
		}
		if left > 0 && !strings.Contains(pods, "false:") {
			replaced = time.Since(begun)
		}
		time.Sleep(200 * time.Millisecond)
	}
	t.Logf("it left after %s, and another was ready after %s", left, replaced)
	const most = 30 * time.Second // the machine is slow
	if left == 0 || left > most || replaced == 0 || replaced > most {
		t.Errorf("a frozen gateway left after %s, and another was ready after %s", left, replaced)
	}
	c := end()
	failing, err := time.ParseDuration(c.Failing)
	if err != nil || c.Failed == 0 || failing > most || c.Wrong > 0 {
		t.Errorf("%v %s", err, c.log)
	}
	t.Logf("calls failed for %s", failing)
	rolledOut(t, namespace, "hookgate")
}
