// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package ask_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc/codes"

	"github.com/hookgate/hookgate/command/internal/commandtest"
	"github.com/hookgate/hookgate/hook"
	"github.com/hookgate/hookgate/internal/cli/cmdline"
)

// TestCallOutput calls every kind of answer through every transport, in every format; the output does not depend on the
// transport.
func TestCallOutput(t *testing.T) {
	tests := map[string]struct {
		hook    string
		args    []string
		request string
		answer  string
		code    int
	}{
		"Lifecycle": {
			hook: "BeforeClusterCreate", request: commandtest.ACluster,
			answer: `"status":"Success","message":"wait for \u001b[31mred\nand more","retryAfterSeconds":30,"addedLater":{"n":9007199254740993}`,
		},
		"Failure": {
			hook: "BeforeClusterDelete", args: []string{"--handler", "veto.acme"}, request: commandtest.ACluster, code: cmdline.ExitFailed,
			answer: `"status":"Failure","message":"not on Fridays","retryAfterSeconds":0`,
		},
		"GeneratePatches": {
			hook: "GeneratePatches", args: []string{"--handler", "image.acme"}, request: "items: []\n",
			answer: `"status":"Success","items":[` +
				`{"uid":"1","patchType":"JSONPatch","patch":"` + commandtest.Encoded(`[{"op":"add","path":"/spec/a","value":9007199254740993}, {"op": "remove", "path": "/spec/b"}]`) + `"},` +
				`{"uid":"2","patchType":"JSONMergePatch","patch":"` + commandtest.Encoded(`{"spec": {"c": null}}`) + `"},` +
				`{"uid":"3","patchType":"JSONPatch","patch":"` + commandtest.Encoded("no \x1b[2J JSON") + `"}]`,
		},
		"NoPatches": {hook: "GeneratePatches", request: "items: []\n", answer: `"status":"Success"`},
		"CanUpdateMachine": {
			hook: "CanUpdateMachine", request: "current: {machine: {kind: Machine}}\ndesired: {machine: {kind: Machine}}\n",
			answer: `"status":"Success","machinePatch":{"patchType":"JSONMergePatch","patch":"` + commandtest.Encoded(`{"spec":{"version":"v1.34.0"}}`) + `"}`,
		},
		"GenerateUpgradePlan": {
			hook: "GenerateUpgradePlan", request: commandtest.ACluster,
			answer: `"status":"Success","controlPlaneUpgrades":[{"version":"v1.33.5"},{"version":"v1.34.0"}],"workersUpgrades":[{"version":"v1.34.0"}]`,
		},
		"DiscoverVariables": {
			hook: "DiscoverVariables", request: "settings: {a: b}\n",
			answer: `"status":"Success","variables":[{"name":"nodeImage","required":true,"schema":{"openAPIV3Schema":{"type":"string","default":"x"}}}]`,
		},
		"ReconcileMachine": {
			hook: "ReconcileMachine", args: []string{"--handler", "machines.rack"}, request: "subject: {externalId: m1}\nversion: v1.34.0\n",
			answer: `"status":"Success","message":"on its way","retryAfterSeconds":10,"phase":"Provisioning","providerId":"rack://m1",` +
				`"addresses":[{"type":"InternalIP","address":"10.0.0.7"}]`,
		},
		"DeleteMachine": {
			hook: "DeleteMachine", request: "subject: {externalId: m1}\n", answer: `"status":"Success","retryAfterSeconds":0,"state":"Gone"`,
		},
		"Discovery": {
			hook:   "Discovery",
			answer: `"status":"Success","handlers":[{"name":"b","requestHook":{"apiVersion":"` + hook.APIVersion + `","hook":"BeforeClusterCreate"}}]`,
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			f := commandtest.NewFakeServer(t, map[string]commandtest.FakeReply{tt.hook: {Body: commandtest.Reply(tt.hook, tt.answer)}})
			for transport, server := range f.Servers() {
				for _, format := range []string{"table", "yaml", "json"} {
					args := append([]string{"call", strings.ToLower(tt.hook), "-o", format}, server...)
					args = append(args, tt.args...)
					if tt.request != "" {
						args = append(args, "-f", "-")
					}
					got := commandtest.Hookgate(t, tt.request, args...)
					if got.Code != tt.code {
						t.Errorf("%s, %s: exit status %d, want %d; stderr: %s", transport, format, got.Code, tt.code, got.ErrOut)
					}
					commandtest.Golden(t, "call/"+name+"."+format, got.Out)
					if tt.code != cmdline.ExitDone {
						commandtest.Golden(t, "call/"+name+".stderr", got.ErrOut)
					} else if got.ErrOut != "" {
						t.Errorf("%s, %s: stderr of a success: %s", transport, format, got.ErrOut)
					}
				}
			}
		})
	}
}

