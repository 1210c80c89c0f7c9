// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package recording

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"

	"github.com/hookgate/hookgate/catalog"
	hooksv1alpha1 "github.com/hookgate/hookgate/gen/go/hookgate/hooks/v1alpha1"
	"github.com/hookgate/hookgate/hook"
	"github.com/hookgate/hookgate/internal/base/limits"
	"github.com/hookgate/hookgate/internal/calls/extension"
	"github.com/hookgate/hookgate/internal/contract/codec"
	"github.com/hookgate/hookgate/internal/contract/redact"
	"github.com/hookgate/hookgate/registry"
)

// counts counts what a Recorder says.
type counts struct {
	sync.Mutex

	recorded int
	reasons  map[string]int
}

func (c *counts) Recorded() {
	c.Lock()
	defer c.Unlock()
	c.recorded++
}

func (c *counts) RecordingDropped(reason string) {
	c.Lock()
	defer c.Unlock()
	if c.reasons == nil {
		c.reasons = map[string]int{}
	}
	c.reasons[reason]++
}

func (c *counts) of(reason string) int {
	c.Lock()
	defer c.Unlock()
	return c.reasons[reason]
}

func (c *counts) all() (n int) {
	c.Lock()
	defer c.Unlock()
	for _, d := range c.reasons {
		n += d
	}
	return n + c.recorded
}

// recorder is a Recorder, what it says, and a call through its link.
type recorder struct {
	*Recorder
	counts

	dir  string
	log  bytes.Buffer
	hook *catalog.Hook
	call extension.Call
}

var hooks = catalog.New()

func newRecorder(t *testing.T) *recorder {
	t.Helper()
	r := &recorder{dir: filepath.Join(t.TempDir(), "new", "recording")}
	files, err := OpenFiles(r.dir, limits.LeastRecordBytes)
	if err != nil {
		t.Fatal(err)
	}
	redactor, err := redact.NewRedactor(nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Recorder = New(Config{
		Codec: codec.New(hooks), Redactor: redactor, Observer: &r.counts, Files: files,
		Logger: slog.New(slog.NewTextHandler(&r.log, &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
			if a.Key == slog.TimeKey {
				return slog.Attr{}
			}
			return a
		}})),
	})
	r.hook, _ = hooks.ByName("BeforeClusterCreate")
	r.call = extension.Call{
		ID: "id-1", Hook: r.hook, Handler: &registry.Entry{
			Name: "h.acme", Handler: registry.Handler{Name: "h", Hook: r.hook.GroupVersionHook},
			Registration: &registry.Registration{Name: "acme"},
		},
		Body: []byte("{\n \"apiVersion\":\"hooks.runtime.cluster.x-k8s.io/v1alpha1\",\"kind\":\"BeforeClusterCreateRequest\",\"cluster\":{\"password\":\"x\"}}"),
	}
	return r
}

func unbounded(context.Context) func(int64) (func(), bool) {
	return func(int64) (func(), bool) { return func() {}, true }
}

// do makes a call that has an answer or fails.
func (r *recorder) do(ctx context.Context, c extension.Call, answer proto.Message, failed error) error {
	_, err := r.Link(unbounded)(func(context.Context, extension.Call) (extension.Result, error) {
		return extension.Result{Response: answer}, failed
	})(ctx, c)
	return err
}

// run runs the recorder until the function that it returns is called.
func (r *recorder) run(t *testing.T) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = r.Run(ctx)
	}()
	return func() {
		cancel()
		<-ended
	}
}

func answerOf(message string) proto.Message {
	return &hooksv1alpha1.BeforeClusterCreateResponse{
		Status: hooksv1alpha1.ResponseStatus_RESPONSE_STATUS_SUCCESS, Message: message,
	}
}

// files returns the contents of the files of a directory, in the order of their names.
func contents(t *testing.T, dir string) (all []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		text, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, string(text))
	}
	return all
}

// job is a handler without a server, which is not called here.
type job struct{ registry.Answerer }

func (job) Kind() string { return "HookJob" }

