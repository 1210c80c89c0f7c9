// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package extension

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/reflection"
	"google.golang.org/grpc/status"

	"github.com/hookgate/hookgate/catalog"
	hooksv1alpha1 "github.com/hookgate/hookgate/gen/go/hookgate/hooks/v1alpha1"
	infrastructurev1alpha1 "github.com/hookgate/hookgate/gen/go/hookgate/infrastructure/v1alpha1"
	"github.com/hookgate/hookgate/hook"
	"github.com/hookgate/hookgate/internal/base/limits"
	"github.com/hookgate/hookgate/registry"
)

const discoverInfrastructurePath = "/infrastructure.hookgate.dev/v1alpha1/discoverinfrastructure"

// withInfrastructure returns a Config for both groups of hooks.
func withInfrastructure(t testing.TB) Config {
	t.Helper()
	c, err := catalog.With(catalog.Infrastructure()...)
	if err != nil {
		t.Fatal(err)
	}
	return Config{Catalog: c}
}

// infrastructureJSON is a handler of infrastructure in a discovery answer; more is further members.
func infrastructureJSON(name, hookName, more string) string {
	return fmt.Sprintf(`{"name":%q,"requestHook":{"apiVersion":"infrastructure.hookgate.dev/v1alpha1","hook":%q}%s}`, name, hookName, more)
}

func infrastructureDiscoveryJSON(handlers ...string) string {
	return `{"apiVersion":"infrastructure.hookgate.dev/v1alpha1","kind":"DiscoverInfrastructureResponse","status":"Success",` +
		`"providerIdPrefix":"acme://","handlers":[` + strings.Join(handlers, ",") + `]}`
}

// perGroup answers the discovery of each group in its own way.
func perGroup(first, second http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/hooks.runtime.cluster.x-k8s.io/v1alpha1/discovery":
			first(w, r)
		case discoverInfrastructurePath:
			second(w, r)
		default:
			http.NotFound(w, r)
		}
	}
}

// found is what discovery found, for people.
func found(d Discovered) []string {
	var all []string
	for _, h := range d.Handlers {
		all = append(all, h.Name+" of "+h.Hook.Group)
	}
	for _, s := range d.Skipped {
		all = append(all, "skipped "+s.Name+": "+s.Reason)
	}
	for _, u := range d.Unanswered {
		all = append(all, fmt.Sprintf("unanswered %s: %s: %s", u.Hook.Hook, u.Err.Kind, u.Err))
	}
	return all
}

