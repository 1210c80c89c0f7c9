// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

//nolint:lll // each limit is a row
package limits

// What several limits do beyond them.
const (
	tooLarge     = "`TooLarge`"
	badAnswer    = "`BadResponse`"
	badDiscovery = "`BadResponse` of discovery"
	overloaded   = "`Overloaded`"
	later        = "`Overloaded`, try again after "
	circuitOpens = "its circuit opens: `Unreachable`"
	circuitShows = "`hookgate_circuit_state`, `hookgate_handler_circuit_state`, `hookgate_handler_refused_clusters`"
	refused      = "refused"
	cut          = "cut"
	counted      = "counted"
	closed       = "closed"
	closedLogged = "closed, logged"
	notReady     = "the class is not ready"
	notUsed      = "the answer is not used"
	reported     = "reported, not used"
	invalid      = "refused; `ParametersValid` is `False`"
	busy         = "status 503"
	waits        = "waits"
	forgotten    = "forgotten"
)

func memory() []Limit {
	shows := "`hookgate_memory_reserved_bytes`, `hookgate_memory_refused_total`"
	return []Limit{
		{"process", "budget: the memory for all calls together", percent(BudgetShare) + " of the container's limit or `GOMEMLIMIT`, and at least " + size(ProgramHeap) + " less than Go's heap; at most " + size(LargestBudget), overloaded, "`--memory-budget`, at least " + size(LeastBudget) + ", with a warning beyond " + percent(LargestBudgetShare) + " of the limit; or the container's limit with `GOMEMLIMIT`", shows},
		{"call", "of a budget of less than " + size(LeastBudget) + ", in a container of less than " + size(LeastBudget*100/BudgetShare) + " (logged at start)", "all of it", "`TooLarge`", "", ""},
		{"process", "the default budget when the process has no memory limit (logged at start)", "one " + count(UnlimitedPart) + "th of the machine's memory, at most " + size(LargestUnlimited), overloaded, "", ""},
		{"process", "Go's heap, unless `GOMEMLIMIT` is less", percent(HeapShare) + " of the container's limit, and at least " + size(HeapRest) + " less", "garbage is collected more often", "", ""},
		{"process", "part of the budget up to which calls are admitted; up to which they get more", percent(AdmittedShare) + ", those up to " + size(LittleCallBytes) + " " + percent(AdmittedLittleShare) + ", up to " + size(SmallCallBytes) + " " + percent(AdmittedSmallShare) + "; " + percent(GrownShare), "waits; " + overloaded, "", ""},
		{"process", "answers that [caches](extension-policy.md#cache) keep", percent(KeptShare) + " of the budget, at most " + size(CachedBytes) + "; " + size(CachedBytes/CachedPart) + " for one; none while calls use " + percent(KeptBelow), "the least recently used are forgotten", "", ""},
		{"process", "calls that wait to be [recorded](recording.md), twice their size", size(RecordQueueBytes) + ", " + count(RecordQueueCalls) + " calls; in the caches' part of the budget", "not recorded", "", "`hookgate_recording_dropped_total`"},
		{"process", "[recordings of one handler](recording.md#record-one-handler) at the same time; their lines that wait for a reader, and that are on their way", count(RecordStreams) + "; " + size(RecordStreamBytes) + " each", "status 503; not recorded", "", "`hookgate_recording_dropped_total`"},
		{"process", "calls that wait to be compared with [earlier ones](operate.md#answers-that-change); one of them; earlier answers that are kept", size(DriftQueueBytes) + ", " + count(DriftQueueCalls) + " calls; " + size(DriftCallBytes) + "; " + size(DriftBytes) + ", " + count(DriftAnswers) + " answers", "not compared; the least recently used are forgotten", "", "`hookgate_answers_not_compared_total`"},
		{"process", "calls that are compared with earlier ones; places of a difference that are named", size(DriftBytesPerSecond) + " per second, and " + size(DriftCallLeast) + " for each; " + count(DriftPlaces), "not compared; counted", "", "`hookgate_answers_not_compared_total`"},
		{"process", "lines of the log that wait for their reader", size(LogBytes), "dropped; their number is logged", "", ""},
		{"caller", "share of the budget", percent(CallerShare), waits, "", ""},
		{"extension", "share of the budget: requests that wait for its answers, and the answers", percent(ExtensionShare), overloaded, "", ""},
	}
}

