// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package hookrule_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	"github.com/hookgate/hookgate/api/v1alpha1"
	hooksv1alpha1 "github.com/hookgate/hookgate/gen/go/hookgate/hooks/v1alpha1"
	"github.com/hookgate/hookgate/hook"
	"github.com/hookgate/hookgate/internal/calls/policy"
	"github.com/hookgate/hookgate/internal/kinds/hookrule"
	"github.com/hookgate/hookgate/registry"
)

// held are places in memory.
type held struct {
	places []hookrule.Place
	lifted []string
}

func (h *held) Take(
	_ context.Context, _ string, want hookrule.Place, limit int, beyond bool,
) (hookrule.Allocation, error) {
	var is hookrule.Allocation
	h.places, is = hookrule.Allocate(h.places, want, limit, beyond)
	return is, nil
}

func (h *held) Free(_ context.Context, _ string, cluster types.NamespacedName) error {
	h.places = hookrule.Free(h.places, cluster)
	return nil
}

func (h *held) Lifted(rule string, cluster types.NamespacedName, message string) {
	h.lifted = append(h.lifted, rule+" "+cluster.String()+": "+message)
}

// placed compiles a rule named r with places.
func placed(t testing.TB, spec string, places hookrule.Places) registry.Registration {
	t.Helper()
	o := &v1alpha1.HookRule{}
	if err := yaml.UnmarshalStrict([]byte(spec), &o.Spec); err != nil {
		t.Fatal(err)
	}
	o.Name = "r"
	reg, errs := compiler(t).WithPlaces(places).Compile(o)
	if len(errs) > 0 {
		t.Fatal(errs.ToAggregate())
	}
	return reg
}

// before asks whether a Cluster may be upgraded, and returns the message of the answer: "" if it may, or the error.
func before(t testing.TB, reg registry.Registration, name, metadata string) string {
	t.Helper()
	got, err := reg.InProcess.Answer(t.Context(), &hooksv1alpha1.BeforeClusterUpgradeRequest{
		Cluster: &hooksv1alpha1.RawExtension{Raw: []byte(`{"metadata":{"namespace":"n","name":"` + name + `"` + metadata +
			`},"spec":{"topology":{"version":"v1.36.0"}}}`)},
	}, policy.Guard{})
	if err != nil {
		return hook.KindOf(err).String() + ": " + err.Error()
	}
	answer, _ := got.(*hooksv1alpha1.BeforeClusterUpgradeResponse)
	passes := answer.GetMessage() == "" || strings.HasPrefix(answer.GetMessage(), lifted)
	if answer.GetStatus() != hooksv1alpha1.ResponseStatus_RESPONSE_STATUS_SUCCESS || passes != (answer.GetRetryAfterSeconds() == 0) {
		t.Errorf("got %v", answer)
	}
	return answer.GetMessage()
}

const (
	north = `,"labels":{"region":"north"}`
	south = `,"labels":{"region":"south"}`
	skip  = `,"annotations":{"hookgate.dev/skip-hold":"other, r"},"labels":{"region":"north"}`

	lifted = "hold lifted by the annotation hookgate.dev/skip-hold: "

	oneByOne = `
hook: BeforeClusterUpgrade
objectSelector: {matchLabels: {tier: prod}}
concurrency: {limit: 1, per: 'request.cluster.metadata.labels["region"]', retryAfterSeconds: 7}
hold: [{if: request.cluster.metadata.name == "late", message: '"later"'}]
fail: [{if: request.cluster.metadata.name == "never", message: '"never"'}]
`
)

