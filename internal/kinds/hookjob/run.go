// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package hookjob

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math"
	"strings"

	"google.golang.org/protobuf/proto"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/hookgate/hookgate/catalog"
	hooksv1alpha1 "github.com/hookgate/hookgate/gen/go/hookgate/hooks/v1alpha1"
	"github.com/hookgate/hookgate/internal/base/limits"
	"github.com/hookgate/hookgate/internal/calls/policy"
	"github.com/hookgate/hookgate/internal/contract/codec"
	"github.com/hookgate/hookgate/internal/contract/jsonscan"
	"github.com/hookgate/hookgate/internal/contract/subject"
)

// run is what one Job is for: one value of once.
type run struct {
	hookJob        string // the name of the HookJob
	hookJobUID     types.UID
	hook           string // the name of the hook
	once, key      string // the value, and a digest of the HookJob, the hook and the value
	namespace, job string // of the Job
	cluster        types.NamespacedName
	clusterUID     string                     // empty if the request does not say
	machine        *unstructured.Unstructured // as it is now; nil for hooks about a Cluster
	request        []byte
	message        proto.Message
}

// String returns the Job for messages.
func (r *run) String() string { return r.namespace + "/" + r.job }

// keyBytes is how much of a digest is in the name of a Job. The Job has the value of once, too.
const keyBytes = 8

// newRun returns what the Job for a request is for.
func (j *Job) newRun(ctx context.Context, request proto.Message, guard policy.Guard) (*run, error) {
	body, err := j.codec.EncodeWithin(request, math.MaxInt64, codec.Guard{Reserve: guard.Reserve})
	if err != nil {
		return nil, err
	}
	if guard.Reserve != nil {
		if err := guard.Reserve(body.Size()); err != nil {
			return nil, err
		}
	}
	r := &run{hookJob: j.name, hookJobUID: j.uid, hook: j.hook.Hook, request: body.Bytes(), message: request}
	r.cluster.Namespace, r.cluster.Name = subject.Cluster(request)
	if about, ok := request.(interface {
		GetCluster() *hooksv1alpha1.RawExtension
	}); ok {
		r.clusterUID = stringAt(about.GetCluster(), "metadata", "uid")
	}
	switch about := request.(type) {
	case *hooksv1alpha1.UpdateMachineRequest:
		r.machine, err = j.cluster.machine(ctx, about.GetDesired().GetMachine())
	case aboutMachine:
		r.machine = &unstructured.Unstructured{}
		if err = json.Unmarshal(about.GetMachine().GetRaw(), &r.machine.Object); err != nil {
			err = failuref("the Machine of the request is not JSON: %v", err)
		}
	}
	if err != nil {
		return nil, err
	}
	switch {
	case j.once != nil:
		r.once, err = policy.NewRequest(r.request, guard).Evaluate(ctx).String(j.once)
	case j.inPlace:
		r.once, err = machineOnce(r.machine, request)
	case r.machine != nil:
		r.once, err = onceOf(r.machine, request)
	default:
		r.once, err = clusterOnce(r.clusterUID, request)
	}
	switch {
	case err != nil:
		return nil, err
	case r.once == "":
		return nil, failuref("HookJob %q: the value of spec.once is empty, but must tell Jobs apart", j.name)
	case len(r.once) > limits.JobOnceBytes:
		return nil, failuref("HookJob %q: spec.once has %d bytes: at most %d are possible", j.name, len(r.once),
			limits.JobOnceBytes)
	}
	if r.namespace = j.namespace; r.namespace == BesideCluster {
		r.namespace = r.cluster.Namespace
	}
	digest := sha256.Sum256([]byte(j.name + "\x00" + r.hook + "\x00" + r.once))
	r.key = hex.EncodeToString(digest[:keyBytes])
	// The name of a Job is a label of its Pods, which has at most 63 characters.
	r.job = strings.TrimRight(j.name[:min(len(j.name), 63-1-2*keyBytes)], "-") + "-" + r.key
	return r, nil
}

// aboutMachine is a request of the hooks of hooks.machines.hookgate.dev, which have the whole Machine.
type aboutMachine interface {
	GetMachine() *hooksv1alpha1.RawExtension
}

// onceOf returns the default value of once for these hooks: the Machine, its remediation, and the attempt.
func onceOf(machine *unstructured.Unstructured, request proto.Message) (string, error) {
	once := string(machine.GetUID())
	if once == "" {
		return "", failuref("the Machine of the request has no metadata.uid: the HookJob must have spec.once")
	}
	if r, ok := request.(interface{ GetRemediationId() string }); ok {
		once += "/" + r.GetRemediationId()
	}
	if r, ok := request.(interface{ GetAttempt() int32 }); ok {
		once += fmt.Sprintf("/%d", r.GetAttempt())
	}
	return once, nil
}

// clusterOnce returns the default value of once for lifecycle hooks.
func clusterOnce(uid string, request proto.Message) (string, error) {
	if uid == "" {
		return "", failuref("the Cluster of the request has no metadata.uid: the HookJob must have spec.once")
	}
	if version, is := catalog.UpgradeVersionOf(request); is {
		return uid + "/" + version, nil
	}
	return uid, nil
}

// machineOnce returns the default value of once for UpdateMachine: the Machine, and a digest of its desired state.
func machineOnce(machine *unstructured.Unstructured, request proto.Message) (string, error) {
	update, _ := request.(*hooksv1alpha1.UpdateMachineRequest)
	digest := sha256.New()
	desired := update.GetDesired()
	for _, object := range []*hooksv1alpha1.RawExtension{
		desired.GetMachine(), desired.GetInfrastructureMachine(), desired.GetBootstrapConfig(),
	} {
		spec, err := canonical(object)
		if err != nil {
			return "", failuref("the request has an object that is not JSON: %v", err)
		}
		_ = json.NewEncoder(digest).Encode(spec) // a digest takes everything
	}
	return string(machine.GetUID()) + "/" + hex.EncodeToString(digest.Sum(nil)[:keyBytes]), nil
}

// canonical returns the spec of an object, whose members json.Marshal sorts, so that equal states have equal texts.
func canonical(object *hooksv1alpha1.RawExtension) (spec any, err error) {
	text, err := jsonscan.Lookup(object.GetRaw(), "spec")
	if err != nil || len(text) == 0 {
		return nil, err
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	return spec, d.Decode(&spec)
}

// machine reads the Machine that a request is about: Cluster API sends neither its UID nor its status.
func (c *Cluster) machine(
	ctx context.Context, desired *hooksv1alpha1.RawExtension,
) (*unstructured.Unstructured, error) {
	m := &unstructured.Unstructured{}
	m.SetGroupVersionKind(MachineKind)
	key := client.ObjectKey{
		Namespace: stringAt(desired, "metadata", "namespace"), Name: stringAt(desired, "metadata", "name"),
	}
	switch err := c.API.Get(ctx, key, m); {
	case apierrors.IsNotFound(err):
		return nil, failuref("there is no Machine %s", key)
	case err != nil:
		return nil, c.explain("read Machine "+key.String(), err)
	}
	return m, nil
}

func stringAt(object *hooksv1alpha1.RawExtension, path ...string) string {
	value, _ := jsonscan.Lookup(object.GetRaw(), path...)
	s, _ := jsonscan.String(value)
	return s
}
