// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package infrastructure

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"google.golang.org/protobuf/proto"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	hooksv1alpha1 "github.com/hookgate/hookgate/gen/go/hookgate/hooks/v1alpha1"
	infrahooksv1alpha1 "github.com/hookgate/hookgate/gen/go/hookgate/infrastructure/v1alpha1"
	"github.com/hookgate/hookgate/infrastructure/internal/calls"
	"github.com/hookgate/hookgate/infrastructure/parameters"
	infrav1 "github.com/hookgate/hookgate/infrastructure/v1alpha1"
)

// base is what the controllers share.
type base struct {
	client      client.Client // reads from the cache
	live        client.Reader // reads from the API server
	calls       *calls.Client
	schemas     *parameters.Cache
	secrets     *secrets
	namespace   string      // of the controllers, and of the Secrets of identities
	watch       cache.Cache // of the metadata of these Secrets
	ids         *providerIDs
	metrics     *Metrics
	events      *recorder
	logger      *slog.Logger
	now         func() time.Time
	watchFilter string
}

// watched reports whether an object is one of those that these controllers are for.
func (r *base) watched(o client.Object) bool {
	return r.watchFilter == "" || o.GetLabels()[clusterv1.WatchLabel] == r.watchFilter
}

// reachable returns why the extension of the class cannot be called; nil if it can. Objects that exist outside already
// may use a class that is being deleted.
func (w *scope) reachable(handler infrav1.HandlerName, exists bool) *block {
	switch {
	case w.infra == nil && w.className == "":
		return stops(infrav1.ClassNotFoundReason, "the Cluster has no HookgateCluster, which names the InfrastructureClass")
	case w.class == nil:
		return stops(infrav1.ClassNotFoundReason,
			fmt.Sprintf("InfrastructureClass %q does not exist: create it again", w.className))
	case w.identityName != "" && w.identity == nil:
		return stops(infrav1.IdentityNotFoundReason,
			fmt.Sprintf("HookgateClusterIdentity %q does not exist: create it", w.identityName))
	case w.identity != nil && !w.identityAllowed: // also to delete: the object alone says whose credentials it has used
		return stops(infrav1.NamespaceNotAllowedReason, fmt.Sprintf("spec.allowedNamespaces of "+
			"HookgateClusterIdentity %q does not allow the namespace of the object", w.identityName))
	case w.foreign != "":
		return stops(infrav1.CredentialsNotFoundReason, fmt.Sprintf("credentialsRef names the Secret %s: it must be in "+
			"the namespace of the HookgateCluster", w.foreign))
	case handler == "" && w.class.Status.ProviderIDPrefix != "":
		return stops(infrav1.MissingHandlerReason,
			fmt.Sprintf("the extension of InfrastructureClass %q has no handler for the hook", w.className))
	case handler == "":
		return stops(infrav1.ClassNotReadyReason,
			fmt.Sprintf("the extension of InfrastructureClass %q has not been discovered yet", w.className))
	case exists:
		return nil
	case !w.class.DeletionTimestamp.IsZero():
		return stops(infrav1.ClassNotReadyReason, fmt.Sprintf("InfrastructureClass %q is being deleted", w.className))
	case !hasFinalizer(w.class, infrav1.ClassFinalizer), !saysReady(w.class):
		return stops(infrav1.ClassNotReadyReason,
			fmt.Sprintf("InfrastructureClass %q is not ready: see its conditions", w.className))
	}
	return nil
}

// usable returns why the class must not be used in the namespace of the object; nil if it may.
func (w *scope) usable(namespace string) *block {
	if w.class != nil && !w.namespaceAllowed {
		return stops(infrav1.NamespaceNotAllowedReason, fmt.Sprintf(
			"spec.allowedNamespaces of InfrastructureClass %q does not allow "+
				"namespace %q", w.className, namespace))
	}
	return nil
}

