// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/testing/protocmp"

	hooksv1alpha1 "github.com/hookgate/hookgate/gen/go/hookgate/hooks/v1alpha1"
	"github.com/hookgate/hookgate/hook"
	"github.com/hookgate/hookgate/internal/calls/answercache"
	"github.com/hookgate/hookgate/internal/calls/extension"
	"github.com/hookgate/hookgate/internal/calls/extensionstate"
	"github.com/hookgate/hookgate/internal/calls/policy"
	"github.com/hookgate/hookgate/internal/serving/shared"
	"github.com/hookgate/hookgate/registry"
)

const cacheTTLOfTests = time.Minute

// cachedFixture is a dispatcher with the handler "p.a" of a hook, whose policy keeps answers.
type cachedFixture struct {
	*Dispatcher
	registry      *registry.Registry
	hook, handler string
	calls         atomic.Int64
}

// newCached returns a fixture whose handler answers with answer.
func newCached(
	t *testing.T, hookName string, failurePolicy hook.FailurePolicy,
	answer func(ctx context.Context, c extension.Call) (proto.Message, error),
) *cachedFixture {
	t.Helper()
	f := &cachedFixture{hook: hookName, handler: "p.a"}
	f.registry = filled(t, registrationOf("a", handlerOf("p", hookName, failurePolicy)))
	f.registry.SetPolicies("a", registry.Policies{All: &policy.Policy{Name: "cached", CacheTTL: cacheTTLOfTests}})
	f.Dispatcher = newDispatcher(f.registry, fixedNamespaces{},
		callerFunc(func(ctx context.Context, c extension.Call) (proto.Message, error) {
			f.calls.Add(1)
			return answer(ctx, c)
		}))
	return f
}

func (f *cachedFixture) send(t *testing.T, request proto.Message) (proto.Message, error) {
	t.Helper()
	return f.dispatch(t.Context(), hookOf(t, f.hook), f.handler, request)
}

// patchesFor answers with a patch for each item that has its object, and so shows which item it is for.
func patchesFor(_ context.Context, c extension.Call) (proto.Message, error) {
	r := &hooksv1alpha1.GeneratePatchesResponse{Status: hooksv1alpha1.ResponseStatus_RESPONSE_STATUS_SUCCESS}
	for _, it := range c.Request.(*hooksv1alpha1.GeneratePatchesRequest).GetItems() {
		r.Items = append(r.Items, &hooksv1alpha1.GeneratePatchesResponseItem{Uid: it.GetUid(), Patch: it.GetObject().GetRaw()})
	}
	return r, nil
}

func patchesOf(uids ...string) *hooksv1alpha1.GeneratePatchesRequest {
	r := &hooksv1alpha1.GeneratePatchesRequest{}
	for i, uid := range uids {
		r.Items = append(r.Items, &hooksv1alpha1.GeneratePatchesRequestItem{
			Uid: uid, Object: &hooksv1alpha1.RawExtension{Raw: []byte{'o', byte('0' + i)}},
		})
	}
	return r
}

// Cluster API gives items another UID and another place in each request. The answer is that to the request as it is.
func TestCacheFollowsItems(t *testing.T) {
	f := newCached(t, "GeneratePatches", hook.Fail, patchesFor)
	for _, request := range []*hooksv1alpha1.GeneratePatchesRequest{
		patchesOf("a", "b", "c"), patchesOf("d", "e", "f"), patchesOf("b", "c", "a"),
	} {
		slices.Reverse(request.GetItems()[f.calls.Load():])
		got, err := f.send(t, request)
		if err != nil {
			t.Fatal(err)
		}
		patches := map[string]string{}
		for _, it := range got.(*hooksv1alpha1.GeneratePatchesResponse).GetItems() {
			patches[it.GetUid()] = string(it.GetPatch())
		}
		want := map[string]string{}
		for _, it := range request.GetItems() {
			want[it.GetUid()] = string(it.GetObject().GetRaw())
		}
		if diff := cmp.Diff(want, patches); diff != "" {
			t.Errorf("patches by UID (-want +got):\n%s", diff)
		}
	}
	if n := f.calls.Load(); n != 1 {
		t.Errorf("the handler was called %d times for one content", n)
	}
}

