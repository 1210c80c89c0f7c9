// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package survey

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

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
	"github.com/hookgate/hookgate/internal/base/problems"
	"github.com/hookgate/hookgate/internal/calls/policy"
	"github.com/hookgate/hookgate/internal/cli/preflight"
	"github.com/hookgate/hookgate/internal/contract/convert"
	"github.com/hookgate/hookgate/internal/kinds"
	"github.com/hookgate/hookgate/internal/kinds/allkinds"
	"github.com/hookgate/hookgate/internal/kinds/extensionpolicy"
	"github.com/hookgate/hookgate/internal/kinds/handlerchain"
	"github.com/hookgate/hookgate/internal/kinds/hookjob"
	"github.com/hookgate/hookgate/internal/kinds/hookrule"
	"github.com/hookgate/hookgate/internal/kinds/rollout"
	"github.com/hookgate/hookgate/registry"
)

// providerKind is the kind of clusterctl's inventory objects, one for each installed provider.
var providerKind = schema.GroupVersionKind{Group: "clusterctl.cluster.x-k8s.io", Version: "v1alpha3", Kind: "Provider"}

// ErrNoProvider reports a cluster in which clusterctl has not installed Cluster API.
var ErrNoProvider = errors.New("there is no clusterctl Provider object for Cluster API")

// Cluster reads the registrations of a cluster. It writes nothing but what Record does.
type Cluster struct {
	client      client.Client
	groups      []string
	watchFilter string
}

// NewCluster returns a Cluster for the ExtensionConfigs of API groups, one of which must exist. With a watch filter,
// only ExtensionConfigs and policies with that label cluster.x-k8s.io/watch-filter count. It does no I/O.
func NewCluster(config *rest.Config, watchFilter string, groups ...string) (*Cluster, error) {
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		return nil, err
	}
	// The resources are known; discovering them could take another permission.
	mapper := meta.NewDefaultRESTMapper(nil)
	for _, group := range groups {
		mapper.Add(kindIn(group), meta.RESTScopeRoot)
	}
	for _, k := range allkinds.Own() {
		mapper.Add(v1alpha1.GroupVersion.WithKind(k.Name), meta.RESTScopeRoot)
	}
	mapper.Add(providerKind, meta.RESTScopeNamespace)
	mapper.Add(deploymentKind, meta.RESTScopeNamespace)
	mapper.Add(convert.CRDKind, meta.RESTScopeRoot)
	for _, version := range clusterVersions {
		mapper.AddSpecific(version.WithKind("Cluster"), version.WithResource("clusters"),
			version.WithResource("cluster"), meta.RESTScopeNamespace)
	}
	c, err := client.New(config, client.Options{Scheme: scheme, Mapper: mapper})
	if err != nil {
		return nil, err
	}
	return &Cluster{client: c, groups: groups, watchFilter: watchFilter}, nil
}

// kindIn returns the kind of ExtensionConfigs in an API group.
func kindIn(group string) schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: group, Version: runtimev1.GroupVersion.Version, Kind: "ExtensionConfig"}
}

// configs returns the ExtensionConfigs of each group. Without the kind, a group has none, unless that is so of all.
func (c *Cluster) configs(
	ctx context.Context, options ...client.ListOption,
) (map[string][]runtimev1.ExtensionConfig, error) {
	found := map[string][]runtimev1.ExtensionConfig{}
	var missing error
	for _, group := range c.groups {
		list := &unstructured.UnstructuredList{} // the Go type has one group
		list.SetGroupVersionKind(kindIn(group).GroupVersion().WithKind("ExtensionConfigList"))
		switch err := c.list(ctx, list, "extensionconfigs", group, options...); {
		case absent(err):
			missing = err
			continue
		case err != nil:
			return nil, err
		}
		items := make([]runtimev1.ExtensionConfig, len(list.Items))
		for i := range list.Items {
			err := runtime.DefaultUnstructuredConverter.FromUnstructured(list.Items[i].Object, &items[i])
			if err != nil {
				return nil, fmt.Errorf("ExtensionConfig %s of %s: %w", list.Items[i].GetName(), group, err)
			}
		}
		found[group] = items
	}
	if len(found) == 0 {
		return nil, c.explained(missing)
	}
	return found, nil
}

