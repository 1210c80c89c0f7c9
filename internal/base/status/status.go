// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package status is the form in JSON in which a gateway describes itself and its extensions, to its page and to the
// command line. docs/status.md describes it.
package status

import (
	"slices"
	"time"
)

// Path is where the diagnostics address serves a Gateway. With the query parameter extension, it has one extension
// with all that is known of it; with chain, one HandlerChain; with rule, one HookRule; with job, one HookJob; with
// rollout, one ExtensionRollout. With cluster, which is NAMESPACE/NAME, it serves a Cluster instead.
const Path = "/status"

// Gateway is what one process knows. Times are in RFC 3339, and durations in seconds.
type Gateway struct {
	ID      string    `json:"id"`
	Version string    `json:"version"`
	Started time.Time `json:"started"`
	Now     time.Time `json:"now"`
	// Unready says why calls are not accepted; it is empty if they are.
	Unready string `json:"unready,omitempty"`
	// Window is the time that counts and percentiles are about, which ends with Now.
	Window     Seconds     `json:"windowSeconds"`
	Extensions []Extension `json:"extensions"`
	Holds      []Hold      `json:"holds"`
	// MissedHolds counts the holds that there was no room for.
	MissedHolds uint64 `json:"missedHolds,omitempty"`
	// Released are the last answers that let a Cluster go on, if ReleasedQuery asked for them: other replicas may have
	// older holds.
	Released []Release `json:"released,omitempty"`
	// Policies are the ExtensionPolicies by name, and MissedPolicies counts those that there was no room for.
	Policies       []Policy `json:"policies,omitempty"`
	MissedPolicies int      `json:"missedPolicies,omitempty"`
	// Chains are the HandlerChains by name, and MissedChains counts those that there was no room for. If an extension was
	// asked for, they are those with its handlers as steps.
	Chains       []Chain `json:"chains,omitempty"`
	MissedChains int     `json:"missedChains,omitempty"`
	// Rules are the HookRules by name, and MissedRules counts those that there was no room for.
	Rules       []InProcess `json:"rules,omitempty"`
	MissedRules int         `json:"missedRules,omitempty"`
	// Jobs are the HookJobs by name, and MissedJobs counts those that there was no room for.
	Jobs       []InProcess `json:"jobs,omitempty"`
	MissedJobs int         `json:"missedJobs,omitempty"`
	// Rollouts are the ExtensionRollouts by name, and MissedRollouts counts those that there was no room for. Unless one
	// was asked for, each has its first Clusters, with one difference of each.
	Rollouts       []Rollout `json:"rollouts,omitempty"`
	MissedRollouts int       `json:"missedRollouts,omitempty"`
	// Others are the objects of kinds that no member before has, by the word for several of them, such as rules.
	Others map[string]*Locals `json:"others,omitempty"`
	// Notices are what needs attention though calls are answered, such as a certificate near its end.
	Notices []Notice `json:"notices,omitempty"`
}

// Seconds is a duration in seconds.
type Seconds float64

// InSeconds returns d in seconds.
func InSeconds(d time.Duration) Seconds { return Seconds(d.Seconds()) }

// Duration returns s as a time.Duration.
func (s Seconds) Duration() time.Duration { return time.Duration(float64(s) * float64(time.Second)) }

// State says whether something works, as far as this process has seen.
type State string

// The states.
const (
	Up      State = "Up"      // its server is there, and its calls succeed
	Slow    State = "Slow"    // its calls, or those of one of its handlers, come near the timeout
	Failing State = "Failing" // its calls, or those of one of its handlers, fail, or its discovery
	Down    State = "Down"    // its server is gone, or the circuit of its server is open
	Unknown State = "Unknown" // this process has not called it
	Ready   State = "Ready"   // it has no server, and nothing is wrong with its calls
)

// worst has the states, the worst first.
var worst = []State{Down, Failing, Slow, Unknown, Up, Ready}

// Severity returns the place of s among the states, the worst of which has the lowest.
func (s State) Severity() int { return slices.Index(worst, s) }

// Worse reports whether s is worse than another state.
func (s State) Worse(than State) bool { return s.Severity() < than.Severity() }

