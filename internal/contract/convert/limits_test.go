// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package convert

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	hooksv1alpha1 "github.com/hookgate/hookgate/gen/go/hookgate/hooks/v1alpha1"
	"github.com/hookgate/hookgate/hook"
	"github.com/hookgate/hookgate/internal/base/alloctest"
	"github.com/hookgate/hookgate/internal/base/limits"
	"github.com/hookgate/hookgate/internal/contract/jsonpatch"
)

func manyTimes(n int, text string) string {
	return strings.TrimSuffix(strings.Repeat(text+",", n), ",")
}

func numbered(n int, format string) string {
	texts := make([]string, n)
	for i := range texts {
		texts[i] = fmt.Sprintf(format, i)
	}
	return strings.Join(texts, ",")
}

func clusterWith(topology string) *hooksv1alpha1.BeforeClusterCreateRequest {
	return &hooksv1alpha1.BeforeClusterCreateRequest{Cluster: raw(
		`{"apiVersion":"cluster.x-k8s.io/v1beta2","kind":"Cluster","metadata":{"name":"c"},"spec":{"topology":{` + topology + `}}}`)}
}

// An object is converted with as many elements as it may have, and not with one more.
func TestObjectElementsLimit(t *testing.T) {
	for name, of := range map[string]func(n int) string{
		"List":    func(n int) string { return `"workers":{"machineDeployments":[` + manyTimes(n, "{}") + `]}` },
		"Unknown": func(n int) string { return numbered(n, `"x%d":1`) },
		"Map": func(n int) string {
			return `"workers":{"machineDeployments":[{"metadata":{"labels":{` + numbered(n-1, `"l%d":""`) + `}}}]}`
		},
	} {
		for n, allowed := range map[int]bool{limits.ObjectElements: true, limits.ObjectElements + 1: false} {
			_, err := sampleObjects().Request(clusterWith(of(n)), V1Beta1)
			if allowed && err != nil {
				t.Errorf("%s: %d elements: %v", name, n, err)
			}
			const want = "convert cluster to v1beta1: it has more than 50000 list elements, map entries and unknown members in total"
			if !allowed && (hook.KindOf(err) != hook.TooLarge || err.Error() != want) {
				t.Errorf("%s: %d elements: got %v", name, n, err)
			}
		}
	}
}

// Twenty MiB of empty machine deployments would be 8 GiB.
func TestConversionBombsAllocateLittle(t *testing.T) {
	req := clusterWith(`"workers":{"machineDeployments":[` + manyTimes(limits.BodyBytes/3-200, "{}") + `]}`)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, err := sampleObjects().Request(req, V1Beta1)
	runtime.ReadMemStats(&after)
	if hook.KindOf(err) != hook.TooLarge {
		t.Errorf("got %v", err)
	}
	if allocated := after.TotalAlloc - before.TotalAlloc; allocated > 256<<20 {
		t.Errorf("%d MiB were allocated", allocated>>20)
	}
}

// A failure domain is found by its name, and not by looking at all of them.
func TestManyFailureDomainsTakeLittleTime(t *testing.T) {
	convert := func(domains int) time.Duration {
		req := &hooksv1alpha1.BeforeClusterCreateRequest{Cluster: raw(
			`{"apiVersion":"cluster.x-k8s.io/v1beta2","kind":"Cluster","metadata":{"name":"c"},"status":{"failureDomains":[` +
				numbered(domains, `{"name":"d%d"}`) + `]}}`)}
		start := time.Now()
		if _, err := sampleObjects().Request(req, V1Beta1); err != nil {
			t.Fatal(err)
		}
		return time.Since(start)
	}
	const many, few = 10_000, 1_000
	// Of several times, the least are compared: those at which nothing else had the processor.
	long, short := convert(many), convert(few)
	for range 20 {
		if long < 40*short {
			return
		}
		long, short = min(long, convert(many)), min(short, convert(few))
	}
	t.Errorf("converting %d failure domains takes %s, and %d take %s", many, long, few, short)
}

