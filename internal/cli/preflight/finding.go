// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package preflight

import (
	"cmp"
	"slices"
	"strings"
)

// Level is the severity of a finding.
type Level string

// The levels, from the worst.
const (
	Break   Level = "break"   // the handler would not be called, or would get what it does not understand
	Unknown Level = "unknown" // nothing is known of the handlers, so that they may break
	Degrade Level = "degrade" // the handler would work, but something would be lost on the way
	Warn    Level = "warn"    // an operator should look at it
	OK      Level = "ok"
)

// rank orders levels, the worst first.
func (l Level) rank() int { return slices.Index([]Level{Break, Unknown, Degrade, Warn, OK}, l) }

// AtLeast reports whether l is as bad as o, or worse.
func (l Level) AtLeast(o Level) bool { return l.rank() <= o.rank() }

// Rule is a reason for findings.
type Rule struct {
	ID    string `json:"id"`
	Level Level  `json:"level"`
	Text  string `json:"text"`
	// Help says what to do.
	Help string `json:"help,omitempty"`
}

// The identifiers of the rules.
const (
	ruleUnreadable    = "unreadable"
	ruleHookUnknown   = "hook-unknown"
	ruleHookRemoved   = "hook-removed"
	ruleNotCalled     = "hook-not-called"
	ruleObjectsChange = "objects-change"
	ruleCannotConvert = "cannot-convert"
	ruleMembersLost   = "members-lost"
	ruleVariables     = "variables-metadata"
	ruleRequests      = "requests-change"
	ruleAnswers       = "effects-change"
	ruleDeprecated    = "hook-deprecated"
	ruleNotStated     = "not-stated"
	ruleNeverSent     = "never-sent"
	ruleUndiscovered  = "not-discovered"
	rulePolicy        = "policy-ignored"
	ruleGateway       = "gateway"
	ruleChainBroken   = "chain-broken"
	ruleChainNotReady = "chain-not-ready"
	ruleSeveral       = "several-handlers"
	ruleReferences    = "references-unchecked"
	ruleOK            = "ok"
)

// Rules returns all rules, the worst first. The last is for handlers without a problem.
func Rules() []Rule {
	rules := slices.Concat(breaking(), losing(), warning())
	return append(rules, Rule{ID: ruleOK, Level: OK, Text: "Nothing changes for the handler."})
}

func breaking() []Rule {
	return []Rule{
		{ruleUnreadable, Break, "A manifest cannot be read, so the effect of the upgrade on it is not known.",
			"Correct the manifest. For a HookRule in the cluster, the finding means that the new release of the gateway would " +
				"not use the rule."},
		{ruleHookUnknown, Break, "The handler implements a hook or hook version that the gateway does not have.",
			"The gateway never calls the handler: the extension is newer than the gateway, or names a wrong hook."},
		{ruleHookRemoved, Break, "The handler implements a version of its hook that the gateway has removed.",
			"Upgrade the extension before the gateway."},
		{ruleNotCalled, Break, "Cluster API does not call the hook that the handler implements.",
			"The target release of Cluster API is older than the hook, or calls a hook version that the gateway does not " +
				"have."},
		{ruleObjectsChange, Break,
			"The version of Cluster API objects in requests changes, and nothing states which version the handler understands.",
			"State the version with an ExtensionPolicy, or upgrade the extension first."},
		{ruleCannotConvert, Break,
			"The gateway cannot convert the objects in requests of Cluster API to the version that the handler understands.",
			"If Clusters refer to objects whose version is not in the labels of a CustomResourceDefinition, add the labels of " +
				"Cluster API's contract."},
		{ruleChainBroken, Break, "A step of the HandlerChain would not be called, so calls of the chain fail.",
			"See the findings about the handler of the step, or make the step optional."},
		{ruleSeveral, Break, "Several handlers are offered for the hook, but Cluster API accepts only one.",
			"Combine the handlers into a HandlerChain: if Cluster API finds several handlers, it calls none. The level is " +
				"warn if the running Cluster API already calls the hook."},
	}
}

