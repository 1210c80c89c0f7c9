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
	cut          = "the text is cut"
	counted      = "the others are only counted"
	closed       = "the connection is closed"
	closedLogged = "the connection is closed; logged"
	notReady     = "the class is not ready"
	notUsed      = "the answer is not used"
	reported     = "the file is reported, and not used"
	invalid      = "refused; `ParametersValid` is `False`"
	busy         = "status 503"
	waits        = "the call waits"
)

func memory() []Limit {
	shows := "`hookgate_memory_reserved_bytes`, `hookgate_memory_refused_total`"
	return []Limit{
		{"process", "budget: the memory for all calls together", percent(BudgetShare) + " of the container's limit or `GOMEMLIMIT`, but at least " + size(ProgramHeap) + " less than Go's heap may use, and at most " + size(LargestBudget), overloaded, "`--memory-budget`, at least " + size(LeastBudget) + ", with a warning beyond " + percent(LargestBudgetShare) + " of the limit; or the container's limit together with `GOMEMLIMIT`", shows},
		{"call", "memory for one call if the budget is less than " + size(LeastBudget) + ", as in a container of less than " + size(LeastBudget*100/BudgetShare) + " (logged at start)", "the whole budget", "`TooLarge`", "", ""},
		{"process", "the default budget when the process has no memory limit (logged at start)", "one " + count(UnlimitedPart) + "th of the machine's memory, at most " + size(LargestUnlimited), overloaded, "", ""},
		{"process", "Go's heap, unless `GOMEMLIMIT` is less", percent(HeapShare) + " of the container's limit, but at least " + size(HeapRest) + " less than that limit", "garbage is collected more often", "", ""},
		{"process", "share of the budget up to which calls are admitted; share up to which admitted calls get more memory", percent(AdmittedShare) + " (" + percent(AdmittedLittleShare) + " for calls of at most " + size(LittleCallBytes) + ", " + percent(AdmittedSmallShare) + " for calls of at most " + size(SmallCallBytes) + "); " + percent(GrownShare), "the call waits; " + overloaded, "", ""},
		{"process", "memory for cached answers ([`cache`](extension-policy.md#cache)); memory for one cached answer", percent(KeptShare) + " of the budget, at most " + size(CachedBytes) + ", and none while calls use " + percent(KeptBelow) + " of the budget; " + size(CachedBytes/CachedPart), "the least recently used are forgotten", "", ""},
		{"process", "calls that wait to be [recorded](recording.md) (each counts twice its size)", size(RecordQueueBytes) + ", " + count(RecordQueueCalls) + " calls (taken from the caches' part of the budget)", "not recorded", "", "`hookgate_recording_dropped_total`"},
		{"process", "[recordings of one handler](recording.md#record-one-handler) at the same time; in each of them, lines that wait for the reader, and lines being sent", count(RecordStreams) + "; " + size(RecordStreamBytes) + " each", "status 503; not recorded", "", "`hookgate_recording_dropped_total`"},
		{"process", "calls that wait to be compared with [earlier ones](operate.md#answers-that-change); size of one such call; earlier answers in memory", size(DriftQueueBytes) + ", " + count(DriftQueueCalls) + " calls; " + size(DriftCallBytes) + "; " + size(DriftBytes) + ", " + count(DriftAnswers) + " answers", "the calls are not compared; the least recently used answers are forgotten", "", "`hookgate_answers_not_compared_total`"},
		{"process", "calls compared with earlier ones; places that are named in the text about a difference", size(DriftBytesPerSecond) + " per second, where each call counts as " + size(DriftCallLeast) + " more than its size; " + count(DriftPlaces), "not compared; the others are only counted", "", "`hookgate_answers_not_compared_total`"},
		{"process", "log lines that the reader of the log has not read yet", size(LogBytes), "dropped; their number is logged", "", ""},
		{"caller", "share of the budget for the calls of one caller", percent(CallerShare), waits, "", ""},
		{"extension", "share of the budget for requests that wait for answers of the extension, and for these answers", percent(ExtensionShare), overloaded, "", ""},
	}
}

