// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package survey

import (
	"context"
	"fmt"
	"strings"

	"golang.org/x/sync/errgroup"

	"github.com/hookgate/hookgate/catalog"
	"github.com/hookgate/hookgate/internal/base/limits"
	"github.com/hookgate/hookgate/internal/base/text"
	"github.com/hookgate/hookgate/internal/calls/extension"
	"github.com/hookgate/hookgate/internal/cli/preflight"
	"github.com/hookgate/hookgate/internal/contract/convert"
	"github.com/hookgate/hookgate/internal/sources/manifest"
	"github.com/hookgate/hookgate/registry"
)

// Discoverer reaches extensions. It must be safe for concurrent use.
type Discoverer interface {
	Discover(ctx context.Context, client registry.ClientConfig) (extension.Discovered, error)
}

// maxDiscoveries is the number of concurrent discoveries.
const maxDiscoveries = 8

// Directory returns the inventory of a directory of manifests. With a Discoverer, it asks the extensions for their
// handlers, each for at most limits.DiscoveryTimeout; without one, it reads the handlers from status.handlers of the
// manifests.
func Directory(
	ctx context.Context, dir string, hooks *catalog.Catalog, discoverer Discoverer,
) (preflight.Inventory, error) {
	manifests, err := manifest.Read(dir, hooks)
	if err != nil {
		return preflight.Inventory{}, err
	}
	var v preflight.Inventory
	for _, e := range manifests.Errors {
		v.Unreadable = append(v.Unreadable, preflight.Unreadable{
			Object: e.Object, Location: located(e.Place), Reason: e.Text,
		})
	}
	policies := make([]locatedPolicy, len(manifests.Policies))
	for i, p := range manifests.Policies {
		policies[i] = locatedPolicy{Policy: p.Policy, location: located(p.Place)}
	}
	v.Extensions = make([]preflight.Extension, len(manifests.ExtensionConfigs))
	speaks := protocols(policies)
	var group errgroup.Group
	group.SetLimit(maxDiscoveries)
	for i := range manifests.ExtensionConfigs {
		m, x := &manifests.ExtensionConfigs[i], &v.Extensions[i]
		*x = written(m, hooks)
		if discoverer == nil {
			continue
		}
		client := m.Extension.ClientConfig
		if client.Protocol == registry.REST {
			client.Protocol = speaks[x.Name]
		}
		group.Go(func() error {
			ask(ctx, discoverer, client, x)
			return nil
		})
	}
	_ = group.Wait() // failures are recorded in each extension
	rules := make([]registry.Registration, len(manifests.Rules))
	for i, r := range manifests.Rules {
		rules[i] = r.Rule
		v.Extensions = append(v.Extensions, local(&rules[i], located(r.Place)))
	}
	decide(&v, policies)
	chains := make([]locatedChain, len(manifests.Chains))
	for i, c := range manifests.Chains {
		chains[i] = locatedChain{Chain: c.Chain, location: located(c.Place)}
	}
	decideChains(&v, policies, rules, chains, hooks)
	definedReferences(&v, manifests.Definitions)
	return v, ctx.Err()
}

// maxDefinitions is the number of CustomResourceDefinitions that a finding names.
const maxDefinitions = 5

// definedReferences says which references of Clusters a gateway of the directory could convert. Which kinds Clusters
// refer to is not known there.
func definedReferences(v *preflight.Inventory, definitions []convert.CRD) {
	if !convertsClusters(v) {
		return
	}
	var usable []string
	for _, d := range definitions {
		_, group, _ := strings.Cut(d.Name, ".")
		switch {
		case convert.HasContract(d):
			usable = append(usable, d.Name)
		case strings.HasPrefix(group, "infrastructure.") || strings.HasPrefix(group, "controlplane."):
			v.Unresolved = append(v.Unresolved, fmt.Sprintf("the CustomResourceDefinition %q in the directory has no label "+
				"that maps a contract of Cluster API to a version", d.Name))
		}
	}
	also := "and the directory has no CustomResourceDefinition of another provider"
	if len(usable) > 0 {
		also = "and those of the CustomResourceDefinitions in the directory: " + text.Join(usable, ", ", maxDefinitions)
	}
	v.Unchecked = "the gateway knows the kinds of Cluster API's own providers, " + also + "; Clusters that " +
		"refer to other kinds fail with Conversion"
}

// written returns the extension that a manifest describes.
func written(m *manifest.Config, hooks *catalog.Catalog) preflight.Extension {
	x := preflight.Extension{Name: m.Extension.Name, Location: located(m.Place)}
	handlers, err := fromStatus(m.Config, hooks, func(i int) preflight.Location { return located(m.Handlers[i]) })
	switch {
	case err != nil:
		x.Undiscovered = "the handlers of the extension are not known: " + err.Error()
	case len(m.Config.Status.Handlers) == 0:
		x.Undiscovered = "the handlers of the extension are not known: its manifest has no status.handlers"
	}
	if x.Undiscovered != "" {
		x.Discover = "call the extension with --discover, or put status.handlers into the manifest, as kubectl " +
			"get --output yaml shows it"
	}
	x.Handlers = handlers
	return x
}

// ask replaces the handlers from the manifest with those that the extension announces.
func ask(ctx context.Context, discoverer Discoverer, client registry.ClientConfig, x *preflight.Extension) {
	if err := client.CheckURL(); err != nil {
		x.Undiscovered, x.Discover = fmt.Sprintf("the extension cannot be asked for its handlers: its URL %s", err),
			"correct the URL, or the protocol of its ExtensionPolicy"
		return
	}
	ctx, cancel := context.WithTimeout(ctx, limits.DiscoveryTimeout)
	defer cancel()
	found, err := discoverer.Discover(ctx, client)
	if err != nil {
		x.Undiscovered = "the extension did not announce its handlers: " + err.Error()
		if len(x.Handlers) > 0 {
			x.Undiscovered += "; the handlers in its manifest are judged"
		}
		x.Discover = "start the extension, or run the command from a place that can reach it"
		return
	}
	x.Handlers, x.Undiscovered, x.Discover = fromDiscovery(found, x.Location), "", ""
}

func located(p manifest.Place) preflight.Location {
	return preflight.Location{File: p.File, Line: p.Line}
}
