// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package hookrule_test

import (
	"context"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	"github.com/hookgate/hookgate/api/v1alpha1"
	hooksv1alpha1 "github.com/hookgate/hookgate/gen/go/hookgate/hooks/v1alpha1"
	"github.com/hookgate/hookgate/hook"
	"github.com/hookgate/hookgate/internal/base/limits"
	"github.com/hookgate/hookgate/internal/calls/policy"
	"github.com/hookgate/hookgate/internal/kinds/hookrule"
)

// known has the objects of references, by the text of each; others are not known.
type known map[string][]string

func (k known) Read(of hookrule.Reference, self types.NamespacedName) ([][]byte, error) {
	name := of.String()
	if of.Self {
		name += " " + self.String()
	}
	texts, ok := k[name]
	if !ok {
		return nil, hook.Errorf(hook.NotReady, "%s is not known", name)
	}
	objects := make([][]byte, len(texts))
	for i, text := range texts {
		objects[i] = []byte(text)
	}
	return objects, nil
}

func (k known) Admit(
	_ context.Context, rule string, of hookrule.Reference, self types.NamespacedName,
	decide func(clusters [][]byte) (passes bool, err error),
) error {
	clusters, err := k.Read(of, self)
	if err != nil {
		return err
	}
	passes, err := decide(clusters)
	if k["passed "+rule] = nil; passes {
		k["passed "+rule] = []string{self.String()}
	}
	return err
}

const frozen = `
hook: BeforeClusterUpgrade
params:
- name: freeze
  object: {apiVersion: v1, kind: ConfigMap, namespace: platform, name: freeze}
- name: peers
  objects: {apiVersion: cluster.x-k8s.io/v1beta2, kind: Cluster, selector: {matchLabels: {region: north}}}
- name: self
  self: true
hold:
- if: params.freeze.?data.?frozen.orValue("") == "true"
  message: '"frozen"'
- unless: params.peers.all(p, p.status.phase == "Provisioned")
  message: '"waits for a peer"'
- unless: params.self.status.phase == "Provisioned"
  message: '"is " + params.self.status.phase'
`

func TestParams(t *testing.T) {
	const freeze, peers, self = `ConfigMap "platform/freeze"`, `every Cluster with labels "region=north"`, `each Cluster n/c`
	provisioned := `{"status":{"phase":"Provisioned"}}`
	for name, tc := range map[string]struct {
		reason string
		known  known
		want   string // the message, or the error
	}{
		"Absent": {
			"an object that is not there is null, and a list is empty",
			known{freeze: nil, peers: nil, self: {provisioned}}, "",
		},
		"Object": {
			"the object is read by its name",
			known{freeze: {`{"data":{"frozen":"true"}}`}, peers: nil, self: {provisioned}}, "frozen",
		},
		"List": {
			"each object of the list counts",
			known{freeze: nil, peers: {provisioned, `{"status":{"phase":"Deleting"}}`}, self: {provisioned}}, "waits for a peer",
		},
		"Self": {
			"the Cluster of the request has its status",
			known{freeze: nil, peers: nil, self: {`{"status":{"phase":"Pending"}}`}}, "is Pending",
		},
		"NotKnown": {
			"no answer is made without what it depends on",
			known{freeze: nil, peers: nil}, "NotReady: each Cluster n/c is not known",
		},
		"TooLarge": {
			"what a call reads is bounded",
			known{freeze: {`"` + strings.Repeat("x", limits.RuleParamsBytes) + `"`}, peers: nil, self: {provisioned}},
			`Policy: HookRule "r": its params have more than 1048576 bytes`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			o := &v1alpha1.HookRule{}
			if err := yaml.UnmarshalStrict([]byte(frozen), &o.Spec); err != nil {
				t.Fatal(err)
			}
			o.Name = "r"
			reg, errs := compiler(t).WithParams(tc.known).Compile(o)
			if len(errs) > 0 {
				t.Fatal(errs.ToAggregate())
			}
			got, err := reg.InProcess.Answer(t.Context(), upgrade("v1.36.0"), policy.Guard{})
			if err != nil {
				if text := hook.KindOf(err).String() + ": " + err.Error(); text != tc.want {
					t.Errorf("%s: got %s, want %s", tc.reason, text, tc.want)
				}
				return
			}
			answer, _ := got.(*hooksv1alpha1.BeforeClusterUpgradeResponse)
			if answer.GetMessage() != tc.want {
				t.Errorf("%s: got %v, want message %q", tc.reason, got, tc.want)
			}
		})
	}
}