// Cluster API writes the items of MachineDeployments in the order of a map.
func TestCacheOfItemsInAnotherOrder(t *testing.T) {
	f := newCached(t, "ValidateTopology", hook.Fail,
		says(&hooksv1alpha1.ValidateTopologyResponse{Status: hooksv1alpha1.ResponseStatus_RESPONSE_STATUS_SUCCESS}))
	for _, step := range []struct {
		objects string
		calls   int64
	}{{"abc", 1}, {"cab", 1}, {"ab", 2}, {"abb", 3}, {"bab", 3}} {
		request := &hooksv1alpha1.ValidateTopologyRequest{}
		for _, object := range step.objects {
			request.Items = append(request.Items, &hooksv1alpha1.ValidateTopologyRequestItem{
				Object: &hooksv1alpha1.RawExtension{Raw: []byte{byte(object)}},
			})
		}
		if _, err := f.send(t, request); err != nil {
			t.Fatal(err)
		}
		if n := f.calls.Load(); n != step.calls {
			t.Errorf("items %s: the handler was called %d times in all, want %d", step.objects, n, step.calls)
		}
	}
}

// Two items with equal contents have two answers.
func TestCacheOfEqualItems(t *testing.T) {
	f := newCached(t, "GeneratePatches", hook.Fail, patchesFor)
	for _, uids := range [][]string{{"a", "b"}, {"c", "d"}} {
		request := patchesOf(uids...)
		request.Items[1].Object = request.GetItems()[0].GetObject()
		got, err := f.send(t, request)
		want, _ := patchesFor(t.Context(), extension.Call{Request: request})
		if diff := cmp.Diff(want, got, protocmp.Transform()); err != nil || diff != "" {
			t.Errorf("%v (-want +got):\n%s", err, diff)
		}
	}
	if n := f.calls.Load(); n != 1 {
		t.Errorf("the handler was called %d times", n)
	}
}

// What the answer may depend on is part of the key.
func TestCacheTellsRequestsApart(t *testing.T) {
	f := newCached(t, "GeneratePatches", hook.Fail, patchesFor)
	want := int64(0)
	called := func(what string, request proto.Message) {
		t.Helper()
		want++
		for range 2 {
			if _, err := f.send(t, request); err != nil {
				t.Fatal(err)
			}
		}
		if n := f.calls.Load(); n != want {
			t.Errorf("%s: the handler was called %d times in all, want %d", what, n, want)
		}
	}
	called("first", patchesOf("a", "b"))
	called("fewer items", patchesOf("a"))
	request := patchesOf("a", "b")
	request.Variables = []*hooksv1alpha1.Variable{{Name: "v"}}
	called("another variable", request)
	request = patchesOf("a", "b")
	request.Items[0].Variables = []*hooksv1alpha1.Variable{{Name: "v"}}
	called("another variable of an item", request)
	request = patchesOf("a", "b")
	request.Settings = map[string]string{"k": "v"}
	called("another setting", request)

	change := func(change func(*registry.Registration)) {
		r := registrationOf("a", handlerOf("p", "GeneratePatches", hook.Fail))
		change(&r)
		if err := f.registry.Apply(r); err != nil {
			t.Fatal(err)
		}
	}
	change(func(r *registry.Registration) { r.ClientConfig.URL = "https://other.example" })
	called("another URL", patchesOf("a", "b"))
	change(func(r *registry.Registration) { r.ClientConfig.CABundle = []byte("another CA") })
	called("another trust anchor", patchesOf("a", "b"))
	change(func(r *registry.Registration) { r.ClientConfig.Protocol = registry.GRPC })
	called("another protocol", patchesOf("a", "b"))
	change(func(r *registry.Registration) { r.Settings = map[string]string{"s": "1"} })
	called("another setting of the ExtensionConfig", patchesOf("a", "b"))
	change(func(r *registry.Registration) { r.Handlers[0].ClusterAPIVersion = "v1beta1" })
	called("another version of objects", patchesOf("a", "b"))
	change(func(r *registry.Registration) {
		r.Handlers = append(r.Handlers, handlerOf("q", "GeneratePatches", hook.Fail))
	})
	f.handler = "q.a"
	called("another handler", patchesOf("a", "b"))
}

// The key has the version of the hook that the caller calls, the one that the handler implements, and all members of a
// request without items, too.
func TestCacheKeysDiffer(t *testing.T) {
	e, _ := filled(t, registrationOf("a", handlerOf("p", "DiscoverVariables", hook.Fail))).Snapshot().Handler("p.a")
	later := *e
	later.Handler.Hook.Version = "v2"
	request := &hooksv1alpha1.DiscoverVariablesRequest{}
	seen := map[answercache.Key]int{}
	for i, c := range []extension.Call{
		{Hook: hookOf(t, "DiscoverVariables"), Handler: e, Request: request},
		{Hook: hookOf(t, "ValidateTopology"), Handler: e, Request: request}, // in place of another version
		{Hook: hookOf(t, "DiscoverVariables"), Handler: &later, Request: request},
		{Hook: hookOf(t, "DiscoverVariables"), Handler: e, Request: &hooksv1alpha1.DiscoverVariablesRequest{Settings: map[string]string{"a": "b"}}},
	} {
		k, ok := cacheKeyOf(c)
		if before, twice := seen[k.Key]; twice || !ok {
			t.Errorf("calls %d and %d have the same key", before, i)
		}
		seen[k.Key] = i
	}
}

