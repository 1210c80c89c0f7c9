// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package selection

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

// JudgeStep is judge for a step of a chain, except that the objectSelector of a step of an in-place hook matches the
// labels of the Cluster: the Machine, its MachineSet and its KubeadmControlPlane have others, and a step that is chosen
// for one of them has to be chosen for all.
func (m *Matcher) JudgeStep(ctx context.Context, c *registry.Chain, step *registry.Entry) Verdict {
	if !subject.OfMachine(m.Message) {
		return m.Judge(ctx, step)
	}
	if v := m.judgeNamespaces(step.Registration.NamespaceSelector); v.Excluded() {
		return v
	}
	for _, p := range []*policy.Policy{step.Registration.Selection, step.Policy} {
		if v := m.judgeStepPolicy(ctx, c, step, p); v.Excluded() || v.PolicyError != nil {
			return v
		}
	}
	return Verdict{}
}

// judgeStepPolicy decides whether a policy, which may be nil, lets the handler of a step of an in-place hook be called.
func (m *Matcher) judgeStepPolicy(
	ctx context.Context, c *registry.Chain, step *registry.Entry, p *policy.Policy,
) Verdict {
	if p == nil || p.ObjectSelector == nil || p.ObjectSelector.Empty() {
		return m.judgePolicy(ctx, p)
	}
	cluster, of, err := m.clusterLabels(c, step, p)
	switch {
	case err != nil:
		return Verdict{By: ByUnknownCluster, Policy: p, unknown: err}
	case !p.ObjectSelector.Matches(of):
		return Verdict{By: ByCluster, Policy: p, cluster: cluster, labels: of}
	}
	return m.judgeConditions(ctx, p)
}

// clusterLabels returns the Cluster of the Machine or MachineSet that a request is about, and its labels. The error, a
// *hook.Error, says why they are not known.
func (m *Matcher) clusterLabels(
	c *registry.Chain, step *registry.Entry, p *policy.Policy,
) (cluster string, of labels.Set, err error) {
	namespace, name, err := subject.MachineCluster(m.Message)
	if err != nil {
		return "", nil, err
	}
	cluster = text.Cut(namespace+"/"+name, limits.QuotedBytes)
	if m.clusters == nil {
		return cluster, nil, hook.Errorf(hook.NotReady, "%s cannot be called: the objectSelector of %s for "+
			"step %q selects Clusters, but a gateway without a cluster does not know the labels of Clusters: use "+
			"matchConditions or a namespaceSelector", c, p, step.Name)
	}
	labels, known := m.clusters.ClusterLabels(namespace, name)
	if !known {
		return cluster, nil, hook.Errorf(hook.NotReady, "the objectSelector of %s for step %q of %s depends on the "+
			"labels of Cluster %q, which are not known: try again; the gateway has to be allowed to list and watch "+
			"clusters of cluster.x-k8s.io", p, step.Name, c, cluster)
	}
	return cluster, labels, nil
}
