// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package random makes Clusters, Machines, MachineSets and MachinePools of both versions that have anything in any member, for
// comparing conversions. It leaves the comparison to others. A Generator is not safe for concurrent use.
package random

import (
	"encoding/json"
	"fmt"
	"math/rand"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/apitesting/fuzzer"
	metafuzzer "k8s.io/apimachinery/pkg/apis/meta/fuzzer"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	runtimeserializer "k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/util/intstr"
	clusterv1beta1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/contract"
	"sigs.k8s.io/randfill"

	"github.com/hookgate/hookgate/internal/contract/convert"
)

// The versions that there are of kinds that random objects refer to.
var kinds = []schema.GroupVersionKind{
	{Group: "bootstrap.cluster.x-k8s.io", Version: "v1beta2", Kind: "KubeadmConfig"},
	{Group: "controlplane.cluster.x-k8s.io", Version: "v1beta2", Kind: "KubeadmControlPlane"},
	{Group: "infrastructure.cluster.x-k8s.io", Version: "v1beta2", Kind: "AcmeCluster"},
	{Group: "infrastructure.cluster.x-k8s.io", Version: "v1alpha7", Kind: "AcmeMachine"},
	{Group: "policy.example.com", Version: "v1", Kind: "AcmePolicy"},
}

// machinePhases are some of those that a Machine can have. Updating is new in v1beta2.
var machinePhases = []string{"", "Provisioning", "Running", "Updating", "Deleting"}

// Kinds are all kinds of objects that a Generator makes.
var Kinds = []string{"Cluster", "Machine", "MachineSet", "MachinePool"}

// References knows the versions of what random objects refer to.
func References() *convert.References {
	refs := convert.NewReferences()
	refs.Set(CRDs())
	return refs
}

// CRDs are the definitions of what random objects refer to.
func CRDs() []convert.CRD {
	var crds []convert.CRD
	for _, k := range kinds {
		crds = append(crds, convert.CRD{
			Name: contract.CalculateCRDName(k.Group, k.Kind),
			Labels: map[string]string{"cluster.x-k8s.io/v1beta1": "v1alpha1",
				"cluster.x-k8s.io/v1beta2": "v1alpha2_" + k.Version},
		})
	}
	return crds
}

// APIVersion is the same for Cluster API's own converters.
func APIVersion(gk schema.GroupKind) (string, error) {
	for _, k := range kinds {
		if k.GroupKind() == gk {
			return k.GroupVersion().String(), nil
		}
	}
	return "", fmt.Errorf("no kind %v", gk)
}

// Generator makes objects, the same ones for the same seed.
type Generator struct {
	filler *randfill.Filler
}

// New returns a Generator.
func New(seed int64) *Generator {
	codecs := runtimeserializer.NewCodecFactory(runtime.NewScheme())
	filler := fuzzer.FuzzerFor(fuzzer.MergeFuzzerFuncs(metafuzzer.Funcs, funcs), rand.NewSource(seed), codecs)
	return &Generator{filler: filler.NilChance(0.3).NumElements(0, 3)}
}

// Object returns a new object: a pointer to the Go type of a kind in a version ("v1beta1" or "v1beta2"), apiVersion
// and kind included.
func (g *Generator) Object(kind, version string) runtime.Object {
	object := Empty(kind, version)
	g.filler.Fill(object)
	object.GetObjectKind().SetGroupVersionKind(schema.GroupVersionKind{Group: clusterv1.GroupVersion.Group,
		Version: version, Kind: kind})
	return object
}

// JSON returns a new object as Cluster API would write it.
func (g *Generator) JSON(kind, version string) ([]byte, error) {
	return json.Marshal(g.Object(kind, version))
}