// A rule with a param of admitted Clusters decides by these, and admits a Cluster that it lets pass, and no other.
func TestAdmitted(t *testing.T) {
	const clusters = "each Cluster n/c"
	for name, tc := range map[string]struct {
		reason    string
		clusters  []string
		skipsHold bool
		retry     int32
		status    hooksv1alpha1.ResponseStatus
	}{
		"Passes": {"they fit", []string{`{"n":1}`, `{"n":2}`}, false, 0, hooksv1alpha1.ResponseStatus_RESPONSE_STATUS_SUCCESS},
		"Held":   {"a Cluster that waits has nothing", []string{`{"n":1}`, `{"n":3}`}, false, 30, hooksv1alpha1.ResponseStatus_RESPONSE_STATUS_SUCCESS},
		"Fails":  {"nor has one that fails", []string{`{"n":9}`}, false, 0, hooksv1alpha1.ResponseStatus_RESPONSE_STATUS_FAILURE},
		"Lifted": {"an operator lets it pass, and it counts", []string{`{"n":1}`, `{"n":3}`}, true, 0, hooksv1alpha1.ResponseStatus_RESPONSE_STATUS_SUCCESS},
	} {
		t.Run(name, func(t *testing.T) {
			o := &v1alpha1.HookRule{}
			if err := yaml.UnmarshalStrict([]byte("hook: BeforeClusterCreate\nparams: [{name: all, admitted: true}]\n"+
				"fail: [{if: 'params.all.exists(c, c.n == 9)', message: '\"no\"'}]\n"+
				"hold: [{if: 'params.all.map(c, c.n).sum() > 3', message: '\"waits\"'}]\n"), &o.Spec); err != nil {
				t.Fatal(err)
			}
			o.Name = "r"
			source := known{clusters: tc.clusters}
			reg, errs := compiler(t).WithParams(source).Compile(o)
			if len(errs) > 0 {
				t.Fatal(errs.ToAggregate())
			}
			request := &hooksv1alpha1.BeforeClusterCreateRequest{Cluster: upgrade("").GetCluster()}
			if tc.skipsHold {
				request.Cluster.Raw = []byte(`{"metadata":{"namespace":"n","name":"c","annotations":{"hookgate.dev/skip-hold":"r"}}}`)
			}
			got, err := reg.InProcess.Answer(t.Context(), request, policy.Guard{})
			if err != nil {
				t.Fatal(err)
			}
			answer, _ := got.(*hooksv1alpha1.BeforeClusterCreateResponse)
			if answer.GetStatus() != tc.status || answer.GetRetryAfterSeconds() != tc.retry {
				t.Errorf("%s: got %v", tc.reason, answer)
			}
			passes := tc.retry == 0 && tc.status == hooksv1alpha1.ResponseStatus_RESPONSE_STATUS_SUCCESS
			if admitted := len(source["passed r"]) == 1; admitted != passes {
				t.Errorf("%s: admitted: %v", tc.reason, admitted)
			}
		})
	}
}

// TestParamsReserve asks for memory before the values are put together.
func TestParamsReserve(t *testing.T) {
	o := &v1alpha1.HookRule{}
	if err := yaml.UnmarshalStrict([]byte(frozen), &o.Spec); err != nil {
		t.Fatal(err)
	}
	o.Name = "r"
	large := `{"status":{"phase":"Provisioned"},"x":"` + strings.Repeat("x", 100_000) + `"}`
	reg, _ := compiler(t).WithParams(known{
		`ConfigMap "platform/freeze"`: nil, `every Cluster with labels "region=north"`: {large, large}, `each Cluster n/c`: {large},
	}).Compile(o)
	request, largest := upgrade("v1.36.0"), int64(0)
	_, err := reg.InProcess.Answer(t.Context(), request, policy.Guard{Reserve: func(bytes int64) error {
		largest = max(largest, bytes)
		return nil
	}})
	if err != nil || largest < 300_000 {
		t.Errorf("got %v after %d bytes were reserved, want at least those of the params, 300,000", err, largest)
	}
}