func sizes() []Limit {
	return []Limit{
		{"call", "body of a request, also after conversion and encoding for an extension", size(BodyBytes), tooLarge, "", ""},
		{"call", "answer of an extension, also after merging, conversion and encoding for the caller", size(BodyBytes), badAnswer, "", ""},
		{"call", "answer over HTTP/1.1, including the overhead of chunks", "twice the size of the answer, plus " + size(ChunkBytes), badAnswer, "", ""},
		{"call", "header of a request (over gRPC, its metadata)", size(HeaderBytes), "status 431 (over gRPC, the stream is reset)", "", ""},
		{"call", "header of an answer", size(AnswerHeaderBytes), badAnswer, "", ""},
		{"call", "bearer token", size(TokenBytes), "`Unauthenticated`", "", ""},
		{"call", "name of a handler in a request", size(NameBytes), "`UnknownHandler`", "", ""},
		{"call", "`kind` and group in a reference; `apiVersion` and `kind` of an object to convert", "63 and 253; " + size(QuotedBytes), "`Conversion`, `InvalidRequest`", "", ""},
		{"call", "objects and lists read by match conditions, counted at each read", size(PolicyReadBytes), "`Policy`", "", ""},
		{"call", "memory for the values that match conditions and rules compute", size(PolicyMemoryBytes), "`Policy`", "", ""},
		{"call", "text from an extension in an error; text from another gateway about a loop", size(ErrorQuoteBytes) + "; " + size(LoopQuoteBytes), cut, "", ""},
		{"call", "message of an extension's answer", size(MessageBytes), "the text is cut, and ends with `… (cut)`", "", ""},
		{"call", "messages of several handlers together; text of an error", size(MergedMessageBytes), "each message is cut to an equal share, at least " + size(LeastMessageShare), "", ""},
		{"extension", "consecutive answers about a Cluster that [differ only in their messages](operate.md#messages-that-change)", count(UnsteadyMessages), "reported in the status", "", ""},
		{"call", "the caller's name or the called path, in a text; a text in a log line", size(QuotedBytes) + "; " + size(LogTextBytes), cut, "", ""},
		{"message", "message of the gRPC services for health and reflection, decompressed", size(SideMessageBytes), "the gRPC code Internal; for the reflection of an extension, " + badDiscovery, "", ""},
		{"connection", "bytes outside bodies (headers, frames, TLS) that a caller sends over HTTP/2 or gRPC, or that a client sends to another address of the gateway", size(OverheadBytes) + ", plus " + size(CallOverheadBytes) + " for each call, open or ended", "all connections of the address together may send " + size(OverheadBurst) + " more, and are then read at " + size(OverheadBytesPerSecond) + " per second; a connection that would wait more than " + long(OverheadWait) + " is closed, and that is logged", "", ""},
		{"connection", "bytes that an extension sends over gRPC outside answers, where each byte from a health check counts as " + count(HealthOverhead), "as for callers, plus at most " + size(AbandonedBytes) + " for each call that was given up", "as for callers, the gateway reads more slowly, from all extensions together, and then closes the connection: `Unreachable`", "", ""},
		{"connection", "bytes of a request that the gateway still reads after it has refused that request", size(LingerBytes), closed, "", ""},
		{"extension", "`url`; `caBundle` as base64", size(URLBytes) + "; " + count(CABundleBytes) + " bytes", refused, "", ""},
		{"extension", "text in the status about a failure", size(FailureBytes), cut, "", ""},
		{"file", "file with a certificate, a key or authorities; file of `--callers`; file in `--state-dir`", size(CertificateFileBytes) + "; " + size(CallersFileBytes) + "; " + size(StateBytes), "refused, and the last content stays in use; in `--state-dir`, the state counts as unknown, which is logged", "", ""},
		{"file", "line of a recording; one file of a recording", size(RecordLineBytes) + "; one " + count(RecordFilesPart) + "th of `--record-max-bytes`, at most " + size(RecordFileBytes) + ", written in pieces of " + size(RecordBatchBytes) + " or after " + long(RecordDelay), "the call is not recorded; the next file begins", "", "`hookgate_recording_dropped_total`"},
		{"process", "all files of a recording together", size(DefaultRecordBytes), "the oldest are removed", "`--record-max-bytes`, at least " + size(LeastRecordBytes), ""},
		{"file", "a file of manifests; all files of a directory together", size(ManifestBytes) + "; " + size(ManifestsBytes), "the file is reported, and not used; in a directory, the last files by name are not used", "", ""},
		{"file", "all documents together whose errors are reported with the exact line", count(LocatedLines) + " lines, " + size(LocatedBytes), "the error names the line where the document begins", "", ""},
		{"object", "text about a problem; message of a condition; note of an event", size(ProblemBytes) + "; " + size(ConditionMessageBytes) + "; " + count(EventNoteBytes) + " bytes", cut, "", ""},
		{"object", "spec, as JSON, of an object of Hookgate that is recorded as [last valid](cluster.md#what-was-last-valid)", size(LastValidBytes), "the spec is in effect, but not recorded; logged", "", ""},
		{"object", "text in the status about a policy; text about a Cluster that waits", size(PolicyMessageBytes) + "; " + size(FailureBytes), cut, "", ""},
		{"caller", "name of a caller", size(CallerNameBytes), "the name is cut; in the file of `--callers`, it is refused", "", ""},
		{"webhook", "request for admission, and its answer; request for conversion, and its answer", size(AdmissionBytes) + "; " + size(ConversionBytes), "status 413 for the request, 503 for the answer", "", ""},
		{"webhook", "bytes in transit, both ways; bytes of one host", "admission: " + size(Admissions*AdmissionBytes) + "; " + size(2*AdmissionBytes) + ". Conversion: " + size(2*ConversionBytes) + "; " + size(ConversionBytes), "requests wait", "", ""},
		{"command", "status of a gateway", size(StatusBytes), refused, "", ""},
		{"command", "answer of a hook; text of an error", size(BodyBytes) + "; " + size(MergedMessageBytes), "refused; the text is cut", "", ""},
		{"command", "indented JSON and YAML", size(IndentedBytes), "JSON is printed as it came; YAML is refused", "", ""},
		{"command", "cell of a table, except the last one of a row", size(CellBytes), cut, "", ""},
		{"command", "field of a form in `hookgate dashboard`; output of an action in it", size(DashboardFormBytes) + "; " + size(DashboardOutputBytes), "refused; the text is cut", "", ""},
		{"command", "one file of a bug report; all statuses of extensions in the report together; the whole report", size(ReportFileBytes) + "; " + size(ReportFileBytes) + "; " + size(ReportBytes), "the file is cut; further statuses are left out; the last files are cut", "", ""},
	}
}

