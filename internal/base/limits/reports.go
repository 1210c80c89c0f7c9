// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package limits

import "time"

// The limits of metrics, of the status and of the pages about the extensions.
const (
	// GoneHandlers is the number of handlers that are gone and still have metric series.
	GoneHandlers = 100
	// Failures is the number of failures of an extension in the status, and FailureBytes the size of the text of each.
	Failures     = 10
	FailureBytes = 512
	// StatusWindow is how far the status looks back at calls.
	StatusWindow = 5 * time.Minute
	// HistorySeries is the number of series of calls whose last day the page draws: one of all calls, and one for each
	// extension and handler. Changes is the number of changes that it marks in them, ChangeBytes the size of the text of
	// each, and ChangeExtensions the number of extensions that one is about.
	HistorySeries    = 1024
	Changes          = 200
	ChangeBytes      = 200
	ChangeExtensions = 8
	// HeldClusters is the number of Clusters that wait in the status, of those that have places of HookRules, and of
	// answers that have let Clusters go on.
	HeldClusters = 10_000
	// UnsteadyMessages is how many answers about a Cluster in a row, with another message each, are reported.
	UnsteadyMessages = 5
	// Namesakes is the number of Clusters of which it is remembered which one calls are about, NamesakeMemory how many
	// callers and former UIDs of each, and NamesakeTime for how long after the last call. NamesakeSkew is by how much the
	// clocks of an API server and of the gateway may differ, and how late a call may be.
	Namesakes      = 10_000
	NamesakeMemory = 8
	NamesakeTime   = 15 * time.Minute
	NamesakeSkew   = time.Minute
	// SeenClusters is the number of Clusters of which it is known that calls were about them, and SeenClustersPerSecond
	// that of the calls whose Clusters are looked at for that.
	SeenClusters          = 10_000
	SeenClustersPerSecond = 1000
	// Pages is the number of pages that are sent at a time, FollowingPages that of pages that follow what happens, and
	// PageTimeout the time to read one, or a change of it. PageAge is the age of the list of extensions in them, and
	// InfrastructurePageAge that of the objects of infrastructure, which are read within InfrastructurePageTimeout.
	Pages          = 16
	FollowingPages = 20
	PageTimeout    = 10 * time.Second
	PageAge        = 500 * time.Millisecond

	InfrastructurePageAge     = 10 * time.Second
	InfrastructurePageTimeout = 5 * time.Second
)

// The limits of the command line, which reads what another program says.
const (
	// StatusBytes, StatusValues and StatusObjects bound a status: its size, its JSON values and the objects among them.
	StatusBytes   = 64 << 20
	StatusValues  = 2_000_000
	StatusObjects = 200_000
	// TableRows is the number of rows of a table, and CellBytes the size of its cells but the last of a row.
	TableRows = 100_000
	CellBytes = 320
	// IndentedBytes is the size of indented JSON and YAML, and YAMLValues the number of values of YAML.
	IndentedBytes = 256 << 20
	YAMLValues    = 1_000_000
	// DashboardFormBytes is the size of a field of a form that hookgate dashboard takes, and DashboardOutputBytes that of
	// what it shows of an action. DashboardActions is the number of actions at a time, and DashboardActionTime how long
	// one takes, but for a recording, of which DashboardRecordTime is the time.
	DashboardFormBytes   = 1 << 20
	DashboardOutputBytes = 256 << 10
	DashboardActions     = 4
	DashboardActionTime  = 2 * time.Minute
	DashboardRecordTime  = 10 * time.Minute
	// TunnelTimeout bounds the connection to a gateway through the API server, and TunnelConnections their number.
	TunnelTimeout     = 20 * time.Second
	TunnelConnections = 64
	// ReportFileBytes is the size of a file of a bug report, and ReportBytes that of all.
	ReportFileBytes = 8 << 20
	ReportBytes     = 64 << 20
)

// The limits of reading files.
const (
	// FileTimeout bounds the time to read a file or a directory.
	FileTimeout = 5 * time.Second
	// ManifestTags is the number of %TAG directives of a document. ManifestMerged is the number of mappings that its
	// merge keys add, plus the number of members of these mappings.
	ManifestTags   = 100
	ManifestMerged = 100_000
	// LocatedLines and LocatedBytes bound the documents of a file whose errors are located.
	LocatedLines = 20_000
	LocatedBytes = 2 << 20
	// LeastTokenBytes is the length of the shortest token in the file of callers.
	LeastTokenBytes = 16
)

// The limits of time of the connections of callers, besides those above.
const (
	// KeepaliveTime is how long a gRPC caller may be silent, KeepaliveTimeout how long it then has to answer, and
	// LeastPingTime the least time between two pings of its own.
	KeepaliveTime    = time.Minute
	KeepaliveTimeout = 20 * time.Second
	LeastPingTime    = 10 * time.Second
	// LingerQuiet is how long a caller may send nothing after an answer that refuses its request.
	LingerQuiet = time.Second
	// DrainQuiet is how long a connection without a call stays open after the last byte when the gateway stops, and
	// DefaultShutdown how long calls in flight have then.
	DrainQuiet      = time.Second
	DefaultShutdown = 40 * time.Second
	// AnswerTimeout bounds the time from the header of a request over HTTP to the end of its answer.
	AnswerTimeout = 2 * time.Minute
	// AnswerPatience is how long the caller of a call may read nothing of its answer, which has memory until it is read,
	// and AnswerBytesPerSecond how fast it has to read: 20 MiB at 3 Mbit/s, as a request may come, take 56 s.
	AnswerPatience       = 5 * time.Second
	AnswerBytesPerSecond = 384 << 10
	// RenewTimeout is how long a gRPC connection may go on that was asked to end.
	RenewTimeout = Timeout + 5*time.Second
	// RefusedInterval is the time between two log lines about connections that were closed.
	RefusedInterval = time.Minute
	// RefusedRetry is when a caller that calls too much may try again.
	RefusedRetry = time.Second
)