// Calls are written as they are on the wire, whether they have a body or a message, an answer or an error.
func TestRecord(t *testing.T) {
	r := newRecorder(t)
	stop := r.run(t)
	message := r.call
	message.Body = nil
	message.Request = &hooksv1alpha1.BeforeClusterCreateRequest{
		Cluster: &hooksv1alpha1.RawExtension{Raw: []byte(`{"n": 1}`)}, Settings: map[string]string{"token": "y"},
	}
	failure := hook.Errorf(hook.Timeout, "no answer")
	local := *message.Handler
	local.Registration = &registry.Registration{Name: "acme", InProcess: job{}}
	message.Handler = &local
	for _, err := range []error{
		r.do(t.Context(), r.call, answerOf("Bearer abcdefgh1234"), nil), r.do(t.Context(), message, answerOf(""), nil),
	} {
		if err != nil {
			t.Error(err)
		}
	}
	if err := r.do(t.Context(), r.call, nil, failure); !errors.Is(err, failure) {
		t.Errorf("got %v", err)
	}
	stop()
	files := contents(t, r.dir)
	if len(files) != 1 {
		t.Fatalf("got %d files", len(files))
	}
	const meta, api = `{"kind":"BeforeClusterCreate`, `","apiVersion":"hooks.runtime.cluster.x-k8s.io/v1alpha1",`
	const sent = `{"apiVersion":"hooks.runtime.cluster.x-k8s.io/v1alpha1","kind":"BeforeClusterCreateRequest",`
	in := NewReader("f", strings.NewReader(files[0]))
	var got []string
	for line := 1; ; line++ {
		record, n, err := in.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil || n != line {
			t.Fatal(n, err)
		}
		if age := time.Since(record.Time); age < 0 || age > time.Minute || record.Milliseconds < 0 {
			t.Errorf("called at %s for %f ms", record.Time, record.Milliseconds)
		}
		got = append(got, fmt.Sprintf("%s%s %s %s %s %s %s %s %s %v %d", record.Kind, record.CallID, record.Hook, record.APIVersion, record.Extension,
			record.Handler, record.Name, record.Request, record.Answer, record.Error, record.Redacted))
	}
	const is = "id-1 BeforeClusterCreate hooks.runtime.cluster.x-k8s.io/v1alpha1 acme h.acme h "
	if diff := cmp.Diff([]string{
		is + sent + `"cluster":{"password":"***"}} ` + meta + "Response" + api + `"status":"Success","message":"Bearer ***","retryAfterSeconds":0} <nil> 2`,
		"HookJob" + is + meta + "Request" + api + `"settings":{"token":"***"},"cluster":{"n":1}} ` + meta + "Response" + api + `"status":"Success","retryAfterSeconds":0} <nil> 1`,
		is + sent + `"cluster":{"password":"***"}}  &{Timeout no answer} 1`,
	}, got); diff != "" {
		t.Error(diff)
	}
	if r.recorded != 3 || len(r.reasons) > 0 || r.log.Len() > 0 || r.queued.Load() != 0 {
		t.Errorf("recorded %d, dropped %v, queued %d; log: %s", r.recorded, r.reasons, r.queued.Load(), r.log.String())
	}
	for path, want := range map[string]os.FileMode{r.dir: 0o700, filepath.Dir(r.dir): 0o700} {
		if info, err := os.Stat(path); err != nil || info.Mode().Perm() != want {
			t.Errorf("%s: got %v, %v", path, info.Mode(), err)
		}
	}
	entries, _ := os.ReadDir(r.dir)
	if info, err := entries[0].Info(); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the mode of the file is %v, %v", info.Mode(), err)
	}
}

