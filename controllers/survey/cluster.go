// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package survey

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	runtimev1 "sigs.k8s.io/cluster-api/api/runtime/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/hookgate/hookgate/api/v1alpha1"
	"github.com/hookgate/hookgate/catalog"
	"github.com/hookgate/hookgate/controllers/extensionconfig"
	"github.com/hookgate/hookgate/convert"
	"github.com/hookgate/hookgate/policy"
	"github.com/hookgate/hookgate/preflight"
)

// providerKind is the kind of clusterctl's inventory objects, one for each installed provider.
var providerKind = schema.GroupVersionKind{Group: "clusterctl.cluster.x-k8s.io", Version: "v1alpha3", Kind: "Provider"}

// ErrNoProvider reports a cluster in which clusterctl has not installed Cluster API.
var ErrNoProvider = errors.New("there is no Provider of clusterctl for Cluster API")

// Cluster reads the registrations of a cluster. It writes nothing.
type Cluster struct {
	client      client.Client
	group       string
	watchFilter string
}

// NewCluster returns a Cluster for the ExtensionConfigs of an API group. With a watch filter, only ExtensionConfigs and
// policies with that label cluster.x-k8s.io/watch-filter count. It does no I/O.
func NewCluster(config *rest.Config, group, watchFilter string) (*Cluster, error) {
	scheme := runtime.NewScheme()
	version := schema.GroupVersion{Group: group, Version: runtimev1.GroupVersion.Version}
	scheme.AddKnownTypes(version, &runtimev1.ExtensionConfig{}, &runtimev1.ExtensionConfigList{})
	metav1.AddToGroupVersion(scheme, version)
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		return nil, err
	}
	// The resources are known; discovering them could take another permission.
	mapper := meta.NewDefaultRESTMapper(nil)
	mapper.Add(version.WithKind("ExtensionConfig"), meta.RESTScopeRoot)
	mapper.Add(v1alpha1.GroupVersion.WithKind("ExtensionPolicy"), meta.RESTScopeRoot)
	mapper.Add(providerKind, meta.RESTScopeNamespace)
	mapper.Add(convert.CRDKind, meta.RESTScopeRoot)
	for _, version := range clusterVersions {
		mapper.AddSpecific(version.WithKind("Cluster"), version.WithResource("clusters"),
			version.WithResource("cluster"), meta.RESTScopeNamespace)
	}
	c, err := client.New(config, client.Options{Scheme: scheme, Mapper: mapper})
	if err != nil {
		return nil, err
	}
	return &Cluster{client: c, group: group, watchFilter: watchFilter}, nil
}

// Inventory returns the registrations. Its errors name missing permissions and missing kinds.
func (c *Cluster) Inventory(ctx context.Context, hooks *catalog.Catalog) (preflight.Inventory, error) {
	v := preflight.Inventory{WatchFilter: c.watchFilter}
	var options []client.ListOption
	if c.watchFilter != "" {
		options = append(options, client.MatchingLabels{clusterv1.WatchLabel: c.watchFilter})
	}
	var configs runtimev1.ExtensionConfigList
	if err := c.list(ctx, &configs, "extensionconfigs", c.group, options...); err != nil {
		return v, c.explained(err)
	}
	var list v1alpha1.ExtensionPolicyList
	// Without the kind, there are no policies.
	err := c.list(ctx, &list, "extensionpolicies", v1alpha1.GroupVersion.Group, options...)
	if err != nil && !absent(err) {
		return v, err
	}
	for i := range configs.Items {
		if config := &configs.Items[i]; config.DeletionTimestamp.IsZero() {
			v.Extensions = append(v.Extensions, registered(config, hooks))
		}
	}
	compiler, err := policy.NewCompiler()
	if err != nil {
		return v, err
	}
	var policies []locatedPolicy
	for i := range list.Items {
		item := &list.Items[i]
		if !item.DeletionTimestamp.IsZero() {
			continue
		}
		p, errs := extensionconfig.ConvertPolicy(item, compiler)
		if len(errs) == 0 {
			policies = append(policies, locatedPolicy{Policy: p})
		} else if ignored, states := invalid(item, errs.ToAggregate().Error()); states {
			v.Ignored = append(v.Ignored, ignored)
		}
	}
	decide(&v, policies)
	return v, c.references(ctx, &v)
}

// registered returns the extension that the status of an ExtensionConfig describes.
func registered(config *runtimev1.ExtensionConfig, hooks *catalog.Catalog) preflight.Extension {
	x := preflight.Extension{Name: config.Name}
	handlers, err := fromStatus(config, hooks, func(int) preflight.Location { return preflight.Location{} })
	x.Handlers = handlers
	discovered := meta.FindStatusCondition(config.Status.Conditions, runtimev1.ExtensionConfigDiscoveredCondition)
	switch {
	case err != nil:
		x.Undiscovered = "the handlers of the extension are not known: " + err.Error()
	case len(handlers) > 0 || discovered != nil && discovered.Status == metav1.ConditionTrue:
		return x
	case discovered != nil:
		x.Undiscovered = "the handlers of the extension are not known: it has not been discovered: " +
			discovered.Message
	default:
		x.Undiscovered = "the handlers of the extension are not known: it has not been discovered"
	}
	x.Discover = "see its condition Discovered, and ask again when that is True"
	return x
}

// RunningClusterAPI returns the version of Cluster API that clusterctl has installed, and the name of its Provider, as
// namespace/name. Without a Provider, it returns ErrNoProvider.
func (c *Cluster) RunningClusterAPI(ctx context.Context) (version, provider string, err error) {
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(providerKind.GroupVersion().WithKind(providerKind.Kind + "List"))
	if err := c.list(ctx, list, "providers", providerKind.Group); err != nil {
		if absent(err) {
			err = ErrNoProvider
		}
		return "", "", err
	}
	found := map[string]string{}
	for i := range list.Items {
		text := func(field string) string {
			s, _, _ := unstructured.NestedString(list.Items[i].Object, field)
			return s
		}
		if text("type") == "CoreProvider" && text("providerName") == "cluster-api" {
			found[list.Items[i].GetNamespace()+"/"+list.Items[i].GetName()] = text("version")
		}
	}
	names := make([]string, 0, len(found))
	for name := range found {
		names = append(names, name)
	}
	slices.Sort(names)
	switch len(names) {
	case 0:
		return "", "", ErrNoProvider
	case 1:
		return found[names[0]], names[0], nil
	}
	return "", "", fmt.Errorf("there are several Providers for Cluster API: %s", strings.Join(names, ", "))
}

func (c *Cluster) list(
	ctx context.Context, into client.ObjectList, resource, group string, options ...client.ListOption,
) error {
	err := c.client.List(ctx, into, options...)
	switch {
	case err == nil:
		return nil
	case apierrors.IsForbidden(err):
		return &forbidden{resource: resource, group: group, cause: err}
	case apierrors.IsUnauthorized(err):
		return fmt.Errorf("list %s.%s: not authenticated: %w", resource, group, err)
	}
	return fmt.Errorf("list %s.%s: %w", resource, group, err)
}

// explained returns the error of listing ExtensionConfigs, with what to do if there is no such kind.
func (c *Cluster) explained(err error) error {
	if !absent(err) {
		return err
	}
	return fmt.Errorf("%w: the API server has no ExtensionConfig in %s/%s; install Cluster API or the gateway, or name "+
		"another group with --extension-config-group", err, c.group, runtimev1.GroupVersion.Version)
}

// absent reports whether the API server lacks a kind.
func absent(err error) bool { return apierrors.IsNotFound(err) || meta.IsNoMatchError(err) }