// Empty returns an empty object. It panics if there is no such kind or version.
func Empty(kind, version string) runtime.Object {
	switch kind + "." + version {
	case "Cluster.v1beta1":
		return &clusterv1beta1.Cluster{}
	case "Cluster.v1beta2":
		return &clusterv1.Cluster{}
	case "Machine.v1beta1":
		return &clusterv1beta1.Machine{}
	case "Machine.v1beta2":
		return &clusterv1.Machine{}
	case "MachineSet.v1beta1":
		return &clusterv1beta1.MachineSet{}
	case "MachineSet.v1beta2":
		return &clusterv1.MachineSet{}
	case "MachinePool.v1beta1":
		return &clusterv1beta1.MachinePool{}
	case "MachinePool.v1beta2":
		return &clusterv1.MachinePool{}
	}
	panic(fmt.Sprintf("random: no %s of %s", kind, version))
}

// funcs fill what cannot be filled with just anything.
func funcs(runtimeserializer.CodecFactory) []any {
	return []any{
		func(in *clusterv1.ContractVersionedObjectReference, c randfill.Continue) {
			if c.Bool() {
				k := kinds[c.Intn(len(kinds))]
				*in = clusterv1.ContractVersionedObjectReference{APIGroup: k.Group, Kind: k.Kind, Name: c.String(20)}
			}
		},
		// Some references are as Cluster API writes them, others have what v1beta2 cannot express.
		func(in *corev1.ObjectReference, c randfill.Continue) {
			k := kinds[c.Intn(len(kinds))]
			*in = corev1.ObjectReference{APIVersion: k.GroupVersion().String(), Kind: k.Kind, Name: c.String(20),
				Namespace: "n"}
			if c.Intn(4) == 0 {
				c.FillNoCustom(in)
				in.APIVersion, in.Kind = schema.GroupVersion{Group: k.Group, Version: "v1"}.String(), k.Kind
			}
		},
		func(in **corev1.ObjectReference, c randfill.Continue) {
			if c.Intn(3) != 0 {
				*in = &corev1.ObjectReference{}
				c.Fill(*in)
			}
		},
		func(in *clusterv1beta1.MachineStatus, c randfill.Continue) {
			c.FillNoCustom(in)
			in.Phase = machinePhases[c.Intn(len(machinePhases))]
			if in.NodeRef != nil && c.Intn(4) != 0 {
				*in.NodeRef = corev1.ObjectReference{APIVersion: "v1", Kind: "Node", Name: c.String(20)}
			}
		},
		func(in *clusterv1.MachineStatus, c randfill.Continue) {
			c.FillNoCustom(in)
			in.Phase = machinePhases[c.Intn(len(machinePhases))]
			if c.Bool() {
				in.FailureDomain = ""
			}
		},
		func(in *metav1.ObjectMeta, c randfill.Continue) {
			c.FillNoCustom(in)
			in.Namespace = "n"
			in.ManagedFields = nil
		},
		func(in *apiextensionsv1.JSON, c randfill.Continue) {
			in.Raw = []byte([]string{`true`, `"text"`, `{"a":[1,2.50,{"b":null}]}`, `12345678901234567890`, `1e-7`,
				`[]`, `null`}[c.Intn(7)])
		},
		func(in *clusterv1.FailureDomain, c randfill.Continue) {
			c.FillNoCustom(in)
			in.Name = fmt.Sprintf("%08x", c.Uint32()) // unique
		},
		// Whole seconds, but for a few.
		func(in *metav1.Duration, c randfill.Continue) {
			in.Duration = time.Duration(c.Int63n(100_000)) * time.Second
			if c.Intn(8) == 0 {
				in.Duration += time.Duration(c.Int63n(1000)) * time.Millisecond
			}
		},
		func(in **intstr.IntOrString, c randfill.Continue) {
			switch c.Intn(3) {
			case 0:
				n := intstr.FromInt32(c.Int31n(50))
				*in = &n
			case 1:
				n := intstr.FromString(fmt.Sprintf("%d%%", c.Intn(100)))
				*in = &n
			}
		},
		func(in **metav1.Time, c randfill.Continue) {
			if c.Bool() {
				*in = &metav1.Time{}
				c.Fill(*in)
			}
		},
	}
}
