// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

//nolint:lll // each limit is a row
package limits

// What several limits do beyond them.
const (
	tooLarge     = "the call is refused: `TooLarge`"
	badAnswer    = "the call fails: `BadResponse`"
	badDiscovery = "discovery fails: `BadResponse`"
	overloaded   = "the call is refused: `Overloaded`"
	later        = "the call is refused: `Overloaded`, try again after "
	circuitOpens = "the circuit opens, and calls fail: `Unreachable`"
	circuitShows = "`hookgate_circuit_state`, `hookgate_handler_circuit_state`, `hookgate_handler_refused_clusters`"
	refused      = "the object is refused"
	cut          = "the text is cut"
	counted      = "further items are only counted"
	closed       = "the connection is closed"
	closedLogged = "the connection is closed, and that is logged"
	notReady     = "the class is not ready"
	notUsed      = "the answer is not used"
	reported     = "the file is reported and not used"
	invalid      = "the object is refused, or its `ParametersValid` is `False`"
	busy         = "the request is refused: status 503"
	waits        = "the call waits"
)

func memory() []Limit {
	shows := "`hookgate_memory_reserved_bytes`, `hookgate_memory_refused_total`"
	return []Limit{
		{"process", "size of the budget: the memory for all calls together", percent(BudgetShare) + " of the container's memory limit or of `GOMEMLIMIT`, at most " + size(LargestBudget) + "; at least " + size(ProgramHeap) + " of Go's heap stay outside the budget", overloaded, "`--memory-budget` (at least " + size(LeastBudget) + "; more than " + percent(LargestBudgetShare) + " of the memory limit logs a warning), or the container's memory limit together with `GOMEMLIMIT`", shows},
		{"call", "size of the memory for one call if the budget is less than " + size(LeastBudget) + ", as in a container with a memory limit of less than " + size(LeastBudget*100/BudgetShare) + " (logged at start)", "the whole budget", tooLarge, "", ""},
		{"process", "size of the default budget if the process has no memory limit (logged at start, except with `--dev`)", "1/" + count(UnlimitedPart) + " of the machine's memory, at most " + size(LargestUnlimited), overloaded, "", ""},
		{"process", "size of Go's heap, unless `GOMEMLIMIT` sets a lower limit", percent(HeapShare) + " of the container's memory limit, and at most that limit minus " + size(HeapRest), "Go collects garbage more often", "", ""},
		{"process", "share of the budget up to which calls are admitted; share up to which admitted calls get more memory", percent(AdmittedShare) + " (" + percent(AdmittedLittleShare) + " for calls of at most " + size(LittleCallBytes) + ", " + percent(AdmittedSmallShare) + " for calls of at most " + size(SmallCallBytes) + "); " + percent(GrownShare), "a new call waits; an admitted call is refused: `Overloaded`", "", ""},
		{"process", "size of all cached answers ([`cache`](extension-policy.md#cache)); size of one cached answer", percent(KeptShare) + " of the budget, at most " + size(CachedBytes) + ", and none while calls use " + percent(KeptBelow) + " of the budget; " + size(CachedBytes/CachedPart), "the least recently used answers are forgotten; the answer is not cached", "", ""},
		{"process", "size and number of the calls that wait to be [recorded](recording.md) (each counts as twice its size)", size(RecordQueueBytes) + ", " + count(RecordQueueCalls) + " calls (taken from the caches' part of the budget)", "further calls are not recorded", "", "`hookgate_recording_dropped_total`"},
		{"process", "number of [recordings of one handler](recording.md#record-one-handler) at the same time; in each recording, size of the lines that wait for the reader, and of the lines being sent", count(RecordStreams) + "; " + size(RecordStreamBytes) + " each", busy + "; further calls are not recorded", "", "`hookgate_recording_dropped_total`"},
		{"process", "size and number of the calls whose answers wait to be compared with [earlier answers](operate.md#answers-that-change); size of one such call; size and number of the earlier answers in memory", size(DriftQueueBytes) + ", " + count(DriftQueueCalls) + " calls; " + size(DriftCallBytes) + "; " + size(DriftBytes) + ", " + count(DriftAnswers) + " answers", "further calls are not compared; the call is not compared; the least recently used answers are forgotten", "", "`hookgate_answers_not_compared_total`"},
		{"process", "size of the calls whose answers are compared with earlier answers; number of differing places listed in the message about a changed answer", size(DriftBytesPerSecond) + " per second, where each call counts as " + size(DriftCallLeast) + " more than its size; " + count(DriftPlaces), "further calls are not compared; further differing places are only counted", "", "`hookgate_answers_not_compared_total`"},
		{"process", "size of the log lines that the reader of the log has not read yet", size(LogBytes), "further lines are dropped, and their number is logged", "", ""},
		{"caller", "share of the budget that one caller's calls use together", percent(CallerShare), waits, "", ""},
		{"extension", "share of the budget used by requests that wait for the extension's answers, and by these answers", percent(ExtensionShare), overloaded, "", ""},
	}
}