func sizes() []Limit {
	return []Limit{
		{"call", "body of a request; converted and encoded for an extension", size(BodyBytes), tooLarge, "", ""},
		{"call", "answer of an extension; merged, converted and encoded for the caller", size(BodyBytes), badAnswer, "", ""},
		{"call", "answer over HTTP/1.1 with its chunks", "twice the answer and " + size(ChunkBytes), badAnswer, "", ""},
		{"call", "header of a request, metadata over gRPC", size(HeaderBytes), "status 431; over gRPC, the stream is reset", "", ""},
		{"call", "header of an answer", size(AnswerHeaderBytes), badAnswer, "", ""},
		{"call", "bearer token", size(TokenBytes), "`Unauthenticated`", "", ""},
		{"call", "name of a handler in a request", size(NameBytes), "`UnknownHandler`", "", ""},
		{"call", "kind, group of a reference; apiVersion, kind of an object that is converted", "63, 253; " + size(QuotedBytes), "`Conversion`, `InvalidRequest`", "", ""},
		{"call", "objects and lists that match conditions read; each read counts", size(PolicyReadBytes), "`Policy`", "", ""},
		{"call", "memory of the results of match conditions, and of rules", size(PolicyMemoryBytes), "`Policy`", "", ""},
		{"call", "text of an extension in an error; of another gateway about a loop", size(ErrorQuoteBytes) + "; " + size(LoopQuoteBytes), cut, "", ""},
		{"call", "message of an extension's answer", size(MessageBytes), "cut, ends with `… (cut)`", "", ""},
		{"call", "messages of several handlers together; text of an error", size(MergedMessageBytes), "each is cut to an equal share, at least " + size(LeastMessageShare), "", ""},
		{"call", "name or path of a caller in a text; text in a line of the log", size(QuotedBytes) + "; " + size(LogTextBytes), cut, "", ""},
		{"message", "health or reflection over gRPC, decompressed", size(SideMessageBytes), "Internal; of an extension's reflection, " + badDiscovery, "", ""},
		{"connection", "bytes other than bodies (headers, frames, TLS) from a caller over HTTP/2 or gRPC, or from a client of another address", size(OverheadBytes) + ", and " + size(CallOverheadBytes) + " for each open call, and each that has ended", "after " + size(OverheadBurst) + ", read at " + size(OverheadBytesPerSecond) + " per second for all together; closed, logged, if that takes more than " + long(OverheadWait), "", ""},
		{"connection", "bytes other than answers from an extension over gRPC; a byte of health counts as " + count(HealthOverhead), "the same; a call that is given up, for " + size(AbandonedBytes) + " of its answer", "read as slowly, for all extensions together; closed: `Unreachable`", "", ""},
		{"connection", "data read after an answer that refuses a request", size(LingerBytes), closed, "", ""},
		{"extension", "URL; `caBundle` as base64", size(URLBytes) + "; " + count(CABundleBytes) + " bytes", refused, "", ""},
		{"extension", "text of a failure in the status", size(FailureBytes), cut, "", ""},
		{"extension", "answers about a Cluster in a row that [differ in their messages](operate.md#messages-that-change) alone", count(UnsteadyMessages), "reported in the status", "", ""},
		{"file", "certificate, key or authorities; `--callers`; one of `--state-dir`", size(CertificateFileBytes) + "; " + size(CallersFileBytes) + "; " + size(StateBytes), "refused, the last content stays; for the state, unknown and logged", "", ""},
		{"file", "line of a recording; of its files", size(RecordLineBytes) + "; one in " + count(RecordFilesPart) + " of all, at most " + size(RecordFileBytes) + ", written in pieces of " + size(RecordBatchBytes) + " or after " + long(RecordDelay), "not recorded; the next file", "", "`hookgate_recording_dropped_total`"},
		{"process", "files of a recording together", size(DefaultRecordBytes), "the oldest are removed", "`--record-max-bytes`, at least " + size(LeastRecordBytes), ""},
		{"file", "manifests; all files of a directory together", size(ManifestBytes) + "; " + size(ManifestsBytes), "reported, not used; the last by name first", "", ""},
		{"file", "documents of manifests whose errors are located, together", count(LocatedLines) + " lines, " + size(LocatedBytes), "reported with the line where they begin", "", ""},
		{"object", "text of a problem; message of a condition; note of an event", size(ProblemBytes) + "; " + size(ConditionMessageBytes) + "; " + count(EventNoteBytes) + " bytes", cut, "", ""},
		{"object", "spec of Hookgate's own that is recorded as [last valid](cluster.md#what-was-last-valid), as JSON", size(LastValidBytes), "in effect, not recorded, logged", "", ""},
		{"object", "text in the status about a policy; about a Cluster that waits", size(PolicyMessageBytes) + "; " + size(FailureBytes), cut, "", ""},
		{"caller", "name", size(CallerNameBytes), "cut; refused in the file", "", ""},
		{"webhook", "request for admission, for conversion, and its answer", size(AdmissionBytes) + ", " + size(ConversionBytes), "status 413; 503", "", ""},
		{"webhook", "bytes in transit, both ways; of one host", "admission " + size(Admissions*AdmissionBytes) + "; " + size(2*AdmissionBytes) + "; conversion " + size(2*ConversionBytes) + "; " + size(ConversionBytes), waits, "", ""},
		{"command", "status of a gateway", size(StatusBytes), refused, "", ""},
		{"command", "answer of a hook; text of an error", size(BodyBytes) + "; " + size(MergedMessageBytes), "refused; cut", "", ""},
		{"command", "indented JSON and YAML", size(IndentedBytes), "JSON is printed as it came; YAML is refused", "", ""},
		{"command", "cells of a table but the last of a row", size(CellBytes), cut, "", ""},
		{"command", "file of a bug report, its statuses of single extensions; all files", size(ReportFileBytes) + "; " + size(ReportBytes), "cut; left out", "", ""},
	}
}