// Extension is a registered extension, or one that cannot be registered because its discovery fails.
type Extension struct {
	Name     string `json:"name"`
	URL      string `json:"url"`
	Protocol string `json:"protocol"` // REST or gRPC
	State    State  `json:"state"`
	// Since is when the state began. It is absent if that is not known.
	Since *time.Time `json:"since,omitempty"`
	// Error is why it is not Up.
	Error       string     `json:"error,omitempty"`
	LastSuccess *time.Time `json:"lastSuccess,omitempty"`
	Discovery   *Discovery `json:"discovery,omitempty"`
	// Stale means that the extension does not answer its discovery, and that the handlers are those that it had before.
	Stale bool `json:"stale,omitempty"`
	// Pending is set while calls go to the previous URL, because the extension has not been discovered where its
	// ExtensionConfig says.
	Pending *Pending `json:"pending,omitempty"`
	// HealthUnchecked means that the extension's gRPC server has no health service, so that calls go to each of its
	// addresses that can be connected to. It is known to the process that discovers the extension.
	HealthUnchecked bool `json:"healthUnchecked,omitempty"`
	// Misspelt says which members of its discovery mean nothing, because their names are misspelt. It is known to the
	// process that discovers the extension.
	Misspelt []string `json:"misspelt,omitempty"`
	// Certificates are those that calls to the extension depend on, as far as this process knows them.
	Certificates []Certificate `json:"certificates,omitempty"`
	// Expiring says which of them have expired or will soon; it is empty if none has.
	Expiring string `json:"expiring,omitempty"`
	// Undiscovered is set if the handlers are not known: Fail if calls to all handlers of a hook fail because of that, and
	// Ignore if they are answered without the extension.
	Undiscovered string `json:"undiscovered,omitempty"`
	// Withheld are handlers that are not served, because the policy of the extension does not allow their hooks.
	Withheld []Withheld `json:"withheld,omitempty"`
	// Rollout is the ExtensionRollout through which alone the extension is called.
	Rollout *RolloutMember `json:"rollout,omitempty"`

	Circuit  Circuit   `json:"circuit"`
	InFlight int       `json:"inFlight"`
	Waiting  int       `json:"waiting"`
	Limits   Limits    `json:"limits"`
	Calls    Calls     `json:"calls"`
	Selector string    `json:"namespaceSelector,omitempty"`
	Handlers []Handler `json:"handlers"`
	// Failures are the last ones, newest first. They are there only if the extension was asked for.
	Failures []Failure `json:"failures,omitempty"`
}

// Certificate says when calls to an extension begin to fail because of a certificate.
type Certificate struct {
	// Of is Leaf for the certificate of the extension's server, Chain for the first to expire of those that vouch for it,
	// and CABundle for the last to expire in caBundle.
	Of       string    `json:"of"`
	Subject  string    `json:"subject"`
	NotAfter time.Time `json:"notAfter"`
	// Certificates counts those in caBundle, and Expired has the subjects of those that have expired.
	Certificates int      `json:"certificates,omitempty"`
	Expired      []string `json:"expired,omitempty"`
}

// Pending is a change of the URL or protocol of an extension that is not in effect.
type Pending struct {
	URL      string `json:"url"`
	Protocol string `json:"protocol"` // REST or gRPC
	// Since is when it was seen first.
	Since time.Time `json:"since"`
}

// RolloutMember says what an extension is to an ExtensionRollout.
type RolloutMember struct {
	Name string `json:"name"` // of the ExtensionRollout
	// As is stable or candidate. It is absent for an extension that is never called, because the ExtensionRollout has its
	// name, or because another one has it as a member.
	As string `json:"as,omitempty"`
}

// Withheld is a handler that waits for a policy that allows its hook.
type Withheld struct {
	Handler string `json:"handler"` // its own name
	Hook    string `json:"hook"`
	Policy  string `json:"policy"` // the ExtensionPolicy that does not allow it
}

// Discovery is what came of asking an extension for its handlers.
type Discovery struct {
	At      time.Time `json:"at"`
	Since   time.Time `json:"since"` // when it began to succeed or to fail
	Outcome string    `json:"outcome"`
	Error   string    `json:"error,omitempty"`
}

// Circuit is the circuit of an extension or of a handler.
type Circuit struct {
	State  string     `json:"state"` // closed, half_open or open
	Since  *time.Time `json:"since,omitempty"`
	Kind   string     `json:"kind,omitempty"` // of the failure that opened it
	Opened uint64     `json:"opened"`
}

// Limits are the limits of the calls to an extension.
type Limits struct {
	InFlight int `json:"inFlight"`
	Waiting  int `json:"waiting"`
}