func sizes() []Limit {
	return []Limit{
		{"call", "size of the body of a request, also after conversion and encoding for an extension", size(BodyBytes), tooLarge, "", ""},
		{"call", "size of the answer of an extension, also after merging, conversion and encoding for the caller", size(BodyBytes), badAnswer, "", ""},
		{"call", "size of an answer over HTTP/1.1, including the overhead of chunks", "twice the size of the answer, plus " + size(ChunkBytes), badAnswer, "", ""},
		{"call", "size of the header of a request (over gRPC, of its metadata)", size(HeaderBytes), "the request is refused: status 431 (over gRPC, the stream is reset)", "", ""},
		{"call", "size of the header of an answer", size(AnswerHeaderBytes), badAnswer, "", ""},
		{"call", "length of a bearer token", size(TokenBytes), "the call is refused: `Unauthenticated`", "", ""},
		{"call", "length of a handler's name in a request", size(NameBytes), "the call is refused: `UnknownHandler`", "", ""},
		{"call", "length of `kind`, and of the API group, in a reference to an object; length of `apiVersion`, and of `kind`, of an object to convert", "63 bytes, and 253 bytes; " + size(QuotedBytes) + " each", "the call fails: `Conversion` or `InvalidRequest`", "", ""},
		{"call", "size of the objects and lists read by match conditions (an object that is read twice counts twice)", size(PolicyReadBytes), "the call fails: `Policy`", "", ""},
		{"call", "size of all values computed by match conditions and rules", size(PolicyMemoryBytes), "the call fails: `Policy`", "", ""},
		{"call", "length of an extension's text that an error quotes; length of another gateway's text that an error about a loop quotes", size(ErrorQuoteBytes) + "; " + size(LoopQuoteBytes), cut, "", ""},
		{"call", "length of the message in an extension's answer", size(MessageBytes), "the text is cut, and ends with `… (cut)`", "", ""},
		{"call", "length of the messages of several handlers together; length of the text of an error", size(MergedMessageBytes) + " each", "each message is cut to an equal share, at least " + size(LeastMessageShare) + "; " + cut, "", ""},
		{"extension", "number of consecutive answers about a Cluster that [differ only in their messages](operate.md#messages-that-change)", count(UnsteadyMessages), "the status reports that the messages change", "", ""},
		{"call", "length of a quoted name or path; length of each text in a log line", size(QuotedBytes) + "; " + size(LogTextBytes), cut, "", ""},
		{"message", "size of a decompressed message of the gRPC services for health and reflection", size(SideMessageBytes), "the call fails with the gRPC code Internal; if the message comes from an extension's reflection service, " + badDiscovery, "", ""},
		{"connection", "number of bytes outside bodies (headers, frames, TLS) from a caller over HTTP/2 or gRPC, or from a client of another address of the gateway", size(OverheadBytes) + ", plus " + size(CallOverheadBytes) + " for each call, open or ended", "all connections of the address together may send " + size(OverheadBurst) + " more, and are then read at " + size(OverheadBytesPerSecond) + " per second; a connection that would wait more than " + long(OverheadWait) + " is closed, and that is logged", "", ""},
		{"connection", "number of bytes that an extension sends over gRPC in addition to its answers (each byte of a health check counts as " + count(HealthOverhead) + " bytes)", size(OverheadBytes) + ", plus " + size(CallOverheadBytes) + " for each call, open or ended, plus at most " + size(AbandonedBytes) + " for each call that was given up", "the gateway reads the connection more slowly (such connections of all extensions share one rate), and then closes the connection: calls fail with `Unreachable`", "", ""},
		{"connection", "number of bytes of a request that the gateway still reads after it has refused that request", size(LingerBytes), closed, "", ""},
		{"extension", "length of `url`; size of `caBundle` as base64", size(URLBytes) + "; " + count(CABundleBytes) + " bytes", refused, "", ""},
		{"extension", "in the status: length of the text about a failure", size(FailureBytes), cut, "", ""},
		{"file", "size of a file with a certificate, a key or CA certificates; size of the file of `--callers`; size of a file in `--state-dir`", size(CertificateFileBytes) + "; " + size(CallersFileBytes) + "; " + size(StateBytes), "for the first two, the new content is refused, and the previous content stays in use; for a file in `--state-dir`, the state counts as unknown, and that is logged", "", ""},
		{"file", "size of a line of a recording; size of one file of a recording", size(RecordLineBytes) + "; 1/" + count(RecordFilesPart) + " of `--record-max-bytes`, at most " + size(RecordFileBytes) + " (lines are written in pieces of " + size(RecordBatchBytes) + ", and after " + long(RecordDelay) + " at the latest)", "the call is not recorded; the next file begins", "", "`hookgate_recording_dropped_total`"},
		{"process", "size of all files of a recording together", size(DefaultRecordBytes), "the oldest files are removed", "`--record-max-bytes`, at least " + size(LeastRecordBytes), ""},
		{"file", "size of a file of manifests; size of all files of a directory together", size(ManifestBytes) + "; " + size(ManifestsBytes), reported + "; the files that sort last by name are not used", "", ""},
		{"file", "number of lines, and size, of all documents whose errors are reported with the exact line", count(LocatedLines) + " lines, " + size(LocatedBytes), "the error names the line where the document begins", "", ""},
		{"object", "length of the text about a problem; length of the message of a condition; length of the note of an event", size(ProblemBytes) + "; " + size(ConditionMessageBytes) + "; " + count(EventNoteBytes) + " bytes", cut, "", ""},
		{"object", "size as JSON of the [last valid](cluster.md#what-was-last-valid) spec that is recorded for an object of one of Hookgate's kinds", size(LastValidBytes), "the spec is in effect, but not recorded, and that is logged", "", ""},
		{"object", "length of the text about a policy in the status; length of the text about a Cluster that waits", size(PolicyMessageBytes) + "; " + size(FailureBytes), cut, "", ""},
		{"caller", "length of a caller's name", size(CallerNameBytes), "the name is cut; in the file of `--callers`, a longer name is refused", "", ""},
		{"webhook", "size of a request for admission, and of its answer; size of a request for conversion, and of its answer", size(AdmissionBytes) + "; " + size(ConversionBytes), "the request is refused: status 413 if the request is too large, status 503 if the answer is too large", "", ""},
		{"webhook", "number of bytes in transit, in both directions together; number of such bytes of one host", size(Admissions*AdmissionBytes) + " for admission, " + size(2*ConversionBytes) + " for conversion; " + size(2*AdmissionBytes) + " for admission, " + size(ConversionBytes) + " for conversion", "requests wait", "", ""},
		{"command", "size of the status of a gateway", size(StatusBytes), "the status is refused", "", ""},
		{"command", "size of the answer of a hook; length of the text of an error", size(BodyBytes) + "; " + size(MergedMessageBytes), "the answer is refused; the text is cut", "", ""},
		{"command", "size of the JSON that a command indents; size of the YAML that a command prints", size(IndentedBytes) + "; " + size(IndentedBytes), "the JSON is printed without indentation; the YAML is refused", "", ""},
		{"command", "length of a cell of a table, except the last cell of each row", size(CellBytes), cut, "", ""},
		{"command", "size of a field of a form in `hookgate dashboard`; size of the output of an action in the dashboard", size(DashboardFormBytes) + "; " + size(DashboardOutputBytes), "the form is refused; the output is cut", "", ""},
		{"command", "size of one file of a bug report; size of all statuses of extensions in the report together; size of the whole report", size(ReportFileBytes) + "; " + size(ReportFileBytes) + "; " + size(ReportBytes), "the file is cut; further statuses are left out; the last files are cut", "", ""},
	}
}

