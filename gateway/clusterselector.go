// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/hookgate/hookgate/hook"
	"github.com/hookgate/hookgate/internal/base/limits"
	"github.com/hookgate/hookgate/internal/base/text"
	"github.com/hookgate/hookgate/internal/calls/policy"
	"github.com/hookgate/hookgate/internal/contract/subject"
	"github.com/hookgate/hookgate/registry"
)

// Clusters returns the labels of Clusters. Implementations are safe for concurrent use and do not block, because calls
// wait for them.
type Clusters interface {
	// ClusterLabels returns the labels of a Cluster, and reports whether they are known. Callers do not change the map.
	ClusterLabels(namespace, name string) (labels map[string]string, known bool)
}

// judgeStep is judge for a step of a chain, except that the objectSelector of a step of an in-place hook matches the
// labels of the Cluster: the Machine, its MachineSet and its KubeadmControlPlane have others, and a step that is chosen
// for one of them has to be chosen for all.
func (m *matcher) judgeStep(ctx context.Context, c *registry.Chain, step *registry.Entry) verdict {
	if !subject.OfMachine(m.message) {
		return m.judge(ctx, step)
	}
	if v := m.judgeNamespaces(step.Registration.NamespaceSelector); v.excluded() {
		return v
	}
	for _, p := range []*policy.Policy{step.Registration.Selection, step.Policy} {
		if v := m.judgeStepPolicy(ctx, c, step, p); v.excluded() || v.policyError != nil {
			return v
		}
	}
	return verdict{}
}

// judgeStepPolicy decides whether a policy, which may be nil, lets the handler of a step of an in-place hook be called.
func (m *matcher) judgeStepPolicy(
	ctx context.Context, c *registry.Chain, step *registry.Entry, p *policy.Policy,
) verdict {
	if p == nil || p.ObjectSelector == nil || p.ObjectSelector.Empty() {
		return m.judgePolicy(ctx, p)
	}
	cluster, of, err := m.clusterLabels(c, step, p)
	switch {
	case err != nil:
		return verdict{by: byUnknownCluster, policy: p, unknown: err}
	case !p.ObjectSelector.Matches(of):
		return verdict{by: byCluster, policy: p, cluster: cluster, labels: of}
	}
	return m.judgeConditions(ctx, p)
}

// clusterLabels returns the Cluster of the Machine or MachineSet that a request is about, and its labels. The error, a
// *hook.Error, says why they are not known.
func (m *matcher) clusterLabels(
	c *registry.Chain, step *registry.Entry, p *policy.Policy,
) (cluster string, of labels.Set, err error) {
	namespace, name, err := subject.MachineCluster(m.message)
	if err != nil {
		return "", nil, err
	}
	cluster = text.Cut(namespace+"/"+name, limits.QuotedBytes)
	if m.clusters == nil {
		return cluster, nil, hook.Errorf(hook.NotReady, "%s cannot be called: the objectSelector of %s selects "+
			"Clusters for its step %q, and a gateway without a cluster knows the labels of none: use matchConditions or a "+
			"namespaceSelector", c, p, step.Name)
	}
	labels, known := m.clusters.ClusterLabels(namespace, name)
	if !known {
		return cluster, nil, hook.Errorf(hook.NotReady, "the labels of Cluster %q, on which the objectSelector of %s for "+
			"step %q of %s depends, are not known: try again; the gateway has to be allowed to list and watch "+
			"clusters of cluster.x-k8s.io", cluster, p, step.Name, c)
	}
	return cluster, labels, nil
}
