// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/hookgate/hookgate/catalog"
	hooksv1alpha1 "github.com/hookgate/hookgate/gen/go/hookgate/hooks/v1alpha1"
	"github.com/hookgate/hookgate/hook"
	"github.com/hookgate/hookgate/internal/base/limits"
	"github.com/hookgate/hookgate/internal/calls/auth"
	"github.com/hookgate/hookgate/internal/calls/bounds"
	"github.com/hookgate/hookgate/internal/calls/policy"
	"github.com/hookgate/hookgate/internal/contract/subject"
	"github.com/hookgate/hookgate/registry"
	"github.com/hookgate/hookgate/test/samples"
)

// namingGate admits each caller by the name that it says.
type namingGate struct{}

func (namingGate) Challenge() string { return "" }

func (namingGate) Admit(_ context.Context, c auth.Credentials, _ *catalog.Hook) (auth.Admission, error) {
	return auth.Admission{Caller: auth.Caller{Name: strings.Join(c.Authorization, "")}}, nil
}

const anotherCluster = `Cluster "n/c": another management cluster has a Cluster of this namespace and name: ` +
	"use one gateway for each management cluster"

// TestNamesakesShareNothing checks over both fronts that no call of a second management cluster about a Cluster with the
// name of one of the first gets an answer that was kept for that, or reaches a handler, so that it changes no hold,
// circuit or rollout. Failures of handlers are ignored here, and this one is not.
func TestNamesakesShareNothing(t *testing.T) {
	lifecycle := func(uid, created string) string {
		return fmt.Sprintf(`{"cluster":{"metadata":{"name":"c","namespace":"n","uid":%q,"creationTimestamp":%q}}}`, uid, strings.Replace(created, "now", time.Now().UTC().Format(time.RFC3339), 1))
	}
	patches := func(uid string) string {
		return fmt.Sprintf(`{"variables":[{"name":"builtin","value":{"cluster":{"name":"c","namespace":"n","uid":%q,"topology":{}}}}],`+
			`"items":[{"uid":"1","holderReference":{"kind":"Cluster","name":"c","namespace":"n"},"object":{"kind":"X"}}]}`, uid)
	}
	const old, update = "2026-03-02T08:14:55Z", `{"desired":{"machine":{"metadata":{"namespace":"n","name":"m"},"spec":{"clusterName":"c"}}}}`
	steps := []struct {
		reason, caller, hook, handler, body string
		refused                             bool
		reached                             int64
	}{
		{"the first", "east", "BeforeClusterCreate", "v.acme", lifecycle("1", old), false, 1},
		{"its patches", "east", "GeneratePatches", "p.acme", patches("1"), false, 2},
		{"from the cache", "east", "GeneratePatches", "p.acme", patches("1"), false, 2},
		{"without a UID, before its caller is known", "west", "UpdateMachine", "u.acme", update, false, 3},
		{"another one, of all handlers", "east", "BeforeClusterCreate", "", lifecycle("2", old), true, 3},
		{"another one's patches, of a chain", "east", "GeneratePatches", "chain", patches("2"), true, 3},
		{"another caller's, which looks new", "west", "BeforeClusterCreate", "v.acme", lifecycle("2", "now"), true, 3},
		{"another caller's Machine", "west", "UpdateMachine", "u.acme", update, true, 3},
		{"the Machine of the first", "east", "UpdateMachine", "u.acme", update, false, 4},
		{"a second caller of the first", "kcp", "BeforeClusterCreate", "v.acme", lifecycle("1", old), false, 5},
		{"created again", "kcp", "BeforeClusterCreate", "v.acme", lifecycle("3", "now"), false, 6},
		{"its patches", "east", "GeneratePatches", "p.acme", patches("3"), false, 7},
		{"the one before it", "east", "BeforeClusterCreate", "v.acme", lifecycle("1", old), true, 7},
	}
	for _, protocol := range []string{"REST", "gRPC"} {
		t.Run(protocol, func(t *testing.T) {
			f := newGatedFixture(t, nil, namingGate{})
			var calls atomic.Int64
			f.registerREST(t, func(w http.ResponseWriter, r *http.Request) {
				_, _ = io.Copy(io.Discard, r.Body)
				calls.Add(1)
				_, _ = io.WriteString(w, `{"status":"Success"}`)
			}, handlerOf("v", "BeforeClusterCreate", hook.Ignore), handlerOf("p", "GeneratePatches", hook.Ignore),
				handlerOf("u", "UpdateMachine", hook.Fail))
			f.registry.SetPolicies("acme", registry.Policies{All: &policy.Policy{Name: "cached", CacheTTL: 3 * time.Second}})
			f.registry.SetChains([]registry.Chain{{
				Name: "chain", Hook: hookOf(t, "GeneratePatches").GroupHook(), Steps: []registry.ChainStep{{Handler: "p.acme"}},
			}})
			for i, step := range steps {
				err := f.callAs(t, protocol, step.caller, hookOf(t, step.hook), step.handler, step.body)
				if got := calls.Load(); err == "" == step.refused || got != step.reached {
					t.Errorf("%d, %s: %q after %d calls of handlers, want refused: %t after %d", i, step.reason, err, got, step.refused, step.reached)
				}
				if err != "" && err != anotherCluster {
					t.Errorf("%d, %s: %q, want %q", i, step.reason, err, anotherCluster)
				}
			}
		})
	}
}