// Each group of hooks has a discovery of its own, and only an error of the first is one of all.
func TestDiscoverGroups(t *testing.T) {
	lifecycle := answer(discoveryJSON(handlerJSON("v", "BeforeClusterCreate", "")))
	machines := answer(infrastructureDiscoveryJSON(infrastructureJSON("rm", "ReconcileMachine", ""), infrastructureJSON("dm", "DeleteMachine", `,"timeoutSeconds":30`)))
	absent := func(code int) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "no", code) }
	}
	expiring := deadline{Context: t.Context(), passed: make(chan struct{})}
	hang := func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		close(expiring.passed)
		<-r.Context().Done()
	}
	many := func(n int) http.HandlerFunc {
		handlers := make([]string, n)
		for i := range handlers {
			handlers[i] = infrastructureJSON(fmt.Sprintf("h%03d", i), "ReconcileMachine", "")
		}
		return answer(infrastructureDiscoveryJSON(handlers...))
	}
	v := "v of hooks.runtime.cluster.x-k8s.io"
	both := []string{"dm of infrastructure.hookgate.dev", "rm of infrastructure.hookgate.dev", v}
	a := newAuthority(t)
	for name, tc := range map[string]struct {
		first, second http.HandlerFunc
		want          []string
		count         int // of handlers, instead of want
		err           string
	}{
		"both":             {first: lifecycle, second: machines, want: both},
		"only the first":   {first: lifecycle, second: http.NotFound, want: []string{v}},
		"method refused":   {first: lifecycle, second: absent(http.StatusMethodNotAllowed), want: []string{v}},
		"not implemented":  {first: lifecycle, second: absent(http.StatusNotImplemented), want: []string{v}},
		"only the second":  {first: http.NotFound, second: machines, want: both[:2]},
		"neither":          {first: http.NotFound, second: http.NotFound, err: "discover handlers: answered 404 Not Found at /hooks.runtime.cluster.x-k8s.io/v1alpha1/discovery"},
		"the first fails":  {first: absent(http.StatusInternalServerError), second: machines, err: "discover handlers: answered 500 Internal Server Error"},
		"the second fails": {first: lifecycle, second: absent(http.StatusInternalServerError), want: []string{v, "unanswered DiscoverInfrastructure: BadResponse: discover handlers with DiscoverInfrastructure: answered 500 Internal Server Error"}},
		"nothing but a failing second": {
			first: http.NotFound, second: absent(http.StatusInternalServerError), err: "discover handlers with DiscoverInfrastructure: answered 500 Internal Server Error",
		},
		"garbage": {
			first: lifecycle, second: answer(`<!doctype html>`),
			want: []string{v, `unanswered DiscoverInfrastructure: BadResponse: discover handlers with DiscoverInfrastructure: answer is not JSON (Content-Type text/html)`},
		},
		"Failure": {
			first: lifecycle, second: answer(`{"status":"Failure","message":"the cloud is away"}`),
			want: []string{v, "unanswered DiscoverInfrastructure: BadResponse: discover handlers with DiscoverInfrastructure: the extension answered Failure: the cloud is away"},
		},
		"hang": {
			first: lifecycle, second: hang,
			want: []string{v, "unanswered DiscoverInfrastructure: Timeout: discover handlers with DiscoverInfrastructure: no answer before the caller's deadline"},
		},
		"ignored failures": {
			first: lifecycle, second: answer(infrastructureDiscoveryJSON(infrastructureJSON("rm", "ReconcileMachine", `,"failurePolicy":"Ignore"`))),
			want: []string{v, `unanswered DiscoverInfrastructure: BadResponse: discover handlers with DiscoverInfrastructure: answer: handlers[0].failurePolicy: errors of ReconcileMachine cannot be ignored: want "Fail"`},
		},
		"Fail is said": {
			first: lifecycle, second: answer(infrastructureDiscoveryJSON(infrastructureJSON("rm", "ReconcileMachine", `,"failurePolicy":"Fail"`))), want: both[1:],
		},
		"in the wrong discoveries": {
			first:  answer(discoveryJSON(handlerJSON("v", "BeforeClusterCreate", ""), infrastructureJSON("rm", "ReconcileMachine", ""))),
			second: answer(infrastructureDiscoveryJSON(handlerJSON("w", "BeforeClusterDelete", ""), infrastructureJSON("dm", "DeleteMachine", ""), infrastructureJSON("x", "DiscoverInfrastructure", ""))),
			want: []string{
				both[0], v,
				`skipped rm: hook "infrastructure.hookgate.dev/v1alpha1/ReconcileMachine" does not belong to the group of Discovery: remove the handler from the answer to Discovery`,
				`skipped w: hook "hooks.runtime.cluster.x-k8s.io/v1alpha1/BeforeClusterDelete" does not belong to the group of DiscoverInfrastructure: remove the handler from the answer to DiscoverInfrastructure`,
				`skipped x: hook "infrastructure.hookgate.dev/v1alpha1/DiscoverInfrastructure" has no handlers`,
			},
		},
		"the same name in both": {
			first: lifecycle, second: answer(infrastructureDiscoveryJSON(infrastructureJSON("v", "ReconcileMachine", ""))),
			want: []string{v, `unanswered DiscoverInfrastructure: BadResponse: discover handlers with DiscoverInfrastructure: answer: handler "v" has the name of a handler of another group`},
		},
		"as many as there may be": {first: lifecycle, second: many(limits.Handlers - 1), count: limits.Handlers},
		"one more": {
			first: lifecycle, second: many(limits.Handlers),
			want: []string{v, "unanswered DiscoverInfrastructure: BadResponse: discover handlers with DiscoverInfrastructure: answer: with the handlers of other groups, " +
				"there are 513 handlers, which is more than 512: split them over several extensions"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newServer(t, a, perGroup(tc.first, tc.second), nil)
			ctx := t.Context()
			if name == "hang" {
				ctx = expiring
			}
			d, err := newREST(t, withInfrastructure(t)).Discover(ctx, s.cc)
			if got := fmt.Sprint(err); got != "<nil>" && got != tc.err || got == "<nil>" && tc.err != "" {
				t.Fatalf("error %v, want %q", err, tc.err)
			}
			if tc.count > 0 {
				if len(d.Handlers) != tc.count || len(d.Unanswered) > 0 {
					t.Errorf("got %d handlers and %v, want %d", len(d.Handlers), d.Unanswered, tc.count)
				}
				return
			}
			if diff := cmp.Diff(tc.want, found(d)); diff != "" {
				t.Errorf("-want +got\n%s", diff)
			}
		})
	}
}