func TestConcurrency(t *testing.T) {
	places := &held{}
	reg := placed(t, oneByOne, places)
	names := func() (all []string) {
		for _, p := range places.places {
			all = append(all, p.Name+"/"+p.Per+"/"+p.TopologyVersion)
		}
		return all
	}
	const waits = `waits: all places for "north" are taken (1)`
	for _, step := range []struct{ reason, cluster, metadata, want string }{
		{"a rule that holds takes no place", "late", north, "later"},
		{"the first has one", "a", north, ""},
		{"asking again changes nothing", "a", north, ""},
		{"the second waits", "b", north, waits},
		{"elsewhere there is one", "c", south, ""},
		{"without a value, it cannot be said", "d", "", `Policy: HookRule "r": spec.concurrency.per: the expression fails for this request: no such key: labels`},
	} {
		if got := before(t, reg, step.cluster, step.metadata); got != step.want {
			t.Errorf("%s: got %q, want %q", step.reason, got, step.want)
		}
	}
	if got := names(); !slices.Equal(got, []string{"a/north/v1.36.0", "c/south/v1.36.0"}) {
		t.Errorf("places are of %v", got)
	}

	after := reg.Handlers[1]
	if after.Hook.Hook != "AfterClusterUpgrade" || !after.Everything {
		t.Errorf("the handler that frees places is %+v", after)
	}
	free := func(name string) proto.Message {
		got, err := reg.InProcess.Answer(t.Context(), &hooksv1alpha1.AfterClusterUpgradeRequest{
			Cluster: &hooksv1alpha1.RawExtension{Raw: []byte(`{"metadata":{"namespace":"n","name":"` + name + `"}}`)},
		}, policy.Guard{})
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	want := &hooksv1alpha1.AfterClusterUpgradeResponse{Status: hooksv1alpha1.ResponseStatus_RESPONSE_STATUS_SUCCESS}
	for _, name := range []string{"b", "a", "a"} { // whether or not there is a place
		if got := free(name); !proto.Equal(got, want) {
			t.Errorf("after the upgrade of %s: got %v", name, got)
		}
	}
	if got := before(t, reg, "b", north); got != "" {
		t.Errorf("the place that is free again is not given to the next: %s", got)
	}
	if got := before(t, reg, "e", skip); got != lifted+waits || len(places.places) != 3 {
		t.Errorf("an operator lets one pass, which is counted: got %q and %v", got, names())
	}
	if got := before(t, reg, "e", skip); got != "" || len(places.places) != 3 {
		t.Errorf("then it has a place: got %q and %v", got, names())
	}
	if got := before(t, reg, "late", skip); got != lifted+"later" {
		t.Errorf("whatever holds it: got %q", got)
	}
	if diff := []string{"r n/e: " + waits, "r n/late: later"}; !slices.Equal(places.lifted, diff) {
		t.Errorf("lifted: got %q, want %q", places.lifted, diff)
	}
	if got := before(t, placed(t, oneByOne, nil), "a", north); !strings.HasPrefix(got, "NotReady: ") {
		t.Errorf("without places nothing passes: got %q", got)
	}
}

// TestSkipHold lifts holds of the rules that the annotation names, and of no others. It lifts no failure.
func TestSkipHold(t *testing.T) {
	const spec = "hook: BeforeClusterUpgrade\nhold: [{if: 'true', message: '\"wait\"'}]\nfail: [{if: request.cluster.metadata.name == \"never\", message: '\"never\"'}]"
	reg := placed(t, spec, nil)
	for metadata, want := range map[string]string{
		skip:  lifted + "wait",
		north: "wait",
		`,"annotations":{"hookgate.dev/skip-hold":"rr"}`: "wait",
	} {
		if got := before(t, reg, "c", metadata); got != want {
			t.Errorf("with %s: got %q, want %q", metadata, got, want)
		}
	}
	got, err := reg.InProcess.Answer(t.Context(), &hooksv1alpha1.BeforeClusterUpgradeRequest{
		Cluster: &hooksv1alpha1.RawExtension{Raw: []byte(`{"metadata":{"name":"never"` + skip + `}}`)},
	}, policy.Guard{})
	if answer, _ := got.(*hooksv1alpha1.BeforeClusterUpgradeResponse); err != nil || answer.GetMessage() != "never" {
		t.Errorf("a failure stays: got %v, %v", got, err)
	}
}

func TestConcurrencyMistakes(t *testing.T) {
	for name, tc := range map[string]struct{ reason, spec, want string }{
		"Limit": {"at least one passes", "hook: BeforeClusterUpgrade\nconcurrency: {}", "spec.concurrency.limit: Invalid value: 0: must be between 1 and 500"},
		"Per":   {"the value is a text", "hook: BeforeClusterUpgrade\nconcurrency: {limit: 1, per: '1'}", "spec.concurrency.per: Invalid value: must be a text"},
		"Retry": {"callers ask again", "hook: BeforeClusterUpgrade\nconcurrency: {limit: 1, retryAfterSeconds: 0}", "spec.concurrency.retryAfterSeconds: Invalid value: 0: must be between 1 and 86400"},
		"Hook":  {"a place is free again one day", "hook: AfterClusterUpgrade\nconcurrency: {limit: 1}", "spec.concurrency: Forbidden: no hook that follows AfterClusterUpgrade frees a place"},
		"Audit": {"a place is real", "hook: BeforeClusterUpgrade\naction: Audit\nconcurrency: {limit: 1}", "spec.action: Forbidden: a rule with concurrency gives out places, so it cannot have this action"},
		"Other": {"other hooks have none", "hook: CanUpdateMachine\nconcurrency: {limit: 1}\nallow: [{path: /machine/spec}]", "spec.concurrency: Forbidden: rules of CanUpdateMachine cannot have "},
	} {
		t.Run(name, func(t *testing.T) {
			if _, got := compile(t, tc.spec); !strings.Contains(got, tc.want) {
				t.Errorf("%s: got %q, want %q", tc.reason, got, tc.want)
			}
		})
	}
	o := &v1alpha1.HookRule{Spec: v1alpha1.HookRuleSpec{Hook: "BeforeClusterUpgrade", Concurrency: &v1alpha1.HookRuleConcurrency{Limit: 1}}}
	o.Name = "r"
	_, errs := compiler(t).WithoutCluster().Compile(o)
	if got := errs.ToAggregate(); got == nil || got.Error() != "spec.concurrency: Forbidden: the gateway keeps places in a cluster, and takes no rules with concurrency from a directory" {
		t.Errorf("a directory has no places: got %v", got)
	}
}