// unprovisioned returns what a machine or pool waits for in the infrastructure of its Cluster; nil if that is there. A
// machine that is recorded needs only its externalID: after a move, nothing else may be known again yet.
func (w *scope) unprovisioned(recorded bool) *block {
	field := ""
	switch {
	case w.infra == nil:
		return waits(infrav1.WaitingForClusterInfrastructureReason, "the HookgateCluster of the Cluster does not exist")
	case w.infra.Spec.ExternalID == "":
		field = "spec.externalID"
	case recorded || ptr.Deref(w.cluster.Status.Initialization.InfrastructureProvisioned, false):
		return nil
	case !provisioned(w.infra.Status.Initialization):
		field = "status.initialization.provisioned"
	}
	manager, managed := w.infra.Annotations[clusterv1.ManagedByAnnotation]
	switch {
	case managed && field != "":
		return waits(infrav1.WaitingForClusterInfrastructureReason, fmt.Sprintf("HookgateCluster %q is managed by %q "+
			"(annotation %s), which has not set %s yet", w.infra.Name, manager, clusterv1.ManagedByAnnotation, field))
	case field == "spec.externalID":
		return waits(infrav1.WaitingForClusterInfrastructureReason, "the HookgateCluster has no externalID yet")
	}
	return waits(infrav1.WaitingForClusterInfrastructureReason,
		"the infrastructure of the Cluster is not provisioned yet")
}

// deletable returns why the extension must not be called to delete an object; nil if it may. What has been made may
// have been made while its namespace was allowed. Of anything else, only who wrote the object says that its externalID
// is its own, and that it ever had to do with the class.
func (w *scope) deletable(handler infrav1.HandlerName, namespace string, made bool) *block {
	if b := w.reachable(handler, true); b != nil || made {
		return b
	}
	return w.usable(namespace)
}

// handlers returns the handlers of the class.
func (w *scope) handlers() infrav1.Handlers {
	if w.class == nil {
		return infrav1.Handlers{}
	}
	return w.class.Status.Handlers
}

// target returns the handler of the class.
func (w *scope) target(handler infrav1.HandlerName) calls.Target {
	return calls.Target{
		Class: w.className, Handler: string(handler) + "." + w.class.Spec.ExtensionRef.Name,
		ProviderIDPrefix: w.class.Status.ProviderIDPrefix,
	}
}

// subject returns what a request is about, without the objects of Cluster API.
func (w *scope) subject(
	o client.Object, name, externalID string, parameters []byte, credentials map[string]string,
) *infrahooksv1alpha1.Subject {
	s := &infrahooksv1alpha1.Subject{
		ExternalId: externalID, ClusterExternalId: w.clusterExternalID, Namespace: o.GetNamespace(), Name: name,
		ClusterName: w.clusterName, Credentials: credentials,
	}
	if len(parameters) > 0 {
		s.Parameters = &hooksv1alpha1.JSON{Raw: parameters}
	}
	if w.infra != nil && w.infra != o && w.infra.Status.Outputs != nil {
		s.ClusterOutputs = &hooksv1alpha1.JSON{Raw: w.infra.Status.Outputs.Raw}
	}
	return s
}

// addObjects adds the objects of Cluster API to a subject.
func (w *scope) addObjects(s *infrahooksv1alpha1.Subject) error {
	var err error
	if w.cluster != nil {
		s.Cluster, err = rawOf(w.cluster.DeepCopy(), clusterv1.ClusterKind)
	}
	if w.machine != nil && err == nil {
		s.Machine, err = rawOf(w.machine.DeepCopy(), "Machine")
	}
	if w.machinePool != nil && err == nil {
		s.MachinePool, err = rawOf(w.machinePool.DeepCopy(), "MachinePool")
	}
	return err
}

// rawOf returns an object of Cluster API as JSON.
func rawOf(o client.Object, kind string) (*hooksv1alpha1.RawExtension, error) {
	o.GetObjectKind().SetGroupVersionKind(schema.GroupVersionKind{
		Group: clusterv1.GroupVersion.Group, Version: clusterv1.GroupVersion.Version, Kind: kind,
	})
	o.SetManagedFields(nil)
	data, err := json.Marshal(o)
	if err != nil {
		return nil, fmt.Errorf("write %s: %w", kind, err)
	}
	return &hooksv1alpha1.RawExtension{Raw: data}, nil
}

