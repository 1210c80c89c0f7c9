// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package hookrule

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"google.golang.org/protobuf/proto"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/hookgate/hookgate/api/v1alpha1"
	"github.com/hookgate/hookgate/catalog"
	hooksv1alpha1 "github.com/hookgate/hookgate/gen/go/hookgate/hooks/v1alpha1"
	"github.com/hookgate/hookgate/hook"
	"github.com/hookgate/hookgate/internal/base/limits"
	"github.com/hookgate/hookgate/internal/calls/policy"
	"github.com/hookgate/hookgate/internal/contract/jsonscan"
	"github.com/hookgate/hookgate/internal/contract/subject"
	"github.com/hookgate/hookgate/registry"
)

// PlacesHandlerName is the name of the handler of a rule with concurrency that frees places.
const PlacesHandlerName = "places"

// freedBy has the hooks of rules with concurrency, and the hook whose call frees a place; empty if the place is free
// when the Cluster is gone.
var freedBy = map[string]string{
	"BeforeClusterCreate":       "AfterControlPlaneInitialized",
	"BeforeClusterUpgrade":      "AfterClusterUpgrade",
	"BeforeControlPlaneUpgrade": "AfterControlPlaneUpgrade",
	"BeforeWorkersUpgrade":      "AfterWorkersUpgrade",
	"BeforeClusterDelete":       "",
}

// ClusterReference is to the Clusters that rules have records of, which a source has to know to remove these.
func ClusterReference() Reference {
	return Reference{Kind: clusterv1.GroupVersion.WithKind("Cluster"), Self: true}
}

// concurrency is compiled from that of a rule.
type concurrency struct {
	limit             int
	per               *policy.Expression // nil if all Clusters share the limit
	retryAfterSeconds int32
	places            Places // may be nil
	ofUpgrade         bool
}

// compileConcurrency returns the concurrency of a rule, which may be nil, and notes its mistakes.
func (in *compilation) compileConcurrency(from *v1alpha1.HookRuleConcurrency, path *field.Path) *concurrency {
	if from == nil {
		return nil
	}
	c := &concurrency{limit: int(from.Limit), retryAfterSeconds: defaultRetry, places: in.places}
	if in.withoutCluster {
		in.errs = append(in.errs, field.Forbidden(path,
			"the gateway keeps places in a cluster, and takes no rules with concurrency from a directory"))
	}
	if _, ok := freedBy[in.hook.Hook]; !ok {
		in.errs = append(in.errs, field.Forbidden(path, "no hook that follows "+in.hook.Hook+" frees a place"))
	}
	c.ofUpgrade = strings.HasSuffix(in.hook.Hook, "Upgrade")
	if from.Limit < 1 || from.Limit > limits.RuleConcurrency {
		in.errs = append(in.errs, field.Invalid(path.Child("limit"), from.Limit,
			fmt.Sprintf("must be between 1 and %d", limits.RuleConcurrency)))
	}
	if from.RetryAfterSeconds != nil {
		c.retryAfterSeconds = *from.RetryAfterSeconds
		if c.retryAfterSeconds < 1 || c.retryAfterSeconds > limits.RuleRetrySeconds {
			in.errs = append(in.errs, field.Invalid(path.Child("retryAfterSeconds"), c.retryAfterSeconds,
				fmt.Sprintf("must be between 1 and %d", limits.RuleRetrySeconds)))
		}
	}
	if from.Per != "" {
		c.per = in.expression(from.Per, policy.String, path.Child("per"), policy.NowVariable)
	}
	return c
}

// freeingHandler returns the handler that frees places, if a call does.
func (in *compilation) freeingHandler() (registry.Handler, bool) {
	after := freedBy[in.hook.Hook]
	for _, h := range in.hooks.Hubs() {
		if h.Group == in.hook.Group && h.Hook == after {
			return registry.Handler{
				Name: PlacesHandlerName, Hook: h.GroupVersionHook, Timeout: limits.DefaultTimeout, FailurePolicy: hook.Fail,
				Everything: true, // whatever the labels are by now
			}, true
		}
	}
	return registry.Handler{}, false
}

// TakesPlaces reports whether the rule has concurrency.
func (r *Rule) TakesPlaces() bool { return r.concurrency != nil }

// Admits reports whether the rule has a param of admitted Clusters.
func (r *Rule) Admits() bool {
	_, admits := r.admitting()
	return admits
}

// frees reports whether a request is one of the hook that frees places.
func (r *Rule) frees(request proto.Message) bool {
	return r.concurrency != nil && request.ProtoReflect().Descriptor().FullName() != r.hook.Request.Descriptor().FullName()
}