// TestCallSendsTheRequest checks that the server gets the complete request, with integers above 2^53.
func TestCallSendsTheRequest(t *testing.T) {
	f := commandtest.NewFakeServer(t, map[string]commandtest.FakeReply{"BeforeClusterCreate": {Body: commandtest.Reply("BeforeClusterCreate", `"status":"Success","retryAfterSeconds":0`)}})
	const want = `{"kind":"BeforeClusterCreateRequest","apiVersion":"hooks.runtime.cluster.x-k8s.io/v1alpha1","settings":{"s":"1"},` +
		`"cluster":{"kind":"Cluster","n":[9007199254740993,123456789012345678901234567890,1.50],"on":true},"newMember":[1]}`
	yaml := "newMember: [1]\nsettings: {s: '1'}\ncluster:\n  kind: Cluster\n  'n': [9007199254740993, 123456789012345678901234567890, 1.50]\n  'on': yes\n"
	json := `{"kind":"BeforeClusterCreateRequest","cluster":{"kind":"Cluster","n":[9007199254740993,123456789012345678901234567890,1.50],"on":true},"newMember":[1],"settings":{"s":"1"}}`
	for _, input := range []string{yaml, json, "\ufeff" + json} {
		for transport, server := range f.Servers() {
			got := commandtest.Hookgate(t, "", append([]string{"call", "beforeClusterCREATE", "--handler", "One.acme", "-f", commandtest.WriteFile(t, "request", input)}, server...)...)
			if got.Code != cmdline.ExitDone {
				t.Fatalf("%s: exit status %d: %s", transport, got.Code, got.ErrOut)
			}
			path, handler, body := f.Asked()
			if diff := cmp.Diff(want, body); diff != "" {
				t.Errorf("%s: the request (-want +got):\n%s", transport, diff)
			}
			if transport == "https" {
				handler = path[strings.LastIndex(path, "/")+1:]
				if f.Query != "timeout=30s" {
					t.Errorf("query %q, want the timeout", f.Query)
				}
				if want := "/" + hook.APIVersion + "/beforeclustercreate/one.acme"; path != want {
					t.Errorf("path %s, want %s", path, want)
				}
			}
			if !strings.EqualFold(handler, "One.acme") {
				t.Errorf("%s: handler %q, want one.acme", transport, handler)
			}
		}
	}
}

// TestCallDiscoversOneExtension names a handler to a discovery, which a gateway passes on to the extension behind it.
func TestCallDiscoversOneExtension(t *testing.T) {
	const h = "DiscoverInfrastructure"
	f := commandtest.NewFakeServer(t, map[string]commandtest.FakeReply{h: {Body: commandtest.Reply(h, `"status":"Success","handlers":[]`)}})
	for transport, server := range f.Servers() {
		got := commandtest.Hookgate(t, "", append([]string{"call", h, "--handler", "machines--rack"}, server...)...)
		path, handler, _ := f.Asked()
		if transport == "https" {
			handler = path[strings.LastIndex(path, "/")+1:]
		}
		if got.Code != cmdline.ExitDone || handler != "machines--rack" {
			t.Errorf("%s: exit status %d, handler %q: %s", transport, got.Code, handler, got.ErrOut)
		}
	}
}