// callAs calls a hook as a caller, and returns the text of the error of kind Ambiguous, if it is one.
func (f *fixture) callAs(t *testing.T, protocol, caller string, h *catalog.Hook, handler, body string) string {
	t.Helper()
	if protocol == "gRPC" {
		request := decoded(t, h.Request.New().Interface(), []byte(body))
		setHandler(request, handler)
		ctx := metadata.AppendToOutgoingContext(t.Context(), "authorization", caller)
		err := f.conn.Invoke(ctx, h.Method, request, h.Response.New().Interface())
		if code := status.Code(err); err != nil && code != codes.FailedPrecondition {
			t.Fatalf("%s: %v", code, err)
		}
		return status.Convert(err).Message()
	}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, f.rest.URL+strings.TrimSuffix(h.Path("")+"/"+handler, "/"), strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Authorization", caller)
	resp, err := f.rest.Client().Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK && resp.StatusCode != http.StatusConflict {
		t.Fatalf("%d %s %v", resp.StatusCode, text, err)
	}
	answer := decoded(t, h.Response.New().Interface(), text)
	if resp.StatusCode == http.StatusOK {
		return ""
	}
	return catalog.MessageOf(answer)
}

// TestNamesakeOfSidecar checks that a sidecar refuses by an answer: Cluster API hides errors of handlers that it offers
// with the failurePolicy Ignore.
func TestNamesakeOfSidecar(t *testing.T) {
	f := newFixtureFor(t, registry.NewSidecar(), nil, nil)
	f.register(t, "BeforeClusterCreate", hook.Ignore, time.Second, func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, `{"status":"Success"}`)
	})
	for uid, want := range []string{"Success", "Failure"} {
		got := f.post(t, createPath+"/v", strings.Replace(createBody, `"metadata":{`, `"metadata":{"uid":"`+strconv.Itoa(uid)+`",`, 1))
		if got.code != http.StatusOK || !bytes.Contains(got.body, []byte(`"status":"`+want+`"`)) {
			t.Errorf("UID %d: %d %s, want %s", uid, got.code, got.body, want)
		}
	}
}