// free answers the hook that follows.
func (r *Rule) free(ctx context.Context, request proto.Message) (proto.Message, error) {
	_, namespace, name := subject.Object(request)
	if r.concurrency.places == nil {
		return nil, r.noPlaces()
	}
	if err := r.concurrency.places.Free(ctx, r.name, types.NamespacedName{Namespace: namespace, Name: name}); err != nil {
		return nil, err
	}
	return r.after.NewAnswer(catalog.Success, "", 0), nil
}

func (r *Rule) noPlaces() error {
	return hook.Errorf(hook.NotReady, "HookRule %q has concurrency, but this gateway gives out no places", r.name)
}

// admit returns the answer of a lifecycle rule after what it says apart from its concurrency: an annotation of the
// Cluster lifts what holds it, and what passes has a place.
func (r *Rule) admit(ctx context.Context, v *policy.Evaluation, request, said proto.Message) (proto.Message, error) {
	answer, ok := said.(lifecycleResponse)
	about, isLifecycle := request.(interface {
		GetCluster() *hooksv1alpha1.RawExtension
	})
	if !ok || !isLifecycle || r.hook.Category != catalog.Lifecycle || !r.hook.Blocking ||
		answer.GetStatus() != hooksv1alpha1.ResponseStatus_RESPONSE_STATUS_SUCCESS {
		return said, nil
	}
	held := answer.GetRetryAfterSeconds() > 0
	if !held && r.concurrency == nil {
		return said, nil // without a look at the Cluster
	}
	cluster := about.GetCluster().GetRaw()
	lifted := r.isLifted(cluster)
	if held && !lifted {
		return said, nil
	}
	name := types.NamespacedName{
		Namespace: textAt(cluster, "metadata", "namespace"), Name: textAt(cluster, "metadata", "name"),
	}
	message := answer.GetMessage()
	if c := r.concurrency; c != nil {
		place, waits, err := r.place(ctx, v, cluster, name, lifted)
		if err != nil {
			return nil, err
		}
		if !place.OK {
			return r.hook.NewAnswer(catalog.Success, waits, c.retryAfterSeconds), nil
		}
		if place.Beyond && !held {
			held, message = true, waits
		}
	}
	if !held {
		return said, nil
	}
	if r.places != nil {
		r.places.Lifted(r.name, name, message)
	}
	goesOn := "hold lifted by the annotation " + v1alpha1.SkipHoldAnnotation + ": " + message
	return r.hook.NewAnswer(catalog.Success, goesOn, 0), nil
}

// lifecycleResponse is the answer of a blocking lifecycle hook.
type lifecycleResponse interface {
	GetStatus() hooksv1alpha1.ResponseStatus
	GetMessage() string
	GetRetryAfterSeconds() int32
}

// isLifted reports whether an annotation of the Cluster names the rule.
func (r *Rule) isLifted(cluster []byte) bool {
	value, _ := jsonscan.Lookup(cluster, "metadata", "annotations", v1alpha1.SkipHoldAnnotation)
	names, _ := jsonscan.String(value)
	return slices.ContainsFunc(strings.Split(names, ","), func(name string) bool {
		return strings.TrimSpace(name) == r.name
	})
}

// place takes a place for a Cluster. waits is the message if there is none.
func (r *Rule) place(
	ctx context.Context, v *policy.Evaluation, cluster []byte, name types.NamespacedName, lifted bool,
) (place Allocation, waits string, err error) {
	c := r.concurrency
	if c.places == nil {
		return Allocation{}, "", r.noPlaces()
	}
	want := Place{
		Namespace: name.Namespace, Name: name.Name, UID: textAt(cluster, "metadata", "uid"),
		Since: metav1.NewTime(r.now()).Rfc3339Copy(),
	}
	if name.Name == "" || name.Namespace == "" || len(name.Name) > 63 || len(name.Namespace) > 63 || len(want.UID) > 63 {
		return Allocation{}, "", hook.Errorf(hook.InvalidRequest, "cluster.metadata: want a name and a "+
			"namespace; name, namespace and uid must not be longer than an API server allows")
	}
	if c.ofUpgrade {
		want.TopologyVersion = textAt(cluster, "spec", "topology", "version")
	}
	waits = fmt.Sprintf("waits: all places are taken (%d)", c.limit)
	if c.per != nil {
		if want.Per, err = v.String(c.per); err != nil {
			return Allocation{}, "", err
		}
		waits = fmt.Sprintf("waits: all places for %q are taken (%d)", want.Per, c.limit)
	}
	if len(want.Per) > limits.RulePerBytes || len(want.TopologyVersion) > limits.RulePerBytes {
		return Allocation{}, "", hook.Errorf(hook.Policy, "HookRule %q: spec.concurrency.per: the value, or the version of "+
			"the Cluster's topology, has more than %d bytes", r.name, limits.RulePerBytes)
	}
	place, err = c.places.Take(ctx, r.name, want, c.limit, lifted)
	if place.Full {
		waits = fmt.Sprintf("waits: the rule has no room for more than %d Clusters", limits.RulePlaces)
	}
	return place, waits, err
}