// TestCallErrorsOfTheServer checks that the output has the code, the kind and the call ID.
func TestCallErrorsOfTheServer(t *testing.T) {
	f := commandtest.NewFakeServer(t, map[string]commandtest.FakeReply{
		"BeforeClusterCreate": {Status: http.StatusBadGateway, Code: codes.Unavailable, Kind: hook.BadResponse, Body: `{"status":"Failure","message":"handler \"v.acme\": no JSON"}`},
	})
	const tail = `, error kind BadResponse: handler "v.acme": no JSON (call id 0123456789abcdef)` + "\n"
	want := map[string]string{
		"https": "hookgate: call BeforeClusterCreate: HTTP 502 Bad Gateway" + tail,
		"grpcs": "hookgate: call BeforeClusterCreate: gRPC Unavailable" + tail,
		"grpc":  "hookgate: call BeforeClusterCreate: gRPC Unavailable" + tail,
	}
	for transport, server := range f.Servers() {
		got := commandtest.Hookgate(t, commandtest.ACluster, append([]string{"call", "BeforeClusterCreate", "-f", "-"}, server...)...)
		if diff := cmp.Diff(commandtest.Outcome{Code: cmdline.ExitFailed, ErrOut: want[transport]}, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", transport, diff)
		}
	}
}

// TestCallBadAnswers checks invalid answers.
func TestCallBadAnswers(t *testing.T) {
	tests := map[string]struct {
		reason string
		reply  commandtest.FakeReply
		want   string
	}{
		"HTML":       {"a page of some other server", commandtest.FakeReply{Body: "<html>"}, "hookgate: call BeforeClusterCreate: the answer cannot be read as BeforeClusterCreateResponse: invalid JSON at byte 0"},
		"OtherKind":  {"the answer of another hook", commandtest.FakeReply{Body: commandtest.Reply("BeforeClusterDelete", `"status":"Success"`)}, "the answer cannot be read as BeforeClusterCreateResponse: kind: "},
		"NoStatus":   {"an answer without a status", commandtest.FakeReply{Body: commandtest.Reply("BeforeClusterCreate", `"message":"x"`)}, "the answer has no status: it must be Success or Failure (call id 0123456789abcdef)"},
		"Page":       {"an error of some other server", commandtest.FakeReply{Status: 404, Body: "<h1>\n not\x1b here</h1>"}, "HTTP 404 Not Found, error kind Internal: the body is <h1> not\\x1b here</h1> (call id"},
		"TooLarge":   {"an answer above the limit", commandtest.FakeReply{Body: commandtest.Reply("BeforeClusterCreate", `"status":"Success"`) + strings.Repeat(" ", 20<<20)}, "the answer cannot be read as BeforeClusterCreateResponse: larger than 20 MiB (call id"},
		"EmptyError": {"an error without a body", commandtest.FakeReply{Status: 503}, "HTTP 503 Service Unavailable, error kind Internal: the answer has no body"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			f := commandtest.NewFakeServer(t, map[string]commandtest.FakeReply{"BeforeClusterCreate": tt.reply})
			got := commandtest.Hookgate(t, commandtest.ACluster, append([]string{"call", "BeforeClusterCreate", "-f", "-", "-o", "json"}, f.Servers()["https"]...)...)
			if got.Code != cmdline.ExitFailed || !strings.Contains(got.ErrOut, tt.want) {
				t.Errorf("%s:\n got %d %s\nwant %s", tt.reason, got.Code, got.ErrOut, tt.want)
			}
		})
	}
}

