// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

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

	"github.com/hookgate/hookgate/convert"
)

// contractPrefix begins the labels that matter of a CustomResourceDefinition.
const contractPrefix = "cluster.x-k8s.io/"

// definitions tells convert.References of the CustomResourceDefinitions of the cluster. Of each, only the name and the labels of Cluster API
// are kept: there may be thousands, with megabytes in their annotations.
type definitions struct {
	references *convert.References
	logger     *slog.Logger
	// cache is one of their own: a manager starts nothing before its cache has every kind, and this one the gateway need
	// not be allowed to read.
	cache  cache.Cache
	synced func() bool // the cache has them all

	mu     sync.Mutex
	labels map[string]map[string]string // by name; the maps never change

	changed chan struct{} // holds one value if something has changed that references were not told of
	refused chan struct{} // closed once the API server has said that it does not let the gateway read them
	once    sync.Once
	told    string // what was logged last of what is wrong; guarded by mu
}

func newDefinitions(c *rest.Config, references *convert.References, logger *slog.Logger) (*definitions, error) {
	d := &definitions{
		references: references, logger: logger, labels: map[string]map[string]string{}, changed: make(chan struct{}, 1), refused: make(chan struct{}),
	}
	mapper := meta.NewDefaultRESTMapper(nil)
	mapper.Add(convert.CRDKind, meta.RESTScopeRoot)
	var err error
	d.cache, err = cache.New(c, cache.Options{
		Scheme: runtime.NewScheme(), Mapper: mapper, DefaultWatchErrorHandler: d.trouble,
		ByObject: map[client.Object]cache.ByObject{metadataOf(convert.CRDKind): {Transform: keepContracts}},
	})
	return d, err
}

// keepContracts is keepLabels for the labels that begin with contractPrefix.
func keepContracts(object any) (any, error) {
	if o, ok := object.(*metav1.PartialObjectMetadata); ok {
		maps.DeleteFunc(o.Labels, func(key, _ string) bool { return !strings.HasPrefix(key, contractPrefix) })
		if len(o.Labels) == 0 {
			o.Labels = nil
		}
	}
	return keepLabels(object)
}

// follow makes d hear of CustomResourceDefinitions.
func (d *definitions) follow(ctx context.Context) error {
	informer, err := d.cache.GetInformer(ctx, metadataOf(convert.CRDKind), cache.BlockUntilSynced(false))
	if err != nil {
		return err
	}
	registration, err := informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
		AddFunc:    d.set,
		UpdateFunc: func(_, object any) { d.set(object) },
		DeleteFunc: d.remove,
	})
	if err != nil {
		return err
	}
	d.synced = registration.HasSynced
	return nil
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
		d.tell()
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
	d.tell()
}

func (d *definitions) tell() {
	select {
	case d.changed <- struct{}{}:
	default:
	}
}

// start, of a nil definitions too, waits until the CustomResourceDefinitions were read, or the API server has refused that, and tells whether that was so before ctx
// was done. Without the wait, the first calls would be converted with versions that are not those of the cluster.
func (d *definitions) start(ctx context.Context) bool {
	if d == nil {
		return true
	}
	known := awaitSync(ctx, d.synced, d.refused)
	d.apply()
	return known
}

// run tells references of changes until ctx is done.
func (d *definitions) run(ctx context.Context) {
	if d == nil {
		return
	}
	// The last of them is heard of before they count as known.
	toolscache.WaitForCacheSync(ctx.Done(), d.synced)
	for {
		d.apply()
		select {
		case <-ctx.Done():
			return
		case <-d.changed:
		}
	}
}

// apply tells references of all CustomResourceDefinitions, if they are known.
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

// trouble logs why CustomResourceDefinitions cannot be watched, once for each reason. Where the API server has refused it, nobody waits for
// them any more; it is tried again all the same, so that a right that is granted later takes effect.
func (d *definitions) trouble(_ context.Context, _ *toolscache.Reflector, err error) {
	if isEnd(err) {
		return
	}
	reason, advice := "unreachable", "what is known stays in use, and it is tried again"
	refused := apierrors.IsForbidden(err) || apierrors.IsNotFound(err)
	if refused {
		reason = "refused"
		advice = "allow the gateway's service account to list and watch customresourcedefinitions of " + convert.CRDKind.Group +
			"; until then, objects that are converted may refer to kinds of Cluster API's own providers alone"
	}
	d.mu.Lock()
	before := d.told
	d.told = reason
	d.mu.Unlock()
	if before != reason {
		d.logger.Warn("API server does not let the gateway watch", "what", convert.CRDKind.Kind, "error", err, "advice", advice)
	}
	if refused {
		d.once.Do(func() { close(d.refused) })
	}
}
