// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package hookrule_test

import (
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"
	"sigs.k8s.io/yaml"

	"github.com/hookgate/hookgate/api/v1alpha1"
	hooksv1alpha1 "github.com/hookgate/hookgate/gen/go/hookgate/hooks/v1alpha1"
	"github.com/hookgate/hookgate/internal/calls/policy"
	"github.com/hookgate/hookgate/internal/kinds/hookrule"
	"github.com/hookgate/hookgate/registry"
)

// now is the time of the rules' clock.
var now = time.Date(2026, 7, 4, 1, 0, 0, 0, time.UTC)

func compiler(t testing.TB) *hookrule.Compiler {
	t.Helper()
	return compilerAt(t, func() time.Time { return now })
}

// compile compiles the spec of a rule named r.
func compile(t testing.TB, spec string) (registry.Registration, string) {
	t.Helper()
	o := &v1alpha1.HookRule{}
	if err := yaml.UnmarshalStrict([]byte(spec), &o.Spec); err != nil {
		t.Fatal(err)
	}
	o.Name = "r"
	reg, errs := compiler(t).Compile(o)
	texts := make([]string, len(errs))
	for i, e := range errs {
		texts[i] = e.Error()
	}
	return reg, strings.Join(texts, "\n")
}

// answer returns the answer of a rule, or its error.
func answer(t testing.TB, spec string, request proto.Message) (proto.Message, error) {
	t.Helper()
	reg, mistakes := compile(t, spec)
	if mistakes != "" {
		t.Fatal(mistakes)
	}
	return reg.InProcess.Answer(t.Context(), request, policy.Guard{})
}

const cluster = `{"apiVersion":"cluster.x-k8s.io/v1beta2","kind":"Cluster","metadata":{"name":"c","namespace":"n",` +
	`"annotations":{"acme.example/approved":"v1.36.0"}}}`

func upgrade(to string) *hooksv1alpha1.BeforeClusterUpgradeRequest {
	return &hooksv1alpha1.BeforeClusterUpgradeRequest{
		Cluster: &hooksv1alpha1.RawExtension{Raw: []byte(cluster)}, FromKubernetesVersion: "v1.35.0", ToKubernetesVersion: to,
	}
}

const approved = `
hook: BeforeClusterUpgrade
hold:
- unless: request.cluster.metadata.?annotations["acme.example/approved"].orValue("none") == request.toKubernetesVersion
  message: '"waits for approval of " + request.toKubernetesVersion'
  retryAfterSeconds: 60
fail:
- if: request.toKubernetesVersion == "v9.0.0"
  message: '"no such version"'
`

func TestLifecycle(t *testing.T) {
	success, failure := hooksv1alpha1.ResponseStatus_RESPONSE_STATUS_SUCCESS, hooksv1alpha1.ResponseStatus_RESPONSE_STATUS_FAILURE
	for name, tc := range map[string]struct {
		reason string
		to     string
		want   *hooksv1alpha1.BeforeClusterUpgradeResponse
	}{
		"Passes": {"what is approved goes on", "v1.36.0", &hooksv1alpha1.BeforeClusterUpgradeResponse{Status: success}},
		"Holds": {"what is not, waits", "v1.37.0", &hooksv1alpha1.BeforeClusterUpgradeResponse{
			Status: success, Message: "waits for approval of v1.37.0", RetryAfterSeconds: 60,
		}},
		"Fails": {"a failure precedes what holds", "v9.0.0", &hooksv1alpha1.BeforeClusterUpgradeResponse{
			Status: failure, Message: "no such version",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := answer(t, approved, upgrade(tc.to))
			if err != nil || !proto.Equal(got, tc.want) {
				t.Errorf("%s: got %v, %v", tc.reason, got, err)
			}
		})
	}
}
