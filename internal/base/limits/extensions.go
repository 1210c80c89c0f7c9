// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package limits

import "time"

// The limits of calls to extensions, and of the connections to them. What has Default in its name can be set.
const (
	// DefaultInFlight and DefaultWaiting are the calls to one extension that are in flight, each of which finds an idle
	// connection, and that wait: what an extension that answers in a tenth of a second gets done in half a second.
	// Cluster API reconciles ten objects of a kind at a time.
	DefaultInFlight = 256
	DefaultWaiting  = 1024
	// DefaultFailuresInARow opens a circuit, and so does DefaultFailurePercent of the calls of CircuitWindow, if they are
	// at least CircuitCalls. Envoy and Istio eject a host after five failures, too: a single one is often chance. The part
	// is high, because an extension of which one endpoint in three works still serves its callers' next attempts.
	// DefaultOpen and DefaultLongestOpen are the least and the longest time between two probes: about the time in which a
	// process restarts, and the longest time between two attempts to discover an extension.
	DefaultFailuresInARow = 5
	DefaultFailurePercent = 80
	CircuitCalls          = 20
	CircuitWindow         = 30 * time.Second
	DefaultOpen           = time.Second
	DefaultLongestOpen    = time.Minute
	// FailingClusters is the number of Clusters whose failures are remembered for each handler, and FailingClusterTime how
	// long: longer than controllers wait between two attempts. A handler that fails for more of them fails for all.
	FailingClusters    = 64
	FailingClusterTime = time.Hour
	// DefaultConnectionAge is the age at which a connection to an extension is replaced.
	DefaultConnectionAge = 10 * time.Minute
	// Attempts is the number of attempts of a call. One in RetryPart calls to an extension may be repeated, and
	// RetryCredit at the start.
	Attempts    = 3
	RetryPart   = 10
	RetryCredit = 10
	// RestartWait is how long calls wait, counted from the first that was refused, for an extension that takes no
	// connections: longer than a process takes to restart, and short enough for the workers of a controller that calls an
	// extension which stays away.
	RestartWait = 5 * time.Second
	// FailingTime is how long an address that could not be connected to is tried last.
	FailingTime = 10 * time.Second
	// Addresses is the number of addresses of a host, or of endpoints of a Service, that are used over gRPC.
	Addresses = 256
	// ExtensionHandshakeTimeout bounds a TLS handshake with an extension, and IdleExtensionTimeout the time that an idle
	// connection is kept.
	ExtensionHandshakeTimeout = 10 * time.Second
	IdleExtensionTimeout      = time.Minute
	// AnswerHeaderBytes is the size of the header of an answer, and AnswerHeaderLines the number of its lines over
	// HTTP/1.1. ChunkBytes is what an answer may take on the wire besides twice its size.
	AnswerHeaderBytes = 64 << 10
	AnswerHeaderLines = 256
	ChunkBytes        = 64 << 10
	// AbandonedBytes is what may still come of an answer over gRPC that was given up: the largest window of a stream.
	AbandonedBytes = 16 << 20
	// ErrorQuoteBytes is how much of an extension's text an error has, and LoopQuoteBytes how much of another gateway's.
	ErrorQuoteBytes = 256
	LoopQuoteBytes  = 2 << 10
	// LeastMessageShare is the least that each of several messages keeps of MergedMessageBytes.
	LeastMessageShare = 256
	// DiscoveryFaults is the number of faults that one error of discovery names.
	DiscoveryFaults = 8
	// SecretInterval is the time between two requests for the Secret of a CA, and SecretsPerSecond bounds those for all.
	SecretInterval   = 10 * time.Second
	SecretsPerSecond = 20
	// BlockedEventsPerSecond bounds the events about updates in place that HandlerChains block, and BlockedOwners the
	// KubeadmControlPlanes and MachineDeployments that wait for one.
	BlockedEventsPerSecond = 1
	BlockedOwners          = 1_000
	// AuditLines bounds the lines of the log about answers of HookRules that only audit, and AuditLinesPerSecond those
	// that follow.
	AuditLines          = 10
	AuditLinesPerSecond = 1
)

// The limits of what an ExtensionPolicy lifts.
const (
	// PolicyLifts is the number of holds that a policy lifts. UIDBytes is the length of a UID, of which an API server's
	// have 36.
	PolicyLifts = 256
	UIDBytes    = 63
)

// The limits of HandlerChains.
const (
	// ChainSteps is the number of steps of a HandlerChain, StepSettings that of the settings of one. AllowedPaths and
	// AllowedPathBytes bound the paths that a step may change.
	ChainSteps       = 64
	StepSettings     = 256
	AllowedPaths     = 64
	AllowedPathBytes = 256
)