// Calls that are made each time, whatever has been answered before.
func TestCacheKeepsOnlySuccess(t *testing.T) {
	ok := says(&hooksv1alpha1.GeneratePatchesResponse{Status: hooksv1alpha1.ResponseStatus_RESPONSE_STATUS_SUCCESS})
	for name, tc := range map[string]struct {
		hook    string
		policy  hook.FailurePolicy
		request proto.Message
		answer  func(ctx context.Context, c extension.Call) (proto.Message, error)
	}{
		"Failure":   {"GeneratePatches", hook.Fail, patchesOf("a"), says(&hooksv1alpha1.GeneratePatchesResponse{Status: failure, Message: "no"})},
		"Error":     {"GeneratePatches", hook.Fail, patchesOf("a"), fails(hook.Errorf(hook.BadResponse, "no"))},
		"Ignored":   {"GeneratePatches", hook.Ignore, patchesOf("a"), fails(hook.Errorf(hook.BadResponse, "no"))},
		"EqualUIDs": {"GeneratePatches", hook.Fail, patchesOf("a", "a"), ok},
		"UnknownUID": {"GeneratePatches", hook.Fail, patchesOf("a"), says(&hooksv1alpha1.GeneratePatchesResponse{
			Status: hooksv1alpha1.ResponseStatus_RESPONSE_STATUS_SUCCESS, Items: []*hooksv1alpha1.GeneratePatchesResponseItem{{Uid: "b"}},
		})},
		"NotDeterministic": {"BeforeClusterCreate", hook.Fail, &hooksv1alpha1.BeforeClusterCreateRequest{Cluster: clusterIn("n")},
			says(&hooksv1alpha1.BeforeClusterCreateResponse{Status: hooksv1alpha1.ResponseStatus_RESPONSE_STATUS_SUCCESS})},
	} {
		f := newCached(t, tc.hook, tc.policy, tc.answer)
		for range 3 {
			_, _ = f.send(t, tc.request)
		}
		if n := f.calls.Load(); n != 3 {
			t.Errorf("%s: the handler was called %d times for 3 calls", name, n)
		}
	}
}

// Without a policy that says so, nothing is kept.
func TestNoCacheByDefault(t *testing.T) {
	f := newCached(t, "GeneratePatches", hook.Fail, patchesFor)
	f.registry.SetPolicies("a", registry.Policies{})
	for range 2 {
		if _, err := f.send(t, patchesOf("a")); err != nil {
			t.Fatal(err)
		}
	}
	if n := f.calls.Load(); n != 2 {
		t.Errorf("the handler was called %d times for 2 calls", n)
	}
}

func TestCachedAnswersExpire(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newCached(t, "DiscoverVariables", hook.Fail,
			says(&hooksv1alpha1.DiscoverVariablesResponse{Status: hooksv1alpha1.ResponseStatus_RESPONSE_STATUS_SUCCESS}))
		for i, after := range []time.Duration{0, cacheTTLOfTests - 1, 1} {
			time.Sleep(after)
			synctest.Wait()
			if _, err := f.send(t, &hooksv1alpha1.DiscoverVariablesRequest{}); err != nil {
				t.Fatal(err)
			}
			if n, want := f.calls.Load(), int64(1+i/2); n != want {
				t.Errorf("call %d: the handler was called %d times, want %d", i, n, want)
			}
		}
		time.Sleep(cacheTTLOfTests) // the timer of the last one ends with the test
	})
}

// overlapping makes identical calls, of which all wait for the first one until let has returned.
func overlapping(t *testing.T, f *cachedFixture, let func(), contexts ...context.Context) []error {
	t.Helper()
	errs := make([]error, len(contexts))
	var running sync.WaitGroup
	for i, ctx := range contexts {
		running.Go(func() { _, errs[i] = f.dispatch(ctx, hookOf(t, f.hook), "p.a", patchesOf("a")) })
		synctest.Wait()
	}
	let()
	running.Wait()
	return errs
}