// TestCallAnExtensionWithoutHandler checks the hint for calling an extension as if it were a gateway.
func TestCallAnExtensionWithoutHandler(t *testing.T) {
	f := commandtest.NewFakeServer(t, nil)
	server := append([]string{"--server", f.HTTP.URL + "/no-such-prefix"}, f.Servers()["https"][2:]...)
	for handler, want := range map[string]string{
		"":  "use --handler: see \"hookgate get handlers\".\n",
		"x": "The answer is not a gateway's. Is --server right?\n",
	} {
		got := commandtest.Hookgate(t, commandtest.ACluster, append([]string{"call", "BeforeClusterCreate", "-f", "-", "--handler", handler}, server...)...)
		if got.Code != cmdline.ExitFailed || !strings.HasSuffix(got.ErrOut, want) || !strings.Contains(got.ErrOut, "HTTP 404 Not Found: the body is 404 page not found\n") {
			t.Errorf("handler %q: got %d %s\nwant %s", handler, got.Code, got.ErrOut, want)
		}
	}
}

// TestCallRefusesInput checks mistakes that are found before a request is sent.
func TestCallRefusesInput(t *testing.T) {
	missing := "/nonexistent/request.yaml"
	tests := map[string]struct {
		reason string
		args   []string
		in     string
		code   int
		want   string
	}{
		"UnknownHook": {"a misspelt hook gets the nearest, and no list", []string{"call", "BeforClusterCreat", "-f", "-"}, "", cmdline.ExitUsage,
			"no hook \"BeforClusterCreat\", did you mean BeforeClusterCreate?\n"},
		"NoHook":          {"no hook at all", []string{"call"}, "", cmdline.ExitUsage, "want one hook, got 0 arguments"},
		"NoFile":          {"no -f", []string{"call", "GeneratePatches"}, "", cmdline.ExitUsage, "-f is required: a file with the request of GeneratePatches"},
		"MissingFile":     {"a file that is not there", []string{"call", "GeneratePatches", "-f", missing}, "", cmdline.ExitFailed, "read request: open " + missing + ": no such file or directory"},
		"Empty":           {"an empty file", []string{"call", "GeneratePatches", "-f", "-"}, " \n", cmdline.ExitFailed, "read request standard input: it is empty"},
		"YAML":            {"the line of an error in YAML", []string{"call", "GeneratePatches", "-f", "-"}, "items:\n  - a\n b: 1\n", cmdline.ExitFailed, "read request standard input: line 3: did not find expected key"},
		"JSON":            {"the line of an error in JSON", []string{"call", "GeneratePatches", "-f", "-"}, "{\n\"items\": [\n}\n", cmdline.ExitFailed, "read request standard input: line 3: invalid character '}'"},
		"WrongKind":       {"a request of another hook", []string{"call", "GeneratePatches", "-f", "-"}, "kind: BeforeClusterCreateRequest\n", cmdline.ExitFailed, "it cannot be read as GeneratePatchesRequest: kind: "},
		"WrongVersion":    {"another API version", []string{"call", "GeneratePatches", "-f", "-"}, "apiVersion: v1\n", cmdline.ExitFailed, "it cannot be read as GeneratePatchesRequest: apiVersion: "},
		"WrongMember":     {"the member that is wrong", []string{"call", "GeneratePatches", "-f", "-"}, "items:\n- uid: 7\n", cmdline.ExitFailed, "it cannot be read as GeneratePatchesRequest: items[0].uid: "},
		"TooLarge":        {"more than the limit", []string{"call", "GeneratePatches", "-f", "-"}, strings.Repeat(" ", 20<<20) + "a: 1", cmdline.ExitFailed, "it is larger than the 20 MiB that a request may have"},
		"HTTP":            {"hooks are never called over HTTP without TLS", []string{"call", "Discovery", "--server", "http://a:1"}, "", cmdline.ExitUsage, `must begin with https://, grpcs://, grpc://, unix://, not with "http"`},
		"Scheme":          {"another scheme", []string{"call", "Discovery", "--server", "ftp://a:1"}, "", cmdline.ExitUsage, `must begin with https://, grpcs://, grpc://, unix://, not with "ftp"`},
		"NoScheme":        {"no scheme", []string{"call", "Discovery", "--server", "localhost:9443"}, "", cmdline.ExitUsage, `must begin with https://, grpcs://, grpc://, unix://, not with "localhost"`},
		"NoPort":          {"gRPC has no port of its own", []string{"call", "Discovery", "--server", "grpcs://a"}, "", cmdline.ExitUsage, "must have a port; a gateway's gRPC port is 9090 by default: grpcs://a:9090"},
		"Path":            {"gRPC has no paths", []string{"call", "Discovery", "--server", "grpcs://a:1/b"}, "", cmdline.ExitUsage, "must not have a path: gRPC"},
		"Query":           {"a query", []string{"call", "Discovery", "--server", "https://a:1/?x=1"}, "", cmdline.ExitUsage, "must not have a query"},
		"PlaintextWithCA": {"a CA where nothing is encrypted", []string{"call", "Discovery", "--server", "grpc://a:1", "--ca", "x"}, "", cmdline.ExitUsage, "--ca, --cert and --key need TLS: want --server grpcs://a:1"},
		"CertWithoutKey":  {"half a pair", []string{"call", "Discovery", "--cert", "x"}, "", cmdline.ExitUsage, "--cert and --key are needed together"},
		"MissingCA":       {"a CA file that is not there", []string{"call", "Discovery", "--ca", missing}, "", cmdline.ExitFailed, "read --ca: open " + missing},
		"NoPEM":           {"a CA file without a certificate", []string{"call", "Discovery", "--ca", "call_test.go"}, "", cmdline.ExitFailed, "read --ca: call_test.go has no certificate in PEM"},
		"Timeout":         {"no time", []string{"call", "Discovery", "--timeout", "0s"}, "", cmdline.ExitUsage, "--timeout: want more than 0, got 0s"},
		"Output":          {"another format", []string{"call", "Discovery", "-o", "xml"}, "", cmdline.ExitUsage, `--output "xml": want table, yaml or json`},
		"DiscoveryOfOne":  {"discovery is of the extension", []string{"call", "discovery", "--handler", "x"}, "", cmdline.ExitUsage, "Discovery has no handlers: leave --handler out"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			got := commandtest.Hookgate(t, tt.in, tt.args...)
			if got.Code != tt.code || !strings.Contains(got.ErrOut, tt.want) || got.Out != "" {
				t.Errorf("%s:\n got %d %s%s\nwant %d %s", tt.reason, got.Code, got.Out, got.ErrOut, tt.code, tt.want)
			}
		})
	}
}