func infrastructureSizes() []Limit {
	return []Limit{
		{"infrastructure object", "parameters as JSON, before and after defaults are added; name of a member", size(ParameterBytes) + "; " + size(ParameterNameBytes), invalid, "", ""},
		{"infrastructure object", "text about a problem of parameters", size(ParameterProblemBytes), cut, "", ""},
		{"infrastructure object", "outputs of a cluster as JSON", size(OutputBytes), notUsed, "", ""},
		{"infrastructure object", "data in a Secret with credentials", size(CredentialBytes), "`Synced` is `False`: `CredentialsNotFound`", "", ""},
		{"InfrastructureClass", "schema of parameters; all values of an `enum` together; a `pattern`", size(ParameterSchemaBytes) + "; " + size(ParameterEnumBytes) + "; " + size(ParameterPatternBytes), notReady, "", ""},
		{"InfrastructureClass", "all capacities of machines together, as JSON", size(MachineCapacityBytes), notReady, "", ""},
	}
}

func counts() []Limit {
	return []Limit{
		{"caller", "calls per second", count(CallerRate), later + long(RefusedRetry), "`--max-calls-per-second`", "`hookgate_requests_total`"},
		{"caller", "calls in flight", count(CallerCalls), later + long(RefusedRetry), "`--max-calls-in-flight`", "`hookgate_requests_total`"},
		{"extension", "calls in flight", count(DefaultInFlight), "the call waits, within its deadline", "[`limits.maxInFlight`](extension-policy.md#limits)", "`hookgate_extension_calls_in_flight`"},
		{"extension", "calls that wait for other calls to end", count(DefaultWaiting), "`Unreachable`", "`limits.maxWaiting`", "`hookgate_extension_calls_refused_total`"},
		{"handler, Cluster, server", "failures in a row", count(DefaultFailuresInARow), circuitOpens, "[`circuit.consecutiveFailures`](extension-policy.md#circuit)", circuitShows},
		{"handler, server", "share of failures among the calls of the last " + long(CircuitWindow) + ", if there are at least " + count(CircuitCalls) + " calls", percent(DefaultFailurePercent), circuitOpens, "`circuit.failureRatePercent`", circuitShows},
		{"handler", "Clusters whose failures are remembered", count(FailingClusters), "failures of calls about further Clusters count like failures of calls about no Cluster", "", "`hookgate_handler_refused_clusters`"},
		{"process", "calls in flight of `hookgate infrastructure`", count(DefaultInfrastructureCalls), "calls wait", "`--max-calls`", "`hookgate_infrastructure_call_duration_seconds`"},
		{"process", "InfrastructureClasses with metrics of their own", count(InfrastructureClasses), "the others are counted together, as Other", "", ""},
		{"InfrastructureClass", "calls in flight", count(DefaultClassCalls), "the object is processed again after 1 s", "`--max-calls-per-class`", "`hookgate_infrastructure_call_duration_seconds`"},

		{"call", "elements of lists and maps, and unknown members, outside Kubernetes objects", count(Elements), tooLarge + ", " + badAnswer, "", ""},
		{"call", "elements of an object to [convert](conversion.md), or values if the object has patches", count(ObjectElements), tooLarge, "", ""},
		{"call", "values of an object whose patches are compared; JSON pointers to values that differ", count(ObjectElements) + "; " + size(ObjectPointers), "not compared", "", ""},
		{"call", "values in a patch for a converted object, including values that the patch copies; values in converted metadata of variables", count(ObjectElements), badAnswer, "", ""},
		{"call", "levels of nested JSON", count(JSONDepth) + " levels", "`InvalidRequest`, " + badAnswer, "", ""},
		{"call", "members of an object from which a match condition reads a member", count(Elements), tooLarge, "", ""},
		{"call", "namespaces of the items of a request", count(Namespaces), tooLarge, "", ""},
		{"call", "handlers and steps listed in [an explanation](explain.md)", count(ExplainedHandlers), counted, "", ""},
		{"call", "header lines of an answer over HTTP/1.1", count(AnswerHeaderLines), badAnswer, "", ""},
		{"call", "gateways that one call passes through", count(GatewayHops), "`Loop`; handlers further away are not discovered", "", ""},
		{"call", "attempts in all, if a connection breaks before the request is sent, or an answer has `Retry-After`", count(Attempts), "the caller gets the last failure", "", ""},
		{"chain", "steps; settings of a step", count(ChainSteps) + "; " + count(StepSettings), refused, "", ""},
		{"chain", "paths that a step may change; length of each path", count(AllowedPaths) + "; " + count(AllowedPathBytes) + " bytes", refused, "", ""},
		{"rule", "entries of a list in the rule; seconds after which the rule lets the caller call again", count(RuleList) + "; " + count(RuleRetrySeconds), refused, "", ""},
		{"rule", "length of a path that may change in place", count(AllowedPathBytes) + " bytes", refused, "", ""},
		{"rule", "length of a window; length of the `cron` of a window", long(LeastWindow) + " to " + long(LongestWindow) + "; " + count(CronBytes) + " bytes", refused, "", ""},
		{"rule", "time after which the caller calls again, if the rule waits for a window", "until the window opens, at most " + count(WindowRetrySeconds) + " s", "", "", ""},
		{"rule", "`limit` of a rule; places that its Clusters may take together", count(RuleConcurrency) + "; " + count(RulePlaces), "refused; the Cluster waits", "", ""},
		{"process", "changes in ExtensionRollouts (one per Cluster) that are not yet reported as events; deleted Clusters whose records are removed", count(RolloutEvents) + "; " + count(RolloutGonePerSecond) + " per second", "there is no event; removing records takes longer", "", ""},
		{"process", "records of [what was last valid](cluster.md#what-was-last-valid) that are written or deleted", count(LastValidPerSecond) + " per second", "writing takes longer", "", ""},
		{"process", "lifted holds that wait to be reported as events (1 per second)", count(LiftedHolds), "the event is written after the next call that lifts the hold", "", ""},
		{"rule", "size of a value of `per`", size(RulePerBytes), "`Policy`", "", ""},
		{"rule", "params; objects that an entry of `objects` selects, and Clusters in a namespace for `admitted`", count(RuleParams) + "; " + count(RuleParamObjects), refused + "; `Policy`", "", ""},
		{"rule", "JSON of one param's object; JSON of all params' objects", size(RuleParamBytes) + "; " + size(RuleParamsBytes), "`Policy`", "", ""},
		{"process", "objects and lists that rules read; objects of a kind in memory for `self`, and their JSON", count(RuleWatches) + "; " + count(RuleSelfObjects) + " and " + size(RuleSelfBytes), "`NotReady`; `Policy`", "", ""},
		{"rule", "length of a path to patch; length of the name of a class; size of the schema of a variable", count(RulePathBytes) + "; " + count(RuleClassBytes) + " bytes; " + size(RuleSchemaBytes), refused, "", ""},
		{"HookJob", "size of the template as JSON", size(JobTemplateBytes), refused, "", ""},
		{"HookJob", "deadline of a Job", long(DefaultJobDeadline) + ", at most " + long(JobDeadline), refused, "`deadline`", ""},
		{"HookJob", "time that a Job is kept after its success was recorded", long(DefaultJobKept) + ", at least " + long(JobKept), refused, "`jobTemplate.spec.ttlSecondsAfterFinished`", ""},
		{"HookJob", "length of a value of `once`; size of a container's files; size of a container's settings", size(JobOnceBytes) + "; " + size(JobFilesBytes) + "; " + size(JobSettingsBytes), "the status of the answer is Failure", "", ""},
		{"HookJob", "Jobs that have not ended", count(JobsUnfinished), "the Cluster or Machine is held; a hook that cannot hold gets `Unreachable`", "", ""},
		{"HookJob", "recorded successes", count(JobRecords), "the status of the answer is Failure", "", ""},
		{"HookJob", "recorded successes of one Cluster or Machine", count(JobRecordsOfCluster), "the oldest records are deleted", "", ""},
		{"HookJob", "length of a Job's message; length of the reason why the Job's Pod does not succeed; Pods that are examined to find that reason", size(JobMessageBytes) + "; " + size(JobProblemBytes) + "; " + count(JobPods), "the text is cut; the other Pods are ignored", "", ""},
		{"policy", "entries of `liftedHolds`; length of a `uid`", count(PolicyLifts) + "; " + count(UIDBytes) + " bytes", refused, "", ""},
		{"process", "Clusters that are remembered for [AfterClusterDelete](machines.md#when-a-cluster-is-gone); labels of a Cluster and of its namespace", count(ClusterEndRecords) + "; " + count(ClusterEndLabels), "the Cluster is not remembered; only the first labels by name are remembered", "", "`hookgate_cluster_records`, `hookgate_clusters_unrecorded_total`"},
		{"policy", "match conditions; length of each condition", count(MatchConditions) + "; " + count(ConditionCharacters) + " characters", refused, "", ""},
		{"policy, rule", "levels of nested lists, maps, macros and optional values in an expression", count(ExpressionNesting), refused, "", ""},
		{"policy", "cost of a match condition; cost of all match conditions (1 for each step, and 1 for each 10 bytes of text)", count(ConditionCost) + "; " + count(PolicyCost), "`Policy`", "", ""},
		{"process", "calls that wait for memory", count(MemoryWaits) + ", plus " + count(SmallMemoryWaits) + " of at most " + size(SmallCallBytes) + "; " + count(OwnMemoryWaits) + " of one caller", overloaded, "", "`hookgate_memory_waiting_calls`"},
		{"process", "bodies of more than " + size(HeavyBytes) + " that the gateway works on at the same time", "`GOMAXPROCS` minus one, at least one; `GOMAXPROCS` if no small call has ended for " + long(HeavyQuiet), "the call waits, up to its deadline: `Timeout`", "", "`hookgate_heavy_work_waits_total`, `hookgate_heavy_work_wait_seconds_total`"},
		{"process", "files of a recording", count(RecordFiles), "the oldest are removed", "", ""},
		{"process", "in the search for secrets: levels of texts nested in texts; size of all nested texts; size of YAML", count(RedactDepth) + "; " + size(RedactLeastBytes) + " plus " + count(RedactPart) + " times the size of the text; " + size(RedactYAMLBytes), "a text that may contain a secret is removed; the text is removed; the YAML is read line by line", "", ""},
		{"process", "bytes that are still searched for secrets after the point where a text is cut", size(RedactMarginBytes), "", "", ""},
		{"process", "JSON pointers to redact; JSON pointers whose values may differ in a replay; length of each pointer", count(RecordPatterns) + "; " + count(RecordPatterns) + "; " + count(RecordPatternBytes) + " bytes", refused, "", ""},
		{"process", "differences listed by a replay", count(ReplayDifferences), counted, "", ""},
		{"rollout", "Clusters with records; entries of `approved`", count(RolloutClusters) + "; " + count(RolloutApproved), "further Clusters stay with the stable version; refused", "", ""},
		{"rollout", "differences in a record; size of all differences; size of each text in a difference", count(RolloutDifferences) + "; " + size(RolloutDifferencesBytes) + "; " + count(RolloutValueBytes) + " bytes", "beyond either of the first two limits, the others are only counted; the text is cut", "", ""},
		{"rollout", "calls about a Cluster that wait to be compared; requests about a Cluster whose comparisons are remembered; memory for the comparisons of all Clusters", count(RolloutWaiting) + "; " + count(RolloutQuestions) + "; " + size(RolloutEvidenceBytes), "the Cluster stays with the stable version", "", "`hookgate_rollout_comparisons_total`"},
		{"rollout", "consecutive equal answers to a request before they count; reconciles without the request before it is forgotten", count(RolloutAnswers) + ", and twice as many after each different answer; " + count(RolloutForgotten), "the Cluster stays with the stable version", "", ""},
		{"rollout", "last calls to the candidate that `errorPercent` refers to; calls to the candidate that are needed before `errorPercent` applies", count(RolloutCalls) + "; " + count(RolloutLeastCalls), "", "", ""},
		{"rollout", "Clusters that differ or have moved: in the status with `?rollout=NAME`; in the status without it", count(StatusRolloutClusters) + "; " + count(StatusRolloutExamples), counted, "", ""},
		{"process", "calls that wait to be compared for [rollouts](rollouts.md), with the size of their requests and answers; calls compared at a time", count(RolloutQueueCalls) + " calls, with at most " + size(RolloutQueueBytes) + " and at most " + percent(KeptShare) + " of the budget; " + count(RolloutComparisons) + ", which together use at most " + percent(CallerShare) + " of the budget", "not compared", "", "`hookgate_rollout_comparisons_total`"},
		{"process", "ExtensionRollouts in the status; ExtensionRollouts with metrics", count(StatusRollouts) + "; " + count(StatusRollouts), counted, "", ""},
		{"process", "callers whose calls are counted", count(TrackedCallers), "the caller that has been idle longest is forgotten; if none is idle, " + overloaded, "", ""},
		{"process", "checks of tokens by the API server", count(ReviewsPerSecond) + " per second, " + count(ReviewsWaiting) + " at a time", "`Overloaded`, `NotReady`", "", "`hookgate_authentications_total`"},
		{"process", "answers of the API server about tokens, kept in memory", count(ReviewsKept), "the API server is called again", "", ""},
		{"process", "probes of the servers of extensions", count(ProbesPerSecond) + " per second", "if there are more than 200 servers, all are probed less often", "", "`hookgate_extension_up`"},
		{"process", "events about blocked in-place updates, and about rules that only audit; objects that wait for such an event", count(BlockedEventsPerSecond) + " per second; " + count(BlockedOwners), "events take longer; there is no event until the next call", "", ""},
		{"process", "lines of the log about answers of rules that only audit", count(AuditLines) + ", and then " + count(AuditLinesPerSecond) + " per second", "left out", "", "`hookgate_rule_audits_total`"},
		{"process", "requests for Secrets with CAs", count(SecretsPerSecond) + " per second", "requests take longer", "", ""},
		{"process", "scrapes of metrics; requests for [the status](status.md)", "1 at a time, and " + count(Scrapes-1) + " that wait", busy, "", ""},
		{"process", "pages sent at a time; pages in browsers that show changes as they happen", count(Pages) + "; " + count(FollowingPages), busy, "", ""},
		{"process", "series of calls in the charts of [the page](status.md), kept for a day: one for all calls, one for each extension and one for each handler (each takes 4,200 bytes, and all together take 4.1 MiB)", count(HistorySeries), "the page says that there is no room", "", ""},
		{"process", "changes that the page marks in the charts; length of the text of each change; extensions whose pages show the change", count(Changes) + "; " + size(ChangeBytes) + "; " + count(ChangeExtensions), "the oldest is forgotten; " + cut + "; the pages of further extensions do not show the change, but the first page does", "", ""},
		{"process", "handlers that are gone, but still have metric series", count(GoneHandlers) + ", and none after a scrape", "the series are removed", "", ""},
		{"process", "Clusters whose UIDs and callers are remembered, to refuse calls about Clusters of [other management clusters](cluster.md#several-management-clusters); UIDs and callers of each Cluster; time after the last call; tolerated difference of clocks", count(Namesakes) + "; " + count(NamesakeMemory) + "; " + long(NamesakeTime) + "; " + long(NamesakeSkew), "the least recently used are forgotten", "", ""},
		{"process", "Clusters that [the status](status.md#the-handlers-of-a-cluster) knows from calls; calls that the gateway examines for Clusters", count(SeenClusters) + "; " + count(SeenClustersPerSecond) + " per second", "the Cluster with the oldest call is forgotten; the Cluster appears with a later call", "", ""},
		{"process", "in the status: ExtensionPolicies, HandlerChains, HookRules, Clusters that wait, Clusters with places, last answers that let a Cluster go on", count(StatusPolicies) + ", " + count(StatusChains) + ", " + count(StatusLocals) + ", " + count(HeldClusters) + ", " + count(HeldClusters) + ", " + count(HeldClusters), counted, "", ""},
		{"extension", "handlers; length of a handler's name, a DNS-1123 label", count(Handlers) + "; 63", badDiscovery, "", ""},
		{"process", "handlers of all ExtensionConfigs together", count(AllHandlers), "the ExtensionConfig is not registered: `Discovered` is `False`, and the message names the limit; calls get `NotReady`", "", ""},
		{"extension", "faults listed in one error of discovery", count(DiscoveryFaults), counted, "", ""},
		{"extension", "time that calls wait for an extension that accepts no connections, counted from the first of these calls; largest share of its timeout that a call waits", long(RestartWait) + "; half", "the caller gets the last failure; later calls fail at once, until there is a connection", "", "`hookgate_handler_restart_waits_total`"},
		{"extension", "calls that are repeated although at least a part of the request was sent", percent(100/RetryPart) + " of all calls, and " + count(RetryCredit) + " at the start", "the caller gets the first failure", "", ""},
		{"extension", "failures listed in the status", count(Failures), "the oldest is forgotten", "", ""},
		{"file", "callers in the file of `--callers`; bytes of a token in this file", count(Callers) + "; at least " + count(LeastTokenBytes), "refused, and the last content stays in use", "", ""},
		{"file", "manifest files in a directory; documents in a file", count(ManifestFiles) + "; " + count(ManifestDocuments), "those beyond the limit are not used, and the first of them is reported", "", "`hookgate_manifest_errors`"},
		{"file", "values in manifests, counted as lines and the characters `,` `:` `[` `{` `?`", count(ManifestValues), reported, "", ""},
		{"file", "`%TAG` directives of a document; members added by merge keys (`<<`), and mappings with merge keys", count(ManifestTags) + "; " + count(ManifestMerged), reported, "", ""},
		{"file", "problems of manifests that are listed", count(ManifestProblems), counted, "", ""},
		{"object", "problems listed in a refusal, a condition, a log line or a notice", count(Problems), counted, "", ""},
		{"webhook", "JSON values in a request, and in all requests answered at a time", "admission " + count(AdmissionValues) + "; conversion " + count(ConversionValues), "status 413; requests wait", "", ""},
		{"webhook", "requests answered at a time; requests of one host", "admission: " + count(Admissions) + "; " + count(HostAdmissions) + ". Conversion: " + count(Conversions) + "; " + count(HostConversions), "requests wait", "", ""},
		{"webhook", "open requests of one host", count(WebhookRequests), busy, "", ""},
		{"command", "values in a status; objects in a status; connections through the API server", count(StatusValues) + "; " + count(StatusObjects) + "; " + count(TunnelConnections), "the status is refused; the command fails", "", ""},
		{"command", "actions of `hookgate dashboard` at a time", count(DashboardActions), busy, "", ""},
		{"command", "rows of a table; values printed as YAML", count(TableRows) + "; " + count(YAMLValues), "the others are only counted; refused", "", ""},
		{"command", "characters of names that shells complete", "letters, digits and `-._/@:+=`", "names with other characters are not offered", "", ""},
	}
}