// provider implements the services of infrastructure.
type provider struct {
	infrastructurev1alpha1.UnimplementedDiscoveryServiceServer
	infrastructurev1alpha1.UnimplementedMachineHooksServiceServer
	discover func() (*infrastructurev1alpha1.DiscoverInfrastructureResponse, error)
	machine  *infrastructurev1alpha1.ReconcileMachineResponse
	deleted  *infrastructurev1alpha1.DeleteMachineResponse
}

func (p *provider) DiscoverInfrastructure(ctx context.Context, in *infrastructurev1alpha1.DiscoverInfrastructureRequest) (
	*infrastructurev1alpha1.DiscoverInfrastructureResponse, error,
) {
	if p.discover == nil {
		return p.UnimplementedDiscoveryServiceServer.DiscoverInfrastructure(ctx, in)
	}
	return p.discover()
}

func (p *provider) ReconcileMachine(context.Context, *infrastructurev1alpha1.ReconcileMachineRequest) (*infrastructurev1alpha1.ReconcileMachineResponse, error) {
	return p.machine, nil
}

func (p *provider) DeleteMachine(context.Context, *infrastructurev1alpha1.DeleteMachineRequest) (*infrastructurev1alpha1.DeleteMachineResponse, error) {
	return p.deleted, nil
}

func (p *provider) register(s *grpc.Server) {
	infrastructurev1alpha1.RegisterDiscoveryServiceServer(s, p)
	infrastructurev1alpha1.RegisterMachineHooksServiceServer(s, p)
}

func TestGRPCDiscoverGroups(t *testing.T) {
	lifecycle := func() (*hooksv1alpha1.DiscoveryResponse, error) {
		return &hooksv1alpha1.DiscoveryResponse{
			Status:   hooksv1alpha1.ResponseStatus_RESPONSE_STATUS_SUCCESS,
			Handlers: []*hooksv1alpha1.ExtensionHandler{{Name: "v", RequestHook: &hooksv1alpha1.GroupVersionHook{ApiVersion: hook.APIVersion, Hook: "BeforeClusterCreate"}}},
		}, nil
	}
	machines := func() (*infrastructurev1alpha1.DiscoverInfrastructureResponse, error) {
		return &infrastructurev1alpha1.DiscoverInfrastructureResponse{
			Status:   hooksv1alpha1.ResponseStatus_RESPONSE_STATUS_SUCCESS,
			Handlers: []*hooksv1alpha1.ExtensionHandler{{Name: "rm", RequestHook: &hooksv1alpha1.GroupVersionHook{ApiVersion: "infrastructure.hookgate.dev/v1alpha1", Hook: "ReconcileMachine"}}},
		}, nil
	}
	away := func() (*infrastructurev1alpha1.DiscoverInfrastructureResponse, error) {
		return nil, status.Error(codes.Internal, "away")
	}
	reflected := func(p *provider) func(*grpc.Server) {
		return func(s *grpc.Server) {
			p.register(s)
			reflection.Register(s)
		}
	}
	ca := newAuthority(t)
	v, rm := "v of hooks.runtime.cluster.x-k8s.io", "rm of infrastructure.hookgate.dev"
	for name, tc := range map[string]struct {
		author   *author
		register func(*grpc.Server)
		want     []string
		err      string
	}{
		"both":             {author: &author{discover: lifecycle}, register: (&provider{discover: machines}).register, want: []string{rm, v}},
		"only the first":   {author: &author{discover: lifecycle}, register: (&provider{}).register, want: []string{v}},
		"no such service":  {author: &author{discover: lifecycle}, want: []string{v}},
		"only the second":  {author: &author{}, register: reflected(&provider{discover: machines}), want: []string{rm}},
		"no first service": {register: (&provider{discover: machines}).register, want: []string{rm}},
		"the second fails": {
			author: &author{discover: lifecycle}, register: (&provider{discover: away}).register,
			want: []string{v, "unanswered DiscoverInfrastructure: BadResponse: discover handlers with DiscoverInfrastructure: answered Internal"},
		},
		"neither, with reflection": {
			register: reflected(&provider{}),
			want:     []string{"deletemachine of infrastructure.hookgate.dev", "reconcilemachine of infrastructure.hookgate.dev"},
		},
		"neither": {
			register: (&provider{}).register,
			err:      "discover handlers: the extension has neither Discovery nor server reflection, so its handlers are unknown: implement Discovery",
		},
	} {
		t.Run(name, func(t *testing.T) {
			d, err := newGRPC(t, withInfrastructure(t)).Discover(t.Context(), newAuthor(t, ca, tc.author, tc.register))
			if got := fmt.Sprint(err); got != "<nil>" && got != tc.err || got == "<nil>" && tc.err != "" {
				t.Fatalf("error %v, want %q", err, tc.err)
			}
			if diff := cmp.Diff(tc.want, found(d)); diff != "" {
				t.Errorf("-want +got\n%s", diff)
			}
		})
	}
	// The services of both groups stand for handlers of both.
	d, err := newGRPC(t, withInfrastructure(t)).Discover(t.Context(), newAuthor(t, ca, &author{}, reflected(&provider{})))
	if err != nil || len(d.Handlers) != 11 {
		t.Errorf("reflection found %v, %v, want 9 hooks of Cluster API and 2 of infrastructure", found(d), err)
	}
}

