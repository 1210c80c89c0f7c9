// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"
	"log/slog"
	"maps"
	"strings"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/hookgate/hookgate/internal/base/notify"
	"github.com/hookgate/hookgate/internal/contract/convert"
)

// contractPrefix is the prefix of the labels of a CustomResourceDefinition that are kept.
const contractPrefix = "cluster.x-k8s.io/"

// definitions passes the CustomResourceDefinitions of the cluster to convert.References. It keeps only their names and
// the labels of Cluster API: there may be thousands of them, with megabytes in their annotations.
type definitions struct {
	references *convert.References
	logger     *slog.Logger
	// cache is not the manager's, which has to sync before anything starts, because the gateway may lack the right to
	// read CustomResourceDefinitions.
	cache  cache.Cache
	synced func() bool // the cache has all of them

	mu     sync.Mutex
	labels map[string]map[string]string // by name; the maps never change

	changed *notify.Signal
	refused chan struct{} // closed once the API server has refused to let the gateway read them
	once    sync.Once
	logged  string // why they cannot be watched, as it was logged last; guarded by mu
}

func newDefinitions(c *rest.Config, references *convert.References, logger *slog.Logger) (*definitions, error) {
	d := &definitions{
		references: references, logger: logger, labels: map[string]map[string]string{},
		changed: notify.NewSignal(), refused: make(chan struct{}),
	}
	mapper := meta.NewDefaultRESTMapper(nil)
	mapper.Add(convert.CRDKind, meta.RESTScopeRoot)
	var err error
	d.cache, err = cache.New(c, cache.Options{
		Scheme: runtime.NewScheme(), Mapper: mapper, DefaultWatchErrorHandler: d.watchFailed,
		ByObject: map[client.Object]cache.ByObject{metadataOf(convert.CRDKind): {Transform: keepContracts}},
	})
	return d, err
}

// keepContracts is like keepLabels, and keeps only labels that begin with contractPrefix.
func keepContracts(object any) (any, error) {
	if o, ok := object.(*metav1.PartialObjectMetadata); ok {
		maps.DeleteFunc(o.Labels, func(key, _ string) bool { return !strings.HasPrefix(key, contractPrefix) })
		if len(o.Labels) == 0 {
			o.Labels = nil
		}
	}
	return keepLabels(object)
}

// follow subscribes d to CustomResourceDefinitions.
func (d *definitions) follow(ctx context.Context) error {
	var err error
	d.synced, err = followMetadata(ctx, d.cache, metadataOf(convert.CRDKind), d.set, d.remove)
	return err
}

func (d *definitions) set(object any) {
	o, ok := object.(*metav1.PartialObjectMetadata)
	if !ok {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	// Their status changes often while providers are installed, which makes no difference.
	if before, known := d.labels[o.Name]; !known || !maps.Equal(before, o.Labels) {
		d.labels[o.Name] = o.Labels
		d.changed.Notify()
	}
}

func (d *definitions) remove(object any) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if unknown, ok := object.(toolscache.DeletedFinalStateUnknown); ok {
		delete(d.labels, unknown.Key)
	} else if o, ok := object.(*metav1.PartialObjectMetadata); ok {
		delete(d.labels, o.Name)
	}
	d.changed.Notify()
}

// start waits until the CustomResourceDefinitions were read, or the API server has refused that, and reports whether
// that was before ctx was done. Without the wait, the first calls would be converted with versions that are not those
// of the cluster. A nil definitions does not wait.
func (d *definitions) start(ctx context.Context) bool {
	if d == nil {
		return true
	}
	known := awaitSync(ctx, d.synced, d.refused)
	d.apply()
	return known
}

// run passes changes to the references until ctx is done.
func (d *definitions) run(ctx context.Context) {
	if d == nil {
		return
	}
	// The event of the last one arrives before the cache counts as synced.
	toolscache.WaitForCacheSync(ctx.Done(), d.synced)
	for {
		d.apply()
		select {
		case <-ctx.Done():
			return
		case <-d.changed.C():
		}
	}
}

// apply passes all CustomResourceDefinitions to the references, if they are known.
func (d *definitions) apply() {
	if !d.synced() {
		return
	}
	d.mu.Lock()
	crds := make([]convert.CRD, 0, len(d.labels))
	for name, labels := range d.labels {
		crds = append(crds, convert.CRD{Name: name, Labels: labels})
	}
	d.mu.Unlock()
	d.references.Set(crds)
}

// watchFailed logs why CustomResourceDefinitions cannot be watched, once for each reason. After a refusal, nothing
// waits for them; the watch is nevertheless retried, so that a permission granted later takes effect.
func (d *definitions) watchFailed(_ context.Context, _ *toolscache.Reflector, err error) {
	if isEnd(err) {
		return
	}
	reason, advice := "unreachable", "the known state stays in use, and the watch is retried"
	refused := apierrors.IsForbidden(err) || apierrors.IsNotFound(err)
	if refused {
		reason = "refused"
		advice = "allow the gateway's service account to list and watch customresourcedefinitions of " +
			convert.CRDKind.Group + "; until then, objects to convert may refer only to kinds of Cluster API's " +
			"own providers"
	}
	d.mu.Lock()
	before := d.logged
	d.logged = reason
	d.mu.Unlock()
	if before != reason {
		d.logger.Warn("API server does not let the gateway watch",
			"what", convert.CRDKind.Kind, "error", err, "advice", advice)
	}
	if refused {
		d.once.Do(func() { close(d.refused) })
	}
}