func connections() []Limit {
	return []Limit{
		{"address for callers: HTTPS; gRPC", "open connections, including handshakes in progress; connections of one remote host", count(Connections) + "; " + count(HostConnections), closedLogged, "", ""},
		{"address for callers: HTTPS; gRPC", "both of these numbers if the process may open only a few files (`ulimit -n`)", "one for each " + count(Descriptors) + " files; half of that", "the connection is closed; logged; the smaller limit is logged at the start", "", ""},
		{"any other address, except the profiler's", "open connections; connections of one remote host", count(SideConnections) + ", but at most one for every " + count(SideDescriptors) + " files that the process may open; " + count(SideHostConnections), closedLogged, "", ""},
		{"connection", "concurrent calls over HTTP/2 or gRPC", count(Streams) + "; at the other addresses " + count(SideStreams), "the stream is refused; clients wait until another stream ends", "", ""},
		{"connection", "calls that the caller resets over HTTP/2 or gRPC", count(Resets) + " at once, then " + count(ResetsPerSecond) + " per second", closedLogged, "", ""},
		{"connection", "requests over HTTP/1.0, or over HTTP/1.1 with a body in chunks", "1", "the connection is closed after the answer", "", ""},
		{"extension", "idle connections", count(IdleConnections) + ", but no more than fit into a quarter of the budget if each takes " + size(IdleConnectionBytes) + ", and at least " + count(LeastIdleConnections), "further idle connections are closed; each further call makes a new TLS handshake", "", ""},
		{"extension", "connections that the gateway is opening", "one for each call that waits for a connection, and " + count(AbandonedDials) + " for calls that have ended", "calls take the first connection that is ready", "", ""},
		{"extension", "connections to an address over gRPC", count(RedialBurst) + " at once, then one every " + long(RedialInterval), "connections open later; calls wait", "", ""},
		{"extension", "addresses of a host, or endpoints of a Service, over gRPC", count(Addresses), "the first ones are used", "", ""},
	}
}

