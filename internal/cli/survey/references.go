// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package survey

import (
	"context"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/hookgate/hookgate/internal/cli/preflight"
	"github.com/hookgate/hookgate/internal/contract/convert"
)

// clusterVersions are the versions in which to list Clusters, in order of preference.
var clusterVersions = []schema.GroupVersion{
	{Group: "cluster.x-k8s.io", Version: "v1beta2"}, {Group: "cluster.x-k8s.io", Version: "v1beta1"},
}

// page is the number of objects in one list request.
const page = 500

// references checks whether the gateway can resolve the versions of the references of Clusters. It lists nothing unless
// a handler understands v1beta1.
func (c *Cluster) references(ctx context.Context, v *preflight.Inventory) error {
	if !convertsClusters(v) {
		return nil
	}
	kinds, err := c.referredTo(ctx)
	var definitions []convert.CRD
	if err == nil && len(kinds) > 0 {
		definitions, err = c.definitions(ctx)
	}
	if apierrors.IsForbidden(err) {
		v.Unchecked = err.Error()
		return nil
	}
	if err != nil {
		return err
	}
	known := convert.NewReferences()
	known.Set(definitions)
	for kind := range kinds {
		if _, err := known.APIVersion(kind.Group, kind.Kind); err != nil {
			v.Unresolved = append(v.Unresolved, err.Error())
		}
	}
	slices.Sort(v.Unresolved)
	return nil
}

// convertsClusters reports whether a handler may get Clusters of v1beta1 by conversion.
func convertsClusters(v *preflight.Inventory) bool {
	converted := func(h preflight.Handler) bool { return h.Understands() == convert.V1Beta1 }
	return slices.ContainsFunc(v.Extensions,
		func(x preflight.Extension) bool { return slices.ContainsFunc(x.Handlers, converted) })
}

// referredTo returns the kinds that the Clusters refer to.
func (c *Cluster) referredTo(ctx context.Context) (map[schema.GroupKind]bool, error) {
	kinds := map[schema.GroupKind]bool{}
	for _, version := range clusterVersions {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(version.WithKind("ClusterList"))
		err := c.pages(ctx, list, "clusters", version.Group, func() {
			for i := range list.Items {
				for _, name := range []string{"infrastructureRef", "controlPlaneRef"} {
					text := func(member string) string {
						s, _, _ := unstructured.NestedString(list.Items[i].Object, "spec", name, member)
						return s
					}
					group := text("apiGroup")
					if apiVersion := text("apiVersion"); apiVersion != "" {
						group, _, _ = strings.Cut(apiVersion, "/")
					}
					if kind := text("kind"); kind != "" {
						kinds[schema.GroupKind{Group: group, Kind: kind}] = true
					}
				}
			}
		})
		if !absent(err) {
			return kinds, err
		}
	}
	return kinds, nil
}

// definitions returns the names and labels of the CustomResourceDefinitions.
func (c *Cluster) definitions(ctx context.Context) ([]convert.CRD, error) {
	var definitions []convert.CRD
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(convert.CRDKind.GroupVersion().WithKind(convert.CRDKind.Kind + "List"))
	err := c.pages(ctx, list, "customresourcedefinitions", convert.CRDKind.Group, func() {
		for i := range list.Items {
			definitions = append(definitions, convert.CRD{Name: list.Items[i].Name, Labels: list.Items[i].Labels})
		}
	})
	return definitions, err
}

// pages lists objects page by page, and calls each when a page is in list.
func (c *Cluster) pages(ctx context.Context, list client.ObjectList, resource, group string, each func()) error {
	for more := ""; ; {
		if err := c.list(ctx, list, resource, group, client.Limit(page), client.Continue(more)); err != nil {
			return err
		}
		each()
		if more = list.GetContinue(); more == "" {
			return nil
		}
	}
}

// forbidden is the error of a list that is not allowed. Its text names the missing permission.
type forbidden struct {
	resource, group string
	cause           error
}

func (e *forbidden) Error() string {
	return fmt.Sprintf("list %s.%s: forbidden: grant the verb list on %s of the API group %s, in all namespaces",
		e.resource, e.group, e.resource, e.group)
}

func (e *forbidden) Unwrap() error { return e.cause }