// What a conversion allocates is reserved before, for the request and for its answer, and a refusal is its error.
func TestConversionReserves(t *testing.T) {
	full := hook.Errorf(hook.Overloaded, "the memory is used up")
	req := clusterWith(`"workers":{"machineDeployments":[` + manyTimes(1000, "{}") + `]}`)
	var reserved int64
	_, err := sampleObjects().RequestGuarded(jsonpatch.Guard{Reserve: func(n int64) error { reserved += n; return nil }}, req, V1Beta1)
	if err != nil || reserved < 1<<20 {
		t.Errorf("%d bytes were reserved, %v", reserved, err)
	}
	_, err = sampleObjects().RequestGuarded(jsonpatch.Guard{Reserve: func(int64) error { return full }}, req, V1Beta1)
	if !errors.Is(err, full) {
		t.Errorf("got %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = sampleObjects().RequestGuarded(jsonpatch.Guard{Step: ctx.Err}, clusterWith(`"x":[`+manyTimes(1<<20, "1")+`]`), V1Beta1)
	if hook.KindOf(err) != hook.Canceled {
		t.Errorf("after the caller has left: got %v", err)
	}
}

// A patch is applied with as many values as an object may have, and not with more, nor if it doubles the object.
func TestPatchLimits(t *testing.T) {
	doubling := `{"op":"add","path":"/spec/x","value":["` + strings.Repeat("y", 1000) + `"]}` +
		strings.Repeat(`,{"op":"copy","from":"/spec/x","path":"/spec/x/-"}`, 20)
	for name, tc := range map[string]struct {
		patch *hooksv1alpha1.Patch
		want  string
	}{
		"Operations": {&hooksv1alpha1.Patch{
			PatchType: hooksv1alpha1.PatchType_PATCH_TYPE_JSON_PATCH, Patch: []byte(`[` + manyTimes(7_000_000/2, "{}") + `]`),
		}, "it has more than 50000 list elements"},
		"Values": {&hooksv1alpha1.Patch{
			PatchType: hooksv1alpha1.PatchType_PATCH_TYPE_JSON_MERGE_PATCH, Patch: []byte(`{"spec":{"x":[` + manyTimes(1_000_000, "{}") + `]}}`),
		}, "it has more than 50000 list elements"},
		"Doubling": {&hooksv1alpha1.Patch{
			PatchType: hooksv1alpha1.PatchType_PATCH_TYPE_JSON_PATCH, Patch: []byte(`[` + doubling + `]`),
		}, "the patch cannot be applied"},
	} {
		t.Run(name, func(t *testing.T) {
			c, err := patchObjects().Request(machineRequest(hubMachine, hubMachine), V1Beta1)
			if err != nil {
				t.Fatal(err)
			}
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			_, _, err = c.Response(&hooksv1alpha1.CanUpdateMachineResponse{MachinePatch: tc.patch})
			runtime.ReadMemStats(&after)
			if hook.KindOf(err) != hook.BadResponse || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v, want %s", err, tc.want)
			}
			if allocated := after.TotalAlloc - before.TotalAlloc; allocated > 256<<20 {
				t.Errorf("%d MiB were allocated", allocated>>20)
			}
		})
	}
}

// What a caller writes into names makes neither a long text of an error nor much work.
func TestLongNamesTakeLittle(t *testing.T) {
	large := strings.Repeat(`\u0001`, 1<<20)
	reference := func(kind string) string {
		return `"controlPlaneRef":{"apiGroup":"a.io","kind":"` + kind + `","name":"n"}`
	}
	object := func(apiVersion, kind, spec string) string {
		return `{"apiVersion":"` + apiVersion + `","kind":"` + kind + `","spec":{` + spec + `}}`
	}
	for name, tc := range map[string]struct {
		object, to, want string
	}{
		"apiVersion": {object(large, "Cluster", ""), V1Beta1, "convert cluster to v1beta1: its apiVersion has more than 320 bytes"},
		"kind":       {object("cluster.x-k8s.io/v1beta2", large, ""), V1Beta1, "convert cluster to v1beta1: its kind has more than 320 bytes"},
		"reference":  {object("cluster.x-k8s.io/v1beta2", "Cluster", reference(large)), V1Beta1, "the name of the kind or of the group is too long"},
		// Upper case that has no lower case makes a plural slow, with the square of its length.
		"plural": {object("cluster.x-k8s.io/v1beta2", "Cluster", reference(strings.Repeat("\U0001d400", 1<<18))), V1Beta1,
			"the name of the kind or of the group is too long"},
		"version of a reference": {object("cluster.x-k8s.io/v1beta1", "Cluster",
			`"controlPlaneRef":{"apiVersion":"a/b/`+large+`","kind":"K","name":"n"}`), V1Beta2, "which is not of the form group/version"},
	} {
		t.Run(name, func(t *testing.T) {
			req := &hooksv1alpha1.BeforeClusterCreateRequest{Cluster: raw(tc.object)}
			var err error
			alloctest.Bound{Base: 1 << 20, PerByte: 2}.Check(t, len(tc.object), func() { _, err = patchObjects().Request(req, tc.to) })
			if err == nil || !strings.Contains(err.Error(), tc.want) || len(err.Error()) > 4<<10 {
				t.Errorf("got %.300v, want %q", err, tc.want)
			}
		})
	}
}

// Text does not become longer because it could stand in HTML, where < would take the six bytes of \u003c.
func TestMarkupStaysAsLong(t *testing.T) {
	const size = 3 << 20
	req := clusterWith(`"version":"<","variables":[{"name":"v","value":"` + strings.Repeat("<", size) + `"}]`)
	var reserved int64
	g := jsonpatch.Guard{Reserve: func(n int64) error { reserved += n; return nil }}
	var c Converted
	var err error
	alloctest.Bound{Base: 1 << 20, PerByte: 2 * jsonpatch.Copies}.Check(t, size, func() { c, err = sampleObjects().RequestGuarded(g, req, V1Beta1) })
	if err != nil {
		t.Fatal(err)
	}
	got := c.Message.(*hooksv1alpha1.BeforeClusterCreateRequest).GetCluster().GetRaw()
	if len(got) > size+1<<10 || int64(len(got)) > reserved || !strings.Contains(string(got), `"version":"<"`) {
		t.Errorf("%d bytes were reserved for %d", reserved, len(got))
	}
}

// The metadata of variables that is converted has as many values as it may have, and its memory is reserved.
func TestVariablesLimit(t *testing.T) {
	withOld := func(labels int) *hooksv1alpha1.DiscoverVariablesResponse {
		return &hooksv1alpha1.DiscoverVariablesResponse{Variables: []*hooksv1alpha1.ClusterClassVariable{{
			Name: "v", UnknownMembers: map[string]*hooksv1alpha1.JSON{
				"metadata": {Raw: []byte(`{"labels":{` + numbered(labels, `"l%d":""`) + `}}`)},
			},
		}}}
	}
	hub := &hooksv1alpha1.DiscoverVariablesResponse{Variables: []*hooksv1alpha1.ClusterClassVariable{{
		Name: "v", DeprecatedV1Beta1Metadata: &hooksv1alpha1.ClusterClassVariableMetadata{
			Labels: map[string]string{"a": strings.Repeat("<", 1<<20)},
		},
	}}}
	full := hook.Errorf(hook.Overloaded, "the memory is used up")
	for name, tc := range map[string]struct {
		answer   *hooksv1alpha1.DiscoverVariablesResponse
		reserved int64
		want     string
	}{
		"as many as allowed": {withOld(limits.ObjectElements - 2), limits.ObjectElements * jsonpatch.MemberCost, ""},
		"more":               {withOld(limits.ObjectElements), 0, "convert the metadata of variables: it has more than 50000 list elements, map entries and unknown members in total"},
		"text":               {hub, 1 << 20, ""},
	} {
		t.Run(name, func(t *testing.T) {
			var reserved int64
			c, err := sampleObjects().RequestGuarded(jsonpatch.Guard{Reserve: func(n int64) error { reserved += n; return nil }},
				&hooksv1alpha1.DiscoverVariablesRequest{}, V1Beta1)
			if err != nil {
				t.Fatal(err)
			}
			_, _, err = c.Response(tc.answer)
			if tc.want == "" && (err != nil || reserved < tc.reserved) {
				t.Errorf("got %v, %d bytes were reserved, want %d", err, reserved, tc.reserved)
			}
			if tc.want != "" && (hook.KindOf(err) != hook.BadResponse || err.Error() != tc.want) {
				t.Errorf("got %v, want %s", err, tc.want)
			}
			c.guard.Reserve = func(int64) error { return full }
			if _, _, err = c.Response(tc.answer); tc.want == "" && !errors.Is(err, full) {
				t.Errorf("without memory: got %v", err)
			}
		})
	}
}
