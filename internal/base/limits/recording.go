// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package limits

import "time"

// The limits of recordings, and of their replay.
const (
	// DefaultRecordBytes is the size of the files of a recording together, and LeastRecordBytes the least that may be set,
	// in which the largest line has room. A file has one in RecordFilesPart of that, and at most RecordFileBytes.
	// RecordFiles is their number, of processes before this one, too.
	DefaultRecordBytes = 1 << 30
	LeastRecordBytes   = 64 << 20
	RecordFilesPart    = 16
	RecordFileBytes    = 64 << 20
	RecordFiles        = 64
	// RecordLineBytes is the size of the largest line: a request and an answer of BodyBytes, and what is said about them.
	RecordLineBytes = 2*BodyBytes + 64<<10
	// RecordQueueCalls and RecordQueueBytes bound the calls that wait to be written: the latter counts twice their size,
	// for the line that is made of them. The memory is of the budget besides.
	RecordQueueCalls = 4096
	RecordQueueBytes = 96 << 20
	// RecordDelay is how long the first call waits for others to be written with it, and RecordBatchBytes the size from
	// which lines are written without waiting for more.
	RecordDelay      = 10 * time.Millisecond
	RecordBatchBytes = 256 << 10
	// RecordLogInterval is the time between two log lines about calls that were not recorded, RecordRetry that between
	// two attempts to make a file, and RecordStop how long writing what is queued may take when the gateway stops.
	RecordLogInterval = time.Minute
	RecordRetry       = time.Second
	RecordStop        = 5 * time.Second
	// RecordPatterns is the number of JSON pointers of what is redacted, or may differ, and RecordPatternBytes the length
	// of one.
	RecordPatterns     = 100
	RecordPatternBytes = 1 << 10
	// RecordStreams is the number of recordings of one handler that are read as they are made, RecordStreamTime how long
	// one may take, and RecordStreamBytes the size of the lines that wait for its reader, and of those that are on their
	// way. RecordStreamPatience is how long the reader may take for RecordBatchBytes of them, and RecordStreamBeat how
	// often it hears of the gateway, which it leaves after RecordStreamSilence.
	RecordStreams        = 2
	RecordStreamTime     = 24 * time.Hour
	RecordStreamBytes    = 8 << 20
	RecordStreamPatience = 10 * time.Second
	RecordStreamBeat     = 5 * time.Second
	RecordStreamSilence  = 30 * time.Second
	// ReplayDifferences is the number of differences that are listed; the others are counted.
	ReplayDifferences = 100
)

// The limits of looking for answers that have changed although their requests have not.
const (
	// DriftBytesPerSecond is the size of the requests and answers that are looked at, where a call counts as
	// DriftCallLeast more than it has. After a pause, as many as DriftQueueBytes are looked at. DriftQueueCalls and
	// DriftQueueBytes bound those that wait for it, and DriftCallBytes one of them.
	DriftBytesPerSecond = 2 << 20
	DriftCallLeast      = 4 << 10
	DriftQueueCalls     = 512
	DriftQueueBytes     = 8 << 20
	DriftCallBytes      = 1 << 20
	// DriftAnswers and DriftBytes bound the answers that later ones are compared with, and DriftPlaces the differences of
	// one that are named.
	DriftAnswers = 4096
	DriftBytes   = 8 << 20
	DriftPlaces  = 5
)
