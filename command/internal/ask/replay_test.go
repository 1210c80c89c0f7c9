// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package ask_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/hookgate/hookgate/command/internal/commandtest"
	"github.com/hookgate/hookgate/internal/cli/cmdline"
	"github.com/hookgate/hookgate/internal/seeing/replay"
	"github.com/hookgate/hookgate/test/process"
)

// TestRecordAndReplay records the calls of a gateway that is a process, and replays them against the extension, against
// one that writes the same patches in another way, and against one that differs for a quarter of the Clusters.
func TestRecordAndReplay(t *testing.T) {
	const clusters = 8
	v1 := commandtest.ReplayExtension(t, func(cluster string) (kind, patch string) {
		return "JSONPatch", `[{"op":"add","path":"/spec/template/spec/image","value":"` + cluster + `"}]`
	})
	dir := filepath.Join(t.TempDir(), "recording")
	g, client := commandtest.ServeInFrontOf(t, v1, "--record", dir, "--record-redact", "/cluster/spec/pin")
	call := func(path, body string) {
		t.Helper()
		request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "https://"+g.HTTPS+commandtest.ReplayPrefix+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("Content-Type", "application/json")
		response, err := client.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = response.Body.Close() }()
		if answer, _ := io.ReadAll(response.Body); response.StatusCode != http.StatusOK {
			t.Fatalf("%s: %s", path, answer)
		}
	}
	for i := range clusters {
		call("generatepatches/p.acme", commandtest.ReplayRequest(i))
	}
	const cluster = `{"apiVersion":"hooks.runtime.cluster.x-k8s.io/v1alpha1","kind":"%sRequest","cluster":{"apiVersion":"cluster.x-k8s.io/v1beta2",` +
		`"kind":"Cluster","metadata":{"name":"c","namespace":"n"},"spec":{"pin":%q}}}`
	call("beforeclustercreate/b.acme", fmt.Sprintf(cluster, "BeforeClusterCreate", commandtest.ReplaySecret))
	call("afterclusterupgrade/a.acme", fmt.Sprintf(cluster, "AfterClusterUpgrade", commandtest.ReplaySecret))
	process.Eventually(t, "all calls are written", func() bool {
		return strings.Count(commandtest.Recorded(t, dir), "\n") == clusters+2
	})
	g.Kill()
	<-g.Exited()

	text := commandtest.Recorded(t, dir)
	if strings.Contains(text, commandtest.ReplaySecret) || !strings.Contains(text, `"password":"***"`) {
		t.Errorf("a secret is in the recording:\n%s", text)
	}
	files, _ := filepath.Glob(filepath.Join(dir, "*"))
	if len(files) != 1 {
		t.Fatalf("there are %d files", len(files))
	}
	if info, err := os.Stat(files[0]); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the mode is %v, %v", info.Mode(), err)
	}
	// The gateway was killed, within a line for all that replay knows.
	cut := filepath.Join(t.TempDir(), "cut.jsonl")
	if err := os.WriteFile(cut, []byte(text+text[:100]), 0o600); err != nil {
		t.Fatal(err)
	}

	run := func(server *httptest.Server, more ...string) (replay.Result, commandtest.Outcome) {
		t.Helper()
		ca := commandtest.WriteFile(t, "ca.crt", string(commandtest.CAOf(server)))
		got := commandtest.Hookgate(t, "", append([]string{"replay", cut, "--server", server.URL, "--ca", ca, "-o", "json"}, more...)...)
		var result replay.Result
		if err := json.Unmarshal([]byte(got.Out), &result); err != nil {
			t.Fatalf("%v: %s%s", err, got.Out, got.ErrOut)
		}
		return result, got
	}
	result, got := run(v1)
	notes := []string{cut + ":11: the line is cut off, and was not replayed"}
	want := replay.Result{Equal: clusters + 1, Acting: 1, Cut: 1, Redacted: clusters + 1, Notes: notes}
	if diff := cmp.Diff(want, result, cmp.AllowUnexported(replay.Result{})); diff != "" || got.Code != cmdline.ExitDone {
		t.Errorf("against the same extension: exit status %d (-want +got):\n%s", got.Code, diff)
	}

	merges := commandtest.ReplayExtension(t, func(cluster string) (kind, patch string) {
		return "JSONMergePatch", `{"spec":{"template":{"spec":{"image":"` + cluster + `"}}}}`
	})
	if result, got = run(merges); result.Equal != clusters+1 || got.Code != cmdline.ExitDone {
		t.Errorf("against the same patches in another form: %+v", got)
	}

	v2 := commandtest.ReplayExtension(t, func(cluster string) (kind, patch string) {
		image := cluster
		if cluster == "c3" || cluster == "c7" {
			image = "other"
		}
		return "JSONPatch", `[{"op":"add","path":"/spec/template/spec/image","value":"` + image + `"}]`
	})
	result, got = run(v2, "--hook", "GeneratePatches", "--rate", "1000")
	want = replay.Result{
		Equal: clusters - 2, Different: 2, Filtered: 2, Cut: 1, Redacted: clusters, Notes: notes,
		Calls: []replay.Call{differs(cut, 4, "c3"), differs(cut, 8, "c7")},
	}
	for i := range result.Calls {
		if result.Calls[i].CallID == "" {
			t.Error("the call has no id")
		}
		result.Calls[i].CallID = ""
	}
	if diff := cmp.Diff(want, result, cmp.AllowUnexported(replay.Result{})); diff != "" || got.Code != cmdline.ExitFailed ||
		got.ErrOut != "hookgate: 2 of 8 calls differ\n" {
		t.Errorf("against another version: exit status %d, %s (-want +got):\n%s", got.Code, got.ErrOut, diff)
	}
	if result, got = run(v2, "--ignore", "/spec/**/image"); result.Different != 0 || got.Code != cmdline.ExitDone {
		t.Errorf("with what may differ: %+v", got)
	}
	if result, got = run(v2, "--all-hooks", "--handler", "a.acme"); result.Equal != 1 || got.Code != cmdline.ExitDone {
		t.Errorf("with hooks that act: %+v", got)
	}
	if result, got = run(v2, "--handler", "p.acme", "--as", "q"); result.Failed+result.Different != clusters || got.Code == cmdline.ExitDone {
		t.Errorf("as another handler: %+v", got)
	}
}

