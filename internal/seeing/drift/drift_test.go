// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package drift

import (
	"context"
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"golang.org/x/time/rate"
	"google.golang.org/protobuf/proto"

	"github.com/hookgate/hookgate/catalog"
	hooksv1alpha1 "github.com/hookgate/hookgate/gen/go/hookgate/hooks/v1alpha1"
	"github.com/hookgate/hookgate/hook"
	"github.com/hookgate/hookgate/internal/base/limits"
	"github.com/hookgate/hookgate/internal/calls/extension"
	"github.com/hookgate/hookgate/internal/contract/codec"
	"github.com/hookgate/hookgate/registry"
	"github.com/hookgate/hookgate/test/samples"
)

var hooks = catalog.New()

// watch is a Watch that runs, and the changes that it has found.
type watch struct {
	*Watch

	changes chan Change
	skipped atomic.Int64
	local   registry.Answerer
	url     string
}

func newWatch(t testing.TB) *watch {
	t.Helper()
	w := &watch{changes: make(chan Change, 10), url: "https://acme"}
	w.Watch = New(codec.New(hooks), func(c Change) { w.changes <- c }, func() { w.skipped.Add(1) }, slog.New(slog.DiscardHandler))
	return w
}

func unbounded(context.Context) func(int64) (func(), bool) {
	return func(int64) (func(), bool) { return func() {}, true }
}

// call makes a call that is answered so, and looks at it.
func (w *watch) call(t *testing.T, name string, request, answer proto.Message, failed error) {
	t.Helper()
	h, ok := hooks.ByName(name)
	if !ok {
		t.Fatalf("there is no hook %s", name)
	}
	c := extension.Call{ID: "id", Hook: h, Request: request, Handler: &registry.Entry{
		Name: "p.acme", Handler: registry.Handler{Name: "p", Hook: h.GroupVersionHook},
		Registration: &registry.Registration{Name: "acme", InProcess: w.local, ClientConfig: registry.ClientConfig{URL: w.url}},
	}}
	_, _ = w.Link(unbounded)(func(context.Context, extension.Call) (extension.Result, error) {
		return extension.Result{Response: answer}, failed
	})(t.Context(), c)
	for len(w.pending) > 0 {
		a := <-w.pending
		if err := w.look(a); err != nil {
			t.Fatal(err)
		}
		a.release()
	}
	if w.queued.Load() != 0 {
		t.Errorf("%d bytes are queued", w.queued.Load())
	}
}

// found returns the text of the change that was found, empty if there was none.
func (w *watch) found() string {
	select {
	case c := <-w.changes:
		return fmt.Sprintf("%s %s %s/%s %s", c.Handler.Name, c.Hook, c.Namespace, c.Cluster, c.Message)
	default:
		return ""
	}
}

// patchesRequest is a request about two templates, in the order of the UIDs.
func patchesRequest(cluster string, uids ...string) proto.Message {
	r := &hooksv1alpha1.GeneratePatchesRequest{Variables: []*hooksv1alpha1.Variable{{
		Name: "builtin", Value: &hooksv1alpha1.JSON{Raw: []byte(`{"cluster":{"name":"` + cluster + `","namespace":"team"}}`)},
	}}}
	for _, uid := range uids {
		r.Items = append(r.Items, &hooksv1alpha1.GeneratePatchesRequestItem{
			Uid: uid, HolderReference: &hooksv1alpha1.HolderReference{
				Kind: "Cluster", Namespace: "team", Name: cluster, FieldPath: "spec." + uid[:1],
			}, Object: &hooksv1alpha1.RawExtension{Raw: []byte(`{"kind":"T","spec":{"n":"` + uid[:1] + `"}}`)},
		})
	}
	return r
}

