// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package ask_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/hookgate/hookgate/command/internal/commandtest"
	"github.com/hookgate/hookgate/internal/calls/recording"
	"github.com/hookgate/hookgate/internal/cli/cmdline"
	"github.com/hookgate/hookgate/test/process"
)

// TestRecordOneHandler records a handler of a gateway that has no --record, until Ctrl-C and until the file is full,
// and replays what it has.
func TestRecordOneHandler(t *testing.T) {
	extension := commandtest.ReplayExtension(t, func(cluster string) (kind, patch string) {
		return "JSONPatch", `[{"op":"add","path":"/spec/template/spec/image","value":"` + cluster + `"}]`
	})
	g, client := commandtest.ServeInFrontOf(t, extension)
	call := func(path, body string) error {
		response, err := client.Post("https://"+g.HTTPS+commandtest.ReplayPrefix+path, "application/json", strings.NewReader(body))
		if err != nil {
			return err
		}
		defer func() { _ = response.Body.Close() }()
		if answer, _ := io.ReadAll(response.Body); response.StatusCode != http.StatusOK {
			return fmt.Errorf("%s: %s", path, answer)
		}
		return nil
	}

	ctx, interrupt := context.WithCancel(t.Context())
	file := filepath.Join(t.TempDir(), "calls.jsonl")
	recording := startRecord(ctx, t, "p.acme", "--diagnostics", "http://"+g.Diagnostics, "-f", file)
	process.Eventually(t, "the recording has begun", func() bool { return strings.Contains(recording.errOut.String(), "Ctrl-C ends the recording") })
	for i := range 3 {
		if err := errors.Join(call("generatepatches/p.acme", commandtest.ReplayRequest(i)),
			call("beforeclustercreate/b.acme", `{"apiVersion":"hooks.runtime.cluster.x-k8s.io/v1alpha1","kind":"BeforeClusterCreateRequest","cluster":{}}`)); err != nil {
			t.Fatal(err)
		}
	}
	process.Eventually(t, "all calls are written", func() bool { return strings.Count(textOf(t, file), "\n") == 3 })
	interrupt()
	if code := <-recording.ended; code != cmdline.ExitDone || recording.out.String() != file+": 3 calls, 0 dropped\n" {
		t.Errorf("exit status %d: %s%s", code, recording.out.String(), recording.errOut.String())
	}
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 || strings.Contains(textOf(t, file), commandtest.ReplaySecret) {
		t.Errorf("the mode is %v, %v, with %s", info.Mode(), err, textOf(t, file))
	}
	ca := commandtest.WriteFile(t, "ca.crt", string(commandtest.CAOf(extension)))
	if got := commandtest.Hookgate(t, "", "replay", file, "--server", extension.URL, "--ca", ca); got.Code != cmdline.ExitDone ||
		!strings.Contains(got.Out, "3 calls replayed: 3 equal") {
		t.Errorf("replayed: %+v", got)
	}

	full := filepath.Join(t.TempDir(), "full.jsonl")
	recording = startRecord(t.Context(), t, "p.acme", "--diagnostics", "http://"+g.Diagnostics, "-f", full, "--max-bytes", "1")
	process.Eventually(t, "the recording has begun", func() bool { return strings.Contains(recording.errOut.String(), "Ctrl-C ends the recording") })
	if err := call("generatepatches/p.acme", commandtest.ReplayRequest(0)); err != nil {
		t.Fatal(err)
	}
	if code := <-recording.ended; code != cmdline.ExitDone || recording.out.String() != full+": 0 calls, 0 dropped\n" {
		t.Errorf("exit status %d: %s%s", code, recording.out.String(), recording.errOut.String())
	}

	for name, tc := range map[string]struct {
		args []string
		code int
		want string
	}{
		"handler": {[]string{"p.acm"}, cmdline.ExitFailed, `HTTP 404: there is no handler "p.acm": did you mean "p.acme"?`},
		"exists":  {[]string{"p.acme", "-f", file}, cmdline.ExitFailed, "file exists"},
		"time":    {[]string{"p.acme", "--for", "25h"}, cmdline.ExitUsage, "want a duration of at most 24h0m0s"},
		"size":    {[]string{"p.acme", "--max-bytes", "x"}, cmdline.ExitUsage, "want a quantity such as 512Mi"},
	} {
		got := commandtest.Hookgate(t, "", append([]string{"record", "--diagnostics", "http://" + g.Diagnostics}, tc.args...)...)
		if got.Code != tc.code || !strings.Contains(got.ErrOut, tc.want) {
			t.Errorf("%s: got %+v", name, got)
		}
	}
}

// startedRecord is a hookgate record that runs.
type startedRecord struct {
	out, errOut lockedBuffer
	ended       chan int
}

// startRecord starts hookgate record.
func startRecord(ctx context.Context, t *testing.T, args ...string) *startedRecord {
	t.Helper()
	r := &startedRecord{ended: make(chan int, 1)}
	go func() {
		r.ended <- commandtest.Run(ctx, append([]string{"record"}, args...), strings.NewReader(""), &r.out, &r.errOut,
			func(string) (string, bool) { return "", false })
	}()
	return r
}

// lockedBuffer is a buffer that is read while it is written.
type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

func textOf(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// A gateway that stops within a line leaves the whole lines, and is an error.
func TestRecordIsCutOff(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodPost || r.URL.Path != recording.Path {
			t.Errorf("asked for %s %s", r.Method, r.URL)
		}
		_, _ = io.WriteString(w, "# {\"recorded\":0,\"dropped\":0}\n{\"a\":1}\n# {\"recorded\":1,\"dropped\":2}\n{\"b\":")
	}))
	defer server.Close()
	file := filepath.Join(t.TempDir(), "calls.jsonl")
	got := commandtest.Hookgate(t, "", "record", "p.acme", "--diagnostics", server.URL, "-f", file)
	if got.Code != cmdline.ExitFailed || got.Out != file+": 1 call, 2 dropped\n" ||
		!strings.Contains(got.ErrOut, "the gateway ended the recording early") || textOf(t, file) != "{\"a\":1}\n" {
		t.Errorf("got %+v with %q", got, textOf(t, file))
	}
}
