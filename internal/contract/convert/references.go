// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package convert

import (
	"slices"
	"strings"
	"sync/atomic"

	"github.com/gobuffalo/flect"
	apischema "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/version"

	"github.com/hookgate/hookgate/hook"
	"github.com/hookgate/hookgate/internal/base/text"
)

// contracts are the labels of a CustomResourceDefinition that state which of its versions follow which contract of
// Cluster API, the newest contract first. Cluster API v1.11 and later decide in this order.
var contracts = [...]string{"cluster.x-k8s.io/v1beta2", "cluster.x-k8s.io/v1beta1"}

// builtin holds the kinds of Cluster API's own providers, and of Hookgate as an infrastructure provider, with their
// versions for the newest contract. It is used for kinds whose CustomResourceDefinitions have not been read.
var builtin = map[string]string{
	"kubeadmconfigs.bootstrap.cluster.x-k8s.io":                  "v1beta2",
	"kubeadmconfigtemplates.bootstrap.cluster.x-k8s.io":          "v1beta2",
	"kubeadmcontrolplanes.controlplane.cluster.x-k8s.io":         "v1beta2",
	"kubeadmcontrolplanetemplates.controlplane.cluster.x-k8s.io": "v1beta2",
	"devclusters.infrastructure.cluster.x-k8s.io":                "v1beta2",
	"devclustertemplates.infrastructure.cluster.x-k8s.io":        "v1beta2",
	"devmachines.infrastructure.cluster.x-k8s.io":                "v1beta2",
	"devmachinetemplates.infrastructure.cluster.x-k8s.io":        "v1beta2",
	"devmachinepools.infrastructure.cluster.x-k8s.io":            "v1beta2",
	"devmachinepooltemplates.infrastructure.cluster.x-k8s.io":    "v1beta2",
	"dockerclusters.infrastructure.cluster.x-k8s.io":             "v1beta2",
	"dockerclustertemplates.infrastructure.cluster.x-k8s.io":     "v1beta2",
	"dockermachines.infrastructure.cluster.x-k8s.io":             "v1beta2",
	"dockermachinetemplates.infrastructure.cluster.x-k8s.io":     "v1beta2",
	"dockermachinepools.infrastructure.cluster.x-k8s.io":         "v1beta2",
	"dockermachinepooltemplates.infrastructure.cluster.x-k8s.io": "v1beta2",
	"hookgateclusteridentities.infrastructure.hookgate.dev":      "v1alpha1",
	"hookgateclusters.infrastructure.hookgate.dev":               "v1alpha1",
	"hookgateclustertemplates.infrastructure.hookgate.dev":       "v1alpha1",
	"hookgatemachines.infrastructure.hookgate.dev":               "v1alpha1",
	"hookgatemachinetemplates.infrastructure.hookgate.dev":       "v1alpha1",
	"hookgatemachinepools.infrastructure.hookgate.dev":           "v1alpha1",
	"hookgatemachinepooltemplates.infrastructure.hookgate.dev":   "v1alpha1",
}

// maxKind and maxGroup are the lengths of the longest names of a kind and of a group. The time that a plural takes may
// grow with the square of the length.
const (
	maxKind  = validation.DNS1123LabelMaxLength
	maxGroup = validation.DNS1123SubdomainMaxLength
)

// CRDKind is the kind whose objects References reads.
var CRDKind = apischema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"}

// CRD is the part of a CustomResourceDefinition that References uses.
type CRD struct {
	Name   string            // plural.group
	Labels map[string]string // metadata.labels
}

// References resolves the versions of references. References of v1beta1 name group and version, references of v1beta2
// only the group; the version follows from the contract labels of the CustomResourceDefinition. It is safe for
// concurrent use.
type References struct {
	// versions are by the name of a CustomResourceDefinition, "" if its labels name no version. A map is not changed.
	versions atomic.Pointer[map[string]string]
}

// NewReferences returns a References that only knows the kinds of Cluster API's own providers and of Hookgate.
func NewReferences() *References {
	r := &References{}
	r.Set(nil)
	return r
}

// Set replaces the known CustomResourceDefinitions.
func (r *References) Set(crds []CRD) {
	versions := make(map[string]string, len(crds))
	for _, crd := range crds {
		versions[crd.Name] = contractVersion(crd.Labels)
	}
	r.versions.Store(&versions)
}

// APIVersion returns group/version of the newest version of a kind that follows the newest contract the kind has a
// label for, which is how Cluster API decides. Its error is of kind Conversion.
func (r *References) APIVersion(group, kind string) (string, error) {
	if len(kind) > maxKind || len(group) > maxGroup {
		return "", hook.Errorf(hook.Conversion, "cannot look up the version of kind %q in group %q: the name of the kind "+
			"or of the group is too long", text.Cut(kind, maxKind), text.Cut(group, maxGroup))
	}
	name := flect.Pluralize(strings.ToLower(kind)) + "." + group
	v, ok := (*r.versions.Load())[name]
	if !ok {
		if v, ok = builtin[name]; !ok {
			return "", hook.Errorf(hook.Conversion, "cannot look up the version of kind %q in group %q: install the "+
				"CustomResourceDefinition %q in the cluster, or add its manifest to the directory of ExtensionConfigs",
				kind, group, name)
		}
	}
	if v == "" {
		return "", hook.Errorf(hook.Conversion, "cannot look up the version of kind %q in group %q: the "+
			"CustomResourceDefinition %q has neither label %s nor %s", kind, group, name, contracts[0], contracts[1])
	}
	return group + "/" + v, nil
}

// HasContract reports whether the labels of a CustomResourceDefinition name its version for a contract of Cluster API.
func HasContract(d CRD) bool { return contractVersion(d.Labels) != "" }

// contractVersion returns the newest version of the newest contract, or "".
func contractVersion(labels map[string]string) string {
	for _, contract := range contracts {
		if versions := labels[contract]; versions != "" {
			return slices.MaxFunc(strings.Split(versions, "_"), version.CompareKubeAwareVersionStrings)
		}
	}
	return ""
}