func TestIdenticalCallsInFlight(t *testing.T) {
	for name, tc := range map[string]struct {
		err   error
		calls int64
	}{
		"Answered": {nil, 1},
		"Broken":   {hook.Errorf(hook.BadResponse, "not JSON"), 1},
		"Refused":  {hook.Errorf(hook.Overloaded, "another caller's share is used up"), 2},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				wait := make(chan struct{})
				f := newCached(t, "GeneratePatches", hook.Fail, func(ctx context.Context, c extension.Call) (proto.Message, error) {
					<-wait
					if tc.err != nil {
						return nil, tc.err
					}
					return patchesFor(ctx, c)
				})
				errs := overlapping(t, f, func() { close(wait) }, t.Context(), t.Context())
				for _, err := range errs {
					if (err != nil) != (tc.err != nil) {
						t.Errorf("got %v, want %v", err, tc.err)
					}
				}
				if n := f.calls.Load(); n != tc.calls {
					t.Errorf("the handler was called %d times, want %d", n, tc.calls)
				}
				time.Sleep(cacheTTLOfTests)
			})
		})
	}
}

// A caller that leaves takes nothing from those that wait for its answer.
func TestCallerOfSharedCallLeaves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newCached(t, "GeneratePatches", hook.Fail, func(ctx context.Context, c extension.Call) (proto.Message, error) {
			if err := ctx.Err(); err != nil || c.Request == nil {
				return nil, err
			}
			select {
			case <-ctx.Done():
				return nil, hook.Errorf(hook.Canceled, "the caller left")
			case <-time.After(time.Second):
				return patchesFor(ctx, c)
			}
		})
		leaves, leave := context.WithCancel(t.Context())
		errs := overlapping(t, f, leave, leaves, t.Context())
		if hook.KindOf(errs[0]) != hook.Canceled || errs[1] != nil {
			t.Errorf("got %v and %v, want Canceled and an answer", errs[0], errs[1])
		}
		if n := f.calls.Load(); n != 2 {
			t.Errorf("the handler was called %d times, want 2", n)
		}
		time.Sleep(cacheTTLOfTests)
	})
}

// Who waits has a deadline of its own.
func TestWaitForIdenticalCallIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		wait := make(chan struct{})
		f := newCached(t, "GeneratePatches", hook.Fail, func(ctx context.Context, c extension.Call) (proto.Message, error) {
			<-wait
			return patchesFor(ctx, c)
		})
		soon, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		errs := overlapping(t, f, func() {
			time.Sleep(2 * time.Second)
			close(wait)
		}, t.Context(), soon)
		var e *hook.Error
		if errs[0] != nil || !errors.As(errs[1], &e) || e.Kind != hook.Timeout ||
			e.Message != "no answer before the caller's deadline" {
			t.Errorf("got %v and %v, want an answer and Timeout", errs[0], errs[1])
		}
		time.Sleep(cacheTTLOfTests)
	})
}

// An answer from the cache is counted as one, and not as a call.
func TestCacheAnswersAreCounted(t *testing.T) {
	r := filled(t, registrationOf("a", handlerOf("p", "DiscoverVariables", hook.Fail)))
	r.SetPolicies("a", registry.Policies{All: &policy.Policy{Name: "cached", CacheTTL: cacheTTLOfTests}})
	f := newFixtureFor(t, r, nil, nil)
	var calls extension.Caller
	gone, leave := context.WithCancel(t.Context())
	leave()
	transport := func(_ context.Context, c extension.Call) (extension.Result, error) {
		if _, err := calls(gone, c); hook.KindOf(err) != hook.Canceled { // an identical call, meanwhile
			t.Errorf("a caller that left while it waited for the answer: %v", err)
		}
		return extension.Result{Response: &hooksv1alpha1.DiscoverVariablesResponse{}, Lost: []string{"x"}}, nil
	}
	calls = chain(Config{Versions: allVersions, Parts: shared.Parts{Observer: f.observer, Transport: transport}}, extensionstate.New(r))
	e, _ := r.Snapshot().Handler("p.a")
	c := extension.Call{Hook: hookOf(t, "DiscoverVariables"), Handler: e, Request: &hooksv1alpha1.DiscoverVariablesRequest{}}
	for range 3 {
		result, err := calls(t.Context(), c)
		if err != nil || !slices.Equal(result.Lost, []string{"x"}) {
			t.Errorf("got %+v, %v, want what the conversion has lost", result, err)
		}
	}
	for how, want := range map[string]float64{cacheHit: 2, cacheMiss: 1, cacheShared: 1} {
		if n := valueOf(t, f.metrics, "hookgate_handler_cache_answers_total", "DiscoverVariables", "p.a", how); n != want {
			t.Errorf("%v times %s was counted, want %v", n, how, want)
		}
	}
	if n := valueOf(t, f.metrics, "hookgate_handler_calls_total", "DiscoverVariables", "p.a", "success", ""); n != 1 { // there is one series
		t.Errorf("%v calls were counted, want the miss alone", n)
	}
}
