// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	toolscache "k8s.io/client-go/tools/cache"

	"github.com/hookgate/hookgate/hook"
	"github.com/hookgate/hookgate/internal/base/limits"
	"github.com/hookgate/hookgate/internal/kinds/hookrule"
)

// paramWatch keeps the JSON of what one reference names. It is the store that a reflector fills.
type paramWatch struct {
	of      hookrule.Reference
	shared  *ruleParams
	stop    context.CancelFunc
	settled chan struct{} // closed once the objects are known, or cannot be
	once    sync.Once

	mu      sync.RWMutex
	known   bool   // objects has been complete
	refused string // why the API server does not show the objects now
	objects map[types.NamespacedName][]byte
	bytes   int
	left    int                // objects whose JSON is not kept, and is nil
	list    [][]byte           // the JSON of all, in order; nil after a change
	again   context.CancelFunc // reads all of them anew
}

var _ toolscache.ReflectorStore = (*paramWatch)(nil)

// run watches until ctx is done.
func (w *paramWatch) run(ctx context.Context) {
	for ctx.Err() == nil {
		mapping, problem := w.shared.resourceOf(w.of)
		if mapping == nil {
			w.refuse(problem)
		} else {
			w.refuse("")
			reading, again := context.WithCancel(ctx)
			w.mu.Lock()
			w.again = again
			w.mu.Unlock()
			reflector := toolscache.NewReflectorWithOptions(w.listWatch(mapping), &unstructured.Unstructured{}, w,
				toolscache.ReflectorOptions{Name: "params"})
			reflector.RunWithContext(reading)
			again()
		}
		select {
		case <-ctx.Done():
		case <-time.After(paramsRetry):
		}
	}
}

// listWatch reads what the reference names.
func (w *paramWatch) listWatch(mapping *meta.RESTMapping) toolscache.ListerWatcher {
	var resource dynamic.ResourceInterface = w.shared.client.Resource(mapping.Resource)
	if w.of.Namespace != "" {
		resource = w.shared.client.Resource(mapping.Resource).Namespace(w.of.Namespace)
	}
	only := func(o *metav1.ListOptions) {
		o.LabelSelector = w.of.Selector
		if w.of.Name != "" {
			o.FieldSelector = fields.OneTermEqualSelector(metav1.ObjectNameField, w.of.Name).String()
		}
	}
	return &toolscache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			only(&o)
			list, err := resource.List(ctx, o)
			w.note(mapping, err)
			if err != nil {
				return nil, err
			}
			return list, nil
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			only(&o)
			watching, err := resource.Watch(ctx, o)
			w.note(mapping, err)
			return watching, err
		},
	}
}

// note notes whether the API server lets the gateway read. While it cannot be reached, what is known stays in use.
func (w *paramWatch) note(mapping *meta.RESTMapping, err error) {
	resource := mapping.Resource.GroupResource()
	switch {
	case err == nil:
		w.refuse("")
	case apierrors.IsForbidden(err), apierrors.IsUnauthorized(err):
		w.refuse(fmt.Sprintf("the gateway is not allowed to list and watch %s, and so cannot read %s: apply "+
			"what \"hookgate rule rbac\" prints", resource, w.of))
	case apierrors.IsNotFound(err):
		w.refuse(fmt.Sprintf("the API server has no %s", resource))
		w.readAgain() // its kind may come back under another name
	}
}

// refuse notes why the objects cannot be read, or that they can.
func (w *paramWatch) refuse(problem string) {
	w.mu.Lock()
	changed := w.refused != problem
	w.refused = problem
	w.mu.Unlock()
	if problem != "" {
		w.settle()
	}
	if !changed {
		return
	}
	if problem != "" {
		w.shared.logger.Warn("a param of HookRules cannot be read", "problem", problem,
			"advice", "calls of these rules fail until the param can be read")
	}
	w.shared.changed()
}

func (w *paramWatch) settle() { w.once.Do(func() { close(w.settled) }) }

func (w *paramWatch) readAgain() {
	w.mu.RLock()
	defer w.mu.RUnlock()
	w.again()
}

// problem says why the objects are not known; it is empty if they are.
func (w *paramWatch) problem() string {
	w.mu.RLock()
	defer w.mu.RUnlock()
	return w.problemLocked()
}

func (w *paramWatch) problemLocked() string {
	switch {
	case w.refused != "":
		return w.refused
	case !w.known:
		return w.of.String() + " is not read yet"
	}
	return ""
}

