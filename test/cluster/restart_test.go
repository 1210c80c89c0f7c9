// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"fmt"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestRollingRestart restarts the gateway, and deletes a Pod of it without grace, under calls: none is lost.
func TestRollingRestart(t *testing.T) {
	hub(t)
	end := load(t, 20, 50*time.Second)
	kubectl(t, "-n", namespace, "rollout", "restart", "deployment/hookgate")
	rolledOut(t, namespace, "hookgate")
	kubectl(t, "-n", namespace, "delete", firstPod(t), "--force", "--grace-period=0")
	rolledOut(t, namespace, "hookgate")
	if c := end(); c.Failed > 0 || c.Wrong > 0 {
		t.Error(c.log)
	}
}

// TestKilledGateway kills a gateway as the kernel does when there is no memory left, under calls over connections that
// stay, as Cluster API and package caller have them: at most three of a thousand are lost, and none is answered wrongly.
func TestKilledGateway(t *testing.T) {
	hub(t)
	end := load(t, 20, 50*time.Second, "-kept")
	time.Sleep(2 * time.Second) // so that there are calls before and after it
	if err := syscall.Kill(gateways(t)[0], syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if c := end(); c.Failed > 3 || c.Wrong > 0 {
		t.Error(c.log)
	}
	rolledOut(t, namespace, "hookgate")
}

// TestSmallMemory gives the gateway 64 MiB, and has 20 callers send it 15 MiB at once: it refuses what it has no room for,
// and the kernel does not end it.
func TestSmallMemory(t *testing.T) {
	hub(t)
	withMemory(t, 64)
}

// TestMemory is TestSmallMemory with more.
func TestMemory(t *testing.T) {
	all(t)
	for _, limit := range []int{512, 128} {
		t.Run(strconv.Itoa(limit), func(t *testing.T) { withMemory(t, limit) })
	}
}

func withMemory(t *testing.T, limit int) {
	t.Helper()
	kubectl(t, "-n", namespace, "patch", "deployment/hookgate", "--patch", fmt.Sprintf(`{"spec": {"template": {"spec": {"containers": [{
		"name": "manager", "env": [{"name": "GOMEMLIMIT", "$patch": "delete"}],
		"resources": {"limits": {"memory": "%[1]dMi"}, "requests": {"memory": "%[1]dMi"}}}]}}}}`, limit))
	rolledOut(t, namespace, "hookgate")
	out, err := pod("large", "-callers", "20", "-bytes", "15728640", "-times", "3")
	t.Log(out)
	if err != nil {
		t.Error(err)
	}
	if c := load(t, 20, 2*time.Second)(); c.Failed > 0 || c.Wrong > 0 {
		t.Errorf("afterwards: %s", c.log)
	}
	ended := kubectl(t, "-n", namespace, "get", "pods", "-l", "app.kubernetes.io/name=hookgate", "-o",
		"jsonpath={.items[*].status.containerStatuses[*].lastState.terminated.reason}")
	if strings.Contains(ended, "OOMKilled") {
		t.Errorf("gateways ended: %s\n%s", ended, kubectl(t, "-n", namespace, "describe", "pods"))
	}
}

func firstPod(t *testing.T) string {
	t.Helper()
	name, _, _ := strings.Cut(kubectl(t, "-n", namespace, "get", "pods", "-l", "app.kubernetes.io/name=hookgate", "-o", "name"), "\n")
	return name
}