func differs(file string, line int, cluster string) replay.Call {
	return replay.Call{
		File: file, Line: line, Hook: "GeneratePatches", Handler: "p.acme", Cluster: "n/" + cluster,
		Differences: []replay.Difference{{
			Object: "Cluster n/" + cluster + " spec.infrastructureRef", Path: "/spec/template/spec/image", Recorded: `"` + cluster + `"`, Now: `"other"`,
		}},
	}
}

const replayLine = `{"hook":"BeforeClusterCreate","apiVersion":"hooks.runtime.cluster.x-k8s.io/v1alpha1","handler":"b.acme","name":"b",` +
	`"request":{"cluster":{}},"answer":{"status":"Success","message":"then","retryAfterSeconds":0}}` + "\n"

// TestReplayAgainstAGateway calls handlers by the names that are registered, over each transport.
func TestReplayAgainstAGateway(t *testing.T) {
	f := commandtest.NewFakeServer(t, map[string]commandtest.FakeReply{
		"Discovery":           {Body: commandtest.Reply("Discovery", `"status":"Success","message":"","handlers":[]`)},
		"BeforeClusterCreate": {Body: commandtest.Reply("BeforeClusterCreate", `"status":"Success","message":"now","retryAfterSeconds":5`)},
	})
	for transport, flags := range f.Servers() {
		got := commandtest.Hookgate(t, replayLine, append([]string{"replay", "-", "--ignore", "/retryAfterSeconds"}, flags...)...)
		const want = "CALL               HOOK                  HANDLER   CLUSTER   OBJECT   PATH       RECORDED   NOW\n" +
			"standard input:1   BeforeClusterCreate   b.acme    -         -        /message   \"then\"     \"now\"\n\n" +
			"1 call replayed: 0 equal, 1 different\n"
		if got.Code != cmdline.ExitFailed || got.Out != want {
			t.Errorf("%s: exit status %d, %s\n%s", transport, got.Code, got.ErrOut, cmp.Diff(want, got.Out))
		}
		if path, handler, _ := f.Asked(); path != commandtest.ReplayPrefix+"beforeclustercreate/b.acme" && handler != "b.acme" {
			t.Errorf("%s: the call went to %s, %s", transport, path, handler)
		}
	}
	got := commandtest.Hookgate(t, strings.Replace(replayLine, `"name":`, `"kind":"HookJob","name":`, 1), append([]string{"replay", "-"}, f.Servers()["https"]...)...)
	if !strings.Contains(got.ErrOut, "no call was replayed") || !strings.Contains(got.Out, "1 with side effects left out") {
		t.Errorf("a HookJob: %+v", got)
	}
	f.Replies["BeforeClusterCreate"] = commandtest.FakeReply{Status: 502, Body: `{"message":"broken"}`}
	got = commandtest.Hookgate(t, replayLine, append([]string{"replay", "-"}, f.Servers()["https"]...)...)
	if got.Code != cmdline.ExitFailed || !strings.Contains(got.Out, "error: HTTP 502 Bad Gateway") {
		t.Errorf("an error is no difference: %+v", got)
	}
}