// Calls counts the calls in the window. NearTimeout are those that took eight tenths of the timeout or more.
type Calls struct {
	Total       uint64  `json:"total"`
	Failures    uint64  `json:"failures"`
	NearTimeout uint64  `json:"nearTimeout"`
	P50         Seconds `json:"p50Seconds"`
	P99         Seconds `json:"p99Seconds"`
	Points      Points  `json:"points,omitzero"`
}

// Points are equal parts of the window, oldest first.
type Points struct {
	Total    []uint64  `json:"total"`
	Failures []uint64  `json:"failures"`
	P99      []Seconds `json:"p99Seconds"`
}

// Handler is a handler with what is in effect for it.
type Handler struct {
	Name string `json:"name"` // its registered name
	// Kind is the kind of the object that answers without a server, such as HookRule. It is absent if an extension does.
	Kind string `json:"kind,omitempty"`
	// OfferedAs is the name under which the gateway's discovery offers it. All handlers of a lifecycle hook share one. Of
	// a hook of which Cluster API takes one handler, a step has the name of its chain.
	OfferedAs string `json:"offeredAs"`
	// Chains are the HandlerChains of which the handler is a step, by name.
	Chains []string `json:"chains,omitempty"`
	// Collision is why that is not the handler's own name, though its policy says so.
	Collision     string  `json:"collision,omitempty"`
	Hook          string  `json:"hook"`
	APIVersion    string  `json:"apiVersion"`
	Timeout       Seconds `json:"timeoutSeconds"`
	FailurePolicy string  `json:"failurePolicy"`
	Order         *int32  `json:"order,omitempty"`
	// Policy is the name of the ExtensionPolicy that applies. Conditional means that it decides by the request whether
	// the handler is called.
	Policy      string `json:"policy,omitempty"`
	Conditional bool   `json:"conditional,omitempty"`
	// Objects is the version of Cluster API's objects that the handler gets; empty if they are not converted.
	Objects     string     `json:"objects,omitempty"`
	Deprecated  string     `json:"deprecated,omitempty"` // a sentence
	State       State      `json:"state"`
	Error       string     `json:"error,omitempty"` // why it is not Up
	LastSuccess *time.Time `json:"lastSuccess,omitempty"`
	Calls       Calls      `json:"calls"`
	// Circuit is the one of the handler alone. It is absent if it has never opened.
	Circuit *Circuit `json:"circuit,omitempty"`
	// RefusedClusters are those whose calls are refused, because theirs fail, in order, as namespace/name.
	RefusedClusters []string `json:"refusedClusters,omitempty"`
	// Lost are the paths that conversions could not express.
	Lost []string `json:"lost,omitempty"`
	// Misspelt says which members of its answers mean nothing, because their names are misspelt.
	Misspelt []string `json:"misspelt,omitempty"`
	// Messages is Steady if what changes from call to call is masked in its messages.
	Messages string `json:"messages,omitempty"`
	// Unsteady says that the message changes from call to call, about which Cluster, and what to do.
	Unsteady string `json:"unsteady,omitempty"`
	// Lifted names Clusters that its policy lets go on although it holds them.
	Lifted string `json:"lifted,omitempty"`
}

// Failure is a call that failed, an answer Failure, or one that has changed although its request has not.
type Failure struct {
	At      time.Time `json:"at"`
	CallID  string    `json:"callId,omitempty"`
	Hook    string    `json:"hook"`
	Handler string    `json:"handler"`
	Outcome string    `json:"outcome"` // failure, error, ignored or changed
	Kind    string    `json:"kind,omitempty"`
	Message string    `json:"message"`
	Took    Seconds   `json:"tookSeconds"`
	// Times is how often it has happened in a row; At and CallID are those of the last time.
	Times int `json:"times"`
}

// Hold is a Cluster that waits for a handler.
type Hold struct {
	Namespace string `json:"namespace"`
	Cluster   string `json:"cluster"`
	Hook      string `json:"hook"`
	Handler   string `json:"handler"`
	// Object is the part of the Cluster that waits, with which Message begins; absent if the whole does.
	Object string `json:"object,omitempty"`
	// Kind is empty if the handler has asked to come back after RetryAfter, and otherwise the kind of the error, or
	// Failure.
	Kind       string    `json:"kind,omitempty"`
	Message    string    `json:"message"`
	RetryAfter Seconds   `json:"retryAfterSeconds,omitempty"`
	Since      time.Time `json:"since"`
	Last       time.Time `json:"last"` // when the handler was asked last
}