// patches are an answer with a patch of each UID.
func patches(kind hooksv1alpha1.PatchType, uidsAndPatches ...string) proto.Message {
	r := &hooksv1alpha1.GeneratePatchesResponse{Status: hooksv1alpha1.ResponseStatus_RESPONSE_STATUS_SUCCESS}
	for i := 0; i < len(uidsAndPatches); i += 2 {
		r.Items = append(r.Items, &hooksv1alpha1.GeneratePatchesResponseItem{
			Uid: uidsAndPatches[i], PatchType: kind, Patch: []byte(uidsAndPatches[i+1]),
		})
	}
	return r
}

const (
	jsonPatch  = hooksv1alpha1.PatchType_PATCH_TYPE_JSON_PATCH
	mergePatch = hooksv1alpha1.PatchType_PATCH_TYPE_JSON_MERGE_PATCH
)

// Patches of an equal request are compared by what they make of the objects, whatever the UIDs and the order are.
func TestChangedPatches(t *testing.T) {
	w := newWatch(t)
	const is = "an equal request has another answer than before: "
	for i, step := range []struct {
		reason          string
		request, answer proto.Message
		want            string
	}{
		{"it is the first", patchesRequest("c", "a1", "b1"), patches(jsonPatch, "a1", `[{"op":"add","path":"/spec/image","value":"v6"}]`), ""},
		{"UIDs and the order mean nothing", patchesRequest("c", "b2", "a2"),
			patches(jsonPatch, "a2", `[{"op":"add","path":"/spec/image","value":"v6"}]`), ""},
		{"nor does the form of the patch", patchesRequest("c", "b3", "a3"), patches(mergePatch, "a3", `{"spec":{"image":"v6"}}`), ""},
		{"another Cluster is another request", patchesRequest("d", "a1", "b1"), patches(mergePatch, "a1", `{"spec":{"image":"v7"}}`), ""},
		{"the value differs", patchesRequest("c", "a4", "b4"), patches(mergePatch, "a4", `{"spec":{"image":"s3cr3t"}}`),
			"p.acme GeneratePatches team/c " + is + "Cluster team/c spec.a: /spec/image"},
		{"it is compared with the last one", patchesRequest("c", "a5", "b5"), patches(mergePatch, "a5", `{"spec":{"image":"s3cr3t"}}`), ""},
		{"there is no patch", patchesRequest("c", "a6", "b6"), patches(mergePatch),
			"p.acme GeneratePatches team/c " + is + "Cluster team/c spec.a: /spec/image"},
		{"the patch is wrong", patchesRequest("c", "a7", "b7"), patches(jsonPatch, "a7", `x`),
			"p.acme GeneratePatches team/c " + is + "its patches cannot be applied"},
	} {
		w.call(t, "GeneratePatches", step.request, step.answer, nil)
		if got := w.found(); got != step.want {
			t.Errorf("%d: %s: got %q, want %q", i, step.reason, got, step.want)
		}
	}
	if w.skipped.Load() != 0 {
		t.Errorf("%d calls were left out", w.skipped.Load())
	}
}

func TestChangedStatus(t *testing.T) {
	request := &hooksv1alpha1.ValidateTopologyRequest{}
	answer := func(status hooksv1alpha1.ResponseStatus, message string) proto.Message {
		return &hooksv1alpha1.ValidateTopologyResponse{Status: status, Message: message}
	}
	const success, failure = hooksv1alpha1.ResponseStatus_RESPONSE_STATUS_SUCCESS, hooksv1alpha1.ResponseStatus_RESPONSE_STATUS_FAILURE
	w := newWatch(t)
	w.call(t, "ValidateTopology", request, answer(success, ""), nil)
	w.call(t, "ValidateTopology", request, nil, hook.Errorf(hook.Timeout, "no answer"))
	w.url = "https://acme-v7"
	w.call(t, "ValidateTopology", request, answer(failure, "at 10:00"), nil)
	if got := w.found(); !strings.HasSuffix(got, "another answer since the URL of the ExtensionConfig has changed: /status") {
		t.Errorf("got %q", got)
	}
	w.call(t, "ValidateTopology", request, answer(failure, "at 10:01"), nil)
	if got := w.found(); got != "" {
		t.Errorf("another message: got %q", got)
	}
}