// Warnings go to standard error, through every transport, with answers and with errors; other headers do not.
func TestCallWarnings(t *testing.T) {
	warnings := []string{`299 - "handler \"v.acme\" is \\old"`, `199 - "miscellaneous"`, "nonsense", `299 - "and a second"`}
	f := commandtest.NewFakeServer(t, map[string]commandtest.FakeReply{
		"Discovery":           {Body: commandtest.Reply("Discovery", `"status":"Success","handlers":[]`), Warnings: warnings},
		"BeforeClusterCreate": {Body: `{"message":"no"}`, Status: http.StatusBadGateway, Code: codes.Unavailable, Kind: hook.BadResponse, Warnings: warnings},
	})
	file := commandtest.WriteFile(t, "request.yaml", commandtest.ACluster)
	for _, server := range []string{f.HTTP.URL, "grpcs://" + f.GRPCS} {
		for _, args := range [][]string{{"call", "Discovery"}, {"get", "handlers"}, {"call", "BeforeClusterCreate", "-f", file}} {
			got := commandtest.Hookgate(t, "", append(args, "--server", server, "--ca", f.CAFile)...)
			var lines []string
			for line := range strings.Lines(got.ErrOut) {
				if strings.HasPrefix(line, "Warning") {
					lines = append(lines, line)
				}
			}
			want := []string{"Warning: handler \"v.acme\" is \\old\n", "Warning: and a second\n"}
			if diff := cmp.Diff(want, lines); diff != "" {
				t.Errorf("%s %v (-want +got):\n%s\n%s", server, args, diff, got.ErrOut)
			}
			if strings.Contains(got.Out, "old") {
				t.Errorf("%s %v: standard output has the warning:\n%s", server, args, got.Out)
			}
		}
	}
}