func infrastructureSizes() []Limit {
	return []Limit{
		{"infrastructure object", "parameters as JSON, alone and with defaults; name of a member", size(ParameterBytes) + "; " + size(ParameterNameBytes), invalid, "", ""},
		{"infrastructure object", "problem of parameters", size(ParameterProblemBytes), cut, "", ""},
		{"infrastructure object", "outputs of a cluster as JSON", size(OutputBytes), notUsed, "", ""},
		{"infrastructure object", "data of a Secret with credentials", size(CredentialBytes), "`Synced` is `False`: `CredentialsNotFound`", "", ""},
		{"InfrastructureClass", "schema of parameters; values of an `enum` together; `pattern`", size(ParameterSchemaBytes) + "; " + size(ParameterEnumBytes) + "; " + size(ParameterPatternBytes), notReady, "", ""},
		{"InfrastructureClass", "capacities of machines as JSON, together", size(MachineCapacityBytes), notReady, "", ""},
	}
}

func counts() []Limit {
	return []Limit{
		{"caller", "calls per second", count(CallerRate), later + long(RefusedRetry), "`--max-calls-per-second`", "`hookgate_requests_total`"},
		{"caller", "calls in flight", count(CallerCalls), later + long(RefusedRetry), "`--max-calls-in-flight`", "`hookgate_requests_total`"},
		{"extension", "calls in flight", count(DefaultInFlight), "waits, within the deadline", "[`limits.maxInFlight`](extension-policy.md#limits)", "`hookgate_extension_calls_in_flight`"},
		{"extension", "calls that wait", count(DefaultWaiting), "`Unreachable`", "`limits.maxWaiting`", "`hookgate_extension_calls_refused_total`"},
		{"handler, Cluster, server", "failures in a row", count(DefaultFailuresInARow), circuitOpens, "[`circuit.consecutiveFailures`](extension-policy.md#circuit)", circuitShows},
		{"handler, server", "failures among the calls of " + long(CircuitWindow) + ", of at least " + count(CircuitCalls), percent(DefaultFailurePercent), circuitOpens, "`circuit.failureRatePercent`", circuitShows},
		{"handler", "Clusters whose failures are remembered", count(FailingClusters), "failures of others count like those of calls without a Cluster", "", "`hookgate_handler_refused_clusters`"},
		{"process", "calls in flight of `hookgate infrastructure`", count(DefaultInfrastructureCalls), "they wait", "`--max-calls`", "`hookgate_infrastructure_call_duration_seconds`"},
		{"process", "InfrastructureClasses that metrics tell apart", count(InfrastructureClasses), "the others are counted as one, Other", "", ""},
		{"InfrastructureClass", "calls in flight", count(DefaultClassCalls), "the object is processed again after 1 s", "`--max-calls-per-class`", "`hookgate_infrastructure_call_duration_seconds`"},

		{"call", "elements besides Kubernetes objects: of lists and maps, and unknown members", count(Elements), tooLarge + ", " + badAnswer, "", ""},
		{"call", "elements of an object that is [converted](conversion.md), or values in it if it has patches", count(ObjectElements), tooLarge, "", ""},
		{"call", "values of an object whose patches are compared; JSON pointers of those that differ", count(ObjectElements) + "; " + size(ObjectPointers), "not compared", "", ""},
		{"call", "values in a patch for a converted object, with those that it copies; in converted metadata of variables", count(ObjectElements), badAnswer, "", ""},
		{"call", "nesting of JSON", count(JSONDepth) + " levels", "`InvalidRequest`, " + badAnswer, "", ""},
		{"call", "members of an object in which a match condition selects one", count(Elements), tooLarge, "", ""},
		{"call", "namespaces of the items of a request", count(Namespaces), tooLarge, "", ""},
		{"call", "handlers and steps in [an explanation](explain.md)", count(ExplainedHandlers), counted, "", ""},
		{"call", "lines of the header of an answer over HTTP/1.1", count(AnswerHeaderLines), badAnswer, "", ""},
		{"call", "gateways that it passes", count(GatewayHops), "`Loop`; handlers further away are not discovered", "", ""},
		{"call", "attempts after a connection broke before the request was sent, or when a `Retry-After` asks", count(Attempts), "the last failure", "", ""},
		{"chain", "steps; settings of a step", count(ChainSteps) + "; " + count(StepSettings), refused, "", ""},
		{"chain", "paths that a step may change; length of each", count(AllowedPaths) + "; " + count(AllowedPathBytes) + " bytes", refused, "", ""},
		{"rule", "entries of a list; seconds until its caller calls again", count(RuleList) + "; " + count(RuleRetrySeconds), refused, "", ""},
		{"rule", "length of a path that may change in place", count(AllowedPathBytes) + " bytes", refused, "", ""},
		{"rule", "length of a window; of its `cron`", long(LeastWindow) + " to " + long(LongestWindow) + "; " + count(CronBytes) + " bytes", refused, "", ""},
		{"rule", "time until the caller calls again, if the rule waits for a window", "until the window opens, at most " + count(WindowRetrySeconds) + " s", "", "", ""},
		{"rule", "Clusters past a hook: `limit`; all of them", count(RuleConcurrency) + "; " + count(RulePlaces), refused + "; " + waits, "", ""},
		{"process", "changes of the Clusters of ExtensionRollouts that wait for their events; Clusters that are gone and whose records are deleted", count(RolloutEvents) + "; " + count(RolloutGonePerSecond) + " per second", "no event; they take longer", "", ""},
		{"process", "records of [what was last valid](cluster.md#what-was-last-valid) that are written or deleted", count(LastValidPerSecond) + " per second", "they take longer", "", ""},
		{"process", "holds that are lifted and that wait for their events, of which one is written per second", count(LiftedHolds), "the next call notes it again", "", ""},
		{"rule", "value of `per`", size(RulePerBytes), "`Policy`", "", ""},
		{"rule", "params; objects in one of `objects`, and Clusters of a namespace for `admitted`", count(RuleParams) + "; " + count(RuleParamObjects), refused + "; `Policy`", "", ""},
		{"rule", "JSON of an object that is a param; of all params", size(RuleParamBytes) + "; " + size(RuleParamsBytes), "`Policy`", "", ""},
		{"process", "objects and lists that rules read; objects of a kind that are kept for `self`, and their JSON", count(RuleWatches) + "; " + count(RuleSelfObjects) + ", " + size(RuleSelfBytes), "`NotReady`; `Policy`", "", ""},
		{"rule", "length of a path that is patched; of the name of a class; size of the schema of a variable", count(RulePathBytes) + "; " + count(RuleClassBytes) + " bytes; " + size(RuleSchemaBytes), refused, "", ""},
		{"HookJob", "size of the template as JSON", size(JobTemplateBytes), refused, "", ""},
		{"HookJob", "deadline of a Job; time for which it is kept once its success is recorded, at least", long(JobDeadline) + ", " + long(DefaultJobDeadline) + " by default; " + long(JobKept) + ", " + long(DefaultJobKept) + " by default", refused, "`deadline`, `jobTemplate.spec.ttlSecondsAfterFinished`", ""},
		{"HookJob", "length of a value of `once`; size of the files of a container; of its settings", size(JobOnceBytes) + "; " + size(JobFilesBytes) + "; " + size(JobSettingsBytes), "the answer says Failure", "", ""},
		{"HookJob", "Jobs that have not ended", count(JobsUnfinished), "a hold; `Unreachable` for hooks that do not wait", "", ""},
		{"HookJob", "successes that are recorded", count(JobRecords), "the answer says Failure", "", ""},
		{"HookJob", "recorded successes of one Cluster or Machine", count(JobRecordsOfCluster), "the oldest are dropped", "", ""},
		{"HookJob", "length of the message of a Job, and of the reason why its Pod does not succeed; Pods that are examined for it", size(JobMessageBytes) + ", " + size(JobProblemBytes) + "; " + count(JobPods), "cut; the others are ignored", "", ""},
		{"policy", "`liftedHolds`; length of a `uid`", count(PolicyLifts) + "; " + count(UIDBytes) + " bytes", refused, "", ""},
		{"process", "Clusters that are remembered for [AfterClusterDelete](machines.md#when-a-cluster-is-gone); labels of each, and of its namespace", count(ClusterEndRecords) + "; " + count(ClusterEndLabels), "not remembered; the first by name are", "", "`hookgate_cluster_records`, `hookgate_clusters_unrecorded_total`"},
		{"policy", "match conditions; length of each", count(MatchConditions) + "; " + count(ConditionCharacters) + " characters", refused, "", ""},
		{"policy, rule", "nested lists, maps, macros and optional values of an expression", count(ExpressionNesting), refused, "", ""},
		{"policy", "cost of a match condition; of all (one for each step and 10 bytes of text)", count(ConditionCost) + "; " + count(PolicyCost), "`Policy`", "", ""},
		{"process", "calls that wait for memory", count(MemoryWaits) + ", and " + count(SmallMemoryWaits) + " of at most " + size(SmallCallBytes) + "; " + count(OwnMemoryWaits) + " of one caller", overloaded, "", "`hookgate_memory_waiting_calls`"},
		{"process", "bodies of more than " + size(HeavyBytes) + " that are worked on at the same time", "`GOMAXPROCS` less one, at least one; all if no small call has ended for " + long(HeavyQuiet), "waits, within the deadline: `Timeout`", "", "`hookgate_heavy_work_waits_total`, `hookgate_heavy_work_wait_seconds_total`"},
		{"process", "files of a recording", count(RecordFiles), "the oldest are removed", "", ""},
		{"process", "nested texts that are searched for secrets; together; YAML", count(RedactDepth) + "; " + size(RedactLeastBytes) + " and " + count(RedactPart) + " times the text; " + size(RedactYAMLBytes), "a text that may have a secret is removed; removed; read line by line", "", ""},
		{"process", "text that is searched for secrets beyond the cut", size(RedactMarginBytes), "", "", ""},
		{"process", "JSON pointers that are redacted; that may differ in a replay; length of one", count(RecordPatterns) + "; " + count(RecordPatterns) + "; " + count(RecordPatternBytes) + " bytes", refused, "", ""},
		{"process", "differences that a replay lists", count(ReplayDifferences), counted, "", ""},
		{"rollout", "Clusters with records; entries of `approved`", count(RolloutClusters) + "; " + count(RolloutApproved), "stay with stable; refused", "", ""},
		{"rollout", "differences of a record; their size together; that of each text", count(RolloutDifferences) + "; " + size(RolloutDifferencesBytes) + "; " + count(RolloutValueBytes) + " bytes", "counted; counted; cut", "", ""},
		{"rollout", "calls about a Cluster that wait to be compared; requests about it that are known; known data of all together", count(RolloutWaiting) + "; " + count(RolloutQuestions) + "; " + size(RolloutEvidenceBytes), "the Cluster stays with stable", "", "`hookgate_rollout_comparisons_total`"},
		{"rollout", "equal answers to a request before they count; reconciles without a question before it is forgotten", count(RolloutAnswers) + ", after each change twice as many; " + count(RolloutForgotten), "the Cluster stays with stable", "", ""},
		{"rollout", "last calls of the candidate that count for `errorPercent`; at least", count(RolloutCalls) + "; " + count(RolloutLeastCalls), "", "", ""},
		{"rollout", "Clusters that differ or have moved, in the status with `?rollout=NAME`; without", count(StatusRolloutClusters) + "; " + count(StatusRolloutExamples), counted, "", ""},
		{"process", "calls that wait to be compared for [rollouts](rollouts.md), by the size of their requests and answers; compared at a time", count(RolloutQueueCalls) + ", " + size(RolloutQueueBytes) + " and " + percent(KeptShare) + " of the budget; " + count(RolloutComparisons) + ", each within " + percent(CallerShare) + " of the budget together", "not compared", "", "`hookgate_rollout_comparisons_total`"},
		{"process", "ExtensionRollouts in the status, and with metrics", count(StatusRollouts), counted, "", ""},
		{"process", "callers whose calls are counted", count(TrackedCallers), "the longest idle is forgotten; if none is idle, " + overloaded, "", ""},
		{"process", "checks of tokens by the API server", count(ReviewsPerSecond) + " per second, " + count(ReviewsWaiting) + " at a time", "`Overloaded`, `NotReady`", "", "`hookgate_authentications_total`"},
		{"process", "kept answers of the API server about tokens", count(ReviewsKept), "asked again", "", ""},
		{"process", "probes of the servers of extensions", count(ProbesPerSecond) + " per second", "servers beyond 200 are probed less often", "", "`hookgate_extension_up`"},
		{"process", "events about updates in place that are blocked, and about rules that only audit; objects that wait for one", count(BlockedEventsPerSecond) + " per second; " + count(BlockedOwners), "they take longer; left out until the next call", "", ""},
		{"process", "lines of the log about answers of rules that only audit", count(AuditLines) + ", and then " + count(AuditLinesPerSecond) + " per second", "left out", "", "`hookgate_rule_audits_total`"},
		{"process", "requests for the Secrets of CAs", count(SecretsPerSecond) + " per second", "they take longer", "", ""},
		{"process", "scrapes of metrics; requests for [the status](status.md)", "1 at a time, and " + count(Scrapes-1) + " that wait", busy, "", ""},
		{"process", "pages sent at a time; pages that follow changes", count(Pages) + "; " + count(FollowingPages), busy, "", ""},
		{"process", "handlers that are gone and still have metric series", count(GoneHandlers) + ", and none after a scrape", "removed", "", ""},
		{"process", "Clusters that [the status](status.md#the-handlers-of-a-cluster) knows from calls; calls that are examined for them", count(SeenClusters) + "; " + count(SeenClustersPerSecond) + " per second", "the one with the oldest call is forgotten; the next call counts", "", ""},
		{"process", "ExtensionPolicies, HandlerChains, HookRules, Clusters that wait, Clusters with places, last answers that let Clusters go on, in the status", count(StatusPolicies) + ", " + count(StatusChains) + ", " + count(StatusLocals) + ", " + count(HeldClusters) + ", " + count(HeldClusters) + ", " + count(HeldClusters), counted, "", ""},
		{"extension", "handlers; length of the name of one, a DNS-1123 label", count(Handlers) + "; 63", badDiscovery, "", ""},
		{"process", "handlers of all ExtensionConfigs together", count(AllHandlers), "the ExtensionConfig is not registered: its error names it, `Discovered` is `False`; `NotReady`", "", ""},
		{"extension", "faults in one error of discovery", count(DiscoveryFaults), counted, "", ""},
		{"extension", "time that calls wait for an extension that accepts no connections, from the first call; of each call", long(RestartWait) + "; half of its time", "the last failure, at once until there is a connection", "", "`hookgate_handler_restart_waits_total`"},
		{"extension", "calls that are repeated after they were sent, or begun", percent(100/RetryPart) + ", and " + count(RetryCredit) + " at the start", "the first failure", "", ""},
		{"extension", "failures in the status", count(Failures), "the oldest is forgotten", "", ""},
		{"file", "callers in `--callers`; bytes of a token in it", count(Callers) + "; at least " + count(LeastTokenBytes), "refused; the last content stays", "", ""},
		{"file", "manifest files of a directory; documents of a file", count(ManifestFiles) + "; " + count(ManifestDocuments), "the first beyond is reported, none beyond is used", "", "`hookgate_manifest_errors`"},
		{"file", "values of manifests: lines, and the characters `,` `:` `[` `{` `?`", count(ManifestValues), reported, "", ""},
		{"file", "`%TAG` of a document; members that merge keys (`<<`) add, and mappings with them", count(ManifestTags) + "; " + count(ManifestMerged), reported, "", ""},
		{"file", "problems of manifests", count(ManifestProblems), counted, "", ""},
		{"object", "problems in a refusal, a condition or the log", count(Problems), counted, "", ""},
		{"webhook", "JSON values in a request; of all that are answered at a time", "admission " + count(AdmissionValues) + ", conversion " + count(ConversionValues), "status 413; waits", "", ""},
		{"webhook", "requests answered at a time; of one host", "admission " + count(Admissions) + "; " + count(HostAdmissions) + "; conversion " + count(Conversions) + "; " + count(HostConversions), "they wait", "", ""},
		{"webhook", "open requests of one host", count(WebhookRequests), busy, "", ""},
		{"command", "values, objects of a status; connections through the API server", count(StatusValues) + ", " + count(StatusObjects) + "; " + count(TunnelConnections), "refused; the command fails", "", ""},
		{"command", "rows of a table; values as YAML", count(TableRows) + "; " + count(YAMLValues), "counted; refused", "", ""},
		{"command", "characters of names that shells complete", "letters, digits and `-._/@:+=`", "left out", "", ""},
	}
}

