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
	"github.com/hookgate/hookgate/internal/limits"
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
			const want = "convert cluster to v1beta1: it has more than 50000 elements in lists and maps, and unknown members"
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
	req := &hooksv1alpha1.BeforeClusterCreateRequest{Cluster: raw(
		`{"apiVersion":"cluster.x-k8s.io/v1beta2","kind":"Cluster","metadata":{"name":"c"},"status":{"failureDomains":[` +
			numbered(limits.ObjectElements, `{"name":"d%d"}`) + `]}}`)}
	start := time.Now()
	if _, err := sampleObjects().Request(req, V1Beta1); err != nil {
		t.Fatal(err)
	}
	if took := time.Since(start); took > 10*time.Second {
		t.Errorf("converting %d failure domains took %s", limits.ObjectElements, took)
	}
}

// What a conversion allocates is reserved before, for the request and for its answer, and a refusal is its error.
func TestConversionReserves(t *testing.T) {
	full := hook.Errorf(hook.Overloaded, "the memory is used up")
	req := clusterWith(`"workers":{"machineDeployments":[` + manyTimes(1000, "{}") + `]}`)
	var reserved int64
	_, err := sampleObjects().RequestGuarded(Guard{Reserve: func(n int64) error { reserved += n; return nil }}, req, V1Beta1)
	if err != nil || reserved < 1<<20 {
		t.Errorf("%d bytes were reserved, %v", reserved, err)
	}
	_, err = sampleObjects().RequestGuarded(Guard{Reserve: func(int64) error { return full }}, req, V1Beta1)
	if !errors.Is(err, full) {
		t.Errorf("got %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = sampleObjects().RequestGuarded(Guard{Step: ctx.Err}, clusterWith(`"x":[`+manyTimes(1<<20, "1")+`]`), V1Beta1)
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
		}, "it has more than 50000 elements"},
		"Values": {&hooksv1alpha1.Patch{
			PatchType: hooksv1alpha1.PatchType_PATCH_TYPE_JSON_MERGE_PATCH, Patch: []byte(`{"spec":{"x":[` + manyTimes(1_000_000, "{}") + `]}}`),
		}, "it has more than 50000 elements"},
		"Doubling": {&hooksv1alpha1.Patch{
			PatchType: hooksv1alpha1.PatchType_PATCH_TYPE_JSON_PATCH, Patch: []byte(`[` + doubling + `]`),
		}, "the patch does not apply"},
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