// parametersOf returns the schema and the defaults of the parameters of an object, as the webhook takes them.
func parametersOf(class *infrav1.InfrastructureClass, o object) (schemaJSON, defaults *apiextensionsv1.JSON) {
	pool, _ := o.(*infrav1.HookgateMachinePool)
	return class.ParametersOf(kindOf(o), pool)
}

// resolve returns the parameters for a request, and records whether they are valid.
func (r *base) resolve(
	ctx context.Context, o object, class *infrav1.InfrastructureClass, own *apiextensionsv1.JSON,
) ([]byte, *block) {
	schemaJSON, defaults := parametersOf(class, o)
	compiled, err := r.schemas.Compile(rawJSON(schemaJSON))
	if err != nil {
		b := stops(infrav1.SchemaInvalidReason, "the schema that the extension announces: "+err.Error())
		b.parameters = metav1.ConditionUnknown
		return nil, b
	}
	resolved, problems := compiled.Resolve(ctx, field.NewPath("spec", "parameters"), rawJSON(defaults), rawJSON(own))
	if len(problems) > 0 {
		b := stops(infrav1.InvalidParametersReason, problems.ToAggregate().Error())
		b.parameters = metav1.ConditionFalse
		return nil, b
	}
	set(o, infrav1.ParametersValidCondition, metav1.ConditionTrue, infrav1.ParametersValidReason, "")
	return resolved, nil
}

// lenient returns the parameters for a deletion, which invalid ones must not prevent.
func (r *base) lenient(
	ctx context.Context, o object, class *infrav1.InfrastructureClass, own *apiextensionsv1.JSON,
) []byte {
	schemaJSON, defaults := parametersOf(class, o)
	if compiled, err := r.schemas.Compile(rawJSON(schemaJSON)); err == nil {
		resolved, problems := compiled.Resolve(ctx, field.NewPath("spec", "parameters"), rawJSON(defaults), rawJSON(own))
		if len(problems) == 0 {
			return resolved
		}
	}
	return rawJSON(own)
}

func rawJSON(j *apiextensionsv1.JSON) []byte {
	if j == nil {
		return nil
	}
	return j.Raw
}

// busy returns when to look at an object again whose call found no place.
func busy() reconcile.Result { return later(jitter(leastInterval)) }

func later(d time.Duration) reconcile.Result { return reconcile.Result{RequeueAfter: d} }

// call has the hook called if that is due, and writes desired, on which ask records the answer. What ask gets are the
// inputs of the request, which has no objects yet.
func (r *base) call(
	ctx context.Context, p *scheduler, o, desired object, hook string, req proto.Message,
	ask func(in inputs) (reconcile.Result, error),
) (reconcile.Result, error) {
	key, in := client.ObjectKeyFromObject(o), digest(hook, req)
	if d := p.wait(key, in); d > 0 {
		return later(d), r.write(ctx, o, desired)
	}
	result, err := ask(in)
	if err != nil {
		return reconcile.Result{}, err
	}
	return result, r.record(ctx, p, o, desired)
}

// failure handles the error of a call: it records it on the object, and returns when the next call is due. An error
// that is none of the call's ends the reconciliation.
func (r *base) failure(
	p *scheduler, o object, key types.NamespacedName, in inputs, err error,
) (reconcile.Result, error) {
	if errors.Is(err, calls.ErrBusy) {
		return busy(), nil
	}
	e, ok := errors.AsType[*calls.Error](err)
	if !ok {
		return reconcile.Result{}, err
	}
	setUnsynced(o, e.Reason, e.Message)
	return later(p.failed(key, in, e.RetryAfter)), nil
}

// provisioned reports whether the infrastructure has been provisioned.
func provisioned(i infrav1.Initialization) bool { return ptr.Deref(i.Provisioned, false) }