func TestParamMistakes(t *testing.T) {
	const hold = "\nhold: [{if: 'true', message: '\"x\"'}]"
	one := "hook: BeforeClusterUpgrade" + hold + "\nparams:\n- "
	for name, tc := range map[string]struct {
		reason, spec, want string
	}{
		"NoKind":   {"it must say what is read", one + `{name: a}`, `spec.params[0]: Required value: must have one of self, admitted, object and objects`},
		"TwoKinds": {"and only one thing", one + `{name: a, self: true, objects: {apiVersion: v1, kind: Node}}`, `must have one of self, admitted, object and objects`},
		"Admitted": {"and only one thing", one + `{name: a, self: true, admitted: true}`, `must have one of self, admitted, object and objects`},
		"Audit": {
			"a rule that only audits lets pass whom it would hold", "action: Audit\n" + strings.Replace(one, "Upgrade", "Create", 1) + `{name: a, admitted: true}`,
			"spec.params[0].admitted: Forbidden: a rule that only audits admits no Clusters",
		},
		"Name":       {"the name is an identifier", one + `{name: a-b, self: true}`, `spec.params[0].name: Invalid value: must begin with a lower-case letter`},
		"Twice":      {"names are unique", one + "{name: a, self: true}\n- {name: a, self: true}", `spec.params[1].name: Duplicate value: "a"`},
		"Secret":     {"Secrets stay secret", one + `{name: a, objects: {apiVersion: v1, kind: Secret}}`, `spec.params[0].objects.kind: Forbidden: rules cannot read Secrets`},
		"APIVersion": {"a group needs a version", one + `{name: a, objects: {apiVersion: a/b/c, kind: Node}}`, `spec.params[0].objects.apiVersion: Invalid value: must be a version`},
		"NoVersion":  {"as does the core group", one + `{name: a, objects: {kind: Node}}`, `spec.params[0].objects.apiVersion: Invalid value: must be a version`},
		"NoName":     {"one object has a name", one + `{name: a, object: {apiVersion: v1, kind: Node}}`, `spec.params[0].object.name: Required value`},
		"Unknown": {
			"a param that is not declared is a mistake", "hook: BeforeClusterUpgrade\nparams: [{name: freeze, self: true}]\n" +
				`hold: [{if: 'params.frieze == null', message: '"x"'}]`, `spec.hold[0].if: Invalid value: line 1, column 7: undefined field 'frieze'`,
		},
		"None": {
			"without params there is no such variable", "hook: BeforeClusterUpgrade\n" +
				`hold: [{if: 'params.freeze == null', message: '"x"'}]`, `undeclared reference to 'params'`,
		},
		"TooMany": {"their number is bounded", "hook: BeforeClusterUpgrade" + hold + "\nparams:" + strings.Repeat("\n- {name: a, self: true}", 9), `spec.params: Too many: 9: must have at most 8 items`},
	} {
		t.Run(name, func(t *testing.T) {
			if _, got := compile(t, tc.spec); !strings.Contains(got, tc.want) {
				t.Errorf("%s: got %q, want %q", tc.reason, got, tc.want)
			}
		})
	}
	t.Run("WithoutCluster", func(t *testing.T) {
		o := &v1alpha1.HookRule{}
		if err := yaml.UnmarshalStrict([]byte(frozen), &o.Spec); err != nil {
			t.Fatal(err)
		}
		o.Name = "r"
		_, errs := compiler(t).WithoutCluster().Compile(o)
		if got := errs.ToAggregate(); got == nil || !strings.Contains(got.Error(), "spec.params: Forbidden: the gateway reads params from a cluster") {
			t.Errorf("a directory has no objects: got %v", got)
		}
	})
}