func connections() []Limit {
	return []Limit{
		{"address for callers: HTTPS; gRPC", "open connections, with handshakes in progress; of one remote host", count(Connections) + "; " + count(HostConnections), closedLogged, "", ""},
		{"address for callers: HTTPS; gRPC", "both, if the process may open few files (`ulimit -n`)", "one in " + count(Descriptors) + " files, half of that for one host", "closed, logged; logged at the start", "", ""},
		{"any other address but the profiler's", "open connections; of one remote host", count(SideConnections) + "; " + count(SideHostConnections) + "; at most one in " + count(SideDescriptors) + " files", closedLogged, "", ""},
		{"connection", "concurrent calls over HTTP/2 or gRPC", count(Streams) + "; at the other addresses " + count(SideStreams), "the stream is refused, which clients wait for", "", ""},
		{"connection", "calls that the caller resets over HTTP/2 or gRPC", count(Resets) + " at once, then " + count(ResetsPerSecond) + " per second", closedLogged, "", ""},
		{"connection", "requests over HTTP/1.1 whose body comes in chunks, or over HTTP/1.0", "1", "closed after the answer", "", ""},
		{"extension", "idle connections", count(IdleConnections) + ", and a quarter of the budget at " + size(IdleConnectionBytes) + " each, but at least " + count(LeastIdleConnections), "closed; more calls at a time make a TLS handshake each", "", ""},
		{"extension", "connections that are being made", "as many as calls wait for one, and " + count(AbandonedDials) + " for calls that have ended", "calls take the first that is made", "", ""},
		{"extension", "connections to an address over gRPC", count(RedialBurst) + " at once, then one every " + long(RedialInterval), "made later; calls wait", "", ""},
		{"extension", "addresses of a host, or endpoints of a Service, over gRPC", count(Addresses), "the first ones are used", "", ""},
	}
}

