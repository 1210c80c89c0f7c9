// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// ClusterAPIChange is something that a minor release of Cluster API changed for the handlers of some hooks, besides the
// versions of objects, which ClusterAPIHook has. It is immutable.
type ClusterAPIChange struct {
	// Release is the minor release that made the change, such as v1.14.
	Release string
	// Hooks are the hooks concerned, ordered by name.
	Hooks []string
	// Kind says for what the change is.
	Kind ClusterAPIChangeKind
	// Text describes the change as a clause whose subject is a part of the request or of the answer, or Cluster API.
	Text string
	// Members are the paths of the members that requests have since the change, as in cluster.spec.topology.taints, with
	// [*] for the elements of a list. Callers must not change the slice.
	Members []string
	// Templates are those to whose metadata Cluster API adds labels and annotations since the change.
	Templates Templates
	// Announced is set for a change that no release has yet. It is as announced, and may still change.
	Announced bool
}

// ClusterAPIChangeKind is what a ClusterAPIChange is about.
type ClusterAPIChangeKind int

const (
	// RequestGains is a change by which requests have more than before: Members or Templates.
	RequestGains ClusterAPIChangeKind = iota
	// RequestDiffers is a change of values in requests.
	RequestDiffers
	// AnswerCounts is a change by which Cluster API acts on what handlers may have answered before without an effect.
	AnswerCounts
	// CallDiffers is a change of when Cluster API calls, or of what follows.
	CallDiffers
)

// Templates are some of the templates in requests, by where Cluster API adds metadata to them.
type Templates int

const (
	// NoTemplates is the zero value.
	NoTemplates Templates = iota
	// TemplatesOfOne are those of which Cluster API makes one object: of infrastructure clusters, control planes, and
	// the bootstrap and infrastructure of MachinePools. The metadata is in spec.template.metadata.
	TemplatesOfOne
	// TemplatesOfMachines are those that are copied as templates: of machines and their bootstrap. The metadata is that
	// of the template itself.
	TemplatesOfMachines
)

// The labels and annotations that Cluster API adds to templates; the last two labels to those of workers.
var (
	TopologyLabels = []string{
		"cluster.x-k8s.io/cluster-name", "topology.cluster.x-k8s.io/owned",
		"topology.cluster.x-k8s.io/deployment-name", "topology.cluster.x-k8s.io/pool-name",
	}
	TopologyAnnotations = []string{
		"cluster.x-k8s.io/cloned-from-groupkind", "cluster.x-k8s.io/cloned-from-name",
	}
)

// withCluster are the hooks whose requests have a Cluster, with the members of its types.
var withCluster = []string{
	"AfterClusterUpgrade", "AfterControlPlaneInitialized", "AfterControlPlaneUpgrade", "AfterWorkersUpgrade",
	"BeforeClusterCreate", "BeforeClusterDelete", "BeforeClusterUpgrade", "BeforeControlPlaneUpgrade",
	"BeforeWorkersUpgrade", "GenerateUpgradePlan",
}

var (
	withTemplates = []string{"GeneratePatches", "ValidateTopology"}
	canUpdate     = []string{"CanUpdateMachine", "CanUpdateMachineSet"}
)