// The limits of HookRules, whose expressions have those of ExtensionPolicies besides.
const (
	// RuleList is the length of each list of a rule.
	RuleList = 64
	// RuleRetrySeconds is the longest time after which a rule lets its caller ask again.
	RuleRetrySeconds = 86400
	// LeastWindow and LongestWindow bound the time that a window of a rule is open, and CronBytes the text that says when
	// it opens. WindowRetrySeconds is the longest time after which a rule that waits for a window lets its caller ask
	// again, so that a change of the rule is noticed.
	LeastWindow        = time.Minute
	LongestWindow      = 31 * 24 * time.Hour
	CronBytes          = 256
	WindowRetrySeconds = 300
	// RuleParams is the number of params of a rule, and RuleParamsBytes their size in one call. RuleParamBytes is the size
	// of one object of which the gateway keeps the JSON, without managedFields, and RuleParamObjects the number of objects
	// in a list.
	RuleParams       = 8
	RuleParamBytes   = 256 << 10
	RuleParamsBytes  = 1 << 20
	RuleParamObjects = 500
	// RuleWatches is the number of objects and lists that all rules together read. RuleSelfObjects and RuleSelfBytes are
	// the number and the size of the objects of a kind that are kept for the rules that read the object of their request.
	RuleWatches     = 64
	RuleSelfObjects = 10_000
	RuleSelfBytes   = 128 << 20
	// RuleConcurrency is the largest limit of Clusters that are past the hook of a rule, and RulePlaces the number of all
	// of them, whatever per is. RulePerBytes is the size of a value of per.
	RuleConcurrency = 500
	RulePlaces      = 1000
	RulePerBytes    = 253
	// PlacesInterval is the time between two looks at the Clusters that are past the hooks of rules. LiftedHolds is the
	// number of holds that were lifted, and that wait for their events.
	PlacesInterval = 5 * time.Second
	// PlaceAnnounced is for how long a place may be about to be given out, and PlaceUnknown for how long one of a rule or
	// Cluster that is not there is kept, both of which may come back from a backup after it.
	PlaceAnnounced = time.Minute
	PlaceUnknown   = 10 * time.Minute
	LiftedHolds    = 1000
	// RulePathBytes is the length of a path that a rule patches, RuleClassBytes that of a class of workers that it
	// selects, and RuleSchemaBytes the size of the schema of a variable.
	RulePathBytes   = 512
	RuleClassBytes  = 256
	RuleSchemaBytes = 64 << 10
)

// The limits of HookJobs.
const (
	// JobTemplateBytes is the size of the template of a HookJob as JSON.
	JobTemplateBytes = 64 << 10
	// JobOnceBytes is the length of a value of once.
	JobOnceBytes = 1024
	// JobFilesBytes is the size of all files that a container finds, which one Secret has. JobSettingsBytes is that of the
	// settings, which are environment variables.
	JobFilesBytes    = 768 << 10
	JobSettingsBytes = 32 << 10
	// JobDeadline is how long a Job may take at most, and DefaultJobDeadline if its HookJob does not say.
	JobDeadline        = 7 * 24 * time.Hour
	DefaultJobDeadline = time.Hour
	// JobKept is for how long a Job is kept at least once its success is recorded: longer than a call of the hook that
	// has not seen the record may take. DefaultJobKept is how long it is if its HookJob does not say.
	JobKept        = time.Minute
	DefaultJobKept = 24 * time.Hour
	// JobRecords is the number of successes that are recorded for a HookJob, and JobRecordsOfCluster that for one Cluster,
	// of which the oldest are dropped.
	JobRecords          = 4_000
	JobRecordsOfCluster = 16
	// JobMessageBytes is the length of the message of a Job, which its container writes, and JobProblemBytes that of what
	// keeps its Pod from succeeding.
	JobMessageBytes = 1024
	JobProblemBytes = 512
	// ClusterEndRecords is how many Clusters are remembered for AfterClusterDelete, those that are gone included, and
	// ClusterEndLabels how many labels of each, and of its namespace.
	ClusterEndRecords = 10_000
	ClusterEndLabels  = 100
	// ClusterEndUnmatched is for how long a Cluster that is gone is remembered while no handler matches it, and
	// ClusterEndRetry the longest time between two calls about it.
	ClusterEndUnmatched = 24 * time.Hour
	ClusterEndRetry     = 10 * time.Minute
	// JobsUnfinished is how many Jobs of a HookJob may not have ended. Each replica counts those in its cache.
	JobsUnfinished = 500
	// JobPods is how many Pods of a Job are looked at for its message.
	JobPods = 20
)

// The limits of ExtensionPolicies.
const (
	// MatchConditions is the number of match conditions of a policy, and ConditionCharacters the length of one.
	MatchConditions     = 64
	ConditionCharacters = 4096
	// ExpressionNesting is how deep lists, maps, macros and optional values of an expression are nested: to find their
	// types takes time with the fourth power of it.
	ExpressionNesting = 32
	// ConditionCost bounds one evaluation of a condition, and PolicyCost those of a policy for one request: one for each
	// step, and for each ten bytes of text that a step reads. PolicyReadBytes is what they read of the request.
	ConditionCost   = 1_000_000
	PolicyCost      = 2_500_000
	PolicyReadBytes = 10 * BodyBytes
	// PolicyMemoryBytes is what they allocate: a third of the least budget, so that an expression that costs too much is
	// told from a gateway that has too little. A list of 3,000 numbers that is searched for each of them takes 1 GiB.
	PolicyMemoryBytes = 32 << 20
	// CacheSeconds is the longest time that an answer is kept.
	CacheSeconds = 3600
)