func infrastructureSizes() []Limit {
	return []Limit{
		{"infrastructure object", "size of the parameters as JSON, before and after defaults are added; length of a member's name", size(ParameterBytes) + "; " + size(ParameterNameBytes), invalid, "", ""},
		{"infrastructure object", "length of the text about a problem of parameters", size(ParameterProblemBytes), cut, "", ""},
		{"infrastructure object", "size of the outputs of a cluster as JSON", size(OutputBytes), notUsed, "", ""},
		{"infrastructure object", "size of the data in a Secret with credentials", size(CredentialBytes), "the object's `Synced` is `False`: `CredentialsNotFound`", "", ""},
		{"InfrastructureClass", "size of the schema of parameters; size of all values of an `enum` together; length of a `pattern`", size(ParameterSchemaBytes) + "; " + size(ParameterEnumBytes) + "; " + size(ParameterPatternBytes), notReady, "", ""},
		{"InfrastructureClass", "size of all capacities of machines together, as JSON", size(MachineCapacityBytes), notReady, "", ""},
	}
}

func counts() []Limit {
	return []Limit{
		{"caller", "number of calls per second", count(CallerRate), later + long(RefusedRetry), "`--max-calls-per-second`", "`hookgate_requests_total`"},
		{"caller", "number of calls in flight", count(CallerCalls), later + long(RefusedRetry), "`--max-calls-in-flight`", "`hookgate_requests_total`"},
		{"extension", "number of calls in flight", count(DefaultInFlight), "the call waits, at most until its deadline", "[`limits.maxInFlight`](extension-policy.md#limits)", "`hookgate_extension_calls_in_flight`"},
		{"extension", "number of calls that wait for other calls to end", count(DefaultWaiting), "the call fails: `Unreachable`", "`limits.maxWaiting`", "`hookgate_extension_calls_refused_total`"},
		{"handler, Cluster, server", "number of failures in a row", count(DefaultFailuresInARow), circuitOpens, "[`circuit.consecutiveFailures`](extension-policy.md#circuit)", circuitShows},
		{"handler, server", "share of failures among the calls of the last " + long(CircuitWindow) + ", if there are at least " + count(CircuitCalls) + " calls", percent(DefaultFailurePercent), circuitOpens, "`circuit.failureRatePercent`", circuitShows},
		{"handler", "number of Clusters whose failures are remembered", count(FailingClusters), "of the Clusters whose calls are not refused, the one that failed first is forgotten; if calls about all remembered Clusters are refused, the new failure counts for the handler's circuit", "", "`hookgate_handler_refused_clusters`"},
		{"process", "number of calls that `hookgate infrastructure` has in flight", count(DefaultInfrastructureCalls), "calls wait", "`--max-calls`", "`hookgate_infrastructure_call_duration_seconds`"},
		{"process", "number of InfrastructureClasses with metrics of their own", count(InfrastructureClasses), "further classes are counted together, as \"Other\"", "", ""},
		{"InfrastructureClass", "number of calls in flight", count(DefaultClassCalls), "the object is processed again after 1 s", "`--max-calls-per-class`", "`hookgate_infrastructure_call_duration_seconds`"},

		{"call", "outside Kubernetes objects: total number of list elements, map entries and unknown members", count(Elements), "the call fails: `TooLarge` for the request, `BadResponse` for the answer", "", ""},
		{"call", "number of elements of an object to [convert](conversion.md); number of values of an object that has patches", count(ObjectElements) + " each", tooLarge, "", ""},
		{"call", "if patches of an object are compared: number of the object's values; size of the JSON pointers to values that differ", count(ObjectElements) + "; " + size(ObjectPointers), "the patches are not compared", "", ""},
		{"call", "number of values in a patch for a converted object, including values that the patch copies; number of values in converted metadata of variables", count(ObjectElements) + " each", badAnswer, "", ""},
		{"call", "number of levels of nested JSON", count(JSONDepth), "the call fails: `InvalidRequest` for the request, `BadResponse` for the answer", "", ""},
		{"call", "number of members of an object, if a match condition reads one of these members", count(Elements), tooLarge, "", ""},
		{"call", "number of namespaces to which the items of a request belong", count(Namespaces), tooLarge, "", ""},
		{"call", "number of handlers and steps listed in [an explanation](explain.md)", count(ExplainedHandlers), counted, "", ""},
		{"call", "number of header lines of an answer over HTTP/1.1", count(AnswerHeaderLines), badAnswer, "", ""},
		{"call", "number of gateways that one call passes through", count(GatewayHops), "the call fails: `Loop`; handlers further away are not discovered", "", ""},
		{"call", "number of attempts at one call, including the first (the gateway repeats a call if the connection breaks before the request is sent, or if the answer has `Retry-After`)", count(Attempts), "the caller gets the last failure", "", ""},
		{"chain", "number of steps; number of settings of a step", count(ChainSteps) + "; " + count(StepSettings), refused, "", ""},
		{"chain", "number of paths that a step may change; length of each path", count(AllowedPaths) + "; " + count(AllowedPathBytes) + " bytes", refused, "", ""},
		{"rule", "number of entries of a list in the rule; number of seconds in `retryAfterSeconds`", count(RuleList) + "; " + count(RuleRetrySeconds), refused, "", ""},
		{"rule", "length of each path in `allow`", count(AllowedPathBytes) + " bytes", refused, "", ""},
		{"rule", "duration of a window; length of the `cron` of a window", long(LeastWindow) + " to " + long(LongestWindow) + "; " + count(CronBytes) + " bytes", refused, "", ""},
		{"rule", "time after which the caller calls again, if the rule waits for a window", "until the window opens, at most " + count(WindowRetrySeconds) + " s", "the caller calls again before the window opens", "", ""},
		{"rule", "`concurrency.limit` of a rule; number of places that all Clusters of the rule take together", count(RuleConcurrency) + "; " + count(RulePlaces), refused + "; the Cluster waits", "", ""},
		{"process", "number of changes of Clusters in ExtensionRollouts that wait to be reported as events; number of deleted Clusters whose records are removed", count(RolloutEvents) + "; " + count(RolloutGonePerSecond) + " per second", "the change gets no event; removing records takes longer", "", ""},
		{"process", "number of writes and deletions of [last valid](cluster.md#what-was-last-valid) records", count(LastValidPerSecond) + " per second", "writes and deletions take longer", "", ""},
		{"process", "number of lifted holds that wait to be reported as events (the gateway writes 1 event per second)", count(LiftedHolds), "the event is written after the next call that lifts the hold", "", ""},
		{"rule", "size of a value of `concurrency.per`", size(RulePerBytes), "the call fails: `Policy`", "", ""},
		{"rule", "number of params; number of objects that a param with `objects` selects; number of Clusters in the namespace that a param with `admitted` reads", count(RuleParams) + "; " + count(RuleParamObjects) + "; " + count(RuleParamObjects), refused + "; for the other two limits, the call fails: `Policy`", "", ""},
		{"rule", "size of one param's object as JSON; size of all params' objects as JSON", size(RuleParamBytes) + "; " + size(RuleParamsBytes), "the call fails: `Policy`", "", ""},
		{"process", "number of objects and lists that all rules together read; for params with `self`: number of objects of one kind in memory, and size of these objects as JSON", count(RuleWatches) + "; " + count(RuleSelfObjects) + " and " + size(RuleSelfBytes), "the call fails: `NotReady`; the call fails: `Policy`", "", ""},
		{"rule", "length of a path to patch; length of the name of a class; size of the schema of a variable", count(RulePathBytes) + " bytes; " + count(RuleClassBytes) + " bytes; " + size(RuleSchemaBytes), refused, "", ""},
		{"HookJob", "size of the template as JSON", size(JobTemplateBytes), refused, "", ""},
		{"HookJob", "deadline of a Job", long(DefaultJobDeadline) + " (maximum: " + long(JobDeadline) + ")", refused, "`deadline`", ""},
		{"HookJob", "time that a Job is kept after its success was recorded", long(DefaultJobKept) + " (minimum: " + long(JobKept) + ")", refused, "`jobTemplate.spec.ttlSecondsAfterFinished`", ""},
		{"HookJob", "length of a value of `once`; size of a container's files; size of a container's settings", size(JobOnceBytes) + "; " + size(JobFilesBytes) + "; " + size(JobSettingsBytes), "the answer has the status Failure", "", ""},
		{"HookJob", "number of Jobs that have not ended", count(JobsUnfinished), "the Cluster or Machine is held, or, if the hook cannot hold, the call fails: `Unreachable`", "", ""},
		{"HookJob", "number of recorded successes", count(JobRecords), "the answer has the status Failure", "", ""},
		{"HookJob", "number of recorded successes of one Cluster or Machine", count(JobRecordsOfCluster), "the oldest records are deleted", "", ""},
		{"HookJob", "length of a Job's message; length of the reason why the Job's Pod does not succeed; number of Pods that are examined to find that reason", size(JobMessageBytes) + "; " + size(JobProblemBytes) + "; " + count(JobPods), "the text is cut; the text is cut; further Pods are ignored", "", ""},
		{"policy", "number of entries of `liftedHolds`; length of the `uid` of an entry", count(PolicyLifts) + "; " + count(UIDBytes) + " bytes", refused, "", ""},
		{"process", "number of Clusters that are remembered for [AfterClusterDelete](machines.md#when-a-cluster-is-gone); number of labels that are remembered for each of these Clusters", count(ClusterEndRecords) + "; " + count(ClusterEndLabels) + " labels of the Cluster, and " + count(ClusterEndLabels) + " of its namespace", "the Cluster is not remembered; only the first labels in alphabetical order are remembered", "", "`hookgate_cluster_records`, `hookgate_clusters_unrecorded_total`"},
		{"policy", "number of match conditions; length of each condition", count(MatchConditions) + "; " + count(ConditionCharacters) + " characters", refused, "", ""},
		{"policy, rule", "number of levels of nested lists, maps, macros and optional values in an expression", count(ExpressionNesting), refused, "", ""},
		{"policy", "cost of a match condition; cost of all match conditions of a policy (1 for each step, and 1 for each 10 bytes of text)", count(ConditionCost) + "; " + count(PolicyCost), "the call fails: `Policy`", "", ""},
		{"process", "number of calls that wait for memory; number of such calls of one caller", count(MemoryWaits) + ", plus " + count(SmallMemoryWaits) + " calls of at most " + size(SmallCallBytes) + "; " + count(OwnMemoryWaits), overloaded, "", "`hookgate_memory_waiting_calls`"},
		{"process", "number of bodies of more than " + size(HeavyBytes) + " that the gateway works on at the same time", "`GOMAXPROCS` − 1 (at least 1), but `GOMAXPROCS` if no small call has ended in the last " + long(HeavyQuiet), "the call waits, but fails at its deadline: `Timeout`", "", "`hookgate_heavy_work_waits_total`, `hookgate_heavy_work_wait_seconds_total`"},
		{"process", "number of files of a recording", count(RecordFiles), "the oldest files are removed", "", ""},
		{"process", "in the search for secrets: number of levels of nested texts; total size of the nested texts; size of a text that is read as YAML", count(RedactDepth) + "; " + size(RedactLeastBytes) + " plus " + count(RedactPart) + " times the size of the text; " + size(RedactYAMLBytes), "beyond either of the first two limits, a nested text is removed if it may contain a secret; beyond the third, the text is searched line by line", "", ""},
		{"process", "number of bytes that are still searched for secrets after the point where a text is cut", size(RedactMarginBytes), "the rest of the text is not searched, and not shown", "", ""},
		{"process", "number of JSON pointers to values to redact; number of JSON pointers whose values may differ in a replay; length of each pointer", count(RecordPatterns) + "; " + count(RecordPatterns) + "; " + count(RecordPatternBytes) + " bytes", "the pointers are refused", "", ""},
		{"process", "number of differences that a replay lists", count(ReplayDifferences), counted, "", ""},
		{"rollout", "number of Clusters with records; number of entries of `approved`", count(RolloutClusters) + "; " + count(RolloutApproved), "further Clusters stay with the stable version; " + refused, "", ""},
		{"rollout", "number of differences in a record; size of all differences; length of each text in a difference", count(RolloutDifferences) + "; " + size(RolloutDifferencesBytes) + "; " + count(RolloutValueBytes) + " bytes", "beyond either of the first two limits, further differences are only counted; beyond the third, the text is cut", "", ""},
		{"rollout", "number of calls that wait to be compared, for each Cluster; number of requests with remembered comparisons, for each Cluster; size of the remembered comparisons of all Clusters", count(RolloutWaiting) + "; " + count(RolloutQuestions) + "; " + size(RolloutEvidenceBytes), "the Cluster stays with the stable version", "", "`hookgate_rollout_comparisons_total`"},
		{"rollout", "number of consecutive times that the candidate must answer a request as the stable version does; number of reconciles without the request until the request is forgotten", count(RolloutAnswers) + ", doubled each time its answers change from equal to different or back; " + count(RolloutForgotten), "the Cluster stays with the stable version", "", ""},
		{"rollout", "number of most recent calls to the candidate to which `errorPercent` applies; number of calls to the candidate before `errorPercent` takes effect", count(RolloutCalls) + "; at least " + count(RolloutLeastCalls), "older calls do not count; with fewer calls, the rollout is not aborted", "", ""},
		{"rollout", "number of listed Clusters that differ or have moved: in the status of one rollout (`?rollout=NAME`); in the status of all rollouts", count(StatusRolloutClusters) + "; " + count(StatusRolloutExamples), counted, "", ""},
		{"process", "number of calls that wait to be compared for [rollouts](rollouts.md), and size of their requests and answers; number of calls compared at the same time", count(RolloutQueueCalls) + " calls, and " + size(RolloutQueueBytes) + " (or " + percent(KeptShare) + " of the budget, if that is less); " + count(RolloutComparisons) + " calls, which together use at most " + percent(CallerShare) + " of the budget", "further calls are not compared", "", "`hookgate_rollout_comparisons_total`"},
		{"process", "number of ExtensionRollouts in the status; number of ExtensionRollouts with metrics", count(StatusRollouts) + "; " + count(StatusRollouts), counted, "", ""},
		{"process", "number of callers whose calls are counted", count(TrackedCallers), "the caller that has been idle longest is forgotten; if no caller is idle, " + overloaded, "", ""},
		{"process", "number of checks of tokens by the API server; number of checks at the same time", count(ReviewsPerSecond) + " per second; " + count(ReviewsWaiting), "the check waits; if that would take more than " + long(ReviewTimeout) + ", the call fails: `NotReady`; beyond the second limit, " + overloaded, "", "`hookgate_authentications_total`"},
		{"process", "number of TokenReview results that are kept in memory", count(ReviewsKept), "the API server is called again", "", ""},
		{"process", "number of probes of the servers of extensions", count(ProbesPerSecond) + " per second", "if there are more than 200 servers, all are probed less often", "", "`hookgate_extension_up`"},
		{"process", "number of events about blocked in-place updates, and about rules that only audit; number of objects that wait for such an event", count(BlockedEventsPerSecond) + " per second; " + count(BlockedOwners), "events are written later; an object beyond the limit gets no event until the next call about it", "", ""},
		{"process", "number of log lines about answers of rules that only audit", count(AuditLines) + ", and then " + count(AuditLinesPerSecond) + " per second", "further lines are left out", "", "`hookgate_rule_audits_total`"},
		{"process", "number of requests for Secrets with CAs of extensions", count(SecretsPerSecond) + " per second", "requests take longer", "", ""},
		{"process", "number of scrapes of metrics; number of requests for [the status](status.md)", "for each of the two: 1 in progress, and " + count(Scrapes-1) + " that wait", busy, "", ""},
		{"process", "number of pages sent at the same time; number of pages in browsers that show changes as they happen", count(Pages) + "; " + count(FollowingPages), busy, "", ""},
		{"process", "number of series of calls in the charts of [the page](status.md), kept for a day: one for all calls, one for each extension and one for each handler (each takes 4,200 bytes, and all together take 4.1 MiB)", count(HistorySeries), "the page says that there is no room for further series", "", ""},
		{"process", "number of changes that the page marks in the charts; length of the text of each change; number of extensions whose pages show one change", count(Changes) + "; " + size(ChangeBytes) + "; " + count(ChangeExtensions), "the oldest change is forgotten; " + cut + "; the pages of further extensions do not show the change, but the first page does", "", ""},
		{"process", "number of handlers that are gone, but still have metric series", count(GoneHandlers) + ", and none after a scrape", "the series are removed", "", ""},
		{"process", "number of Clusters whose UIDs and callers are remembered, to refuse calls about Clusters of [other management clusters](cluster.md#several-management-clusters); number of UIDs, and of callers, of each Cluster; time that a UID or a caller counts after the last call; tolerated difference between clocks", count(Namesakes) + "; " + count(NamesakeMemory) + "; " + long(NamesakeTime) + "; " + long(NamesakeSkew), "the least recently used Cluster is forgotten; the oldest UID or caller of the Cluster is forgotten; calls with any UID, from any caller, are accepted; the call with another UID is refused: `Ambiguous`", "", ""},
		{"process", "number of Clusters that [the status](status.md#the-handlers-of-a-cluster) knows from calls; number of calls in which the gateway looks for the Cluster", count(SeenClusters) + "; " + count(SeenClustersPerSecond) + " per second", "the Cluster without calls for the longest time is forgotten; a further call is not examined, so its Cluster appears only with a later call", "", ""},
		{"process", "in the status, numbers of: ExtensionPolicies; HandlerChains; HookRules; Clusters that wait; Clusters with places; last answers that let a Cluster go on", count(StatusPolicies) + "; " + count(StatusChains) + "; " + count(StatusLocals) + "; " + count(HeldClusters) + "; " + count(HeldClusters) + "; " + count(HeldClusters), counted, "", ""},
		{"extension", "number of handlers; length of a handler's name, a DNS-1123 label", count(Handlers) + "; 63 bytes", badDiscovery, "", ""},
		{"process", "number of handlers of all ExtensionConfigs together", count(AllHandlers), "the ExtensionConfig is not registered: `Discovered` is `False`, and the message names the limit; calls fail with `NotReady`", "", ""},
		{"extension", "number of faults listed in one error of discovery", count(DiscoveryFaults), counted, "", ""},
		{"extension", "time that calls wait for an extension that accepts no connections, counted from the first of these calls; longest wait of one call, as a share of the call's timeout", long(RestartWait) + "; half", "the caller gets the last failure; later calls fail at once, until there is a connection", "", "`hookgate_handler_restart_waits_total`"},
		{"extension", "number of calls that are repeated although at least a part of the request was sent", percent(100/RetryPart) + " of all calls, and " + count(RetryCredit) + " calls at the start", "the caller gets the first failure", "", ""},
		{"extension", "number of failures listed in the status", count(Failures), "the oldest failure is forgotten", "", ""},
		{"file", "number of callers in the file of `--callers`; length of a token in this file", count(Callers) + "; at least " + count(LeastTokenBytes) + " bytes", "the new content is refused, and the previous content stays in use", "", ""},
		{"file", "number of manifest files in a directory; number of documents in a file", count(ManifestFiles) + "; " + count(ManifestDocuments), "files and documents beyond the limit are not used, and the first of these is reported", "", "`hookgate_manifest_errors`"},
		{"file", "number of values in a manifest file, counted as lines and the characters `,` `:` `[` `{` `?`", count(ManifestValues), reported, "", ""},
		{"file", "number of `%TAG` directives of a document; total number of mappings, and of their members, that merge keys (`<<`) add", count(ManifestTags) + "; " + count(ManifestMerged), reported, "", ""},
		{"file", "number of listed problems of a manifest file", count(ManifestProblems), counted, "", ""},
		{"object", "number of problems listed in a refusal, a condition, a log line or a notice", count(Problems), counted, "", ""},
		{"webhook", "number of JSON values in a request; number of JSON values in all requests answered at the same time", count(AdmissionValues) + " for admission, " + count(ConversionValues) + " for conversion; " + count(AdmissionValues) + " for admission, " + count(ConversionValues) + " for conversion", "the request is refused: status 413; requests wait", "", ""},
		{"webhook", "number of requests answered at the same time; number of such requests of one host", count(Admissions) + " for admission, " + count(Conversions) + " for conversion; " + count(HostAdmissions) + " for admission, " + count(HostConversions) + " for conversion", "requests wait", "", ""},
		{"webhook", "number of open requests of one host", count(WebhookRequests), busy, "", ""},
		{"command", "number of JSON values in a status; number of objects in a status; number of connections through the API server", count(StatusValues) + "; " + count(StatusObjects) + "; " + count(TunnelConnections), "beyond either of the first two limits, the status is refused; beyond the third, the command fails", "", ""},
		{"command", "number of actions of `hookgate dashboard` at the same time", count(DashboardActions), busy, "", ""},
		{"command", "number of rows of a table; number of values printed as YAML", count(TableRows) + "; " + count(YAMLValues), "further rows are only counted; the YAML is refused", "", ""},
		{"command", "characters allowed in names that shells complete", "letters, digits and `-._/@:+=`", "names with other characters are not offered", "", ""},
	}
}

