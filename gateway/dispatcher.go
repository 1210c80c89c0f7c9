// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"cmp"
	"context"

	"google.golang.org/protobuf/proto"
	corev1 "k8s.io/api/core/v1"

	"github.com/hookgate/hookgate/catalog"
	"github.com/hookgate/hookgate/hook"
	"github.com/hookgate/hookgate/hookversion"
	"github.com/hookgate/hookgate/internal/base/limits"
	"github.com/hookgate/hookgate/internal/calls/bounds"
	"github.com/hookgate/hookgate/internal/calls/extension"
	"github.com/hookgate/hookgate/internal/calls/extensionstate"
	"github.com/hookgate/hookgate/internal/calls/offer"
	"github.com/hookgate/hookgate/internal/calls/outcome"
	"github.com/hookgate/hookgate/internal/calls/selection"
	"github.com/hookgate/hookgate/internal/network/via"
	"github.com/hookgate/hookgate/internal/serving/shared"
	"github.com/hookgate/hookgate/registry"
)

// Config holds the parts of a Dispatcher and of the fronts before it. Catalog, Versions, Registry, Namespaces and Parts
// are required.
type Config struct {
	Catalog    *catalog.Catalog
	Versions   *hookversion.Converter // of Catalog
	Registry   registry.Snapshots
	Namespaces Namespaces
	// Clusters has the labels by which steps of chains of in-place hooks are chosen. Nil means that none are known.
	Clusters Clusters
	// Gate admits callers. Nil admits everyone. Package command makes one.
	Gate gate
	// Gateway is the id of this gateway, by which it recognizes calls that come back to it; replicas share it. The
	// transport's requests for discovery carry it, too. Empty means a new one.
	Gateway string
	// Blocked is called when a HandlerChain with onPartialCoverage: Block has held an update in place, with the
	// KubeadmControlPlane or MachineDeployment of the request. It must not block. Nil does nothing.
	Blocked func(owner corev1.ObjectReference, chain, message string)
	// Audited is called when a HookRule with action: Audit would have answered otherwise than it did. cluster is empty for
	// a request about none. It must not block. Nil does nothing.
	Audited func(rule, namespace, cluster, message string)
	// Lifted is called when an ExtensionPolicy has lifted a hold: which policy, which handler, what that says, and for
	// which Cluster. It must not block. Nil does nothing.
	Lifted func(policy, handler, namespace, cluster, message string)
	// Want is called with the group of a hook, besides Cluster API's, that no known handler answers. Nil does nothing.
	Want func(group string)

	// Parts are shared with the rest of the process, and made by package command.
	shared.Parts
}

// Dispatcher decides which handlers answer a request, calls them, and merges their answers. It is safe for concurrent
// use.
type Dispatcher struct {
	config     Config
	caller     extension.Caller
	extensions *extensionstate.States
	namesakes  *namesakes
}

// NewDispatcher returns a Dispatcher.
func NewDispatcher(c Config) *Dispatcher {
	if c.Gateway == "" {
		c.Gateway = via.NewGateway()
	}
	extensions := extensionstate.New(c.Registry)
	if c.Observer != nil {
		extensions = c.Observer.Extensions()
	}
	return &Dispatcher{config: c, caller: chain(c, extensions), extensions: extensions, namesakes: newNamesakes()}
}

// Namespaces returns the labels of namespaces. Implementations are safe for concurrent use and do not block, because
// calls wait for them.
type Namespaces interface {
	// NamespaceLabels returns the labels of a namespace, kubernetes.io/metadata.name among them, and reports whether
	// these are all: of a namespace that is not known, it returns that one alone. Callers do not change the map.
	NamespaceLabels(name string) (labels map[string]string, known bool)
}

// Clusters returns the labels of Clusters. Implementations are safe for concurrent use and do not block, because calls
// wait for them.
type Clusters interface {
	// ClusterLabels returns the labels of a Cluster, and reports whether they are known. Callers do not change the map.
	ClusterLabels(namespace, name string) (labels map[string]string, known bool)
}

// Dispatch answers a request, with the gateway's own handlers if it is one of discovery. An error is a *hook.Error of
// any kind but Unauthenticated and Forbidden. A Failure that an extension answered is an answer, not an error.
func (d *Dispatcher) Dispatch(ctx context.Context, r Request) (proto.Message, error) {
	return d.dispatchIn(ctx, d.config.Registry.Snapshot(), r)
}

