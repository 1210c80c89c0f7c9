// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"path"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	runtimehooksv1 "sigs.k8s.io/cluster-api/api/runtime/hooks/v1alpha1"
	kubejson "sigs.k8s.io/json"

	hooksv1alpha1 "github.com/hookgate/hookgate/gen/go/hookgate/hooks/v1alpha1"
	"github.com/hookgate/hookgate/hook"
	"github.com/hookgate/hookgate/registry"
)

// registerAnswers registers the handlers a.acme, b.acme and so on of an extension that gives these answers.
func (f *fixture) registerAnswers(t *testing.T, hookName string, answers ...string) {
	t.Helper()
	byName, handlers := map[string]string{}, []registry.Handler(nil)
	for i, answer := range answers {
		name := string(rune('a' + i))
		byName[name] = answer
		handlers = append(handlers, handlerOf(name, hookName, hook.Fail))
	}
	f.registerREST(t, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, byName[path.Base(r.URL.Path)])
	}, handlers...)
}

// readBoth decodes an answer as Cluster API does, and with the case of names, and requires that both read the same.
func readBoth[T any](t *testing.T, got answered) (read T) {
	t.Helper()
	var exact T
	if err := json.Unmarshal(got.body, &read); err != nil {
		t.Fatalf("%s: %v", got.body, err)
	}
	if strict, err := kubejson.UnmarshalStrict(got.body, &exact, kubejson.DisallowDuplicateFields); err != nil || strict != nil {
		t.Fatalf("%s: %v, %v", got.body, strict, err)
	}
	if a, b := marshalled(t, read), marshalled(t, exact); a != b {
		t.Errorf("%s: is %s without case, and %s with it", got.body, a, b)
	}
	return read
}

func marshalled(t *testing.T, v any) string {
	t.Helper()
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// No extension lifts the hold of another by the case of a member: what is merged means to Cluster API what the answers
// mean to it.
func TestHoldsInAnyCase(t *testing.T) {
	for name, tc := range map[string]struct {
		answer string // beside one that holds for 60 s
		retry  int32
		wrong  string // about the answer
	}{
		"exact":              {`{"status":"Success","retryAfterSeconds":5}`, 5, ""},
		"zero":               {`{"status":"Success","RetryAfterSeconds":0}`, 60, ""},
		"upper":              {`{"STATUS":"Success","RETRYAFTERSECONDS":5}`, 5, ""},
		"long s":             {`{"ſtatuſ":"Success","retryAfter\u017feconds":5}`, 5, ""},
		"a Failure":          {`{"Status":"Failure","Message":"no"}`, 0, "no"},
		"two holds":          {`{"status":"Success","retryAfterSeconds":60,"RetryAfterSeconds":0}`, 0, "retryAfterSeconds: occurs twice in one object, in upper and lower case"},
		"two, other order":   {`{"status":"Success","RetryAfterSeconds":0,"retryAfterSeconds":60}`, 0, "retryAfterSeconds: occurs twice in one object, in upper and lower case"},
		"two, escaped":       {`{"status":"Success","retryAfterSeconds":60,"\u0072etryAfterSeconds":0}`, 0, "retryAfterSeconds: occurs twice in one object"},
		"two statuses":       {`{"status":"Failure","STATUS":"Success"}`, 0, "status: occurs twice in one object, in upper and lower case"},
		"another's unknown":  {`{"status":"Success","HINT":1}`, 60, ""},
		"two unknown alike":  {`{"status":"Success","tip":1,"Tip":2}`, 0, `Tip: differs from "tip" only in case`},
		"two unknown, exact": {`{"status":"Success","tip":1,"tip":2}`, 0, "tip: occurs twice in one object"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t, nil)
			f.registerAnswers(t, "BeforeClusterCreate", `{"status":"Success","message":"wait","retryAfterSeconds":60,"hint":2}`, tc.answer)
			got := f.post(t, createPath, createBody)
			r := readBoth[runtimehooksv1.BeforeClusterCreateResponse](t, got)
			want := runtimehooksv1.BeforeClusterCreateResponse{}
			want.TypeMeta = r.TypeMeta
			want.Status, want.RetryAfterSeconds, want.Message = runtimehooksv1.ResponseStatusSuccess, tc.retry, "wait"
			if tc.retry < 60 {
				want.Message += `, handler "b.acme" holds, and does not say why`
			}
			if tc.wrong != "" {
				want.Status, want.Message = runtimehooksv1.ResponseStatusFailure, `handler "b.acme": call extension: answer: `+tc.wrong
				if tc.wrong == "no" {
					want.Message = `handler "b.acme": no`
				}
			}
			if a, b := marshalled(t, r), marshalled(t, want); a != b {
				t.Errorf("got %s, want %s", got.body, b)
			}
		})
	}
}

