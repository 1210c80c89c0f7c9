// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/hookgate/hookgate/test/process"
)

// asCaller are the flags of hookgate in the Pod that calls.
var asCaller = []string{"--server", "https://hookgate.hookgate-system.svc:443", "--ca", "/certs/ca.crt", "--cert", "/certs/tls.crt", "--key", "/certs/tls.key"}

// TestHookJobs runs one Job to its end, and one whose image nobody has.
func TestHookJobs(t *testing.T) {
	hub(t)
	applyFile(t, "jobs.yaml")
	answers(t, "BeforeClusterUpgrade", "upgrade.yaml", "backed up")
	answers(t, "AfterClusterUpgrade", "upgraded.yaml", `container "absent" cannot start: ImagePullBackOff`)
}

// answers calls a hook until the answer has a text.
func answers(t *testing.T, hook, file, want string, flags ...string) {
	t.Helper()
	args := slices.Concat([]string{"call", hook, "-f", "/requests/" + file}, asCaller, flags)
	process.EventuallySees(t, process.Patience, fmt.Sprintf("the answer has %q", want), func() (string, bool) {
		last, _ := hookgate(args...) // an answer may be an error
		return last, strings.Contains(last, want)
	})
}