func infrastructureCounts() []Limit {
	return []Limit{
		{"infrastructure object", "values in parameters; levels of nesting", count(Parameters) + "; " + count(ParameterDepth) + " levels", invalid, "", ""},
		{"infrastructure object", "cost of one check by the schema's rules", count(ParameterCost) + " units of CEL, about 10 ms", invalid, "", ""},
		{"infrastructure object", "problems of parameters that are listed", count(ParameterProblems), counted, "", ""},
		{"infrastructure object", "conditions that the extension sets", count(InstanceConditions), notUsed, "", ""},
		{"infrastructure object", "addresses of a machine; failure domains of a cluster; instances of a pool", count(MachineAddresses) + "; " + count(FailureDomains) + "; " + count(Instances), notUsed, "", ""},
		{"infrastructure object", "instances in the status of a pool; addresses of each instance", count(ReportedInstances) + "; " + count(InstanceAddresses), "only the first by name are shown", "", ""},
		{"infrastructure object", "machines of a pool that are created before the pool's size is read again", count(PoolStep), "the others are created next", "", ""},
		{"infrastructure object", "events with the same reason", "1 in " + long(EventInterval), "there is no further event", "", ""},
		{"InfrastructureClass", "nesting of the schema of parameters", count(ParameterSchemaDepth) + " levels", notReady, "", ""},
		{"InfrastructureClass", "rules (`x-kubernetes-validations`) of the schema", count(ParameterRules) + ", with the estimated costs that the API server allows", notReady, "", ""},
		{"InfrastructureClass", "capacities of machines; resources of each capacity", count(MachineCapacities) + "; " + count(CapacityResources), notReady, "", ""},
		{"process", "Secrets with credentials in memory", count(Credentials), "the Secret is read again", "", ""},
	}
}

