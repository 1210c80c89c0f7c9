// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package extensionpolicy

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/hookgate/hookgate/api/v1alpha1"
	"github.com/hookgate/hookgate/catalog"
)

// checkRelease returns the mistakes in clusterAPIRelease: a release that was not compared with later ones, or one that
// never sent objects of the clusterAPIVersion beside it.
func checkRelease(spec *v1alpha1.ExtensionPolicySpec, path *field.Path) field.ErrorList {
	if spec.ClusterAPIRelease == "" {
		return nil
	}
	at := path.Child("clusterAPIRelease")
	known := catalog.ComparedReleases()
	if !slices.Contains(known, spec.ClusterAPIRelease) {
		return field.ErrorList{field.NotSupported(at, spec.ClusterAPIRelease, known)}
	}
	r, err := catalog.ClusterAPIReleaseOf(spec.ClusterAPIRelease)
	if v := string(spec.ClusterAPIVersion); err == nil && v != "" && !r.Sends(v) {
		return field.ErrorList{field.Invalid(at, r.Name, fmt.Sprintf("contradicts clusterAPIVersion: Cluster API %s never "+
			"sends objects of %s; leave clusterAPIVersion out", r.Name, v))}
	}
	return nil
}