// read returns the JSON of the objects: of self alone if the reference is to the objects of requests.
func (w *paramWatch) read(self types.NamespacedName) ([][]byte, error) {
	w.mu.RLock()
	problem, left := w.problemLocked(), w.left
	list, object := w.list, []byte(nil)
	found := false
	if w.of.Self {
		object, found = w.objects[self]
	}
	w.mu.RUnlock()
	switch {
	case problem != "":
		return nil, hook.Errorf(hook.NotReady, "%s", problem)
	case w.of.Self && !found:
		return nil, hook.Errorf(hook.NotReady, "%s %q is not known", w.of.Kind.Kind, self)
	case w.of.Self && object == nil, !w.of.Self && left > 0:
		return nil, hook.Errorf(hook.Policy, "%s: more than %s", w.of, w.limits())
	case w.of.Self:
		return [][]byte{object}, nil
	case list != nil:
		return list, nil
	}
	return w.inOrder(), nil
}

// inOrder returns the JSON of all objects by namespace and name.
func (w *paramWatch) inOrder() [][]byte {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.list == nil {
		w.list = make([][]byte, 0, len(w.objects))
		for _, name := range slices.SortedFunc(maps.Keys(w.objects), byName) {
			w.list = append(w.list, w.objects[name])
		}
	}
	return w.list
}

func (w *paramWatch) most() (objects, bytes int) {
	if w.of.Self {
		return limits.RuleSelfObjects, limits.RuleSelfBytes
	}
	return limits.RuleParamObjects, limits.RuleParamsBytes
}

func (w *paramWatch) limits() string {
	objects, bytes := w.most()
	return fmt.Sprintf("%d objects, %d bytes of JSON, or %d bytes of one object", objects, bytes, limits.RuleParamBytes)
}

// Add implements toolscache.ReflectorStore.
func (w *paramWatch) Add(object any) error { return w.Update(object) }

// Update implements toolscache.ReflectorStore.
func (w *paramWatch) Update(object any) error {
	name, text, err := compact(object)
	if err != nil {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.remove(name)
	w.put(name, text)
	return nil
}

// Delete implements toolscache.ReflectorStore. What there was no room for before is read again.
func (w *paramWatch) Delete(object any) error {
	o, err := meta.Accessor(object)
	if err != nil {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.remove(types.NamespacedName{Namespace: o.GetNamespace(), Name: o.GetName()}); w.left > 0 {
		w.again()
	}
	return nil
}

// Replace implements toolscache.ReflectorStore.
func (w *paramWatch) Replace(objects []any, _ string) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.objects, w.bytes, w.left, w.list = map[types.NamespacedName][]byte{}, 0, 0, nil
	for _, object := range objects {
		name, text, err := compact(object)
		if err != nil {
			return err
		}
		w.put(name, text)
	}
	if !w.known {
		w.known = true
		w.settle()
		w.shared.changed()
	}
	return nil
}

// Resync implements toolscache.ReflectorStore. Nobody waits for it.
func (w *paramWatch) Resync() error { return nil }

// put keeps an object. Without room for its JSON, only its name is kept; of a list beyond all bounds, not even that.
func (w *paramWatch) put(name types.NamespacedName, text []byte) {
	if w.objects == nil {
		w.objects = map[types.NamespacedName][]byte{}
	}
	objects, bytes := w.most()
	switch {
	case len(w.objects) >= objects:
		w.left++ // until all are read again
		return
	case len(text) > limits.RuleParamBytes, w.bytes+len(text) > bytes:
		text = nil
		w.left++
	}
	w.objects[name], w.bytes, w.list = text, w.bytes+len(text), nil
}

func (w *paramWatch) remove(name types.NamespacedName) {
	text, ok := w.objects[name]
	if !ok {
		return
	}
	delete(w.objects, name)
	w.bytes, w.list = w.bytes-len(text), nil
	if text == nil {
		w.left--
	}
}

// compact returns the name of an object and its JSON, without what rules have no use for.
func compact(object any) (types.NamespacedName, []byte, error) {
	o, ok := object.(*unstructured.Unstructured)
	if !ok {
		return types.NamespacedName{}, nil, fmt.Errorf("%T is no object", object)
	}
	o.SetManagedFields(nil)
	if annotations := o.GetAnnotations(); annotations[corev1.LastAppliedConfigAnnotation] != "" {
		delete(annotations, corev1.LastAppliedConfigAnnotation)
		o.SetAnnotations(annotations)
	}
	text, err := json.Marshal(o.Object)
	return types.NamespacedName{Namespace: o.GetNamespace(), Name: o.GetName()}, text, err
}