// A member of unknown_members cannot be one that the contract knows, nor another of them, in any case.
func TestUnknownMembersInAnyCase(t *testing.T) {
	unknown := func(names ...string) map[string]*hooksv1alpha1.JSON {
		members := map[string]*hooksv1alpha1.JSON{}
		for _, name := range names {
			members[name] = &hooksv1alpha1.JSON{Raw: []byte("0")}
		}
		return members
	}
	for name, tc := range map[string]struct {
		request, answer map[string]*hooksv1alpha1.JSON
		code            codes.Code
		want            string
	}{
		"of the answer":        {nil, unknown("RetryAfterSeconds"), codes.Unavailable, `handler "v.acme": call extension: answer: unknown_members["RetryAfterSeconds"]: differs from "retryAfterSeconds" only in case`},
		"two of the answer":    {nil, unknown("tip", "TIP"), codes.Unavailable, `handler "v.acme": call extension: answer: unknown_members["tip"]: differs from "TIP" only in case`},
		"of the request":       {unknown("ſettings"), nil, codes.InvalidArgument, `unknown_members["ſettings"]: differs from "settings" only in case`},
		"two of the request":   {unknown("key", "\u212aey"), nil, codes.InvalidArgument, `unknown_members["` + "\u212a" + `ey"]: differs from "key" only in case`},
		"of neither":           {unknown("a"), unknown("b"), codes.OK, ""},
		"of Cluster API's own": {nil, unknown("STATUS"), codes.Unavailable, `handler "v.acme": call extension: answer: unknown_members["STATUS"]: differs from "status" only in case`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t, nil)
			f.registerStubs(t, hook.Fail, 10*time.Second, stubs{create: func(context.Context, *hooksv1alpha1.BeforeClusterCreateRequest) (
				*hooksv1alpha1.BeforeClusterCreateResponse, error,
			) {
				return &hooksv1alpha1.BeforeClusterCreateResponse{Status: success, RetryAfterSeconds: 60, UnknownMembers: tc.answer}, nil
			}})
			_, err := hooksv1alpha1.NewLifecycleHooksServiceClient(f.conn).BeforeClusterCreate(t.Context(),
				&hooksv1alpha1.BeforeClusterCreateRequest{
					Cluster: &hooksv1alpha1.RawExtension{Raw: []byte(createCluster)}, UnknownMembers: tc.request,
				})
			if s := status.Convert(err); s.Code() != tc.code || s.Message() != tc.want {
				t.Errorf("got %v", err)
			}
		})
	}
}

// chained registers the answers of steps of a chain.
func (f *fixture) chained(t *testing.T, c registry.Chain, hookName string, answers ...string) {
	t.Helper()
	f.registerAnswers(t, hookName, answers...)
	c.Name, c.Hook = "chain", hookOf(t, hookName).GroupHook()
	for i := range answers {
		step := registry.ChainStep{Handler: string(rune('a'+i)) + ".acme"}
		if i < len(c.Steps) {
			step.Allow = c.Steps[i].Allow
			c.Steps[i] = step
			continue
		}
		c.Steps = append(c.Steps, step)
	}
	f.registry.SetChains([]registry.Chain{c})
}

// A step drops no patches of others, and its own are not lost.
func TestItemsOfStepsInAnyCase(t *testing.T) {
	const a = `{"status":"Success","items":[{"uid":"1","patchType":"JSONMergePatch","patch":"eyJzcGVjIjp7ImEiOjF9fQ=="}]}`
	for name, tc := range map[string]struct {
		step  string
		items int
		wrong string
	}{
		"none":      {`{"status":"Success","Items":[]}`, 1, ""},
		"one":       {`{"Status":"Success","ITEMS":[{"UID":"1","PatchType":"JSONMergePatch","Patch":"eyJzcGVjIjp7ImIiOjF9fQ=="}]}`, 2, ""},
		"two lists": {`{"status":"Success","items":[],"Items":[]}`, 0, `items: occurs twice in one object, in upper and lower case`},
		"two uids":  {`{"status":"Success","items":[{"uid":"1","Uid":"2","patchType":"JSONMergePatch","patch":"e30="}]}`, 0, `items[0].uid: occurs twice in one object, in upper and lower case`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t, nil)
			f.chained(t, registry.Chain{}, "GeneratePatches", a, tc.step)
			got := f.post(t, "/hooks.runtime.cluster.x-k8s.io/v1alpha1/generatepatches/chain",
				`{"items":[{"uid":"1","holderReference":{"apiVersion":"v1","kind":"Cluster","namespace":"n","name":"c","fieldPath":"x"},"object":{"spec":{}}}]}`)
			r := readBoth[runtimehooksv1.GeneratePatchesResponse](t, got)
			want := tc.wrong
			if want != "" {
				want = `handler "b.acme": call extension: answer: ` + want
			}
			if len(r.Items) != tc.items || r.Message != want {
				t.Errorf("got %s, want %d items and message %q", got.body, tc.items, want)
			}
		})
	}
}

// A patch does not pass the paths that a step may change by the case of its member.
func TestPatchesOfStepsInAnyCase(t *testing.T) {
	const request = `{"current":{"machine":{"spec":{"version":"v1","failureDomain":"a"}},"infrastructureMachine":{},"bootstrapConfig":{}},` +
		`"desired":{"machine":{"spec":{"version":"v2","failureDomain":"b"}},"infrastructureMachine":{},"bootstrapConfig":{}}}`
	for _, member := range []string{"machinePatch", "MachinePatch", `machineP\u0061tch`, "machinepatch"} {
		t.Run(member, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t, nil)
			f.chained(t, registry.Chain{OneHandler: true, Steps: []registry.ChainStep{{Allow: []string{"/machine/spec/version"}}}}, "CanUpdateMachine",
				`{"status":"Success","`+member+`":{"PatchType":"JSONMergePatch","PATCH":"eyJzcGVjIjp7ImZhaWx1cmVEb21haW4iOiJiIn19"}}`)
			got := f.post(t, "/hooks.runtime.cluster.x-k8s.io/v1alpha1/canupdatemachine/chain", request)
			r := readBoth[runtimehooksv1.CanUpdateMachineResponse](t, got)
			const want = `handler "a.acme": patch of machine: it changes /machine/spec/failureDomain, which the chain does not allow the step to change`
			if r.Message != want || r.MachinePatch.IsDefined() {
				t.Errorf("got %s", got.body)
			}
		})
	}
}
