// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package directory

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/hookgate/hookgate/internal/sources/discovery/discoverytest"
	"github.com/hookgate/hookgate/test/process"
)

// A chain is in the registry as long as its file says so: with steps as they are now, and with the last valid ones while
// the file has a mistake.
func TestDirectoryChains(t *testing.T) {
	s := newSource(t, nil)
	hookName := discoverytest.Handlers("v")[0].Hook.Hook
	chain := func(handlers string) string {
		return "apiVersion: hookgate.dev/v1alpha1\nkind: HandlerChain\nmetadata: {name: both}\nspec:\n  hook: " + hookName + "\n  steps: [" + handlers + "]\n"
	}
	// steps returns the handlers that the chain calls, or what keeps it from being called.
	steps := func() string {
		snapshot := s.Registry.Snapshot()
		c, ok := snapshot.Chain("both")
		if !ok {
			return "none"
		}
		found, err := snapshot.StepsOf(c)
		if err != nil {
			return err.Error()
		}
		var names []string
		for _, step := range found {
			names = append(names, step.Entry.Name)
		}
		return strings.Join(names, " ")
	}
	eventually := func(want string) {
		t.Helper()
		process.Eventually(t, "the chain calls "+want, func() bool { return steps() == want })
	}
	s.Extensions.Serve(urlA, "v", "w")
	writeFile(t, s.dir, "c.yaml", chain("{handler: v.acme}, {handler: w.acme}"))
	s.run(t)
	eventually("step 1: no handler \"v.acme\" is registered\nstep 2: no handler \"w.acme\" is registered")
	s.eventuallyLogs(t, "level=WARN", "chain is not ready", "handlerChain=both", "at="+filepath.Join(s.dir, "c.yaml:1"))

	writeFile(t, s.dir, "a.yaml", config("acme", urlA))
	eventually("v.acme w.acme")
	s.eventuallyLogs(t, "level=INFO", "chain is ready", "handlerChain=both")
	process.Eventually(t, "the status lists it", func() bool {
		chains := s.objects().Chains
		return len(chains) == 1 && chains[0].Ready && len(chains[0].Steps) == 2
	})
	writeFile(t, s.dir, "c.yaml", chain("{handler: w.acme}"))
	eventually("w.acme")

	writeFile(t, s.dir, "c.yaml", chain(""))
	s.eventuallyLogs(t, "chain", "handlerChain", "reason=Invalid") // the verdict on what is not used
	process.Eventually(t, "the status says what is wrong", func() bool {
		chains := s.objects().Chains
		return len(chains) == 1 && chains[0].Reason == "Invalid" && strings.Contains(chains[0].Message, "spec.steps: Required value")
	})
	if got := steps(); got != "w.acme" {
		t.Errorf("the last valid chain is %s", got)
	}
	s.remove(t, "c.yaml")
	eventually("none")
	s.eventuallyLogs(t, "chain removed", "handlerChain=both")
}
