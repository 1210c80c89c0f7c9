// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/hookgate/hookgate/hook"
	"github.com/hookgate/hookgate/internal/base/limits"
	"github.com/hookgate/hookgate/internal/kinds/hookrule"
)

// paramsRetry is how long a kind that cannot be watched is left alone before it is looked up again.
const paramsRetry = 10 * time.Second

// ruleParams has the objects that HookRules read besides their requests. It watches those that rules name, and no
// others, from when a rule needs them until none does.
type ruleParams struct {
	client  dynamic.Interface
	mapper  meta.RESTMapper
	logger  *slog.Logger
	changed func() // called when what problem returns may have changed; set before use is called

	mu      sync.RWMutex
	watches map[hookrule.Reference]*paramWatch
}

func newRuleParams(c *rest.Config, logger *slog.Logger) (*ruleParams, error) {
	objects, err := dynamic.NewForConfig(c)
	if err != nil {
		return nil, err
	}
	client, err := rest.HTTPClientFor(c)
	if err != nil {
		return nil, err
	}
	mapper, err := apiutil.NewDynamicRESTMapper(c, client) // which asks the API server when it is first used
	if err != nil {
		return nil, err
	}
	return &ruleParams{
		client: objects, mapper: mapper, logger: logger,
		watches: map[hookrule.Reference]*paramWatch{},
	}, nil
}

// use watches what the references name, until ctx is done, and ends all other watches.
func (p *ruleParams) use(ctx context.Context, references []hookrule.Reference) {
	p.mu.Lock()
	defer p.mu.Unlock()
	next := make(map[hookrule.Reference]*paramWatch, min(len(references), limits.RuleWatches))
	for _, of := range references {
		if next[of] != nil || len(next) >= limits.RuleWatches {
			continue
		}
		w := p.watches[of]
		if w == nil {
			w = &paramWatch{of: of, shared: p, settled: make(chan struct{})}
			watching, stop := context.WithCancel(ctx)
			w.stop = stop
			go w.run(watching)
		}
		next[of] = w
	}
	for of, w := range p.watches {
		if next[of] == nil {
			w.stop()
		}
	}
	p.watches = next
}

// start waits until all that is watched is known, or cannot be, and reports whether that was before ctx was done.
// Without the wait, a replica that has just become ready would fail calls that another one answers.
func (p *ruleParams) start(ctx context.Context) bool {
	p.mu.RLock()
	watches := make([]*paramWatch, 0, len(p.watches))
	for _, w := range p.watches {
		watches = append(watches, w)
	}
	p.mu.RUnlock()
	for _, w := range watches {
		select {
		case <-w.settled:
		case <-ctx.Done():
			return false
		}
	}
	return true
}

// problem says why the objects of the first of the references that are not known are not; it is empty if all are.
func (p *ruleParams) problem(references []hookrule.Reference) string {
	for _, of := range references {
		if w := p.watch(of); w == nil {
			return tooManyWatches
		} else if problem := w.problem(); problem != "" {
			return problem
		}
	}
	return ""
}

var tooManyWatches = fmt.Sprintf(
	"all HookRules together refer to more than %d objects and lists; the gateway does not read the rest",
	limits.RuleWatches)

func (p *ruleParams) watch(of hookrule.Reference) *paramWatch {
	p.mu.RLock()
	defer p.mu.RUnlock()
	return p.watches[of]
}

// Read implements hookrule.Params.
func (p *ruleParams) Read(of hookrule.Reference, self types.NamespacedName) ([][]byte, error) {
	w := p.watch(of)
	if w == nil {
		return nil, hook.Errorf(hook.NotReady, "%s", tooManyWatches)
	}
	return w.read(self)
}

// lookUp returns the JSON of one object of a reference to all objects of a kind, nil if it is gone. It is not known if
// the objects are not, or if there is no room for its JSON.
func (p *ruleParams) lookUp(of hookrule.Reference, name types.NamespacedName) (object []byte, known bool) {
	w := p.watch(of)
	if w == nil {
		return nil, false
	}
	w.mu.RLock()
	defer w.mu.RUnlock()
	object, found := w.objects[name]
	return object, w.problemLocked() == "" && (object != nil || !found && w.left == 0)
}

// get asks the API server for one object of a reference, nil if it is gone. It asks for a list, which takes no right
// besides those for the watch.
func (p *ruleParams) get(
	ctx context.Context, of hookrule.Reference, name types.NamespacedName,
) (*unstructured.Unstructured, error) {
	mapping, problem := p.resourceOf(of)
	if mapping == nil {
		return nil, errors.New(problem)
	}
	list, err := p.client.Resource(mapping.Resource).Namespace(name.Namespace).List(ctx, metav1.ListOptions{
		FieldSelector: fields.OneTermEqualSelector(metav1.ObjectNameField, name.Name).String(),
	})
	if err != nil || len(list.Items) == 0 {
		return nil, err
	}
	return &list.Items[0], nil
}

// resourceOf returns how the API server serves a kind, or the problem.
func (p *ruleParams) resourceOf(of hookrule.Reference) (*meta.RESTMapping, string) {
	mapping, err := p.mapper.RESTMapping(of.Kind.GroupKind(), of.Kind.Version)
	switch {
	case meta.IsNoMatchError(err), apierrors.IsNotFound(err):
		return nil, fmt.Sprintf("the API server has no kind %s of %s", of.Kind.Kind, of.Kind.GroupVersion())
	case err != nil:
		p.logger.Warn("API server does not say which kinds it has", "what", of.String(), "error", err)
		return nil, "the API server does not say which kinds it has"
	}
	namespaced := mapping.Scope.Name() == meta.RESTScopeNameNamespace
	switch {
	case namespaced && of.Name != "" && of.Namespace == "":
		return nil, of.String() + ": objects of the kind need a namespace"
	case !namespaced && of.Namespace != "":
		return nil, fmt.Sprintf("%s: objects of the kind have no namespace", of)
	}
	return mapping, ""
}

// byName orders names by namespace and name.
func byName(a, b types.NamespacedName) int {
	return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
}
