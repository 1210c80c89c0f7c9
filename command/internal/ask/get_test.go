// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package ask_test

import (
	"strings"
	"testing"

	"github.com/hookgate/hookgate/command/internal/commandtest"
	"github.com/hookgate/hookgate/hook"
	"github.com/hookgate/hookgate/internal/cli/cmdline"
)

func TestGetHandlers(t *testing.T) {
	handler := func(name, hookName, rest string) string {
		return `{"name":"` + name + `","requestHook":{"apiVersion":"` + hook.APIVersion + `","hook":"` + hookName + `"}` + rest + `}`
	}
	f := commandtest.NewFakeServer(t, map[string]commandtest.FakeReply{"Discovery": {Body: commandtest.Reply("Discovery", `"status":"Success","handlers":[`+
		handler("zeta--acme", "GeneratePatches", `,"timeoutSeconds":5,"failurePolicy":"Ignore"`)+`,`+
		handler("beforeclustercreate", "BeforeClusterCreate", `,"timeoutSeconds":30,"failurePolicy":"Fail"`)+`,`+
		handler("alpha--acme", "DiscoverVariables", ``)+`]`)}})
	for transport, server := range f.Servers() {
		for _, format := range []string{"table", "yaml", "json"} {
			got := commandtest.Hookgate(t, "", append([]string{"get", "handlers", "-o", format}, server...)...)
			if got.Code != cmdline.ExitDone || got.ErrOut != "" {
				t.Errorf("%s, %s: exit status %d: %s", transport, format, got.Code, got.ErrOut)
			}
			commandtest.Golden(t, "get/handlers."+format, got.Out)
		}
	}
}

func TestGetHandlersWithoutAny(t *testing.T) {
	f := commandtest.NewFakeServer(t, map[string]commandtest.FakeReply{"Discovery": {Body: commandtest.Reply("Discovery", `"status":"Success","handlers":[]`)}})
	for transport, server := range f.Servers() {
		got := commandtest.Hookgate(t, "", append([]string{"get", "handlers"}, server...)...)
		if want := server[1] + " has no handlers.\n"; got.Code != cmdline.ExitDone || got.Out != "" || got.ErrOut != want {
			t.Errorf("%s: got %+v, want stderr %q", transport, got, want)
		}
	}
	got := commandtest.Hookgate(t, "", append([]string{"get", "handlers", "-o", "json"}, f.Servers()["https"]...)...)
	if !strings.Contains(got.Out, `"kind": "DiscoveryResponse"`) {
		t.Errorf("-o json printed no document for scripts to read: %+v", got)
	}
}

func TestGetUsage(t *testing.T) {
	for _, tt := range []struct {
		args []string
		want string
	}{
		{[]string{"get"}, "say what to get: handlers, extensions, rollouts, rules, jobs, chains, policies, holds, routes, clusters, machines or pools"},
		{[]string{"get", "pods"}, `unknown command "get pods": want handlers, extensions, rollouts, rules, jobs, chains, policies, holds, routes, clusters, machines or pools`},
		{[]string{"get", "handlers", "x"}, `want no names, got "x"; "hookgate describe EXTENSION" shows the handlers of one extension`},
		{[]string{"get", "extensions", "x", "y"}, "want the name of one extension at most, got 2 names"},
		{[]string{"describe", "extension", "x", "y"}, "want the name of one extension, see \"hookgate get extensions\"; got 2 names"},
		{[]string{"describe", "chain", "x", "y"}, "want the name of one chain, see \"hookgate get chains\"; got 2 names"},
		{[]string{"get", "policies", "x"}, `want no names, got "x"`},
		{[]string{"get", "chains", "x"}, `want no names, got "x"; "hookgate describe chain NAME" shows one`},
		{[]string{"get", "hookrules", "x"}, `want no names, got "x"; "hookgate describe rule NAME" shows one`},
		{[]string{"get", "ExtensionPolicy", "x"}, `want no names, got "x"`},
		{[]string{"get", "extensionpolicies", "x"}, `want no names, got "x"`},
		{[]string{"get", "extensionconfigs", "x", "y"}, "want the name of one extension at most, got 2 names"},
		{[]string{"describe", "policy", "x"}, `cannot describe "policy": want the name of an extension, or rollout, rule, job or chain and a name`},

		{[]string{"get", "handlers", "--nope"}, "unknown flag: --nope\n"},
		{[]string{"get", "handlers", "--servr", "x"}, "unknown flag: --servr, did you mean --server?\n"},
		{[]string{"get", "extensionz"}, `unknown command "get extensionz", did you mean "extensions"? Want handlers, extensions, `},
		{[]string{"record"}, "want the name of one handler, see \"hookgate get handlers\"; got 0 names"},
	} {
		if got := commandtest.Hookgate(t, "", tt.args...); got.Code != cmdline.ExitUsage || !strings.Contains(got.ErrOut, tt.want) {
			t.Errorf("%v: got %d %q, want %q", tt.args, got.Code, got.ErrOut, tt.want)
		}
	}
}