// clusterAPIChanges is the result of comparing Cluster API's sources release by release, from v1.11.0 to v1.14.2: the
// types of api/runtime/hooks/v1alpha1 and all that they contain, the engine that makes requests of topologies
// (internal/controllers/topology/cluster/patches, core/reconcilers/topology/cluster/patches since v1.14),
// exp/topology/desiredstate, and the callers of the in-place hooks. Members of a status are left out, because Cluster
// API removes it from requests. What v1.15 will change is as its developers announced it.
var clusterAPIChanges = []ClusterAPIChange{
	{
		Release: "v1.12", Hooks: []string{"AfterControlPlaneUpgrade", "BeforeClusterUpgrade"}, Kind: RequestGains,
		Text:    "the request lists the remaining steps of the upgrade",
		Members: []string{"controlPlaneUpgrades", "workersUpgrades"},
	},
	{
		Release: "v1.12", Hooks: []string{"AfterClusterUpgrade"}, Kind: AnswerCounts,
		Text: "retryAfterSeconds in the answer delays the next upgrade",
	},
	{
		Release: "v1.12", Hooks: withTemplates, Kind: RequestDiffers,
		Text: "for a control plane with contract v1beta1, holderReference.fieldPath of the machine template is " +
			"spec.machineTemplate.infrastructureRef, instead of spec.machineTemplate.spec.infrastructureRef",
	},
	{
		Release: "v1.13", Hooks: withCluster, Kind: RequestGains,
		Text: "the topology of the Cluster may have taints, rollout.after, and health checks by conditions of " +
			"Machines",
		Members: []string{
			"cluster.spec.topology.controlPlane.machineHealthCheck.unhealthyMachineConditions",
			"cluster.spec.topology.controlPlane.rollout.after",
			"cluster.spec.topology.controlPlane.taints",
			"cluster.spec.topology.workers.machineDeployments[*].machineHealthCheck.unhealthyMachineConditions",
			"cluster.spec.topology.workers.machineDeployments[*].rollout.after",
			"cluster.spec.topology.workers.machineDeployments[*].taints",
			"cluster.spec.topology.workers.machinePools[*].taints",
		},
	},
	{
		Release: "v1.13", Hooks: []string{"GeneratePatches"}, Kind: AnswerCounts,
		Text: "taints and rollout.after that the topology sets for the control plane override the values " +
			"that a patch writes into the control plane's template",
	},
	{
		Release: "v1.14", Hooks: withTemplates, Kind: RequestGains,
		Text: "templates of infrastructure clusters, control planes, and MachinePools (bootstrap and infrastructure) have " +
			"labels and annotations in spec.template.metadata",
		Templates: TemplatesOfOne,
	},
	{
		Release: "v1.14", Hooks: withTemplates, Kind: RequestGains,
		Text: "infrastructure and bootstrap templates of machines have labels and annotations of Cluster API in their " +
			"metadata",
		Templates: TemplatesOfMachines,
	},
	{
		Release: "v1.14", Hooks: []string{"GeneratePatches"}, Kind: AnswerCounts,
		Text: "patches of metadata.labels, metadata.annotations, spec.template.metadata.labels and " +
			"spec.template.metadata.annotations take effect; earlier releases dropped these patches",
	},
	{
		Release: "v1.14", Hooks: []string{"CanUpdateMachine"}, Kind: CallDiffers,
		Text: "the hook is not called if the API server would refuse the changed infrastructure machine",
	},
	{
		Release: "v1.15", Hooks: canUpdate, Kind: AnswerCounts, Announced: true,
		Text: "if the answer has affectsAvailability: false, an update can start without a surge machine",
	},
	{
		Release: "v1.15", Hooks: withCluster, Kind: RequestGains, Announced: true,
		Text: "MachineDeployments and MachinePools of the topology may have a version of their own (alpha)",
		Members: []string{
			"cluster.spec.topology.workers.machineDeployments[*].version",
			"cluster.spec.topology.workers.machinePools[*].version",
		},
	},
	{
		Release: "v1.15", Hooks: []string{
			"AfterClusterUpgrade", "AfterWorkersUpgrade", "BeforeClusterUpgrade", "BeforeWorkersUpgrade",
		}, Kind: CallDiffers, Announced: true,
		Text: "workers with a version of their own (an alpha feature) are upgraded separately, without a call of this hook",
	},
}

// ComparedReleases returns the names of the releases that were compared and are out, oldest first.
func ComparedReleases() []string {
	var names []string
	for _, r := range ClusterAPIReleases() {
		if minorOf(r.Name) >= oldestCompared {
			names = append(names, r.Name)
		}
	}
	return names
}

// oldestCompared is the oldest release of which the types and the engine were compared with the next.
const oldestCompared = 11

// ClusterAPIChanges returns what releases of Cluster API changed for the handlers of a hook after one release and up to
// another, oldest first. Without a hook, it returns the changes for all; without after, those since the oldest of
// ComparedReleases.
func ClusterAPIChanges(hookName string, after, upTo *ClusterAPIRelease) []ClusterAPIChange {
	var changes []ClusterAPIChange
	for _, c := range clusterAPIChanges {
		minor := minorOf(c.Release)
		if hookName != "" && !slices.Contains(c.Hooks, hookName) || after != nil && minor <= minorOf(after.Name) ||
			upTo != nil && minor > minorOf(upTo.Name) {
			continue
		}
		changes = append(changes, c)
	}
	return changes
}

// Gained returns what requests of a hook have in newer releases, and did not have in the one named.
func Gained(hookName, release string) []ClusterAPIChange {
	return gainedSince[release][hookName]
}

// gainedSince has the changes of requests by release and hook: every call asks for them.
var gainedSince = func() map[string]map[string][]ClusterAPIChange {
	all := map[string]map[string][]ClusterAPIChange{}
	for _, r := range ClusterAPIReleases() {
		byHook := map[string][]ClusterAPIChange{}
		for _, c := range ClusterAPIChanges("", r, nil) {
			if c.Kind == RequestGains && !c.Announced {
				for _, h := range c.Hooks {
					byHook[h] = append(byHook[h], c)
				}
			}
		}
		all[r.Name] = byHook
	}
	return all
}()

// minorOf returns the number of a minor release of the tables here.
func minorOf(release string) int {
	n, err := strconv.Atoi(strings.TrimPrefix(release, "v1."))
	if err != nil {
		panic(fmt.Sprintf("catalog: %q is not a minor release", release)) // a mistake in a table, which every test sees
	}
	return n
}