func times() []Limit {
	return []Limit{
		{"handler", "a call to a handler", "the handler's timeout: " + long(DefaultTimeout) + " if the handler states none, at most " + long(Timeout), "`Timeout`", "[`timeoutSeconds`](extension-policy.md#timeoutseconds)", "`hookgate_handler_calls_near_timeout_total`"},
		{"handler, Cluster, server", "time between two probes of an open circuit", long(DefaultOpen) + ", doubled up to " + long(DefaultLongestOpen), "", "`circuit.minOpenSeconds`, `circuit.maxOpenSeconds`", circuitShows},
		{"connection", "age of a connection to an extension", long(DefaultConnectionAge), "the connection is replaced", "`--connection-max-age`", ""},
		{"connection", "age of a connection of a caller", long(DefaultCallerConnectionAge) + ", give or take a tenth", "with the next answer, the caller is told to connect anew; calls in flight go on", "`--caller-connection-max-age`", ""},
		{"call", "time to finish when the gateway stops", long(DefaultShutdown), "the call is broken off", "`--shutdown-timeout`", ""},

		{"call", "receiving a request", long(ReceiveTimeout), "`InvalidRequest`; over gRPC, DeadlineExceeded", "", ""},
		{"call", "answering a REST caller, counted from the header of the request", long(AnswerTimeout), closed, "", ""},
		{"call", "time until the caller has read the answer", long(AnswerPatience) + ", and 1 s more for each " + size(AnswerBytesPerSecond) + " that it has read", "the stream is reset; over HTTP/1.1 and gRPC, the connection is closed", "", ""},
		{"call", "all handlers of the call together, if a policy sets their order", long(Timeout), "`Timeout`", "", ""},
		{"call", "waiting for memory", "half the time until the call's deadline, at most " + long(MemoryWait), overloaded, "", ""},
		{"call", "arrival of a message over gRPC", long(UnsizedWait), "the message counts as " + size(BodyBytes) + " until it has arrived; if the memory is used up, the call fails with DeadlineExceeded at once", "", ""},
		{"call", "working on a large body while other callers or extensions wait", long(HeavyTurn), "the others come first", "", ""},
		{"connection", "time until a caller's first header has arrived or, over gRPC, until the handshakes have ended", long(HandshakeTimeout), closed, "", ""},
		{"connection", "idle connection of a caller", long(IdleTimeout), closed, "", ""},
		{"connection", "silence of a gRPC caller", "after " + long(KeepaliveTime) + ", the gateway sends a ping; the caller has " + long(KeepaliveTimeout) + " to answer it", closed, "", ""},
		{"connection", "time between two pings of a gRPC caller", "at least " + long(LeastPingTime), closed, "", ""},
		{"connection", "reading the rest of a request after it was refused", long(LingerTimeout) + ", or " + long(LingerQuiet) + " without data", closed, "", ""},
		{"connection", "time that a gRPC connection stays open after `ca.crt` has appeared or changed", long(RenewTimeout) + " (meanwhile, only calls with a certificate that is valid now are accepted)", closed, "", ""},
		{"connection", "streams, such as a health watch, on a gRPC connection that has reached its maximum age", long(RenewTimeout), closed, "", ""},
		{"connection", "connection without a call when the gateway stops", long(DrainQuiet) + " after the last byte that the gateway wrote", closed, "", ""},
		{"connection", "TLS handshake with an extension", long(ExtensionHandshakeTimeout), "`Unreachable`", "", ""},
		{"connection", "idle connection to an extension", long(IdleExtensionTimeout), closed, "", ""},
		{"handler", "time that the failures of a Cluster are remembered after the last one", long(FailingClusterTime), "", "", ""},
		{"address", "time for which the other addresses are tried first after a connection to this address failed", long(FailingTime), "", "", ""},
		{"address", "time between two log lines about closed connections", long(RefusedInterval), "", "", ""},
		{"extension", "one attempt at discovery", long(DiscoveryTimeout), "`Discovered` is `False`", "", "`hookgate_discovery_duration_seconds`"},
		{"extension", "a probe of the server; time between two probes", long(ProbeTimeout) + "; " + long(ProbeInterval), "`Down`", "", ""},
		{"extension", "time between two requests for the Secret with the extension's CA", long(SecretInterval), "the request waits", "", ""},
		{"extension", "certificates of the extension's servers that are remembered; time that a certificate counts after a server has shown another", count(ShownCertificates) + "; " + long(ShownCertificateTime), "of the remaining certificates, the first to expire is reported", "", "`hookgate_extension_certificate_expiry_timestamp_seconds`"},
		{"extension", "maximum age of the calls that the status counts (the counts take 3.5 KiB for each called handler)", long(StatusWindow), "the call is no longer counted", "", ""},
		{"rule", "time between two checks of the Clusters that have places", long(PlacesInterval), "", "", ""},
		{"rule", "age of a place that is being given to a Cluster; time since a place lost its rule, or its owner and Cluster", long(PlaceAnnounced) + "; " + long(PlaceUnknown), "the place is free again", "", ""},
		{"process", "time between two checks for records of deleted Clusters", long(RolloutSweep), "", "", ""},
		{"process", "longest time between two calls about a Cluster that is gone; time that such a Cluster is remembered if no handler matches it", long(ClusterEndRetry) + "; " + long(ClusterEndUnmatched), "the Cluster is forgotten", "", "`hookgate_clusters_gone_total`"},
		{"rollout", "time without calls about a Cluster before equal answers count; time since the last reconcile with a new request, before the Cluster may move", long(RolloutSettle) + "; " + long(RolloutPause), "", "", ""},
		{"rollout", "storing a record; time between two attempts", long(RolloutStore) + "; " + long(RolloutRetry) + " at first, at most " + long(RolloutRetryMost), "the Cluster stays with the stable version", "", ""},
		{"policy", "age of a cached answer", count(CacheSeconds/3600) + " h", "the answer is forgotten", "", ""},
		{"caller", "age of the API server's answer about the caller's token; one check of a token", long(ReviewLifetime) + "; " + long(ReviewTimeout), "the API server is called again; `NotReady`", "", ""},
		{"file", "reading a file or a directory", long(FileTimeout), "the last content stays in use", "", ""},
		{"process", "writing the rest of a recording when the gateway stops; time between two attempts to create a file; time between two log lines about calls that were not recorded", long(RecordStop) + "; " + long(RecordRetry) + "; " + long(RecordLogInterval), "not recorded", "", ""},
		{"process", "recording one handler; reading " + size(RecordBatchBytes) + " of the recording; time between two progress lines from the gateway", long(RecordStreamTime) + "; " + long(RecordStreamPatience) + "; " + long(RecordStreamBeat), "a longer time is refused; the connection is closed", "`--for`", ""},
		{"command", "time without data from a gateway that records one handler", long(RecordStreamSilence), "the command fails", "", ""},
		{"process", "a scrape of metrics, until the client has read it", long(ScrapeTimeout), closed, "", ""},
		{"process", "reading a page, or a change of a page; age of the list of extensions on the page", long(PageTimeout) + "; " + long(PageAge), "the connection is closed; the list is made again", "", ""},
		{"process", "age of the infrastructure objects on a page; reading these objects", long(InfrastructurePageAge) + "; " + long(InfrastructurePageTimeout), "the objects are read again; the page shows the problem", "", ""},
		{"webhook", "receiving a request", long(WebhookReceiveTimeout), "status 408", "", ""},
		{"infrastructure object", "a call to the extension", long(InfrastructureTimeout), "`Synced` is `False`", "", "`hookgate_infrastructure_call_duration_seconds`"},
		{"infrastructure object", "time between failed calls", long(LeastRetry) + " at first, at most " + long(LongestRetry), "", "", ""},
		{"infrastructure object", "delay before the next call, if the extension requests a delay", long(LeastRecall) + " to " + long(LongestRecall), "the nearer limit is used", "", ""},
		{"infrastructure object", "age of credentials in memory", long(CredentialAge), "the Secret is read again", "", ""},
		{"command", "an action of `hookgate dashboard`; recording a handler in it", long(DashboardActionTime) + "; " + long(DashboardRecordTime), "the action is broken off", "", ""},
		{"command", "connecting to a gateway through the API server", long(TunnelTimeout), "the command fails", "", ""},
	}
}