func connections() []Limit {
	return []Limit{
		{"address for callers: HTTPS; gRPC", "number of open connections, including handshakes in progress; number of connections of one remote host", count(Connections) + "; " + count(HostConnections), closedLogged, "", ""},
		{"address for callers: HTTPS; gRPC", "if the process may open only a few files (`ulimit -n`): number of open connections; number of connections of one remote host", "one connection for every " + count(Descriptors) + " files that the process may open; half as many connections", closedLogged + " (when the gateway starts, it logs the smaller limit)", "", ""},
		{"any other address, except the profiler's", "number of open connections; number of connections of one remote host", count(SideConnections) + ", but at most one for every " + count(SideDescriptors) + " files that the process may open; " + count(SideHostConnections), closedLogged, "", ""},
		{"connection", "number of concurrent calls over HTTP/2 or gRPC", count(Streams) + " at the addresses for callers; " + count(SideStreams) + " at the other addresses", "the stream is refused; clients wait until another stream ends", "", ""},
		{"connection", "number of calls that the caller resets over HTTP/2 or gRPC", count(Resets) + " at once, then " + count(ResetsPerSecond) + " per second", closedLogged, "", ""},
		{"connection", "number of requests over HTTP/1.0, or over HTTP/1.1 with a body in chunks", "1", "the connection is closed after the answer", "", ""},
		{"extension", "number of idle connections", "a quarter of the budget divided by " + size(IdleConnectionBytes) + ", but at least " + count(LeastIdleConnections) + " and at most " + count(IdleConnections), "further idle connections are closed; each further call makes a new TLS handshake", "", ""},
		{"extension", "number of connections that the gateway is opening", "one for each call that waits for a connection, and " + count(AbandonedDials) + " for calls that have ended", "calls take the first connection that is ready", "", ""},
		{"extension", "number of connections to an address over gRPC", count(RedialBurst) + " at once, then one every " + long(RedialInterval), "connections open later; calls wait", "", ""},
		{"extension", "for gRPC: number of addresses of a host, or of endpoints of a Service", count(Addresses), "only the first " + count(Addresses) + " are used", "", ""},
	}
}