func infrastructureCounts() []Limit {
	return []Limit{
		{"infrastructure object", "values in parameters; nesting", count(Parameters) + "; " + count(ParameterDepth) + " levels", invalid, "", ""},
		{"infrastructure object", "cost of the schema's rules in one check", count(ParameterCost) + " units of CEL, about 10 ms", invalid, "", ""},
		{"infrastructure object", "problems of parameters", count(ParameterProblems), counted, "", ""},
		{"infrastructure object", "conditions of the extension", count(InstanceConditions), notUsed, "", ""},
		{"infrastructure object", "addresses of a machine; failure domains of a cluster; instances of a pool", count(MachineAddresses) + "; " + count(FailureDomains) + "; " + count(Instances), notUsed, "", ""},
		{"infrastructure object", "instances in the status of a pool; addresses of each", count(ReportedInstances) + "; " + count(InstanceAddresses), "the first by name", "", ""},
		{"infrastructure object", "machines of a pool made before its size is read again", count(PoolStep), "made next", "", ""},
		{"infrastructure object", "events with the same reason", "1 in " + long(EventInterval), "left out", "", ""},
		{"InfrastructureClass", "nesting of a schema of parameters", count(ParameterSchemaDepth) + " levels", notReady, "", ""},
		{"InfrastructureClass", "rules (`x-kubernetes-validations`) of a schema", count(ParameterRules) + ", with the estimated costs that the API server allows", notReady, "", ""},
		{"InfrastructureClass", "capacities of machines; resources of each", count(MachineCapacities) + "; " + count(CapacityResources), notReady, "", ""},
		{"process", "Secrets with credentials that are kept", count(Credentials), "read again", "", ""},
	}
}

