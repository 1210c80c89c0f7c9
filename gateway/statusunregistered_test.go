// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/hookgate/hookgate/hook"
	"github.com/hookgate/hookgate/internal/base/status"
	"github.com/hookgate/hookgate/internal/calls/policy"
	"github.com/hookgate/hookgate/internal/contract/printers"
	"github.com/hookgate/hookgate/registry"
)

// What is not served is shown wherever people look: in the status, in the message of get and of the page, and in metrics.
func TestStatusOfWhatIsNotServed(t *testing.T) {
	f := newReported(t)
	reg, _ := f.Registry.(*registry.Registry)
	reg.SetPolicies("acme", registry.Policies{All: &policy.Policy{Name: "vetted", Hooks: []string{"AfterClusterUpgrade"}}})
	reg.SetUndiscovered([]registry.Undiscovered{
		{Name: "down", Default: hook.Fail}, {Name: "new", Default: hook.Ignore}, {Unreadable: `manifest "x.yaml"`, Default: hook.Fail},
	})
	f.observed.metrics.Report(&f.Reporter)
	f.Observer.Discovered("down", "https://down.example", "Unreachable", false, errors.New("connection refused"))
	messages := map[string]string{
		"acme": "2 handlers are not served, because the ExtensionPolicy does not allow their hooks",
		"down": "connection refused; calls to all handlers of a hook fail until its handlers are known",
		"new":  "it was never discovered, and calls to all handlers of a hook are answered without it",
	}
	got := map[string]string{}
	g := f.Gateway()
	for i := range g.Extensions {
		got[g.Extensions[i].Name] = printers.Message(&g.Extensions[i])
		one, ok := f.Extension(g.Extensions[i].Name)
		if !ok || printers.Message(&one.Extensions[0]) != printers.Message(&g.Extensions[i]) {
			t.Errorf("%s alone is %+v, %v", g.Extensions[i].Name, one.Extensions, ok)
		}
		var text strings.Builder
		if err := printers.Extension(&text, one); err != nil || g.Extensions[i].Name == "acme" && !strings.Contains(text.String(), "a, because spec.hooks of policy vetted does not list BeforeClusterCreate") {
			t.Errorf("described as %s (%v)", &text, err)
		}
	}
	if diff := cmp.Diff(messages, got); diff != "" {
		t.Errorf("messages (-want +got):\n%s", diff)
	}
	notices := []status.Notice{{Name: "handlers", Text: `calls to all handlers of a hook fail because of manifest "x.yaml"; the log says why`}}
	if diff := cmp.Diff(notices, g.Notices); diff != "" {
		t.Errorf("notices (-want +got):\n%s", diff)
	}
	text, err := formatted(f.observed.series, "hookgate_extension_undiscovered", "hookgate_extension_withheld_handlers")
	for _, want := range []string{
		`hookgate_extension_undiscovered{effect="Fail",extension="down"} 1`, `hookgate_extension_undiscovered{effect="Ignore",extension="new"} 1`,
		`hookgate_extension_withheld_handlers{extension="acme"} 2`,
	} {
		if err != nil || !strings.Contains(text, want+"\n") {
			t.Errorf("want %s in the metrics (%v):\n%s", want, err, text)
		}
	}
	if _, ok := f.Extension(""); ok {
		t.Error("a manifest that cannot be read is no extension")
	}
	if err := reg.Apply(registrationOf("down")); err != nil {
		t.Fatal(err)
	}
	if again := f.Gateway(); len(again.Extensions) != 3 {
		t.Errorf("one is known now: %+v", again.Extensions)
	}
}
