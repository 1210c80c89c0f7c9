// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package extensionpolicy

import (
	"encoding/json"
	"reflect"
	"testing"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/hookgate/hookgate/api/v1alpha1"
	"github.com/hookgate/hookgate/catalog"
	"github.com/hookgate/hookgate/internal/base/alloctest"
	"github.com/hookgate/hookgate/internal/calls/policy"
)

// checkErrors checks that every error says where it is, and not too much.
func checkErrors(t *testing.T, errs field.ErrorList, size int) {
	t.Helper()
	for _, err := range errs {
		if err.Field == "" || len(err.Error()) > 64<<10+4*size {
			t.Errorf("field %q: an error of %d bytes", err.Field, len(err.Error()))
		}
	}
}

// FuzzPolicy reads ExtensionPolicies. What is accepted can be read again, and is the same.
func FuzzPolicy(f *testing.F) {
	for _, spec := range []string{
		`{"targetRef":{"name":"acme","handler":"v"},"protocol":"GRPC","timeoutSeconds":5,"failurePolicy":"Ignore","order":3}`,
		`{"targetRef":{"name":"acme"},"clusterAPIVersion":"v1beta1","objectSelector":{"matchLabels":{"a":"b"},"matchExpressions":[{"key":"c","operator":"In","values":["d"]}]}}`,
		`{"targetRef":{"name":"acme"},"matchConditions":[{"name":"a","expression":"request.cluster.metadata.name == 'c'"},{"name":"b","expression":"has(request.settings) && request.settings.all(k, k != '')"}]}`,
		`{"targetRef":{"name":"acme"},"limits":{"maxInFlight":1,"maxWaiting":0},"circuit":{"consecutiveFailures":3,"failureRatePercent":50,"minOpenSeconds":1,"maxOpenSeconds":5}}`,
		`{"targetRef":{"name":"acme"},"hooks":["BeforeClusterDelete","GeneratePatch",""],"onUndiscovered":"Ignore"}`,
		`{"targetRef":{"name":""},"matchConditions":[{"name":"a","expression":"'"},{"name":"a","expression":"1"}],"objectSelector":{"matchExpressions":[{"key":"","operator":"No"}]}}`,
	} {
		f.Add([]byte(`{"metadata":{"name":"p"},"spec":` + spec + `}`))
	}
	c, err := policy.NewCompiler()
	if err != nil {
		f.Fatal(err)
	}
	hooks := catalog.New()
	// Compiling a condition takes some MiB, however short it is, and there may be 64 of them.
	memory := alloctest.Bound{Base: 64 << 20, PerByte: 64 << 10}
	f.Fuzz(func(t *testing.T, text []byte) {
		p := &v1alpha1.ExtensionPolicy{}
		if json.Unmarshal(text, p) != nil {
			return
		}
		var converted Policy
		var errs field.ErrorList
		memory.Check(t, len(text), func() { converted, errs = Compile(p, c, hooks) })
		checkErrors(t, errs, len(text))
		if again, more := Compile(p, c, hooks); len(more) != len(errs) || !reflect.DeepEqual(again.spec, converted.spec) {
			t.Errorf("a second time it is %+v, %v; it was %+v, %v", again, more, converted, errs)
		}
	})
}
