// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package limits

import "time"

// The limits of ExtensionRollouts.
const (
	// RolloutClusters is the number of Clusters of which an ExtensionRollout has records. Further ones stay with stable.
	RolloutClusters = 20_000
	// RolloutDifferences is the number of differences that a record has, RolloutDifferencesBytes their size together, and
	// RolloutValueBytes that of each of their texts. 2,000 Clusters that differ take at most 20 MiB.
	RolloutDifferences      = 20
	RolloutDifferencesBytes = 4 << 10
	RolloutValueBytes       = 256
	// RolloutQueueCalls and RolloutQueueBytes bound the calls that wait to be compared, of all ExtensionRollouts together.
	RolloutQueueCalls = 1000
	RolloutQueueBytes = 64 << 20
	// RolloutComparisons is the number of calls that are compared at the same time.
	RolloutComparisons = 4
	// RolloutWaiting is the number of calls about one Cluster that wait to be compared.
	RolloutWaiting = 64
	// RolloutQuestions is the number of requests about one Cluster whose comparisons are known, and RolloutEvidenceBytes
	// the memory that those of all Clusters take. A Cluster with five patches has six.
	RolloutQuestions     = 500
	RolloutEvidenceBytes = 32 << 20
	// RolloutAnswers is how often in a row the candidate has to answer a request as stable does, and how often it is asked
	// the same at most. After each answer that is another one than before, it is twice as often.
	RolloutAnswers = 4
	// RolloutForgotten is the number of reconciles that do not ask a question any more before it is forgotten. The first
	// may be a part of the one that has asked it.
	RolloutForgotten = 4
	// RolloutPause is how long a Cluster stays after the end of the first reconcile since which nothing else was asked:
	// two calls of one reconcile may ask the same, with others to come. It is the default timeout of a handler.
	RolloutPause = 10 * time.Second
	// RolloutSettle is how long a Cluster has to be without calls before equal answers count for all its handlers, unless
	// one of these is asked again before.
	RolloutSettle = 30 * time.Second
	// RolloutCalls is the number of the last calls of the candidate of which errorPercent is a share, and
	// RolloutLeastCalls how many there must be.
	RolloutCalls      = 100
	RolloutLeastCalls = 20
	// StatusRolloutClusters is the number of Clusters that differ or have moved which the status lists of one rollout.
	StatusRolloutClusters = 500
	// RolloutEvents is the number of changes of Clusters that wait for their events.
	RolloutEvents = 1000
	// RolloutSweep is the time between two looks for records of Clusters that were deleted, and RolloutGonePerSecond
	// bounds the Clusters whose records are deleted.
	RolloutSweep         = 10 * time.Minute
	RolloutGonePerSecond = 20
	// RolloutStore is how long storing one record may take. RolloutRetry is when a failed attempt is repeated; the time
	// doubles up to RolloutRetryMost.
	RolloutStore     = 10 * time.Second
	RolloutRetry     = time.Second
	RolloutRetryMost = time.Minute
)

// The limits of what people see of ExtensionRollouts.
const (
	// StatusRollouts is the number of ExtensionRollouts that the status lists, and of those with metrics, and
	// StatusRolloutExamples that of the Clusters of each that it has if none is asked for.
	StatusRollouts        = 100
	StatusRolloutExamples = 20
	// RolloutApproved is the number of entries of spec.approved. The schema says the same.
	RolloutApproved = 1000
)
