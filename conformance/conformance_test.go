// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
	"google.golang.org/protobuf/proto"

	"github.com/hookgate/hookgate/catalog"
	hooksv1alpha1 "github.com/hookgate/hookgate/gen/go/hookgate/hooks/v1alpha1"
	"github.com/hookgate/hookgate/internal/contract/jsonscan"
)

// TestMain fails if tests leave goroutines behind. It gives those that have been told to end more time for that than
// goleak does: on a busy machine, half a second is not enough.
func TestMain(m *testing.M) {
	code := m.Run()
	for deadline := time.Now().Add(30 * time.Second); code == 0; {
		err := goleak.Find()
		if err == nil {
			break
		}
		if time.Now().After(deadline) {
			fmt.Fprintln(os.Stderr, "goroutines are left:", err)
			code = 1
		}
	}
	os.Exit(code)
}

// notFor lists the checks that do not apply to the good extension, by how it is served.
var notFor = map[string][]string{
	"https":  {"discovery.objects", "protocol.health", "protocol.reflection"},
	"grpcs":  {"tls.used", "answers.kind", "protocol.unknown-handler"},
	"socket": {"tls.used", "tls.certificate", "tls.version", "tls.old-versions", "tls.expiry", "answers.kind", "protocol.unknown-handler"},
}

// TestGoodExtensions checks that an extension that keeps all rules passes, and that nothing is left out without a
// reason.
func TestGoodExtensions(t *testing.T) {
	for name, tt := range map[string]struct {
		protocol Protocol
		change   func(*stub)
	}{
		"https":  {REST, func(*stub) {}},
		"grpcs":  {GRPC, func(*stub) {}},
		"socket": {GRPC, func(s *stub) { s.plain, s.unix = true, true }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStub()
			tt.change(s)
			report, err := Run(t.Context(), s.start(t, tt.protocol), Options{})
			if err != nil {
				t.Fatal(err)
			}
			if len(report.Results) != len(Checks()) || len(report.Handlers) != 16 || !report.Conforms(true) {
				t.Errorf("%d results of %d checks, %d handlers of 16, conforms: %v", len(report.Results), len(Checks()), len(report.Handlers), report.Conforms(true))
			}
			expected := map[string]bool{}
			for _, id := range notFor[name] {
				expected[id] = true
			}
			for _, c := range slices.Concat(infrastructureChecks, groupChecks) { // see TestGoodProvider, TestAddedGroup
				expected[c.ID] = true
			}
			for _, r := range report.Results {
				want := Pass
				if expected[r.ID] {
					want = Skip
				}
				if r.Status != want {
					t.Errorf("%s: got %s (%s) %+v, want %s", r.ID, r.Status, r.Reason, r.Findings, want)
				}
			}
		})
	}
}

// TestHandlersGetWhatTheyUnderstand checks that requests have the objects that the extension, or its operator, states.
func TestHandlersGetWhatTheyUnderstand(t *testing.T) {
	for name, tt := range map[string]struct {
		reason   string
		protocol Protocol
		states   string
		says     string
		want     string
	}{
		"nothing":  {"requests are Cluster API's of today", GRPC, "", "", "v1beta2"},
		"states":   {"a gateway would convert them, too", GRPC, "v1beta1", "", "v1beta1"},
		"says":     {"upstream's own servers cannot state anything", REST, "", "v1beta1", "v1beta1"},
		"operator": {"the operator has the last word", GRPC, "v1beta1", "v1beta2", "v1beta2"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStub()
			s.only("BeforeClusterCreate", "CanUpdateMachine")
			for _, h := range s.handlers {
				h.ClusterApiVersion = tt.states
			}
			var mu sync.Mutex
			got := map[string]bool{}
			see := func(o *hooksv1alpha1.RawExtension) {
				mu.Lock()
				defer mu.Unlock()
				if len(o.GetRaw()) > 0 { // some requests are empty on purpose
					got[apiVersionOf(o)] = true
				}
			}
			s.before = func(_ context.Context, _ *catalog.Hook, in proto.Message) (proto.Message, error) {
				switch in := in.(type) {
				case *hooksv1alpha1.BeforeClusterCreateRequest:
					see(in.GetCluster())
				case *hooksv1alpha1.CanUpdateMachineRequest:
					see(in.GetDesired().GetMachine())
				}
				return nil, nil
			}
			report, err := Run(t.Context(), s.start(t, tt.protocol), Options{ClusterAPIVersion: tt.says, Only: []string{"answers", "in-place", "load.concurrent", "envelope"}})
			if err != nil {
				t.Fatal(err)
			}
			if !report.Conforms(false) {
				t.Errorf("the extension does not conform: %+v", report.Results)
			}
			if diff := cmp.Diff(map[string]bool{"cluster.x-k8s.io/" + tt.want: true}, got); diff != "" {
				t.Errorf("%s: versions of objects (-want +got):\n%s", tt.reason, diff)
			}
		})
	}
	_, err := Run(t.Context(), Target{URL: "grpc://127.0.0.1:1"}, Options{ClusterAPIVersion: "v1"})
	var target *TargetError
	if !errors.As(err, &target) || !strings.Contains(err.Error(), `"v1" is neither "v1beta1" nor "v1beta2"`) {
		t.Errorf("a version that does not exist: %v", err)
	}
}

func apiVersionOf(o *hooksv1alpha1.RawExtension) string {
	value, _ := jsonscan.Lookup(o.GetRaw(), "apiVersion")
	version, _ := jsonscan.String(value)
	return version
}

// recorded is a *testing.T that records its subtests.
type recorded struct {
	*testing.T
	log *[]string
}