// job is a handler without a server, which is not called here.
type job struct{ registry.Answerer }

// Hooks and handlers whose answers depend on more than the request are not looked at.
func TestOtherCallsAreNotLookedAt(t *testing.T) {
	w := newWatch(t)
	w.call(t, "BeforeClusterCreate", &hooksv1alpha1.BeforeClusterCreateRequest{}, &hooksv1alpha1.BeforeClusterCreateResponse{}, nil)
	w.local = job{}
	w.call(t, "ValidateTopology", &hooksv1alpha1.ValidateTopologyRequest{}, &hooksv1alpha1.ValidateTopologyResponse{}, nil)
	if w.known.Len() != 0 || w.skipped.Load() != 0 {
		t.Errorf("%d answers are kept, %d calls were left out", w.known.Len(), w.skipped.Load())
	}
}

// What calls bring is bounded: by the bytes that wait, by those that are kept, and by the size of one call.
func TestBounds(t *testing.T) {
	w := newWatch(t)
	big := func(i int) proto.Message {
		return patches(mergePatch, "a", `{"spec":{"a":"`+strconv.Itoa(i)+strings.Repeat("x", 400<<10)+`"}}`)
	}
	for i := range 40 {
		w.pace.SetLimit(1 << 30) // the time that passes is not what is tested here
		w.call(t, "GeneratePatches", patchesRequest(fmt.Sprint("c", i), "a"), big(i), nil)
		if w.used > limits.DriftBytes {
			t.Fatalf("%d bytes are kept", w.used)
		}
	}
	used := int64(0)
	for n := w.known.Len(); n > 0; n-- {
		used += 400 << 10
		w.known.RemoveOldest()
	}
	if used < limits.DriftBytes/2 || w.used != 0 {
		t.Errorf("about %d bytes were kept, %d are left", used, w.used)
	}
	huge := patches(mergePatch, "a", strings.Repeat("x", limits.DriftCallBytes))
	w.call(t, "GeneratePatches", patchesRequest("c", "a"), huge, nil)
	if w.skipped.Load() != 1 || w.known.Len() != 0 {
		t.Errorf("%d calls were left out, %d answers are kept", w.skipped.Load(), w.known.Len())
	}
	w.pace.SetLimit(0)
	w.pace.SetBurst(1)
	w.call(t, "GeneratePatches", patchesRequest("c", "a"), big(0), nil)
	if w.skipped.Load() != 2 || w.known.Len() != 0 {
		t.Errorf("%d calls were left out, %d answers are kept", w.skipped.Load(), w.known.Len())
	}
}

// BenchmarkLink is what a call of 250 KB costs that is not looked at, and what looking at one costs in the background.
func BenchmarkLink(b *testing.B) {
	h, _ := hooks.ByName("GeneratePatches")
	c := extension.Call{Hook: h, Body: samples.M(), Handler: &registry.Entry{
		Name: "p.acme", Registration: &registry.Registration{Name: "acme"},
	}}
	answer := patches(mergePatch)
	next := func(context.Context, extension.Call) (extension.Result, error) {
		return extension.Result{Response: answer}, nil
	}
	for name, of := range map[string]struct {
		limit rate.Limit
		looks bool
	}{"skipped": {0, false}, "added": {rate.Inf, false}, "looked at": {rate.Inf, true}} {
		b.Run(name, func(b *testing.B) {
			w := newWatch(b)
			if w.pace.SetLimit(of.limit); of.limit == 0 {
				w.pace.SetBurst(1)
			}
			link := w.Link(unbounded)(next)
			for b.Loop() {
				_, _ = link(b.Context(), c)
				if len(w.pending) == 0 {
					continue
				}
				a := <-w.pending
				if of.looks {
					if err := w.look(a); err != nil {
						b.Fatal(err)
					}
				}
				a.release()
			}
		})
	}
}