func infrastructureCounts() []Limit {
	return []Limit{
		{"infrastructure object", "number of values in parameters; number of levels of nesting", count(Parameters) + "; " + count(ParameterDepth), invalid, "", ""},
		{"infrastructure object", "cost of checking parameters once against all rules of their schema", count(ParameterCost) + " units of CEL, about 10 ms", invalid, "", ""},
		{"infrastructure object", "number of problems with parameters that an error lists", count(ParameterProblems), counted, "", ""},
		{"infrastructure object", "number of conditions that the extension sets", count(InstanceConditions), notUsed, "", ""},
		{"infrastructure object", "number of addresses of a machine; number of failure domains of a cluster; number of instances of a pool", count(MachineAddresses) + "; " + count(FailureDomains) + "; " + count(Instances), notUsed, "", ""},
		{"infrastructure object", "number of instances in the status of a pool; number of addresses of each instance", count(ReportedInstances) + "; " + count(InstanceAddresses), "only the first instances by name are shown; only the first addresses are shown", "", ""},
		{"infrastructure object", "number of machines of a pool that are created before the pool's size is read again", count(PoolStep), "the other machines are created after that", "", ""},
		{"infrastructure object", "number of events with the same reason", "1 in " + long(EventInterval), "the object gets no further event", "", ""},
		{"InfrastructureClass", "number of levels of nesting in the schema of parameters", count(ParameterSchemaDepth), notReady, "", ""},
		{"InfrastructureClass", "number of rules (`x-kubernetes-validations`) of the schema", count(ParameterRules) + ", with estimated costs within the API server's limits", notReady, "", ""},
		{"InfrastructureClass", "number of capacities of machines; number of resources of each capacity", count(MachineCapacities) + "; " + count(CapacityResources), notReady, "", ""},
		{"process", "number of Secrets with credentials that are kept in memory", count(Credentials), "the Secret is read again", "", ""},
	}
}