func losing() []Rule {
	return []Rule{
		{ruleUndiscovered, Unknown, "It is not known which handlers the extension has.",
			"Start the extension, and check again. The level is warn if the status of the ExtensionConfig lists handlers."},
		{ruleMembersLost, Degrade,
			"The gateway converts requests for the handler, and the handler's version cannot express some members.",
			"Check whether the handler reads any of the listed members."},
		{ruleVariables, Degrade,
			"The metadata of variables moves to another member, and nothing states which member the handler uses.",
			"Cluster API v1.12 reads metadata, and newer releases read deprecatedV1Beta1Metadata. If an ExtensionPolicy " +
				"states the version, both v1.12 and newer releases find the metadata."},
	}
}

func warning() []Rule {
	return []Rule{
		{ruleRequests, Warn, "Requests to the handler get new members, which a strict decoder refuses.",
			"Set clusterAPIRelease in an ExtensionPolicy; -o policies adds it."},
		{ruleAnswers, Warn, "Cluster API uses the handler's answers differently than now, or calls the handler differently.",
			"Read the finding: for example, Cluster API may apply a patch that it dropped before."},
		{ruleDeprecated, Warn, "The handler implements a deprecated version of its hook.",
			"A later release of the gateway will remove the version: upgrade the extension in time."},
		{ruleNotStated, Warn, "Nothing states which version of Cluster API objects the handler understands, and the " +
			"running Cluster API release is unknown or does not call the handler.",
			"Name the running release with --from. Or state the version that the handler understands: in an " +
				"ExtensionPolicy or, for a HookRule, in spec.clusterAPIVersion."},
		{ruleNeverSent, Warn,
			"A policy that applies to all handlers states a version of Cluster API objects, but this handler has never " +
				"received objects of that version.",
			"Give the handler its own policy, which sets only clusterAPIVersion: all other fields still come from the policy " +
				"for all handlers."},
		{ruleChainNotReady, Warn, "The HandlerChain cannot be called, with or without the upgrade.",
			"A step has no handler, a step is of another hook, or the name of the chain is taken."},
		{rulePolicy, Warn, "An ExtensionPolicy sets the version of Cluster API objects for handlers, but is not in effect.",
			"Its target is missing, another policy has the same target, or the policy has a mistake."},
		{ruleReferences, Warn,
			"The gateway converts Clusters for the handler, but it is not known whether the gateway can find out the " +
				"version of every object to which a Cluster refers.",
			"You may not list clusters of cluster.x-k8s.io or customresourcedefinitions of apiextensions.k8s.io. A directory " +
				"has no Clusters: add the CustomResourceDefinitions of your providers to the directory. A " +
				"CustomResourceDefinition without the labels of Cluster API's contract leads to the finding cannot-convert."},
		{ruleGateway, Warn, "The extension is a gateway, and the handlers registered with that gateway are not " +
			"judged here.",
			"Also check what is registered with that gateway, in its directory or in its API group."},
	}
}

// Finding is an effect of the target on one handler, or on an ExtensionConfig or a policy as a whole.
type Finding struct {
	Level Level  `json:"level"`
	Rule  string `json:"rule"`
	// ExtensionConfig is empty if it could not be read.
	ExtensionConfig string `json:"extensionConfig,omitempty"`
	// Group is the API group of the ExtensionConfig, where two have its name.
	Group string `json:"group,omitempty"`
	// Handler is empty for findings about an ExtensionConfig or a policy.
	Handler string `json:"handler,omitempty"`
	// HookRule is the rule whose handler the finding is about, which has no ExtensionConfig.
	HookRule string `json:"hookRule,omitempty"`
	// HookJob is HookRule for those.
	HookJob string `json:"hookJob,omitempty"`
	// HandlerChain is the chain that the finding is about, which has no ExtensionConfig.
	HandlerChain string `json:"handlerChain,omitempty"`
	// Hook is group/version/hook.
	Hook string `json:"hook,omitempty"`
	// ExtensionPolicy is the policy in effect, or the one that the finding is about.
	ExtensionPolicy string `json:"extensionPolicy,omitempty"`
	// Problem describes the effect, and Remedy the action to take, if any.
	Problem string `json:"problem"`
	Remedy  string `json:"remedy,omitempty"`
	// Lost are the paths of the members that conversions can lose, in order.
	Lost []string `json:"lost,omitempty"`
	// Policies are the names of the policies in Report.Policies that belong to the remedy.
	Policies []string `json:"policies,omitempty"`
	Location Location `json:"location,omitzero"`
}