// ActionsHeader tells a gateway that its page is seen through hookgate dashboard: the port on 127.0.0.1 of the reader's
// machine at which actions are, and their names, separated by spaces. The page links to them; nothing else depends on
// it.
const ActionsHeader = "Hookgate-Actions"

// ReleasedQuery is the parameter that asks for Gateway.Released.
const ReleasedQuery = "released"

// Release says when a handler let a Cluster go on.
type Release struct {
	Namespace string    `json:"namespace"`
	Cluster   string    `json:"cluster"`
	Hook      string    `json:"hook"`
	Handler   string    `json:"handler"`
	Object    string    `json:"object,omitempty"`
	At        time.Time `json:"at"`
}

// Chain is a HandlerChain.
type Chain struct {
	Name string `json:"name"`
	// Hook is absent if the HandlerChain was never valid.
	Hook string `json:"hook,omitempty"`
	// OfferedAs is the name under which the gateway's discovery offers the chain. It is absent if it is not offered.
	OfferedAs string `json:"offeredAs,omitempty"`
	Ready     bool   `json:"ready"`
	Reason    string `json:"reason"` // of the condition Ready
	Message   string `json:"message"`
	// OnPartialCoverage is Block, or absent.
	OnPartialCoverage string      `json:"onPartialCoverage,omitempty"`
	Calls             Calls       `json:"calls,omitzero"` // of the chain, besides those of its steps
	Steps             []ChainStep `json:"steps,omitempty"`
}

// ChainStep is a step of a Chain. All but the first five are there only if the chain was asked for.
type ChainStep struct {
	Handler    string `json:"handler"`
	Kind       string `json:"kind,omitempty"` // of the handler, as Handler has it
	Registered bool   `json:"registered"`
	Optional   bool   `json:"optional,omitempty"`
	OnHold     string `json:"onHold,omitempty"` // Stop, or absent
	// Problem is what keeps the step from being called.
	Problem string `json:"problem,omitempty"`
	// Settings are the names of the settings that the chain adds to requests.
	Settings []string `json:"settings,omitempty"`
	// Allow has the only paths that the step may change.
	Allow []string `json:"allow,omitempty"`
	// Details describe the handler, if it is registered.
	Details *HookedHandler `json:"details,omitempty"`
}

// InProcess is a handler without a server, such as that of a HookRule.
type InProcess struct {
	Name string `json:"name"`
	// Hook is absent if the object was never valid.
	Hook    string `json:"hook,omitempty"`
	Ready   bool   `json:"ready"`
	Reason  string `json:"reason"` // of the condition Ready
	Message string `json:"message"`
	// Selector is the namespaceSelector.
	Selector string `json:"namespaceSelector,omitempty"`
	// Handler is absent if none is served.
	Handler *Handler `json:"handler,omitempty"`
	// Places are the Clusters that are past the hook of a rule with concurrency, in the order in which they passed, and
	// MissedPlaces counts those that there was no room for.
	Places       []Place `json:"places,omitempty"`
	MissedPlaces int     `json:"missedPlaces,omitempty"`
	// Failures are the last ones, newest first. They are there only if the object was asked for.
	Failures []Failure `json:"failures,omitempty"`
}

// Locals are handlers without servers, by name, and how many more there are than there was room for.
type Locals struct {
	Items  []InProcess `json:"items"`
	Missed int         `json:"missed,omitempty"`
}

// Place is a Cluster that is past the hook of a rule with concurrency, which bounds their number for each value of Per.
type Place struct {
	Namespace string    `json:"namespace"`
	Cluster   string    `json:"cluster"`
	Per       string    `json:"per,omitempty"`
	Since     time.Time `json:"since"`
}

// Policy is an ExtensionPolicy, and whether it is in effect.
type Policy struct {
	Name string `json:"name"`
	// Target is the ExtensionConfig, or ExtensionConfig/handler. It is absent if the manifest cannot be read.
	Target   string `json:"target,omitempty"`
	Accepted bool   `json:"accepted"`
	Reason   string `json:"reason"` // of the condition Accepted
	Message  string `json:"message"`
}

// Notice is something that needs attention.
type Notice struct {
	Name string `json:"name"`
	Text string `json:"text"`
	// Details are the first of what Text counts, such as the mistakes in manifests, each with its file and line.
	Details []string `json:"details,omitempty"`
}