// dispatchIn is Dispatch to the handlers of a snapshot.
func (d *Dispatcher) dispatchIn(
	ctx context.Context, snapshot *registry.Snapshot, r Request,
) (response proto.Message, err error) {
	if !snapshot.Ready() {
		return nil, selection.NotReady(snapshot)
	}
	isForeign := false
	defer func() {
		if err != nil && !isForeign {
			d.failed(snapshot, r)
		}
	}()
	if r.Hook.Singleton() && r.Handler == "" {
		offers := offer.Offers{Catalog: d.config.Catalog, Gateway: d.config.Gateway}
		return offers.Discovery(snapshot, r.Hook, r.via), nil
	}
	if len(r.Handler) > limits.NameBytes {
		return nil, selection.TooLong(r.Handler)
	}
	m := d.newMatcher()
	var one selection.Target
	var targets []selection.Target
	isOne := selection.IsNamed(snapshot, r.Hook, r.Handler)
	err = bounds.Heavy(ctx, func() (err error) {
		defer m.Release(ctx)
		if err = m.Read(r.selected()); err != nil {
			return err
		}
		if err = d.checkCluster(ctx, m.Message); err != nil {
			isForeign = true
			return err
		}
		if isOne {
			one, err = selection.Named(ctx, snapshot, r.selected(), &m)
			return cmp.Or(m.NamespacesErr, err)
		}
		targets, err = selection.Matching(ctx, snapshot, r.selected(), &m)
		return cmp.Or(m.NamespacesErr, err)
	})
	switch {
	case isForeign && snapshot.IsSidecar(): // whose caller may hide errors, as the extension has failurePolicy: Ignore
		return outcome.Failure(r.Hook, err.Error()), nil
	case err != nil:
		if hook.KindOf(err) == hook.UnknownHandler && r.Hook.Group != hook.Group && d.config.Want != nil {
			d.config.Want(r.Hook.Group)
		}
		return nil, err
	case isOne:
		return d.call(ctx, r, one)
	case r.Hook.Mergeable:
		if in := callFrom(ctx); in != nil {
			in.unhandled = len(targets) == 0
		}
		return outcome.Merge(r.Hook, selection.NamesOf(targets), d.callAll(ctx, r, targets))
	case len(targets) != 1:
		return nil, selection.WantOne(r.Hook, targets)
	}
	return d.call(ctx, r, targets[0])
}

func (d *Dispatcher) newMatcher() selection.Matcher {
	return selection.New(d.config.Namespaces, d.config.Clusters, d.config.Versions, d.config.Codec)
}

// call calls one handler, or the steps of a chain. A panic becomes the error of this call, and of no other.
func (d *Dispatcher) call(ctx context.Context, r Request, t selection.Target) (response proto.Message, err error) {
	defer func() { response = nameHold(r.Hook, t.Seen(), response) }()
	if t.Chain != nil {
		var end func(proto.Message, error)
		ctx, end = d.config.Observer.BeginChain(ctx, r.Hook, t.Chain.Name)
		defer func() { end(response, err) }()
	}
	var result extension.Result
	if r.trial != nil {
		defer func() { r.trial.keep(ctx, t.Name(), r, response, result.Audited, err) }()
	}
	if r.heard != nil {
		defer func() { r.heard(t.Name(), response, err) }()
	}
	defer func() {
		if p := recover(); p != nil {
			response, err = nil, outcome.Recovered(p).WithHandler(t.Name())
		}
	}()
	if t.Chain != nil {
		return d.callChain(ctx, r, t)
	}
	result, err = d.callHandler(ctx, r, t)
	d.answered(ctx, r, t, result.Response, cmp.Or(err, result.Ignored))
	if _, refused := catalog.FailureOf(result.Response); refused || result.Ignored != nil && t.Member != nil {
		d.failed(d.config.Registry.Snapshot(), r)
	}
	return result.Response, err
}

// callHandler calls one handler. The result of a failed call has no response.
func (d *Dispatcher) callHandler(ctx context.Context, r Request, t selection.Target) (extension.Result, error) {
	c := extension.Call{
		ID: callID(ctx), Hook: r.Hook, Handler: t.Entry,
		Request: r.Message, Partial: r.Partial, Elements: r.elements, Body: r.Body,
		PolicyError: t.PolicyError, Via: r.via.Next(d.config.Gateway, t.Entry.Name),
		CalledAs: r.calledAs, Comparison: r.calledAs != "",
	}
	if t.Member != nil {
		c.CalledAs = t.Seen()
	}
	if merged := withSettings(r.Message, t.AllSettings()); merged != r.Message {
		c.Request, c.Body = merged, nil
	}
	result, err := d.caller(ctx, c)
	if err != nil {
		failed := outcome.ErrorOf(err).WithHandler(t.Entry.Name)
		failed.Refused = failed.Refused && d.config.Registry.Snapshot().IsSidecar()
		result.Response = nil
		return result, failed
	}
	return result, nil
}