// An answer that says Success must say what exists: empty, it is neither infrastructure that is there nor gone.
func TestSuccessOfInfrastructureNeedsAState(t *testing.T) {
	a := newAuthority(t)
	config := withInfrastructure(t)
	for hookName, tc := range map[string]struct{ whole, text string }{
		"ReconcileMachine": {`"phase":"Provisioning"`, `phase: want "Provisioning", "Ready" or "Failed", got ""`},
		"DeleteMachine":    {`"state":"Deleting"`, `state: want "Deleting" or "Gone", got ""`},
	} {
		h, _ := config.Catalog.ByName(hookName)
		for body, fails := range map[string]bool{
			`{"status":"Success"}`: true, `{"status":"Success",` + tc.whole + `}`: false, `{"status":"Failure","message":"away"}`: false,
		} {
			s := newServer(t, a, answer(body), nil)
			c := newCall(s.cc)
			c.Hook, c.Request, c.Handler.Handler.Hook = h, h.Request.New().Interface(), h.GroupVersionHook
			response, err := call(t.Context(), newREST(t, config), c)
			if !fails {
				if err != nil {
					t.Errorf("%s, %s: %v", hookName, body, err)
				}
				continue
			}
			wantError(t, hookName, response, err, hook.BadResponse, `handler "v.acme": call extension: answer: `+tc.text)
		}
		success := hooksv1alpha1.ResponseStatus_RESPONSE_STATUS_SUCCESS
		p := &provider{machine: &infrastructurev1alpha1.ReconcileMachineResponse{Status: success}, deleted: &infrastructurev1alpha1.DeleteMachineResponse{Status: success}}
		c := newCall(newAuthor(t, a, nil, p.register))
		c.Hook, c.Request = h, h.Request.New().Interface()
		response, err := callGRPC(t.Context(), newGRPC(t, config), c)
		wantError(t, hookName+" over gRPC", response, err, hook.BadResponse, `handler "v.acme": call extension: answer: `+tc.text)
	}
}

// settle makes absences so old that they are believed.
func (a *absences) settle() {
	a.mu.Lock()
	defer a.mu.Unlock()
	for key, known := range a.known {
		known.first = known.first.Add(-absenceProof)
		a.known[key] = known
	}
}