// TestCallWarnsOfMisspeltMembers sends a request with a member that the hook does not have, and says so.
func TestCallWarnsOfMisspeltMembers(t *testing.T) {
	f := commandtest.NewFakeServer(t, map[string]commandtest.FakeReply{
		"BeforeClusterUpgrade": {Body: commandtest.Reply("BeforeClusterUpgrade", `"status":"Success"`)},
	})
	for _, member := range []string{"toKubernetesVerson", "toKubernetesVerison"} {
		request := `{"cluster": {}, "` + member + `": "v1.36.0"}`
		got := commandtest.Hookgate(t, request, "call", "BeforeClusterUpgrade", "-f", "-", "--server", f.HTTP.URL, "--ca", f.CAFile)
		want := "Warning: the request: BeforeClusterUpgradeRequest has no member " + member + ": did you mean toKubernetesVersion?\n"
		if got.Code != 0 || !strings.Contains(got.ErrOut, want) {
			t.Errorf("got %d %s\nwant %s", got.Code, got.ErrOut, want)
		}
	}
}

// A call that met no handler says so in the table, and below it in every format: its status is Success all the same.
func TestCallThatMetNoHandler(t *testing.T) {
	f := commandtest.NewFakeServer(t, map[string]commandtest.FakeReply{"BeforeClusterCreate": {
		Body: commandtest.Reply("BeforeClusterCreate", `"status":"Success","retryAfterSeconds":0`), Unhandled: true,
	}})
	for transport, server := range f.Servers() {
		for format, want := range map[string]string{"table": "\nHANDLER       (none matches this request)\n", "json": `"status": "Success"`} {
			got := commandtest.Hookgate(t, commandtest.ACluster, append([]string{"call", "BeforeClusterCreate", "-f", "-", "-o", format}, server...)...)
			const said = `No handler matches this request, so the gateway itself answered it. "hookgate explain BeforeClusterCreate -f -" says`
			if got.Code != cmdline.ExitDone || !strings.Contains(got.Out, want) || !strings.HasPrefix(got.ErrOut, said) {
				t.Errorf("%s, %s: %+v", transport, format, got)
			}
		}
	}
}

// A Cluster in place of a request is sent as the cluster of one, as hookgate explain does.
func TestCallWithACluster(t *testing.T) {
	f := commandtest.NewFakeServer(t, map[string]commandtest.FakeReply{"BeforeClusterCreate": {
		Body: commandtest.Reply("BeforeClusterCreate", `"status":"Success","retryAfterSeconds":0`),
	}})
	const cluster = "apiVersion: cluster.x-k8s.io/v1beta2\nkind: Cluster\nmetadata: {name: c, namespace: team-a}\n"
	for transport, server := range f.Servers() {
		got := commandtest.Hookgate(t, cluster, append([]string{"call", "BeforeClusterCreate", "-f", "-"}, server...)...)
		_, _, body := f.Asked()
		if got.Code != cmdline.ExitDone || !strings.Contains(body, `"cluster":{"apiVersion":"cluster.x-k8s.io/v1beta2","kind":"Cluster","metadata":{"name":"c","namespace":"team-a"}}`) ||
			!strings.Contains(got.ErrOut, "The command built the request only from the Cluster in standard input;") {
			t.Errorf("%s: %+v\n%s", transport, got, body)
		}
		got = commandtest.Hookgate(t, cluster, append([]string{"call", "UpdateMachine", "-f", "-"}, server...)...)
		if got.Code != cmdline.ExitUsage || !strings.Contains(got.ErrOut, "a Cluster is not enough for a request of UpdateMachine") {
			t.Errorf("%s: %+v", transport, got)
		}
	}
}

// A name that no hook resembles gets no guess.
func TestCallGuessesNoFarHook(t *testing.T) {
	if got := commandtest.Hookgate(t, "", "call", "Nope"); got.Code != cmdline.ExitUsage || !strings.HasPrefix(got.ErrOut, `hookgate: no hook "Nope". The hooks are `) {
		t.Errorf("%+v", got)
	}
}