// A writer that does not come back keeps no call waiting. What has no room is counted.
func TestSlowWriter(t *testing.T) {
	r := newRecorder(t)
	r.stick(t)
	stop := r.run(t)
	big := r.call
	big.Body = fmt.Appendf(nil, `{"kind":"BeforeClusterCreateRequest","cluster":{"a":"%s"}}`, strings.Repeat("a", 1<<20))
	const calls = 120
	for range calls {
		if err := r.do(t.Context(), big, answerOf(""), nil); err != nil {
			t.Fatal(err)
		}
	}
	if n := r.of(Queue); n < calls/2 || r.queued.Load() > limits.RecordQueueBytes {
		t.Errorf("%d of %d calls were dropped, %d bytes are queued", n, calls, r.queued.Load())
	}
	for range limits.RecordQueueCalls + 1 {
		_ = r.do(t.Context(), r.call, answerOf(""), nil)
	}
	r.unstick(t)
	waitFor(t, func() bool { return r.queued.Load() == 0 })
	stop()
	if r.all() != calls+limits.RecordQueueCalls+1 {
		t.Errorf("%d calls were counted", r.all())
	}
	// The first call that was dropped is logged at once, and the others together at the end.
	if lines := strings.Count(r.log.String(), "calls were not recorded"); lines != 2 {
		t.Errorf("got %d lines in the log:\n%s", lines, r.log.String())
	}
}

// stick makes the file a pipe that nobody reads.
func (r *recorder) stick(t *testing.T) {
	t.Helper()
	f := r.config.Files
	f.Close()
	name := filepath.Join(r.dir, "pipe")
	if err := syscall.Mkfifo(name, 0o600); err != nil {
		t.Fatal(err)
	}
	pipe, err := os.OpenFile(name, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	f.all, f.open, f.mostFile = []file{{name: name}}, pipe, 1<<40
	f.most = 1 << 40
}

func (r *recorder) unstick(t *testing.T) {
	t.Helper()
	pipe, err := os.Open(filepath.Join(r.dir, "pipe"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = pipe.Close() })
	go func() { _, _ = io.Copy(io.Discard, pipe) }()
}

// Memory that calls need is not used for recordings.
func TestNoMemory(t *testing.T) {
	r := newRecorder(t)
	none := func(context.Context) func(int64) (func(), bool) {
		return func(int64) (func(), bool) { return nil, false }
	}
	_, err := r.Link(none)(func(context.Context, extension.Call) (extension.Result, error) {
		return extension.Result{Response: answerOf("")}, nil
	})(t.Context(), r.call)
	if err != nil || r.of(Memory) != 1 || r.queued.Load() != 0 {
		t.Errorf("got %v, dropped %v, %d bytes queued", err, r.reasons, r.queued.Load())
	}
}

// Calls go on where no file can be written, and are recorded again when that is over.
func TestFullDisk(t *testing.T) {
	r := newRecorder(t)
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Skip(err)
	}
	f := r.config.Files
	_ = f.open.Close()
	f.open = full
	stop := r.run(t)
	if err := r.do(t.Context(), r.call, answerOf(""), nil); err != nil {
		t.Error(err)
	}
	waitFor(t, func() bool { return r.of(Write) == 1 })
	waitFor(t, func() bool {
		if err := r.do(t.Context(), r.call, answerOf(""), nil); err != nil {
			t.Error(err)
		}
		r.Lock()
		defer r.Unlock()
		return r.recorded > 0
	})
	stop()
	if got := r.log.String(); !strings.Contains(got, "reason=write") || !strings.Contains(got, "no space left on device") {
		t.Errorf("the log has %s", got)
	}
	if files := contents(t, r.dir); len(files) != 1 || strings.Count(files[0], "\n") != r.recorded {
		t.Errorf("%d calls were recorded, the files have %q", r.recorded, files)
	}
}

func waitFor(t *testing.T, is func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); !is(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("gave up")
		}
	}
}

func TestWithoutRecorderThereIsNoLink(t *testing.T) {
	called := 0
	next := func(context.Context, extension.Call) (extension.Result, error) {
		called++
		return extension.Result{}, nil
	}
	var none *Recorder
	if _, err := none.Link(nil)(next)(t.Context(), extension.Call{}); err != nil || called != 1 {
		t.Errorf("called %d times: %v", called, err)
	}
}