func (r recorded) note(what string, args []any) {
	*r.log = append(*r.log, what+" "+fmt.Sprint(args...))
}

func (r recorded) Skip(args ...any)  { r.note("skip", args) }
func (r recorded) Log(args ...any)   { r.note("log", args) }
func (r recorded) Error(args ...any) { r.note("error", args) }
func (r recorded) Fatal(args ...any) { r.note("fatal", args) }
func (r recorded) Run(name string, f func(recorded)) bool {
	*r.log = append(*r.log, "run "+name)
	f(r)
	return true
}

func TestEachCheckIsASubtest(t *testing.T) {
	s := newStub()
	s.only("BeforeClusterCreate", "AfterControlPlaneInitialized")
	s.body = func(h *catalog.Hook, body []byte) []byte {
		if h.Hook == "BeforeClusterCreate" {
			return replace(`"retryAfterSeconds":0`, `"retryAfterSeconds":-5`)(h, body)
		}
		return replace(`"status":"Success"`, `"status":"Success","retryAfterSeconds":5`)(h, body)
	}
	target := s.start(t, REST)
	var log []string
	Test(recorded{t, &log}, target, Options{Only: []string{"answers.retry", "answers.retry-allowed", "answers.message", "patches.uid"}})
	for i, want := range []string{
		"run answers.retry", "error handler: ", "run answers.retry-allowed", "log SHOULD: handler: ", "run answers.message",
		"run patches.uid", "skip there is no handler of GeneratePatches",
	} {
		if i >= len(log) || !strings.HasPrefix(log[i], want) {
			t.Fatalf("entry %d of %q: want %q", i, log, want)
		}
	}
	log = nil
	Test(recorded{t, &log}, Target{URL: "https://127.0.0.1:1"}, Options{})
	if len(log) != 1 || !strings.HasPrefix(log[0], "fatal extension https://127.0.0.1:1: connection refused") {
		t.Errorf("got %q", log)
	}
}

func TestOnlyAndSkipSelectChecks(t *testing.T) {
	for name, tt := range map[string]struct {
		reason     string
		only, skip []string
		want       []string
	}{
		"Identifier": {"one check", []string{"patches.apply"}, nil, []string{"patches.apply"}},
		"Family":     {"all of a family, but one", []string{"plan"}, []string{"plan.workers"}, []string{"plan.control-plane"}},
		"Pattern":    {"a name in all families", []string{"*.scope"}, nil, []string{"patches.scope", "in-place.scope"}},
		"Part":       {"a pattern is for all of the identifier", []string{"plan.w*"}, nil, []string{"plan.workers"}},
	} {
		o := Options{Only: tt.only, Skip: tt.skip}
		checks, err := o.selected()
		var got []string
		for _, c := range checks {
			got = append(got, c.ID)
		}
		if err != nil || !slices.Equal(got, tt.want) {
			t.Errorf("%s: %s: got %v, %v, want %v", name, tt.reason, got, err, tt.want)
		}
	}
	for _, pattern := range []string{"", "patch", "patches.", "PATCHES", "[", "patches.app"} {
		var e *SelectionError
		if _, err := Run(t.Context(), Target{}, Options{Skip: []string{pattern}}); !errors.As(err, &e) || e.Pattern != pattern {
			t.Errorf("%q: got %v", pattern, err)
		}
	}
}

// TestRunEndsWithItsContext checks that a run ends with its context, says why, and lists what was not run.
func TestRunEndsWithItsContext(t *testing.T) {
	s := newStub()
	target := s.start(t, GRPC)
	ctx, cancel := context.WithCancelCause(t.Context())
	why := errors.New("enough")
	report, err := Run(ctx, target, Options{Progress: func(r Result) {
		if r.ID == "discovery.some" {
			cancel(why)
		}
	}})
	if !errors.Is(err, why) || len(report.Results) != len(Checks()) || report.Conforms(false) {
		t.Errorf("got %v after %d results", err, len(report.Results))
	}
	run := true
	for _, r := range report.Results {
		if notRun := r.Status == Error && r.Reason == "not run: enough"; notRun == run {
			t.Errorf("%s is %s: %s", r.ID, r.Status, r.Reason)
		}
		run = run && r.ID != "discovery.some"
	}
}

// TestPatchesOfSomeHandlers holds that checks of patches say of how many handlers they are, so that a pass is not taken
// for one of all.
func TestPatchesOfSomeHandlers(t *testing.T) {
	s := newStub()
	twice("GeneratePatches")(s)
	s.handlers = s.handlers[len(s.handlers)-1:]
	s.handlers = append(s.handlers, announce("GeneratePatches"))
	s.answer = func(_ *catalog.Hook, in, out proto.Message) {
		if in.(*hooksv1alpha1.GeneratePatchesRequest).GetHandler() == "second" {
			a := out.(*hooksv1alpha1.GeneratePatchesResponse)
			a.Status, a.Message, a.Items = hooksv1alpha1.ResponseStatus_RESPONSE_STATUS_FAILURE, "no variables", nil
		}
	}
	report, err := Run(t.Context(), s.start(t, GRPC), Options{Only: []string{"patches.decode"}})
	if err != nil {
		t.Fatal(err)
	}
	const want = "only 1 of 2 handlers returned patches to check"
	if r := report.Results[0]; r.Status != Pass || !strings.HasPrefix(r.Reason, want) {
		t.Errorf("got %+v", r)
	}
	var b strings.Builder
	if err := report.WriteTable(&b, false); err != nil || !strings.Contains(b.String(), "pass  patches.decode: "+want) {
		t.Errorf("printed %s, %v", b.String(), err)
	}
}