// TestAbsentGroupIsNotAskedForAgain holds that an extension without infrastructure is asked for it for some minutes, and
// again only when its other handlers change, a call wants some, or its ExtensionConfig comes again.
func TestAbsentGroupIsNotAskedForAgain(t *testing.T) {
	var asked atomic.Int32
	var name atomic.Value
	name.Store("v")
	srv := newServer(t, newAuthority(t), perGroup(func(w http.ResponseWriter, r *http.Request) {
		answer(discoveryJSON(handlerJSON(name.Load().(string), "BeforeClusterCreate", "")))(w, r)
	}, func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		http.NotFound(w, r)
	}), nil)
	p := NewProtocols(withHooks(withInfrastructure(t)))
	defer p.Close()
	for _, step := range []struct {
		reason string
		before func()
		asked  int32
	}{
		{"the first time", func() {}, 1},
		{"soon afterwards", func() {}, 2},
		{"nothing has changed", p.rest.absences.settle, 2},
		{"another version of the extension", func() { name.Store("w") }, 3},
		{"a call wants another group", func() { p.rest.absences.settle(); p.Want("hooks.example.com") }, 3},
		{"a call wants infrastructure", func() { p.Want(hook.InfrastructureGroup) }, 4},
		{"the extension is kept", func() {
			p.rest.absences.settle()
			p.Retain([]registry.ClientConfig{srv.cc})
		}, 4},
		{"the extension has gone and come", func() { p.Retain(nil) }, 5},
	} {
		step.before()
		d, err := p.Discover(t.Context(), srv.cc)
		if err != nil || len(d.Handlers) != 1 {
			t.Fatalf("%s: %v, %v", step.reason, d.Handlers, err)
		}
		if got := asked.Load(); got != step.asked {
			t.Errorf("%s: asked %d times, want %d", step.reason, got, step.asked)
		}
	}
}

// While an extension is upgraded, one Pod may answer for Cluster API's hooks, and an older one, which has no
// infrastructure, for that. The next discovery finds the handlers, or they would not be called for an hour.
func TestAbsenceOfAnOldPodIsNotBelieved(t *testing.T) {
	var old atomic.Bool
	machines := answer(infrastructureDiscoveryJSON(infrastructureJSON("rm", "ReconcileMachine", "")))
	srv := newServer(t, newAuthority(t), perGroup(
		answer(discoveryJSON(handlerJSON("v", "BeforeClusterCreate", ""))),
		func(w http.ResponseWriter, r *http.Request) {
			if old.Load() {
				http.NotFound(w, r)
				return
			}
			machines(w, r)
		}), nil)
	p := NewProtocols(withHooks(withInfrastructure(t)))
	defer p.Close()
	v, rm := "v of hooks.runtime.cluster.x-k8s.io", "rm of infrastructure.hookgate.dev"
	for _, step := range []struct {
		what string
		old  bool
		want []string
	}{
		{"the new version", false, []string{rm, v}},
		{"an old Pod", true, []string{v}},
		{"the new version again", false, []string{rm, v}},
	} {
		old.Store(step.old)
		d, err := p.Discover(t.Context(), srv.cc)
		if err != nil {
			t.Fatalf("%s: %v", step.what, err)
		}
		if diff := cmp.Diff(step.want, found(d)); diff != "" {
			t.Errorf("%s: -want +got\n%s", step.what, diff)
		}
	}
}

func TestAbsenceIsForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var a absences
		handlers := []registry.Handler{{Name: "v"}}
		a.add("https://a", "g", handlers)
		time.Sleep(absenceProof - time.Nanosecond)
		if a.add("https://a", "g", handlers); a.has("https://a", "g", handlers) {
			t.Error("it is believed too early")
		}
		time.Sleep(time.Nanosecond)
		if a.add("https://a", "g", handlers); !a.has("https://a", "g", handlers) {
			t.Error("it is not believed")
		}
		time.Sleep(absenceAge - time.Nanosecond)
		if !a.has("https://a", "g", handlers) {
			t.Error("it is forgotten too early")
		}
		time.Sleep(time.Nanosecond)
		if a.has("https://a", "g", handlers) {
			t.Error("it is remembered for too long")
		}
		if a.add("https://a", "g", handlers); !a.has("https://a", "g", handlers) {
			t.Error("it is not believed although it has been so for an hour")
		}
		if a.add("https://a", "g", nil); a.has("https://a", "g", nil) {
			t.Error("that of another version of the extension is believed at once")
		}
	})
}
