// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package ask_test

import (
	"context"
	"encoding/base64"
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
	"github.com/hookgate/hookgate/internal/network/devcert"
	"github.com/hookgate/hookgate/internal/seeing/replay"
	"github.com/hookgate/hookgate/test/certificates"
	"github.com/hookgate/hookgate/test/process"
)

// TestRecordRollout records the handlers of a rollout that compares, by the name that callers know and by that of a
// version, and replays the recording against the gateway that has made it.
func TestRecordRollout(t *testing.T) {
	const calls = 4
	configs, certs, dir := t.TempDir(), t.TempDir(), filepath.Join(t.TempDir(), "recording")
	pair := certificates.In(t, certs)
	versions := map[string]*httptest.Server{}
	for _, name := range []string{"acme-v6", "acme-v7"} {
		versions[name] = commandtest.ReplayExtension(t, func(string) (kind, patch string) {
			return "JSONPatch", `[{"op":"add","path":"/spec/template/spec/image","value":"` + name + `"}]`
		})
		config := fmt.Sprintf("apiVersion: runtime.cluster.x-k8s.io/v1beta2\nkind: ExtensionConfig\nmetadata: {name: %s}\n"+
			"spec: {clientConfig: {url: %q, caBundle: %s}}\n", name, versions[name].URL, base64.StdEncoding.EncodeToString(commandtest.CAOf(versions[name])))
		if err := os.WriteFile(filepath.Join(configs, name+".yaml"), []byte(config), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(configs, "acme.yaml"), []byte("apiVersion: hookgate.dev/v1alpha1\nkind: ExtensionRollout\n"+
		"metadata: {name: acme}\nspec: {stable: acme-v6, candidate: acme-v7, compare: true}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	g := commandtest.ServeProgram(t, configs, certs, "--state-dir", t.TempDir(), "--record", dir)
	g.WaitReady(t)
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: pair.ClientTLS()}}
	defer client.CloseIdleConnections()

	ctx, interrupt := context.WithCancel(t.Context())
	started := map[string]*startedRecord{}
	files := map[string]string{}
	for _, name := range []string{"p.acme", "p.acme-v7"} {
		files[name] = filepath.Join(t.TempDir(), name+".jsonl")
		started[name] = startRecord(ctx, t, name, "--diagnostics", "http://"+g.Diagnostics, "-f", files[name])
		process.Eventually(t, "the recording has begun", func() bool {
			return strings.Contains(started[name].errOut.String(), "Ctrl-C ends the recording")
		})
	}
	for i := range calls {
		response, err := client.Post("https://"+g.HTTPS+commandtest.ReplayPrefix+"generatepatches/p.acme", "application/json", strings.NewReader(commandtest.ReplayRequest(i)))
		if err != nil {
			t.Fatal(err)
		}
		answer, _ := io.ReadAll(response.Body)
		if _ = response.Body.Close(); response.StatusCode != http.StatusOK {
			t.Fatalf("%s", answer)
		}
	}
	process.Eventually(t, "all calls are written", func() bool {
		for _, file := range files {
			if strings.Count(textOf(t, file), "\n") != calls {
				return false
			}
		}
		return strings.Count(commandtest.Recorded(t, dir), "\n") == 2*calls
	})
	interrupt()
	for name, of := range started {
		if code := <-of.ended; code != cmdline.ExitDone {
			t.Errorf("record %s: exit status %d: %s", name, code, of.errOut.String())
		}
	}
	if all := commandtest.Recorded(t, dir); strings.Count(all, `"comparison":true`) != calls || strings.Count(all, `"calledAs":"p.acme"`) != 2*calls {
		t.Errorf("recorded: %s", all)
	}

	run := func(url, ca, file string, more ...string) (replay.Result, commandtest.Outcome) {
		t.Helper()
		got := commandtest.Hookgate(t, "", append([]string{"replay", file, "--server", url, "--ca", ca, "-o", "json"}, more...)...)
		var result replay.Result
		if err := json.Unmarshal([]byte(got.Out), &result); err != nil {
			t.Fatalf("%v: %s%s", err, got.Out, got.ErrOut)
		}
		return result, got
	}
	gateway, all := filepath.Join(certs, devcert.CAFile), commandtest.WriteFile(t, "all.jsonl", commandtest.Recorded(t, dir))
	candidate := commandtest.WriteFile(t, "v7.crt", string(commandtest.CAOf(versions["acme-v7"])))
	for name, tc := range map[string]struct {
		url, ca, file string
		more          []string
		want          replay.Result
	}{
		"gateway":                 {"https://" + g.HTTPS, gateway, all, nil, replay.Result{Equal: calls, Comparisons: calls, Redacted: calls}},
		"one handler":             {"https://" + g.HTTPS, gateway, files["p.acme"], []string{"--handler", "p.acme"}, replay.Result{Equal: calls, Redacted: calls}},
		"candidate by its name":   {versions["acme-v7"].URL, candidate, files["p.acme-v7"], []string{"--handler", "p.acme-v7"}, replay.Result{Equal: calls, Redacted: calls}},
		"comparisons of a single": {"https://" + g.HTTPS, gateway, files["p.acme-v7"], nil, replay.Result{Comparisons: calls}},
	} {
		result, got := run(tc.url, tc.ca, tc.file, tc.more...)
		if diff := cmp.Diff(tc.want, result, cmp.AllowUnexported(replay.Result{})); diff != "" {
			t.Errorf("%s: %s (-want +got):\n%s", name, got.ErrOut, diff)
		}
	}
}