// Cluster says which handlers the hooks of a Cluster go to.
type Cluster struct {
	Now       time.Time `json:"now"`
	Namespace string    `json:"namespace"`
	Name      string    `json:"name"`
	// LastCall is when the last call about the Cluster was. It is absent if this process has seen none.
	LastCall *time.Time `json:"lastCall,omitempty"`
	Holds    []Hold     `json:"holds"`
	Hooks    []Hook     `json:"hooks"`
}

// SeenCluster is a Cluster about which this process knows something.
type SeenCluster struct {
	Namespace string     `json:"namespace"`
	Name      string     `json:"name"`
	LastCall  *time.Time `json:"lastCall,omitempty"` // as that of Cluster
	Holds     int        `json:"holds,omitempty"`    // how many handlers it waits for
}

// Hook is a hook with the handlers that are called for a Cluster. A conditional handler may not be.
type Hook struct {
	Name string `json:"name"`
	// Called is All if a call goes to all handlers, in their turns, and One if it goes to the one that it names, or to the
	// only one.
	Called   string          `json:"called"`
	Handlers []HookedHandler `json:"handlers"`
}

// The values of Hook.Called.
const (
	CalledAll = "All"
	CalledOne = "One"
)

// HookedHandler is a handler of a hook, and the name of its extension, or of the object that is its Kind.
type HookedHandler struct {
	Handler
	Extension string `json:"extension"`
	// Turn is set of the handlers of a Cluster's hook that all are called, and of steps of a chain: those with the same
	// turn are called at the same time, when those of the turn before it have answered. It begins with 1.
	Turn int `json:"turn,omitempty"`
	// Steps are those of a HandlerChain, which is a handler of its hooks in Cluster.
	Steps []HookedHandler `json:"steps,omitempty"`
	// Rollout is the ExtensionRollout that the extension is a member of.
	Rollout *RolloutMember `json:"rollout,omitempty"`
}

// Rollout is an ExtensionRollout, with what is known of its Clusters.
type Rollout struct {
	Name string `json:"name"`
	// Stable and Candidate are the names of its ExtensionConfigs.
	Stable    string `json:"stable,omitempty"`
	Candidate string `json:"candidate,omitempty"`
	Ready     bool   `json:"ready"`
	Reason    string `json:"reason"` // of the condition Ready
	Message   string `json:"message"`
	Paused    bool   `json:"paused,omitempty"`
	// Aborted says why no more Clusters move, though the rollout is not paused.
	Aborted string `json:"aborted,omitempty"`
	// Equal, Different and Moved count Clusters. Failing counts those about which the last call of the candidate has
	// failed, as far as this gateway knows.
	Equal     int `json:"equal"`
	Different int `json:"different"`
	Moved     int `json:"moved"`
	Failing   int `json:"failing,omitempty"`
	// Handlers are those that callers see.
	Handlers []Handler `json:"handlers,omitempty"`
	// Variables says what differs between the answers to calls about no Cluster.
	Variables *RolloutCluster `json:"variables,omitempty"`
	// Clusters are those that differ or have moved, and MissedClusters counts those that there was no room for.
	Clusters       []RolloutCluster `json:"clusters,omitempty"`
	MissedClusters int              `json:"missedClusters,omitempty"`
}

// RolloutCluster is a Cluster of an ExtensionRollout.
type RolloutCluster struct {
	Namespace string    `json:"namespace,omitempty"`
	Cluster   string    `json:"cluster,omitempty"`
	State     string    `json:"state"` // Different or Moved
	Since     time.Time `json:"since"`
	// Message says why it is so.
	Message string `json:"message,omitempty"`
	// Failure says why the last call of the candidate about the Cluster has failed.
	Failure string `json:"failure,omitempty"`
	// Differences are the first values that differ, and OmittedDifferences counts the others.
	Differences        []RolloutDifference `json:"differences,omitempty"`
	OmittedDifferences int                 `json:"omittedDifferences,omitempty"`
}

// RolloutDifference is a value that differs between the answers of both versions.
type RolloutDifference struct {
	Handler string `json:"handler"`
	// Object is the object that patches change; absent for a value of the answer itself.
	Object    string `json:"object,omitempty"`
	Path      string `json:"path,omitempty"`
	Stable    string `json:"stable,omitempty"`    // JSON
	Candidate string `json:"candidate,omitempty"` // JSON
	// Machines says what the difference does to Machines.
	Machines string `json:"machines,omitempty"`
}