// TestNamesakeIsNoEvidence checks that a refused call says nothing about the reconcile of the first Cluster.
func TestNamesakeIsNoEvidence(t *testing.T) {
	a, h := &assigned{}, hookOf(t, "GeneratePatches")
	d := rolledOut(t, a, registrationOf("v6", handlerOf("p", h.Hook, hook.Fail)), registrationOf("v7", handlerOf("p", h.Hook, hook.Fail)))
	ask := func(handler, uid string) error {
		_, err := d.dispatch(bounds.With(t.Context(), &call{}), h, handler, &hooksv1alpha1.GeneratePatchesRequest{
			Variables: []*hooksv1alpha1.Variable{{Name: subject.Builtin, Value: &hooksv1alpha1.JSON{
				Raw: []byte(`{"cluster":{"name":"c","namespace":"n","uid":"` + uid + `"}}`)}}},
		})
		return err
	}
	if err := ask("p.acme", "1"); err != nil {
		t.Fatal(err)
	}
	if err := ask("p.acme", "2"); hook.KindOf(err) != hook.Ambiguous || err.Error() != anotherCluster || a.stopped != nil || len(a.compared) != 1 {
		t.Errorf("%v: stopped %q, compared %d", err, a.stopped, len(a.compared))
	}
	if err := ask("x.acme", "1"); err == nil || len(a.stopped) != 1 {
		t.Errorf("%v: a failed call about the first stopped %q", err, a.stopped)
	}
}

// TestNamesakes checks which calls are refused, in the order of the calls.
func TestNamesakes(t *testing.T) {
	began := time.Now().Truncate(time.Second)
	const unsaid = -time.Hour
	type call struct {
		at          time.Duration // since began
		caller, uid string
		created     time.Duration // as at
		refused     bool
	}
	const s, m, h = time.Second, time.Minute, limits.NamesakeTime
	for name, calls := range map[string][]call{
		"created again":                   {{0, "", "1", -m, false}, {s, "", "2", s, false}, {2 * s, "", "2", s, false}},
		"created again, clocks differ":    {{0, "", "1", -m, false}, {s, "", "2", s - m, false}},
		"a second one":                    {{0, "", "1", -m, false}, {s, "", "2", -2 * m, true}, {h, "", "2", -2 * m, true}, {h + s, "", "2", -2 * m, false}},
		"a second one, older":             {{0, "", "1", 0, false}, {s, "", "2", -2 * m, true}, {h - s, "", "1", 0, false}, {h + m, "", "2", -2 * m, true}},
		"the first returns":               {{0, "", "1", -m, false}, {s, "", "2", s, false}, {2 * s, "", "1", -m, true}, {3 * s, "", "2", s, false}},
		"the first returns after silence": {{0, "", "1", -m, false}, {s, "", "2", s, false}, {2*s + h, "", "1", -m, false}, {3*s + h, "", "2", s, true}},
		"topologies, at once":             {{0, "", "1", unsaid, false}, {m - s, "", "2", unsaid, true}, {m - s, "", "1", unsaid, false}},
		"topologies, the first returns":   {{0, "", "1", unsaid, false}, {m, "", "2", unsaid, false}, {2 * m, "", "1", unsaid, true}},
		"a topology after its creation":   {{0, "", "1", -m, false}, {s, "", "2", s, false}, {2 * s, "", "2", unsaid, false}, {3 * s, "", "1", unsaid, true}},
		"another caller":                  {{0, "a", "1", -m, false}, {s, "b", "2", s, true}, {h, "b", "2", s, true}, {h + s, "b", "2", s, false}, {h + 2*s, "a", "1", -m, true}},
		"another caller of the same":      {{0, "a", "1", -m, false}, {s, "b", "1", -m, false}, {2 * s, "b", "2", 2 * s, false}, {3 * s, "a", "2", 2 * s, false}},
		"a caller without a name":         {{0, "a", "1", -m, false}, {s, "", "2", s, false}, {2 * s, "a", "2", s, false}},
		"no UID":                          {{0, "", "", unsaid, false}, {0, "a", "1", -m, false}, {s, "b", "", unsaid, false}, {s, "b", "2", s, true}, {s, "b", "", unsaid, true}, {s, "", "", unsaid, false}, {h + s, "b", "", unsaid, false}},
		"no UID, of a late call's caller": {{0, "a", "1", -m, false}, {s, "a", "2", s, false}, {2 * s, "a", "1", -m, true}, {2 * s, "a", "", unsaid, false}},
		"long UIDs":                       {{0, "", strings.Repeat("x", 99) + "1", -m, false}, {s, "", strings.Repeat("y", 99), -2 * m, true}},
	} {
		n := newNamesakes()
		for i, c := range calls {
			of := subject.Identity{Namespace: "n", Name: "c", UID: c.uid}
			if c.created != unsaid {
				of.Created = began.Add(c.created).UTC().Format(time.RFC3339)
			}
			for _, name := range []string{"d", ""} {
				other := of
				other.Name, other.UID = name, strconv.Itoa(i)
				if name == "d" {
					other.Created = began.Add(c.at).Format(time.RFC3339)
				}
				if err := n.check("", other, began.Add(c.at)); err != nil {
					t.Errorf("%s: call %d, about a Cluster named %q: %v", name, i, other.Name, err)
				}
			}
			now := began.Add(c.at)
			looked := n.look(c.caller, of, now)
			err := n.check(c.caller, of, now)
			if (hook.KindOf(err) == hook.Ambiguous) != c.refused || (err != nil) != c.refused || (looked != nil) != c.refused {
				t.Errorf("%s: call %d: %v, explained: %v, refused: %t", name, i, err, looked, c.refused)
			}
			gone := of
			gone.UID, gone.Gone = "9", true
			if err := n.check("", gone, now); err != nil {
				t.Errorf("%s: call %d: a Cluster that is gone: %v", name, i, err)
			}
		}
	}
}

