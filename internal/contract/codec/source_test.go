// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package codec

import (
	"encoding/json"
	"fmt"
	"math/rand"
	"reflect"
	"sync"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	runtimehooksv1 "sigs.k8s.io/cluster-api/api/runtime/hooks/v1alpha1"
	"sigs.k8s.io/randfill"

	"github.com/hookgate/hookgate/hook"
)

// source makes random values of Cluster API's types. The same seed gives the same values.
type source struct {
	*rand.Rand
	fill *randfill.Filler
}

// objects are whole Kubernetes objects. They are most of the work and the codec does not look into them, so they are
// made once and never changed.
type objects struct {
	clusters []clusterv1.Cluster
	machines []clusterv1.Machine
	sets     []clusterv1.MachineSet
	schemas  []clusterv1.JSONSchemaProps
}

var pool = sync.OnceValue(func() *objects {
	s := &source{Rand: rand.New(rand.NewSource(1))}
	deep := randfill.NewWithSeed(1).NilChance(0.7).NumElements(0, 2).MaxDepth(7).Funcs(s.text,
		func(f *metav1.FieldsV1, _ randfill.Continue) { f.SetRawString(`{"f:spec":{}}`) },
		func(j *apiextensionsv1.JSON, _ randfill.Continue) { j.Raw = s.value(2) },
		func(r *runtime.RawExtension, _ randfill.Continue) { r.Raw = s.object(2) },
	)
	const size = 64
	o := &objects{
		make([]clusterv1.Cluster, size), make([]clusterv1.Machine, size), make([]clusterv1.MachineSet,
			size), make([]clusterv1.JSONSchemaProps, size),
	}
	for i := 1; i < size; i++ { // the first of each stays empty
		deep.Fill(&o.clusters[i])
		deep.Fill(&o.machines[i])
		deep.Fill(&o.sets[i])
		deep.Fill(&o.schemas[i])
	}
	return o
})

func newSource(seed int64) *source {
	s := &source{Rand: rand.New(rand.NewSource(seed))}
	o := pool()
	s.fill = randfill.NewWithSeed(seed+1).NilChance(0.3).NumElements(0, 3).Funcs(s.text,
		func(v *clusterv1.Cluster, _ randfill.Continue) { *v = pick(s, o.clusters...) },
		func(v *clusterv1.Machine, _ randfill.Continue) { *v = pick(s, o.machines...) },
		func(v *clusterv1.MachineSet, _ randfill.Continue) { *v = pick(s, o.sets...) },
		func(v *clusterv1.JSONSchemaProps, _ randfill.Continue) { *v = pick(s, o.schemas...) },
		func(v *runtime.RawExtension, _ randfill.Continue) {
			if s.Intn(4) > 0 {
				v.Raw = s.object(3)
			}
		},
		func(v *apiextensionsv1.JSON, _ randfill.Continue) {
			if s.Intn(4) > 0 {
				v.Raw = s.value(3)
			}
		},
		func(v *runtimehooksv1.ResponseStatus, _ randfill.Continue) {
			*v = pick(s, "", runtimehooksv1.ResponseStatusSuccess, runtimehooksv1.ResponseStatusFailure)
		},
		func(v *runtimehooksv1.FailurePolicy, _ randfill.Continue) {
			*v = pick(s, runtimehooksv1.FailurePolicyFail, runtimehooksv1.FailurePolicyIgnore)
		},
		func(v *runtimehooksv1.PatchType, _ randfill.Continue) {
			*v = pick(s, "", runtimehooksv1.JSONPatchType, runtimehooksv1.JSONMergePatchType)
		},
		func(v *[]*runtimehooksv1.ValidateTopologyRequestItem, c randfill.Continue) {
			if s.Intn(4) == 0 {
				return
			}
			*v = make([]*runtimehooksv1.ValidateTopologyRequestItem, s.Intn(4))
			for i := range *v {
				(*v)[i] = &runtimehooksv1.ValidateTopologyRequestItem{}
				c.Fill((*v)[i])
			}
		},
		maybe[runtimehooksv1.Patch](s), maybe[runtimehooksv1.CanUpdateMachineRequestObjects](s),
		maybe[runtimehooksv1.CanUpdateMachineSetRequestObjects](s), maybe[runtimehooksv1.UpdateMachineRequestObjects](s),
		maybe[clusterv1.ClusterClassVariableMetadata](s), //nolint:staticcheck // deprecated, and part of the contract
		maybe[clusterv1.VariableSchema](s),
		maybe[runtimehooksv1.HolderReference](s),
	)
	return s
}

// maybe leaves one value in four empty.
func maybe[T any](s *source) func(*T, randfill.Continue) {
	return func(v *T, c randfill.Continue) {
		if s.Intn(4) > 0 {
			c.FillNoCustom(v)
		}
	}
}

func pick[T any](s *source, from ...T) T { return from[s.Intn(len(from))] }

// envelope returns a random value of a request or an answer, with its kind and apiVersion.
func (s *source) envelope(e envelope) any {
	v := reflect.New(e.upstream)
	s.fill.Fill(v.Interface())
	v.Elem().FieldByName("TypeMeta").Set(reflect.ValueOf(metav1.TypeMeta{Kind: e.name, APIVersion: hook.APIVersion}))
	return v.Interface()
}

// text makes a string, empty at times, of everything that is written in a special way, and more.
func (s *source) text(v *string, _ randfill.Continue) {
	*v = ""
	pieces := []string{"a", "name", "v1.34.2", "\"", "\\", "/", "<", ">", "&", "\n", "\r", "\t", "\b", "\f", "\x00",
		"\x1f", "\x7f", "é", "名", "\u2028",
		"\u2029", "\u202a", "😀", "\ufffd", "{", "]", ",", ":", "cluster.x-k8s.io/v1beta2"}
	for range s.Intn(6) {
		*v += pick(s, pieces...)
	}
}

// value makes a JSON value other than null, as json.Marshal writes it.
func (s *source) value(depth int) json.RawMessage {
	switch n := s.Intn(8); {
	case depth > 0 && n < 3:
		return s.object(depth)
	case depth > 0 && n == 3:
		list := []json.RawMessage{}
		for range s.Intn(4) {
			list = append(list, s.value(depth-1))
		}
		return marshal(list)
	case n == 4:
		return json.RawMessage(pick(s, "true", "false"))
	case n < 7:
		// Integers above 2^53 and numbers that a float64 would write in another way.
		return json.RawMessage(pick(s, "0", "-0", "1.0", "1e3", "-12.50E-7", "9007199254740993",
			"18446744073709551615", "123456789012345678901234567890", "1E400"))
	}
	var text string
	s.text(&text, randfill.Continue{})
	return marshal(text)
}

// object makes a JSON object.
func (s *source) object(depth int) json.RawMessage {
	out := []byte{'{'}
	for i := range s.Intn(5) {
		if i > 0 {
			out = append(out, ',')
		}
		out = append(out, fmt.Sprintf(`"m%d":`, s.Intn(100))...)
		if s.Intn(10) == 0 {
			out = append(out, "null"...)
		} else {
			out = append(out, s.value(depth-1)...)
		}
	}
	return append(out, '}')
}

func marshal(v any) json.RawMessage {
	out, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return out
}

// failf shows what went wrong and how to see it again.
func failf(t *testing.T, seed int64, body []byte, format string, args ...any) {
	t.Helper()
	const most = 4 << 10
	if len(body) > most {
		body = body[:most]
	}
	t.Fatalf("seed %d: %s\nbody: %s", seed, fmt.Sprintf(format, args...), body)
}
