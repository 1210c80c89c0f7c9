// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"fmt"
	"strings"
	"testing"
)

// asCaller are the flags of hookgate in the Pod that calls.
var asCaller = []string{"--server", "https://hookgate.hookgate-system.svc:443", "--ca", "/certs/ca.crt", "--cert", "/certs/tls.crt", "--key", "/certs/tls.key"}

// TestHookJobs runs one Job to its end, and one whose image nobody has.
func TestHookJobs(t *testing.T) {
	hub(t)
	applyFile(t, "jobs.yaml")
	call := func(hook, file string) string {
		out, _ := hookgate(append([]string{"call", hook, "-f", "/requests/" + file}, asCaller...)...)
		return out
	}
	answers := func(hook, file, want string) {
		t.Helper()
		last := ""
		err := retry(func() error {
			if last = call(hook, file); !strings.Contains(last, want) {
				return fmt.Errorf("the answer has no %q: %s", want, last)
			}
			return nil
		})
		if err != nil {
			t.Error(err)
		}
	}
	answers("BeforeClusterUpgrade", "upgrade.yaml", "backed up")
	answers("AfterClusterUpgrade", "upgraded.yaml", `container "absent" cannot start: ImagePullBackOff`)
}