// TestNamesakesAreBounded checks that what is remembered has a limit.
func TestNamesakesAreBounded(t *testing.T) {
	n, now := newNamesakes(), time.Now()
	about := func(name, uid string) error {
		return n.check("", subject.Identity{Namespace: "n", Name: name, UID: uid, Created: "2026-03-02T08:14:55Z"}, now)
	}
	for i := range limits.Namesakes + 1 {
		if err := about(strconv.Itoa(i), "1"); err != nil {
			t.Fatal(err)
		}
	}
	if about("1", "2") == nil || about("0", "2") != nil || n.known.Len() != limits.Namesakes {
		t.Errorf("%d Clusters are remembered, and not the last", n.known.Len())
	}
	var list []string
	for i := range 2 * limits.NamesakeMemory {
		list = remember(list, strconv.Itoa(i))
	}
	if len(list) != limits.NamesakeMemory || list[0] != strconv.Itoa(limits.NamesakeMemory) {
		t.Errorf("remembered %q", list)
	}
}

// BenchmarkNamesakes is the CPU time of a call with the look at its Cluster, without it, and of the look alone.
func BenchmarkNamesakes(b *testing.B) {
	d, front := benchFront(b)
	create, generate := hookOf(b, "BeforeClusterCreate"), hookOf(b, "GeneratePatches")
	for _, of := range []struct {
		size, path string
		body       []byte
		message    proto.Message
	}{
		{"S", create.Path("create.acme"), samples.S(), &hooksv1alpha1.BeforeClusterCreateRequest{}},
		{"M", generate.Path("patch.acme"), samples.M(), &hooksv1alpha1.GeneratePatchesRequest{}},
	} {
		call := func(b *testing.B) {
			began := cpuTime(b)
			for b.Loop() {
				w := httptest.NewRecorder()
				front.ServeHTTP(w, httptest.NewRequestWithContext(b.Context(), http.MethodPost, of.path, bytes.NewReader(of.body)))
				if w.Code != http.StatusOK {
					b.Fatal(w.Body)
				}
			}
			b.ReportMetric(float64(cpuTime(b)-began)/float64(b.N), "cpu-ns/op")
		}
		known := d.namesakes
		b.Run(of.size+"/with", call)
		d.namesakes = nil
		b.Run(of.size+"/without", call)
		d.namesakes = known
		request := decoded(b, of.message, of.body)
		b.Run(of.size+"/look", func(b *testing.B) {
			began := cpuTime(b)
			b.ReportAllocs()
			for b.Loop() {
				if err := known.check("core", subject.IdentityOf(request), time.Now()); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(cpuTime(b)-began)/float64(b.N), "cpu-ns/op")
		})
	}
}
