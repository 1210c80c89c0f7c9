// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/hookgate/hookgate/command/internal/commandtest"
	"github.com/hookgate/hookgate/test/process"
)

// TestChangedAnswerIsReported upgrades an extension behind its URL, whose next patch of an unchanged Cluster is then in
// the metrics and the status, without the value.
func TestChangedAnswerIsReported(t *testing.T) {
	var version atomic.Value
	version.Store("v6")
	extension := commandtest.ReplayExtension(t, func(string) (kind, patch string) {
		return "JSONPatch", `[{"op":"add","path":"/spec/template/spec/image","value":"` + version.Load().(string) + `"}]`
	})
	g, client := commandtest.ServeInFrontOf(t, extension)
	for _, v := range []string{"v6", "v6", "v7", "v7"} {
		version.Store(v)
		response, err := client.Post("https://"+g.HTTPS+commandtest.ReplayPrefix+"generatepatches/p.acme", "application/json", strings.NewReader(commandtest.ReplayRequest(3)))
		if err != nil {
			t.Fatal(err)
		}
		_ = response.Body.Close()
		if response.StatusCode != http.StatusOK {
			t.Fatalf("got %s", response.Status)
		}
	}
	process.Eventually(t, "the change is counted once", func() bool {
		response, err := http.Get("http://" + g.Diagnostics + "/metrics")
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = response.Body.Close() }()
		text, _ := io.ReadAll(response.Body)
		return strings.Contains(string(text), `hookgate_handler_changed_answers_total{handler="p.acme",hook="GeneratePatches"} 1`)
	})
	got := commandtest.Hookgate(t, "", "describe", "extension", "acme", "--diagnostics", "http://"+g.Diagnostics)
	if !strings.Contains(got.Out, "Changed") || strings.Contains(got.Out, "v7") ||
		!strings.Contains(got.Out, "an equal request has another answer than before: Cluster n/c3 spec.infrastructureRef: /spec/template/spec/image") {
		t.Errorf("got %+v", got)
	}
}