func times() []Limit {
	return []Limit{
		{"handler", "time that a call to a handler takes", "the handler's timeout: " + long(DefaultTimeout) + " if the handler states none, at most " + long(Timeout), "the call fails: `Timeout`", "[`timeoutSeconds`](extension-policy.md#timeoutseconds)", "`hookgate_handler_calls_near_timeout_total`"},
		{"handler, Cluster, server", "time between two probes of an open circuit", long(DefaultOpen) + ", doubled up to " + long(DefaultLongestOpen), "the next call is a probe", "`circuit.minOpenSeconds`, `circuit.maxOpenSeconds`", circuitShows},
		{"connection", "age of a connection to an extension", long(DefaultConnectionAge), "the connection is replaced", "`--connection-max-age`", ""},
		{"connection", "age of a connection of a caller", long(DefaultCallerConnectionAge) + ", give or take a tenth", "with the next answer, the caller is told to connect anew; calls in flight go on", "`--caller-connection-max-age`", ""},
		{"call", "time for a call in flight to finish when the gateway stops", long(DefaultShutdown), "the call is broken off", "`--shutdown-timeout`", ""},

		{"call", "time to receive a request", long(ReceiveTimeout), "the call fails: `InvalidRequest` (over gRPC, DeadlineExceeded)", "", ""},
		{"call", "time to answer a REST caller, counted from the header of the request", long(AnswerTimeout), closed, "", ""},
		{"call", "time until the caller has read the answer", long(AnswerPatience) + ", and 1 s more for each " + size(AnswerBytesPerSecond) + " that the caller has read", "the stream is reset; over HTTP/1.1 and gRPC, the connection is closed", "", ""},
		{"call", "time that all handlers of the call take together, if a policy sets their order", long(Timeout), "the call fails: `Timeout`", "", ""},
		{"call", "time that a call waits for memory", "half the time until the call's deadline, at most " + long(MemoryWait), overloaded, "", ""},
		{"call", "time until a message over gRPC has arrived completely", long(UnsizedWait), "until it has arrived, the message counts as " + size(BodyBytes) + " of the budget; if there is no room for it, the call fails immediately, with the gRPC code DeadlineExceeded", "", ""},
		{"call", "time that the gateway works on a large body without interruption, if work for another caller or extension waits", long(HeavyTurn), "the waiting work comes first", "", ""},
		{"connection", "time until a caller's first header has arrived or, over gRPC, until the handshakes have ended", long(HandshakeTimeout), closed, "", ""},
		{"connection", "time that a connection of a caller is idle", long(IdleTimeout), closed, "", ""},
		{"connection", "time that a gRPC caller is silent", "after " + long(KeepaliveTime) + ", the gateway sends a ping; the caller has " + long(KeepaliveTimeout) + " to answer it", closed, "", ""},
		{"connection", "time between two pings from a gRPC caller", "at least " + long(LeastPingTime), closed, "", ""},
		{"connection", "time to read the rest of a refused request", long(LingerTimeout) + " in total, or " + long(LingerQuiet) + " during which no data arrives", closed, "", ""},
		{"connection", "time that a gRPC connection stays open after `ca.crt` has appeared or changed", long(RenewTimeout) + " (meanwhile, only calls with a certificate that is valid now are accepted)", closed, "", ""},
		{"connection", "time that streams, such as a health watch, stay open on a gRPC connection that has reached its maximum age", long(RenewTimeout), closed, "", ""},
		{"connection", "time that a connection without a call stays open when the gateway stops", long(DrainQuiet) + " after the last byte that the gateway wrote", closed, "", ""},
		{"connection", "time of a TLS handshake with an extension", long(ExtensionHandshakeTimeout), "the call fails: `Unreachable`", "", ""},
		{"connection", "time that a connection to an extension is idle", long(IdleExtensionTimeout), closed, "", ""},
		{"handler", "time that the failures of a Cluster are remembered after the last failure", long(FailingClusterTime), "the failures are forgotten", "", ""},
		{"address", "time during which the other addresses of the host are tried first, after a connection to this address has failed", long(FailingTime), "the address has its usual turn again", "", ""},
		{"address", "time between two log lines about refused or closed connections", long(RefusedInterval), "the next line has the number of connections refused or closed since the last line", "", ""},
		{"extension", "time of one attempt at discovery", long(DiscoveryTimeout), "the attempt fails: `Discovered` is `False`", "", "`hookgate_discovery_duration_seconds`"},
		{"extension", "time of a probe of the server; time between two probes", long(ProbeTimeout) + "; " + long(ProbeInterval), "the extension is `Down`", "", ""},
		{"extension", "time between two requests for the Secret with the extension's CA", long(SecretInterval), "the request waits", "", ""},
		{"extension", "number of remembered certificates of the extension's servers; time that a certificate is considered after a server last showed it, unless it is the most recently shown one", count(ShownCertificates) + "; " + long(ShownCertificateTime), "of the remaining certificates, the first to expire is reported", "", "`hookgate_extension_certificate_expiry_timestamp_seconds`"},
		{"extension", "maximum age of the calls that the status counts (the counts take 3.5 KiB for each called handler)", long(StatusWindow), "the call is no longer counted", "", ""},
		{"rule", "time between two checks of the Clusters that have places", long(PlacesInterval), "the next check frees places that are no longer needed", "", ""},
		{"rule", "age of a place that is still being given to a Cluster; age of a place whose rule does not exist, or of a place that no Cluster owns and whose Cluster does not exist", long(PlaceAnnounced) + "; " + long(PlaceUnknown), "the place is free again", "", ""},
		{"process", "time between two checks for records of deleted Clusters", long(RolloutSweep), "the next check removes these records", "", ""},
		{"process", "longest time between two calls about a Cluster that is gone; time that such a Cluster is remembered if no handler matches it", long(ClusterEndRetry) + "; " + long(ClusterEndUnmatched), "the hook is called again; the Cluster is forgotten", "", "`hookgate_clusters_gone_total`"},
		{"rollout", "time without calls about a Cluster until equal answers take effect; time from the last reconcile with a new request until the Cluster may move", long(RolloutSettle) + "; " + long(RolloutPause), "until then, the Cluster stays with the stable version", "", ""},
		{"rollout", "time to store a record; time between two attempts", long(RolloutStore) + "; " + long(RolloutRetry) + " at first, at most " + long(RolloutRetryMost), "the Cluster stays with the stable version", "", ""},
		{"policy", "age of a cached answer", count(CacheSeconds/3600) + " h", "the answer is forgotten", "", ""},
		{"caller", "age of the API server's answer about the caller's token; time of one check of a token", long(ReviewLifetime) + "; " + long(ReviewTimeout), "the API server is called again; the call fails: `NotReady`", "", ""},
		{"file", "time to read a file or a directory", long(FileTimeout), "the last content stays in use", "", ""},
		{"process", "time to write the rest of a recording when the gateway stops; time between two attempts to create a file; time between two log lines about calls that were not recorded", long(RecordStop) + "; " + long(RecordRetry) + "; " + long(RecordLogInterval), "the remaining calls are not recorded", "", ""},
		{"process", "time that a recording of one handler takes", "10 min (maximum: " + long(RecordStreamTime) + ")", "a longer time is refused", "`--for`", ""},
		{"process", "for a recording of one handler: time until the client has read " + size(RecordBatchBytes) + "; time between two progress lines", long(RecordStreamPatience) + "; " + long(RecordStreamBeat), closed, "", ""},
		{"command", "time that the command waits for data from a gateway that records one handler", long(RecordStreamSilence), "the command fails", "", ""},
		{"process", "time from the start of a metrics scrape until the client has read the answer", long(ScrapeTimeout), closed, "", ""},
		{"process", "time until the browser has read a page, or an update of a page; age of the list of extensions on the page", long(PageTimeout) + "; " + long(PageAge), "the connection is closed; the list is made again", "", ""},
		{"process", "age of the infrastructure objects on a page; time to read these objects", long(InfrastructurePageAge) + "; " + long(InfrastructurePageTimeout), "the objects are read again; the page shows the problem", "", ""},
		{"webhook", "time to receive a request", long(WebhookReceiveTimeout), "the request is refused: status 408", "", ""},
		{"infrastructure object", "time that a call to the extension takes", long(InfrastructureTimeout), "the object's `Synced` is `False`", "", "`hookgate_infrastructure_call_duration_seconds`"},
		{"infrastructure object", "time between a failed call and the next call", long(LeastRetry) + " at first, at most " + long(LongestRetry), "the extension is called again", "", ""},
		{"infrastructure object", "time before the next call, if the extension requests a delay", long(LeastRecall) + " to " + long(LongestRecall), "the nearer limit is used", "", ""},
		{"infrastructure object", "age of credentials in memory", long(CredentialAge), "the Secret is read again", "", ""},
		{"command", "time of an action of `hookgate dashboard`; time of recording a handler in the dashboard", long(DashboardActionTime) + "; " + long(DashboardRecordTime), "the action is broken off", "", ""},
		{"command", "time to connect to a gateway through the API server", long(TunnelTimeout), "the command fails", "", ""},
	}
}
