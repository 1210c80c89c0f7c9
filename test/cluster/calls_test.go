// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"
)

// TestPodIsRestricted reads from the kernel what the processes of the gateway may do.
func TestPodIsRestricted(t *testing.T) {
	hub(t)
	found := gateways(t)
	if len(found) != 2 {
		t.Fatalf("there are %d processes of gateways, want 2", len(found))
	}
	for _, pid := range found {
		status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
		if err != nil {
			t.Fatal(err)
		}
		for _, line := range []string{"Uid:\t65532\t65532\t65532\t65532", "CapEff:\t0000000000000000", "CapBnd:\t0000000000000000", "NoNewPrivs:\t1", "Seccomp:\t2"} {
			if !strings.Contains(string(status), line+"\n") {
				t.Errorf("/proc/%d/status does not say %q:\n%s", pid, line, status)
			}
		}
		mounts, err := os.ReadFile(fmt.Sprintf("/proc/%d/mounts", pid))
		if err != nil {
			t.Fatal(err)
		}
		if first, _, _ := strings.Cut(string(mounts), "\n"); !strings.Contains(first, " / overlay ro,") {
			t.Errorf("the root file system is not read-only: %s", first)
		}
	}
}

// TestCallsFromAnotherPod calls the Service over HTTPS and gRPC.
func TestCallsFromAnotherPod(t *testing.T) {
	hub(t)
	for name, args := range map[string][]string{
		"Certificate": nil,
		"Token":       {"-token-file", "/var/run/secrets/kubernetes.io/serviceaccount/token"},
	} {
		if c := load(t, 20, 2*time.Second, args...)(); c.Calls < 10 || c.Failed > 0 || c.Wrong > 0 {
			t.Errorf("%s: %s", name, c.log)
		}
	}
	if c := load(t, 20, time.Second, "-grpc", "", "-token-file", "/etc/hostname")(); c.Failed != c.Calls || !strings.Contains(c.log, " 401: ") {
		t.Errorf("without credentials: %s", c.log)
	}
}