func times() []Limit {
	return []Limit{
		{"handler", "a call", "its timeout: " + long(DefaultTimeout) + " if it states none, at most " + long(Timeout), "`Timeout`", "[`timeoutSeconds`](extension-policy.md#timeoutseconds)", "`hookgate_handler_calls_near_timeout_total`"},
		{"handler, Cluster, server", "between two probes of an open circuit", long(DefaultOpen) + ", doubled up to " + long(DefaultLongestOpen), "", "`circuit.minOpenSeconds`, `circuit.maxOpenSeconds`", circuitShows},
		{"connection", "age of one to an extension", long(DefaultConnectionAge), "replaced", "`--connection-max-age`", ""},
		{"call", "in flight when the gateway stops", long(DefaultShutdown), "broken off", "`--shutdown-timeout`", ""},

		{"call", "receiving a request", long(ReceiveTimeout), "`InvalidRequest`; over gRPC, DeadlineExceeded", "", ""},
		{"call", "answer to a REST caller, from the request's header", long(AnswerTimeout), closed, "", ""},
		{"call", "reading an answer", long(AnswerPatience) + ", and 1 s for each " + size(AnswerBytesPerSecond) + " that were read", "the stream is reset; over HTTP/1.1 and gRPC, closed", "", ""},
		{"call", "handlers that a policy gives an order, together", long(Timeout), "`Timeout`", "", ""},
		{"call", "waiting for memory", "half the time to its deadline, at most " + long(MemoryWait), overloaded, "", ""},
		{"call", "message over gRPC that has not arrived", "after " + long(UnsizedWait) + ", counts as " + size(BodyBytes) + " until it has", "if the memory is used up, DeadlineExceeded at once", "", ""},
		{"call", "work with large bodies while other callers or extensions wait", long(HeavyTurn), "others go first", "", ""},
		{"connection", "until a caller's first header; gRPC: the end of the handshakes", long(HandshakeTimeout), closed, "", ""},
		{"connection", "idle, of a caller", long(IdleTimeout), closed, "", ""},
		{"connection", "gRPC caller that is silent", "asked after " + long(KeepaliveTime) + ", has " + long(KeepaliveTimeout) + " to answer", closed, "", ""},
		{"connection", "between pings of a gRPC caller", long(LeastPingTime), closed, "", ""},
		{"connection", "reading on after an answer that refuses a request", long(LingerTimeout) + ", " + long(LingerQuiet) + " without data", closed, "", ""},
		{"connection", "gRPC, goes on after `ca.crt` has appeared or changed", long(RenewTimeout) + "; calls only with a certificate that is valid now", closed, "", ""},
		{"connection", "without a call when the gateway stops", long(DrainQuiet) + " after the last byte written", closed, "", ""},
		{"connection", "TLS handshake with an extension", long(ExtensionHandshakeTimeout), "`Unreachable`", "", ""},
		{"connection", "idle, to an extension", long(IdleExtensionTimeout), closed, "", ""},
		{"handler", "the failures of a Cluster are remembered after the last of them", long(FailingClusterTime), "", "", ""},
		{"address", "one to which a connection failed is tried last", long(FailingTime), "", "", ""},
		{"address", "between log lines about connections that were closed", long(RefusedInterval), "", "", ""},
		{"extension", "one attempt to discover handlers", long(DiscoveryTimeout), "`Discovered` is `False`", "", "`hookgate_discovery_duration_seconds`"},
		{"extension", "a probe of the server; between two", long(ProbeTimeout) + "; " + long(ProbeInterval), "`Down`", "", ""},
		{"extension", "between requests for the Secret of its CA", long(SecretInterval), waits, "", ""},
		{"extension", "calls that the status counts, in 3.5 KiB for each handler that was called", long(StatusWindow), forgotten, "", ""},
		{"rule", "between two checks of the Clusters past its hook", long(PlacesInterval), "", "", ""},
		{"rule", "a place that is being given out; one that has lost its rule, or its owner and Cluster", long(PlaceAnnounced) + "; " + long(PlaceUnknown), forgotten, "", ""},
		{"process", "between two checks for records of Clusters that are gone", long(RolloutSweep), "", "", ""},
		{"process", "between two calls about a Cluster that is gone, at most; one that no handler matches is remembered", long(ClusterEndRetry) + "; " + long(ClusterEndUnmatched), forgotten, "", "`hookgate_clusters_gone_total`"},
		{"rollout", "without calls before equal answers of a Cluster count; after a call that was made again", long(RolloutSettle) + "; " + long(RolloutPause), "", "", ""},
		{"rollout", "storing a record; between attempts", long(RolloutStore) + "; " + long(RolloutRetry) + " at first, at most " + long(RolloutRetryMost), "the Cluster stays with stable", "", ""},
		{"policy", "a cached answer", count(CacheSeconds/3600) + " h", forgotten, "", ""},
		{"caller", "an answer of the API server about its token; a check", long(ReviewLifetime) + "; " + long(ReviewTimeout), "asked again; `NotReady`", "", ""},
		{"file", "reading a file or a directory", long(FileTimeout), "the last content stays", "", ""},
		{"process", "writing the rest of a recording when the gateway stops; between attempts to make a file, log lines about calls that were not recorded", long(RecordStop) + "; " + long(RecordRetry) + ", " + long(RecordLogInterval), "not recorded", "", ""},
		{"process", "recording one handler; reading " + size(RecordBatchBytes) + " of it; between signs of life", long(RecordStreamTime) + "; " + long(RecordStreamPatience) + "; " + long(RecordStreamBeat), "refused; closed", "`--for`", ""},
		{"command", "silence of a gateway that records one handler", long(RecordStreamSilence), "the command fails", "", ""},
		{"process", "a scrape of metrics, until it has been read", long(ScrapeTimeout), closed, "", ""},
		{"process", "reading a page, or a change of it; age of the list of extensions", long(PageTimeout) + "; " + long(PageAge), "closed; made anew", "", ""},
		{"process", "age of the objects of infrastructure on a page; reading them", long(InfrastructurePageAge) + "; " + long(InfrastructurePageTimeout), "read anew; the page says so", "", ""},
		{"webhook", "receiving a request", long(WebhookReceiveTimeout), "status 408", "", ""},
		{"infrastructure object", "a call", long(InfrastructureTimeout), "`Synced` is `False`", "", "`hookgate_infrastructure_call_duration_seconds`"},
		{"infrastructure object", "between failed calls", long(LeastRetry) + " at first, at most " + long(LongestRetry), "", "", ""},
		{"infrastructure object", "delay of the next call that the extension may request", long(LeastRecall) + " to " + long(LongestRecall), cut, "", ""},
		{"infrastructure object", "age of credentials that were read", long(CredentialAge), "read again", "", ""},
		{"command", "connecting to a gateway through the API server", long(TunnelTimeout), "the command fails", "", ""},
	}
}