func TestReplayRefuses(t *testing.T) {
	missing := filepath.Join(t.TempDir(), "missing")
	for name, tt := range map[string]struct {
		reason string
		in     string
		args   []string
		want   string
	}{
		"no file":       {"there is nothing to replay", "", nil, "want at least one file of a recording"},
		"missing":       {"a file that is not there is no empty recording", "", []string{missing}, "no such file or directory"},
		"empty":         {"nothing was compared", "", []string{"-"}, "no call was replayed"},
		"not a line":    {"a mistake has its place", replayLine + "{}\n", []string{"-"}, "2 calls could not be replayed"},
		"no server":     {"a server that is down says nothing about answers", replayLine, []string{"-"}, "1 call could not be replayed"},
		"as":            {"one name for all handlers would be wrong", "", []string{"-", "--as", "x"}, "--as needs --handler"},
		"acting":        {"a hook that acts is not replayed by accident", "", []string{"-", "--hook", "updatemachine"}, "only with --all-hooks"},
		"unknown hook":  {"a name may be misspelt", "", []string{"-", "--hook", "UpdateMachines"}, "did you mean UpdateMachine?"},
		"rate":          {"a rate is a number of calls", "", []string{"-", "--rate", "-1"}, "--rate: want 0 to 1000000, got -1"},
		"ignore":        {"what may differ is a pointer", "", []string{"-", "--ignore", "message"}, "want a JSON pointer"},
		"unknown group": {"hooks of others are not known here", strings.Replace(replayLine, "hooks.runtime", "other", 1), []string{"-"}, "1 call could not be replayed"},
	} {
		t.Run(name, func(t *testing.T) {
			got := commandtest.Hookgate(t, tt.in, append([]string{"replay", "--server", "https://127.0.0.1:1"}, tt.args...)...)
			if got.Code != cmdline.ExitUsage || !strings.Contains(got.ErrOut, tt.want) {
				t.Errorf("%s: exit status %d, %s%s; want %q", tt.reason, got.Code, got.Out, got.ErrOut, tt.want)
			}
		})
	}
	got := commandtest.Hookgate(t, replayLine+"{}\n", "replay", "-", "--server", "https://127.0.0.1:1")
	if !strings.Contains(got.Out, "standard input:2: not a line of a recording") || !strings.Contains(got.Out, `standard input:1: BeforeClusterCreate of handler "b.acme": discover: server`) {
		t.Errorf("got %s", got.Out)
	}
}

// The differences that are listed are bounded, and the others counted.
func TestReplayIsBounded(t *testing.T) {
	f := commandtest.NewFakeServer(t, map[string]commandtest.FakeReply{
		"Discovery":           {Body: commandtest.Reply("Discovery", `"status":"Success","message":"","handlers":[]`)},
		"BeforeClusterCreate": {Body: commandtest.Reply("BeforeClusterCreate", `"status":"Success","message":"now","retryAfterSeconds":5`)},
	})
	got := commandtest.Hookgate(t, strings.Repeat(replayLine, 60)+strings.Repeat("x\n", 103), append([]string{"replay", "-"}, f.Servers()["https"]...)...)
	for _, want := range []string{
		"… and 20 differences more\n", "… and 3 more\n", "60 calls replayed: 0 equal, 60 different; 103 could not be replayed\n",
	} {
		if !strings.Contains(got.Out, want) {
			t.Errorf("want %q in\n%s", want, got.Out)
		}
	}
	if rows := strings.Count(got.Out, "BeforeClusterCreate"); rows != 100 {
		t.Errorf("%d differences are listed", rows)
	}
}

func TestRecordFlags(t *testing.T) {
	configs, certs := commandtest.Serving(t)
	file := commandtest.WriteFile(t, "file", "")
	for name, tt := range map[string]struct {
		args []string
		code int
		want string
	}{
		"size":      {[]string{"--record-max-bytes", "63Mi"}, cmdline.ExitUsage, "--record-max-bytes: want at least 64Mi, got 63Mi"},
		"quantity":  {[]string{"--record-max-bytes", "x"}, cmdline.ExitUsage, "want a quantity such as 512Mi"},
		"pointer":   {[]string{"--record", "d", "--record-redact", "spec"}, cmdline.ExitUsage, "--record-redact: \"spec\": want a JSON pointer"},
		"directory": {[]string{"--record", file}, cmdline.ExitFailed, "--record " + file + ": "},
	} {
		t.Run(name, func(t *testing.T) {
			got := commandtest.ServeBriefly(t, nil, append([]string{"--extension-configs", configs, "--cert-dir", certs}, tt.args...)...)
			if got.Code != tt.code || !strings.Contains(got.ErrOut, tt.want) {
				t.Errorf("exit status %d, %s; want %q", got.Code, got.ErrOut, tt.want)
			}
		})
	}
}