// Object names the object of the finding: a handler by its registered name, a chain, an ExtensionConfig, a hook, or a
// manifest.
func (f *Finding) Object() string {
	of := ""
	if f.Group != "" {
		of = " of " + f.Group
	}
	switch {
	case f.Handler != "":
		return f.Handler + "." + cmp.Or(f.ExtensionConfig, f.HookRule, f.HookJob) + of
	case f.ExtensionConfig != "":
		return f.ExtensionConfig + of
	case f.HandlerChain != "":
		return f.HandlerChain
	case f.Rule == ruleSeveral:
		return f.hookName()
	}
	return f.Location.String()
}

// hookName returns the name of the hook alone.
func (f *Finding) hookName() string { return f.Hook[strings.LastIndex(f.Hook, "/")+1:] }

// Report is the result of Judge. All lists are in order.
type Report struct {
	// Targets are the releases that were asked about.
	Targets []string `json:"targets"`
	// Announced says that the target of Cluster API is not released: what is said of it is as announced.
	Announced bool `json:"announced,omitempty"`
	// From is the Cluster API that runs now; empty if it is not known.
	From     string    `json:"from,omitempty"`
	Findings []Finding `json:"findings"`
	// Policies are the policies to apply.
	Policies []ProposedPolicy `json:"policies"`

	ExtensionConfigs int `json:"extensionConfigs"`
	Handlers         int `json:"handlers"`
	HandlerChains    int `json:"handlerChains"`
	HookRules        int `json:"hookRules"`
	HookJobs         int `json:"hookJobs"`

	// FromSource is Target.FromSource, if From is known.
	FromSource string `json:"fromSource,omitempty"`
}

// Count returns how many objects have that level as the worst of their findings.
func (r *Report) Count(level Level) int {
	worst := map[string]Level{}
	for i := range r.Findings {
		f := &r.Findings[i]
		if before, ok := worst[f.Object()]; !ok || f.Level.AtLeast(before) {
			worst[f.Object()] = f.Level
		}
	}
	n := 0
	for _, l := range worst {
		if l == level {
			n++
		}
	}
	return n
}

// Objects returns the handlers, or else the ExtensionConfigs, with findings of at least a level, each once.
func (r *Report) Objects(least Level) []string {
	var objects []string
	for i := range r.Findings {
		f := &r.Findings[i]
		if name := f.Object(); f.Level.AtLeast(least) && !slices.Contains(objects, name) {
			objects = append(objects, name)
		}
	}
	return objects
}

// Worst returns the worst level of all findings.
func (r *Report) Worst() Level {
	worst := OK
	for i := range r.Findings {
		if r.Findings[i].Level.AtLeast(worst) {
			worst = r.Findings[i].Level
		}
	}
	return worst
}

func sortFindings(list []Finding) {
	slices.SortStableFunc(list, func(a, b Finding) int {
		return cmp.Or(cmp.Compare(a.Level.rank(), b.Level.rank()), cmp.Compare(a.ExtensionConfig, b.ExtensionConfig),
			cmp.Compare(a.HookRule, b.HookRule), cmp.Compare(a.HookJob, b.HookJob),
			cmp.Compare(a.Handler, b.Handler), cmp.Compare(a.Group, b.Group), cmp.Compare(a.Rule, b.Rule),
			cmp.Compare(a.ExtensionPolicy, b.ExtensionPolicy), cmp.Compare(a.HandlerChain, b.HandlerChain),
			cmp.Compare(a.Hook, b.Hook),
			cmp.Compare(a.Location.File, b.Location.File), cmp.Compare(a.Location.Line, b.Location.Line))
	})
}
