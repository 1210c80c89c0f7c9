// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package localgateway decides and calls, in the process of a command, as a gateway would that has just started with a
// directory of manifests. A Gateway is safe for concurrent use.
package localgateway

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"path/filepath"
	"slices"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"

	"github.com/hookgate/hookgate/catalog"
	"github.com/hookgate/hookgate/gateway"
	"github.com/hookgate/hookgate/hook"
	"github.com/hookgate/hookgate/hookversion"
	"github.com/hookgate/hookgate/internal/base/files"
	"github.com/hookgate/hookgate/internal/base/text"
	"github.com/hookgate/hookgate/internal/calls/extension"
	"github.com/hookgate/hookgate/internal/contract/codec"
	"github.com/hookgate/hookgate/internal/contract/convert"
	"github.com/hookgate/hookgate/internal/kinds/allkinds"
	"github.com/hookgate/hookgate/internal/kinds/extensionconfig"
	"github.com/hookgate/hookgate/internal/kinds/rollout"
	"github.com/hookgate/hookgate/internal/serving/shared"
	"github.com/hookgate/hookgate/internal/sources/discovery"
	"github.com/hookgate/hookgate/internal/sources/manifest"
	"github.com/hookgate/hookgate/registry"
)

// maxLocalDiscoveries is the number of extensions that are discovered at the same time.
const maxLocalDiscoveries = 8

// Gateway decides, in this process, what a gateway that has just started with a directory of manifests would.
type Gateway struct {
	*gateway.Dispatcher
	transports *extension.Protocols
}

// namespaces are the Namespaces of the directory.
type namespaces map[string]manifest.Object

// NamespaceLabels implements gateway.Namespaces.
func (n namespaces) NamespaceLabels(name string) (labels map[string]string, known bool) {
	if o, ok := n[name]; ok {
		return o.Labels, true
	}
	return map[string]string{corev1.LabelMetadataName: name}, false
}

// Open returns the gateway of a directory. Handlers are those of the status of ExtensionConfigs; with discover,
// those that the extensions answer with. What is wrong with manifests, and extensions that do not answer, is written to
// notes.
func Open(
	ctx context.Context, dir string, hooks *catalog.Catalog, versions *hookversion.Converter, discover bool,
	notes io.Writer,
) (*Gateway, error) {
	decoder, err := manifest.NewDecoder(hooks)
	if err != nil {
		return nil, err
	}
	read, err := manifest.ReadFiles(&files.Reader{}, dir)
	if err != nil {
		return nil, err
	}
	inventory, problems := (&manifest.Inventory{}).Next(read, decoder)
	for i := range problems {
		if !problems[i].Warning {
			_, _ = fmt.Fprintf(notes, "%s\n", text.Printable(problems[i].Error()))
		}
	}
	mandated, references := codec.New(hooks), convert.NewReferences()
	references.Set(inventory.Definitions())
	g, reg := New(hooks, versions, mandated, namespaces(inventory.Of(manifest.Namespace)), references)
	if err := fill(ctx, hooks, reg, inventory, decoder, g.transports, discover, notes); err != nil {
		g.Close()
		return nil, err
	}
	return g, nil
}

// New returns a gateway, and its registry, which is empty.
func New(
	hooks *catalog.Catalog, versions *hookversion.Converter, mandated *codec.Codec, labels gateway.Namespaces,
	references *convert.References,
) (*Gateway, *registry.Registry) {
	reg := registry.New(hooks.Merged()...)
	transports := extension.NewProtocols(extension.Config{Catalog: hooks, Codec: mandated})
	return &Gateway{transports: transports, Dispatcher: gateway.NewDispatcher(gateway.Config{
		Catalog: hooks, Versions: versions, Registry: reg, Namespaces: labels,
		Parts: shared.Parts{Codec: mandated, Transport: transports.Call, Objects: convert.NewObjects(references)},
	})}, reg
}

// Close closes the connections to extensions.
func (g *Gateway) Close() { g.transports.Close() }

// fill registers what a directory defines, as the directory source does.
func fill(
	ctx context.Context, hooks *catalog.Catalog, reg *registry.Registry, v *manifest.Inventory, decoder *manifest.Decoder,
	discoverer discovery.Discoverer, discover bool, notes io.Writer,
) error {
	quiet, tracking := slog.New(slog.DiscardHandler), discovery.NewTrackingRegistry(reg)
	sets := allkinds.NewSets(allkinds.SetConfig{
		Registry: tracking, Hooks: hooks, Types: decoder.Types(), Logger: quiet,
		Exists: func(name string) bool { _, ok := v.Of(extensionconfig.Kind)[name]; return ok },
	})
	for _, of := range sets {
		if of.Name != rollout.Kind { // there is no engine that decides which Clusters have the candidate
			of.Use(v.Items(of.Name))
		}
	}
	for kind, closures := range v.Closures() {
		reg.SetClosures(kind, closures)
	}
	unreadable := v.Mistaken()
	for _, file := range v.Unreadable {
		unreadable = append(unreadable, registry.Undiscovered{
			Unreadable: fmt.Sprintf("manifest %q", filepath.Base(file)), Default: hook.Fail,
		})
	}
	reg.SetUndiscovered(unreadable)
	reconciler, err := discovery.NewReconciler(discovery.ReconcilerConfig{
		Registry: tracking, Discoverer: discoverer, Logger: quiet,
	})
	if err != nil {
		return err
	}
	configs := v.Of(extensionconfig.Kind)
	names := slices.Sorted(maps.Keys(configs))
	errs := make([]error, len(names))
	var group errgroup.Group
	group.SetLimit(maxLocalDiscoveries)
	for i, name := range names {
		x, err := sets.Policies().WithProtocol(*configs[name].Extension)
		if err != nil {
			errs[i], x = err, *configs[name].Extension
		}
		x.Awaited = true
		if !discover {
			_ = reconciler.Serve(discovery.Known{Extension: x})
			continue
		}
		group.Go(func() error {
			if _, err := reconciler.Reconcile(ctx, x); err != nil {
				errs[i] = err
			}
			return nil
		})
	}
	_ = group.Wait() // errs has the errors
	for i, err := range errs {
		if err != nil {
			_, _ = fmt.Fprintf(notes, "ExtensionConfig %q: %s\n", names[i], text.Printable(err.Error()))
		}
	}
	reg.SetReady()
	return ctx.Err()
}