// Inventory returns the registrations. Its errors name missing permissions and missing kinds.
func (c *Cluster) Inventory(ctx context.Context, hooks *catalog.Catalog) (preflight.Inventory, error) {
	v := preflight.Inventory{WatchFilter: c.watchFilter}
	var options []client.ListOption
	if c.watchFilter != "" {
		options = append(options, client.MatchingLabels{clusterv1.WatchLabel: c.watchFilter})
	}
	configs, err := c.configs(ctx, options...)
	if err != nil {
		return v, err
	}
	for _, group := range c.groups {
		for i := range configs[group] {
			v.Registrations = append(v.Registrations, registration(group, &configs[group][i]))
			if config := &configs[group][i]; config.DeletionTimestamp.IsZero() {
				x := registered(config, hooks)
				x.Group = group
				v.Extensions = append(v.Extensions, x)
				v.OfGateways = v.OfGateways || len(c.groups) > 1 && group != runtimev1.GroupVersion.Group
			}
		}
	}
	c.direct(&v, hooks)
	compiler, err := policy.NewCompiler()
	if err != nil {
		return v, err
	}
	types, err := policy.NewTypes(hooks)
	if err != nil {
		return v, err
	}
	var found own
	rules := allkinds.Rules(allkinds.Config{
		Hooks: hooks, Conditions: compiler, Types: types, Rules: hookrule.NewCompiler(hooks, compiler, types, time.Now),
		Jobs: hookjob.NewCompiler(hooks, compiler, types, nil, nil),
	})
	for i := range rules {
		if rules[i].Name == rollout.Kind {
			continue // its members are judged for themselves
		}
		objects, err := c.objects(ctx, &rules[i].Kind, options...)
		if err != nil {
			return v, err
		}
		for _, o := range objects {
			v.Registrations = append(v.Registrations, registration(v1alpha1.GroupVersion.Group, o))
			if o.GetDeletionTimestamp().IsZero() {
				found.add(&v, &rules[i], o)
			}
		}
	}
	decide(&v, found.policies)
	decideChains(&v, found.policies, found.locals, found.chains, hooks)
	return v, c.references(ctx, &v)
}

// objects returns the objects of a kind of Hookgate's own. Without the kind, there are none.
func (c *Cluster) objects(
	ctx context.Context, of *kinds.Kind, options ...client.ListOption,
) (objects []kinds.Object, err error) {
	list, _ := of.NewList().(client.ObjectList)
	resource, _ := meta.UnsafeGuessKindToResource(v1alpha1.GroupVersion.WithKind(of.Name))
	if err := c.list(ctx, list, resource.Resource, resource.Group, options...); err != nil {
		if absent(err) {
			err = nil
		}
		return nil, err
	}
	err = meta.EachListItem(list, func(o runtime.Object) error {
		objects = append(objects, o.(kinds.Object))
		return nil
	})
	return objects, err
}

// own are the valid objects of Hookgate's own kinds.
type own struct {
	policies []locatedPolicy
	locals   []registry.Registration
	chains   []locatedChain
}

// add compiles an object, and adds it, or to v what is wrong with it.
func (found *own) add(v *preflight.Inventory, rules *kinds.Rules, o kinds.Object) {
	compiled, errs := rules.Compile(o)
	if len(errs) > 0 {
		reason := problems.Join(errs).Error()
		switch rules.Name {
		case extensionpolicy.Kind:
			if ignored, states := invalid(o.(*v1alpha1.ExtensionPolicy), reason); states {
				v.Ignored = append(v.Ignored, ignored)
			}
		case handlerchain.Kind:
			v.Chains = append(v.Chains, preflight.Chain{Name: o.GetName(), Broken: reason})
		default:
			v.Unreadable = append(v.Unreadable, preflight.Unreadable{
				Object: fmt.Sprintf("%s %q", rules.Name, o.GetName()), Reason: reason,
			})
		}
		return
	}
	switch c := compiled.(type) {
	case extensionpolicy.Policy:
		found.policies = append(found.policies, locatedPolicy{Policy: c})
	case registry.Chain:
		found.chains = append(found.chains, locatedChain{Chain: c})
	case registry.Registration:
		found.locals = append(found.locals, c)
		v.Extensions = append(v.Extensions, local(&c, preflight.Location{}))
	}
}

// registration names an object as it is now. deploy/upgrade-guard/registrations.yaml does the same.
func registration(group string, o client.Object) string {
	return group + "/" + o.GetName() + "@" + o.GetResourceVersion()
}

// direct marks the extensions that Cluster API calls itself: those of its own group, if the gateway stands beside it
// and reads another group. It does so if that group has ExtensionConfigs, or Cluster API calls a gateway.
func (c *Cluster) direct(v *preflight.Inventory, hooks *catalog.Catalog) {
	beside := v.OfGateways || len(c.groups) > 1 && slices.ContainsFunc(v.Extensions,
		func(x preflight.Extension) bool { return preflight.IsGateway(&x, hooks) })
	for i := range v.Extensions {
		x := &v.Extensions[i]
		x.Direct = beside && x.Group == runtimev1.GroupVersion.Group && !preflight.IsGateway(x, hooks)
		for j := range x.Handlers {
			if x.Direct {
				x.Handlers[j].States = "" // which only a gateway reads
			}
		}
	}
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
	x.Discover = "see its condition Discovered, and try again when that is True"
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

// explained returns the error of an API server without ExtensionConfigs, with what to do.
func (c *Cluster) explained(err error) error {
	version := "/" + runtimev1.GroupVersion.Version
	other := ""
	if len(c.groups) == 1 {
		other = ", or name another group with --extension-config-group"
	}
	return fmt.Errorf("%w: the API server has no ExtensionConfig in %s; install Cluster API or the gateway%s",
		err, strings.Join(c.groups, version+" and ")+version, other)
}

// absent reports whether the API server lacks a kind.
func absent(err error) bool { return apierrors.IsNotFound(err) || meta.IsNoMatchError(err) }
